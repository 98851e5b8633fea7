"""How long ICED takes: 20 rounds on USPS-Syn, one seed.

    python -m benchmarks.iced [--data_dir=DIR] [--json] [--rounds=20] [--seed=0]

`fit_seconds` is a whole fit after imports: building, tracing, auto-encoder, warm-up and all rounds.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.timing import Clock, accuracy_on_test, peak_memory_mb, prepared, run, timed_calls


def timed_fit(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the time of one fit, of its parts, and how well it does."""
    from neucrowd_tf.annotations.votes import majority_labels
    from neucrowd_tf.iced import score_rounds
    from neucrowd_tf.iced.networks import ICEDModel

    usps, model = prepared("usps_syn", "iced", arguments, rounds=arguments.rounds)
    with (
        timed_calls(ICEDModel, "outputs") as begins,  # of a round
        timed_calls(ICEDModel, "set_epoch") as ends,  # of a round's generation
        Clock() as whole,
    ):
        model.fit(usps.features, usps.annotations)
    starts = [clock.began for clock in begins]
    before = starts[0] - whole.began
    generations = [
        end.ended - start for start, end in zip(starts, ends[-len(starts) :], strict=True)
    ]
    scores = score_rounds(model, usps.truth)
    votes = majority_labels(usps.annotations.vote_counts(), "random", arguments.seed)
    return {
        "fit_seconds": whole.seconds,
        "fit_processor_seconds": whole.cpu_seconds,
        "before_rounds_seconds": before,
        "round_seconds": (
            float(np.median(np.diff(starts))) if len(starts) > 1 else whole.seconds - before
        ),
        "generation_seconds": float(np.median(generations)),
        "rounds": arguments.rounds,
        "instances": len(usps.features),
        "accuracy": accuracy_on_test(model, usps),
        "label_accuracy_majority_vote": float((votes == usps.truth).mean()),
        "label_accuracy_original": float(scores["label_accuracy"].iloc[0]),
        "label_accuracy_first": float(scores["label_accuracy"].iloc[1]),
        "label_accuracy_final": float(scores["label_accuracy"].iloc[-1]),
        "peak_memory_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, timed_fit, rounds=20, seed=0)
