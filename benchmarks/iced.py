"""How long ICED takes: 20 rounds on USPS-Syn, one seed.

    python -m benchmarks.iced [--data_dir=DIR] [--json] [--rounds=20] [--seed=0]

`fit_seconds` is a whole fit after imports: building, tracing, auto-encoder, warm-up and all rounds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.timing import Clock, peak_memory_mb, run


def timed_fit(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the time of one fit, of its parts, and how well it does."""
    import data  # noqa: F401  (registers the datasets)
    from neucrowd_tf import registry
    from neucrowd_tf.aggregation import majority_labels
    from neucrowd_tf.iced import ICED, score_rounds
    from neucrowd_tf.iced.networks import ICEDModel

    usps = registry.dataset("usps_syn").load(arguments.data_dir, arguments.seed)
    model: ICED = registry.method("iced").make(
        dataset="usps_syn", seed=arguments.seed, rounds=arguments.rounds
    )
    marks: list[float] = []
    starts: list[float] = []
    outputs, set_epoch = ICEDModel.outputs, ICEDModel.set_epoch

    def begin(self: ICEDModel) -> Any:
        marks.append(time.perf_counter())
        return outputs(self)

    def end(self: ICEDModel, **orders: Any) -> None:
        set_epoch(self, **orders)
        if len(starts) < len(marks):  # of a round, not of what comes before
            starts.append(time.perf_counter() - marks[-1])

    ICEDModel.outputs, ICEDModel.set_epoch = begin, end  # type: ignore[method-assign]
    began = time.perf_counter()
    with Clock() as whole:
        model.fit(usps.features, usps.annotations)
    ICEDModel.outputs, ICEDModel.set_epoch = outputs, set_epoch  # type: ignore[method-assign]
    assert usps.truth is not None
    before = marks[0] - began
    scores = score_rounds(model, usps.truth)
    votes = majority_labels(usps.annotations.vote_counts(), "random", arguments.seed)
    return {
        "fit_seconds": whole.seconds,
        "fit_processor_seconds": whole.cpu_seconds,
        "before_rounds_seconds": before,
        "round_seconds": (
            float(np.median(np.diff(marks))) if len(marks) > 1 else whole.seconds - before
        ),
        "generation_seconds": float(np.median(starts)),
        "rounds": arguments.rounds,
        "instances": len(usps.features),
        "accuracy": float(model.score(usps.test.features, usps.class_names[usps.test.labels])),
        "label_accuracy_majority_vote": float((votes == usps.truth).mean()),
        "label_accuracy_original": float(scores["label_accuracy"].iloc[0]),
        "label_accuracy_first": float(scores["label_accuracy"].iloc[1]),
        "label_accuracy_final": float(scores["label_accuracy"].iloc[-1]),
        "peak_memory_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, timed_fit, rounds=20, seed=0)
