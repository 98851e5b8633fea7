"""Speed of truth inference, beside crowd-kit's in the same run if that is installed.

    python -m benchmarks.aggregation [--json] [--quick]

Dawid-Skene: seconds per iteration at 1,000,000 annotations (200,000 items, 2,000 annotators, 5
classes). GLAD: seconds to the end at 24,945 annotations (8,315 items, 176 annotators, 2 classes),
with the accuracy that both reach. --quick takes a tenth of each size. Larger crowds:
benchmarks.scale.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import Clock, arguments, peak_memory_mb, show
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.majority_vote import MajorityVote
from neucrowd_tf.annotations import Annotations

crowdkit: Any = None
if importlib.util.find_spec("crowdkit"):
    crowdkit = importlib.import_module("crowdkit.aggregation")

DAWID_SKENE = {"tasks": 200_000, "annotators": 2_000, "classes": 5, "labels_each": 5}
GLAD = {"tasks": 8_315, "annotators": 176, "classes": 2, "labels_each": 3}
OUR_ITERATIONS, THEIR_ITERATIONS = 40, 4


def simulate(
    seed: int, tasks: int, annotators: int, classes: int, labels_each: int
) -> tuple[Annotations, np.ndarray]:
    """Returns annotations of uneven annotators (a tenth spammers) on uneven tasks, in random order,
    and the truth `[tasks]`.
    """
    rng = np.random.default_rng([seed, tasks, annotators])
    truth = rng.integers(0, classes, tasks, dtype=np.int32)
    ability = np.where(rng.random(annotators) < 0.1, 0.0, rng.normal(1.3, 0.6, annotators))
    easiness = np.exp(rng.normal(0.2, 0.5, tasks))
    first = rng.integers(0, annotators, tasks, dtype=np.int32)
    stride = np.int32(max(annotators // (labels_each + 1), 1))  # annotators of a task differ
    instances = rng.permutation(tasks * labels_each).astype(np.int32)
    position, instances = np.divmod(instances, np.int32(tasks))
    workers = (first[instances] + position * stride) % np.int32(annotators)
    del position
    right = rng.random(len(instances), dtype=np.float32) < 1.0 / (
        1.0 + np.exp(-ability[workers] * easiness[instances])
    )
    shift = rng.integers(1, classes, len(instances), dtype=np.int32)
    labels = np.where(right, truth[instances], (truth[instances] + shift) % np.int32(classes))
    del right, shift
    crowd = Annotations(
        instances,
        workers,
        labels,
        num_instances=tasks,
        num_annotators=annotators,
        num_classes=classes,
    )
    return crowd, truth


def seconds(run: Callable[[], Any], repeats: int = 1) -> float:
    """Returns the shortest of `repeats` wall times."""
    clocks = [Clock() for _ in range(repeats)]
    for clock in clocks:
        with clock:
            run()
    return min(clock.seconds for clock in clocks)


def per_iteration(fit: Callable[[int], Any], iterations: int, repeats: int) -> float:
    """Returns the seconds of one more iteration: what `iterations` take above what one takes, so
    that set-up drops out.
    """
    return (
        seconds(lambda: fit(1 + iterations), repeats) - seconds(lambda: fit(1), repeats)
    ) / iterations


def bench_dawid_skene(sizes: dict[str, int], seed: int = 0) -> dict[str, Any]:
    """Returns the seconds of an iteration, ours and crowd-kit's."""
    crowd, truth = simulate(seed, **sizes)
    ours = per_iteration(
        lambda n: DawidSkene(max_iter=n, tol=-np.inf).fit(crowd), OUR_ITERATIONS, 3
    )
    theirs = None
    if crowdkit is not None:
        frame = crowd.to_frame()
        theirs = per_iteration(
            lambda n: crowdkit.DawidSkene(n_iter=n, tol=-np.inf).fit(frame), THEIR_ITERATIONS, 2
        )
    outcome = DawidSkene()
    result: dict[str, Any] = {
        **sizes,
        "annotations": crowd.num_annotations,
        "seconds_per_iteration": ours,
        "fit_seconds": seconds(lambda: outcome.fit(crowd)),
        "fit_iterations": outcome.n_iter_,
        "accuracy": float(np.mean(outcome.labels_ == truth)),
        "crowdkit_seconds_per_iteration": theirs,
        "speedup": theirs and theirs / ours,
    }
    return {f"dawid_skene_{name}": value for name, value in result.items()}


def bench_glad(sizes: dict[str, int], seed: int = 0) -> dict[str, Any]:
    """Returns the seconds to the end and the accuracy, ours and crowd-kit's, each by default."""
    crowd, truth = simulate(seed, **sizes)
    outcome = Glad()
    ours = seconds(lambda: outcome.fit(crowd), 3)
    result: dict[str, Any] = {
        **sizes,
        "annotations": crowd.num_annotations,
        "seconds": ours,
        "iterations": outcome.n_iter_,
        "accuracy": float(np.mean(outcome.labels_ == truth)),
    }
    result |= dict.fromkeys(("crowdkit_seconds", "crowdkit_accuracy", "speedup"))
    if crowdkit is not None:
        theirs, frame = crowdkit.GLAD(), crowd.to_frame()
        took = seconds(lambda: theirs.fit(frame))
        labels = theirs.labels_.loc[crowd.instance_names].to_numpy()
        result |= {"crowdkit_seconds": took, "crowdkit_iterations": len(theirs.loss_history_)}
        result |= {"crowdkit_accuracy": float(np.mean(labels == truth)), "speedup": took / ours}
    figures = {f"glad_{name}": value for name, value in result.items()}
    votes = MajorityVote().fit(crowd).labels_
    return figures | {"majority_vote_accuracy": float(np.mean(votes == truth))}


def main() -> None:
    """Measures both methods."""
    options = arguments(__doc__, quick=False)
    warnings.simplefilter("ignore")  # iterations are cut short on purpose
    divisor = 10 if options.quick else 1
    small, other = ({**sizes, "tasks": sizes["tasks"] // divisor} for sizes in (DAWID_SKENE, GLAD))
    figures = bench_dawid_skene(small) | bench_glad(other)
    show(options, figures | {"peak_memory_mb": peak_memory_mb()})


if __name__ == "__main__":
    main()
