"""Speed of truth inference, beside crowd-kit's in the same run when that is installed.

    python -m benchmarks.aggregation [--json] [--quick] [--seed=0]

Dawid-Skene: seconds an iteration at 1,000,000 annotations (200,000 tasks, 2,000 annotators, 5
classes); GLAD: seconds to the end at 24,945 annotations (8,315 tasks, 176 annotators, 2 classes),
with the accuracy that both reach. With --json one JSON object goes to stdout and the table goes to
stderr. --quick takes a tenth of each size, to try the benchmark out. Larger crowds:
benchmarks.scale.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import Clock, flags, peak_memory_mb
from neucrowd_tf.aggregation import DawidSkene, Glad, MajorityVote
from neucrowd_tf.annotations import Annotations

crowdkit: Any = (
    importlib.import_module("crowdkit.aggregation")
    if importlib.util.find_spec("crowdkit")
    else None
)

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


def bench_dawid_skene(sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """Seconds an iteration, ours and crowd-kit's."""
    crowd, truth = simulate(seed, **sizes)
    result: dict[str, Any] = {f"dawid_skene_{name}": size for name, size in sizes.items()}
    result["dawid_skene_annotations"] = crowd.num_annotations
    result["dawid_skene_seconds_per_iteration"] = per_iteration(
        lambda n: DawidSkene(max_iter=n, tol=-np.inf).fit(crowd), OUR_ITERATIONS, 3
    )
    outcome = DawidSkene()
    result["dawid_skene_fit_seconds"] = seconds(lambda: outcome.fit(crowd))
    result["dawid_skene_fit_iterations"] = outcome.n_iter_
    result["dawid_skene_accuracy"] = float(np.mean(outcome.labels_ == truth))
    result["dawid_skene_crowdkit_seconds_per_iteration"] = result["dawid_skene_speedup"] = None
    if crowdkit is not None:
        frame = crowd.to_frame()
        theirs = per_iteration(
            lambda n: crowdkit.DawidSkene(n_iter=n, tol=-np.inf).fit(frame), THEIR_ITERATIONS, 2
        )
        result["dawid_skene_crowdkit_seconds_per_iteration"] = theirs
        result["dawid_skene_speedup"] = theirs / result["dawid_skene_seconds_per_iteration"]
    return result


def bench_glad(sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """Seconds to the end, ours and crowd-kit's, with the accuracy of both, each with its own
    defaults.
    """
    crowd, truth = simulate(seed, **sizes)
    result: dict[str, Any] = {f"glad_{name}": size for name, size in sizes.items()}
    result["glad_annotations"] = crowd.num_annotations
    outcome = Glad()
    result["glad_seconds"] = seconds(lambda: outcome.fit(crowd), 3)
    result["glad_iterations"] = outcome.n_iter_
    result["glad_accuracy"] = float(np.mean(outcome.labels_ == truth))
    result["majority_vote_accuracy"] = float(np.mean(MajorityVote().fit(crowd).labels_ == truth))
    result["glad_crowdkit_seconds"] = result["glad_crowdkit_accuracy"] = result["glad_speedup"] = (
        None
    )
    if crowdkit is not None:
        theirs, frame = crowdkit.GLAD(), crowd.to_frame()
        result["glad_crowdkit_seconds"] = seconds(lambda: theirs.fit(frame))
        result["glad_crowdkit_iterations"] = len(theirs.loss_history_)
        result["glad_crowdkit_accuracy"] = float(
            np.mean(theirs.labels_.loc[crowd.instance_names].to_numpy() == truth)
        )
        result["glad_speedup"] = result["glad_crowdkit_seconds"] / result["glad_seconds"]
    return result


def show(result: dict[str, Any]) -> None:
    """Prints the table to stderr."""
    for key, value in result.items():
        text = "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
        print(f"{key:<46} {text:>14}", file=sys.stderr)


def main() -> int:
    """Runs what the command line asks for."""
    parser = flags(__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of each size")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # iterations are cut short on purpose
    divisor = 10 if arguments.quick else 1
    small, other = ({**sizes, "tasks": sizes["tasks"] // divisor} for sizes in (DAWID_SKENE, GLAD))
    result = bench_dawid_skene(small, arguments.seed) | bench_glad(other, arguments.seed)
    result["peak_memory_mb"] = peak_memory_mb()
    show(result)
    if arguments.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
