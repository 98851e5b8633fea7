"""The regret of each way of choosing a method without truth, `auto`'s among them.

    python -m benchmarks.choice collect [--output=DIR] [--data_dir=DIR] [--datasets=labelme,music]
        [--draws=3]
    python -m benchmarks.choice table [--output=DIR] [--json]

`collect` fits the candidates that fit into `auto`'s budget. It writes one file per dataset, draw
and candidate, and continues an interrupted collection. A draw of real data is nine tenths of its
rows; simulated data is redrawn. `table` reads these files.

Regret is the test accuracy of the best candidate minus that of the chosen one. If classes are not
as frequent as in training (usps_syn) it is balanced accuracy, and the target is balanced. `auto` is
its rule with the candidates that were tried, each fitted once. Gold labels are drawn from the
training instances, ten times per table.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from benchmarks.timing import Clock, arguments, data_folder, show
from neucrowd_tf import registry
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.choice import Auto, pooling, ranking, search
from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.candidates import affordable
from neucrowd_tf.choice.evidence import CRITERIA, Evidence, weighed_consensus
from neucrowd_tf.harness import plugins
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.metrics import expected_calibration_error

DATASETS = "labelme,music,usps_syn,gsad_syn,syn1,breast_cancer,digits,cifar10n"
REAL = ("labelme", "music", "cifar10n")  # not redrawn: a draw takes some rows
BALANCED = ("usps_syn",)
FOLDS, GOLD, GOLD_DRAWS = 3, 50, 10
ERROR = "calibration error"


# --------------------------------------------------------------------------- collect


def collect(options: argparse.Namespace) -> None:
    """Fits every candidate, cross-validated and on all rows, and keeps what it predicts."""
    plugins.register(("data", "baselines"))
    for draw in range(1, options.draws + 1):
        for name in options.datasets.split(","):
            table = drawn(name, draw, options.data_dir)
            folder = options.output / f"{name}-{draw}"
            collect_table(folder, *table, draw, balanced=name in BALANCED)


def drawn(name: str, draw: int, data_dir: Path | None) -> tuple[Any, Any, Any, Any, Any]:
    """Returns features, annotations, truth, test features and test labels of a draw."""
    dataset: Any = registry.dataset(name).load(data_dir, draw)
    size = len(dataset.features)
    rows = np.arange(size)
    if name in REAL:
        taken = 2000 if name == "cifar10n" else int(0.9 * size)
        rows = np.sort(np.random.default_rng([draw, 9]).choice(size, taken, replace=False))
    x, test = pooled(dataset.features[rows]), pooled(dataset.test.features)
    return x, dataset.annotations[rows], dataset.truth[rows], test, dataset.test.labels


def pooled(images: NDArray[Any]) -> NDArray[np.float32]:
    """Returns means of 4 x 4 pixels, a row an image; other features unchanged."""
    if images.ndim != 4:
        return images
    size, height, width, channels = images.shape
    blocks = images.reshape(size, height // 4, 4, width // 4, 4, channels)
    return np.asarray(blocks.mean(axis=(2, 4)).reshape(size, -1), dtype=np.float32)


def collect_table(
    folder: Path,
    x: NDArray[Any],
    annotations: Annotations,
    truth: NDArray[np.int64],
    test: NDArray[Any],
    test_labels: NDArray[np.int64],
    draw: int,
    *,
    balanced: bool,
) -> None:
    """Writes a table's labels and every candidate's predictions."""
    fold = np.random.default_rng([draw, 1]).permutation(len(x)) % FOLDS
    least = min(int((fold != k).sum()) for k in range(FOLDS))
    splits = [(np.flatnonzero(fold != k)[:least], np.flatnonzero(fold == k)) for k in range(FOLDS)]
    tried, _, _ = affordable(x, annotations, Auto().budget, balanced=balanced)
    arrays: dict[str, NDArray[Any]] = {
        "truth": truth,
        "test_labels": test_labels,
        "consensus": weighed_consensus(annotations, draw),
        "instances": annotations.instances,
        "annotators": annotations.annotators,
        "labels": annotations.labels,
        "fold": fold,
        "shape": np.array([len(x), annotations.num_annotators, annotations.num_classes]),
        "tried": np.array([one.name for one in tried]),
    }
    save_arrays(folder / "table.npz", arrays)
    for one in tried:
        path = folder / f"{one.name}.npz"
        if path.exists():
            continue
        task = search.Task(one, x, annotations, splits, draw)
        with Clock() as clock:
            (outcome,) = search.side_by_side(search.held_out, [task], 1)
            if outcome.probabilities is None:
                print(f"{folder.name} {one.name}: {outcome.reason}", file=sys.stderr)
                continue
            task = dataclasses.replace(task, candidate=one.with_strength(outcome.strength))
            (last,) = search.side_by_side(search.fitted, [task], 1)
            tested = np.asarray(last.estimator.predict_proba(test))
        right = accuracy(tested, test_labels, balanced)
        seconds = f"{clock.cpu_seconds:.1f} s of a core, predicted {4 * one.cost:.1f}"
        print(f"{folder.name} {one.name}: {right:.3f}, {seconds}", file=sys.stderr)
        save_arrays(path, {"held_out": outcome.probabilities, "test": tested})


# --------------------------------------------------------------------------- table


def accuracy(probabilities: NDArray[Any], labels: NDArray[Any], balanced: bool) -> float:
    """Returns the share that is right, of all rows or averaged over classes."""
    right = probabilities.argmax(axis=1) == labels
    if not balanced:
        return float(right.mean())
    return float(np.mean([right[labels == code].mean() for code in np.unique(labels)]))


class Collected:
    """What `collect` left of one table.

    Args:
        folder: of the table.
    """

    def __init__(self, folder: Path) -> None:
        table = load_arrays(folder / "table.npz")
        self.balanced = folder.name.rpartition("-")[0] in BALANCED
        self.truth, self.labels = table["truth"], table["test_labels"]
        self.consensus, self.fold = table["consensus"], table["fold"]
        tried = [str(name) for name in table["tried"]]
        files = {path.stem: load_arrays(path) for path in sorted(folder.glob("*.npz"))}
        del files["table"]
        names = [name for name in tried if name in files]
        self.held = {name: _scaled(files[name]["held_out"]) for name in names}
        self.test = {name: _scaled(files[name]["test"]) for name in names}
        rows, annotators, classes = (int(size) for size in table["shape"])
        crowd = Annotations(
            *(table["instances"], table["annotators"], table["labels"]),
            num_instances=rows,
            num_annotators=annotators,
            num_classes=classes,
        )
        self.evidence = Evidence.of(crowd, self.consensus, 0)

    def score(self, probabilities: NDArray[Any]) -> float:
        """Returns the accuracy on test truth."""
        return accuracy(probabilities, self.labels, self.balanced)

    @functools.cached_property
    def _alive(self) -> dict[str, NDArray[np.float64]]:
        """The candidates that `auto` would have tried on all folds."""
        first = self.fold == 0
        right = {n: p[first].argmax(axis=1) == self.consensus[first] for n, p in self.held.items()}
        base, root = right["mv_lr"].astype(np.float64), np.sqrt(first.sum())
        alive = {}
        for name, hits in right.items():
            gap = hits - base
            if gap.mean() + search.ERRORS * gap.std(ddof=1) / root > -search.HOPELESS:
                alive[name] = self.held[name]
        return alive

    def _average(
        self, codes: NDArray[np.int64] | None = None
    ) -> tuple[ranking.Ranked, list[float], NDArray[np.float64]]:
        """Returns the average's members, their weights and the log of their mean on test data.

        Args:
            codes: `[N]` gold labels, -1 for none.
        """
        evidence = self.evidence
        if codes is not None:
            evidence = dataclasses.replace(evidence, gold=codes)
        ranked = ranking.rank(self._alive, evidence, balanced=self.balanced)
        weights = pooling.weigh(self._alive, ranked, evidence, balanced=self.balanced)
        return ranked, weights, mean_logits([self.test[name] for name in ranked.members], weights)

    def auto(self) -> dict[str, NDArray[np.float64]]:
        """Returns `auto`'s predictions for test data without a temperature and with two of them.

        "with" is its own temperature; "by truth" is fitted to the truth of the same instances.
        """
        ranked, weights, logits = self._average()
        predicted = {"without": np.exp(logits)}
        for when, codes in (("with", np.full(len(self.truth), -1)), ("by truth", self.truth)):
            evidence = dataclasses.replace(self.evidence, gold=codes)
            fit = pooling.calibrate(self.held, ranked, weights, evidence)
            predicted[when] = softmax(logits / fit.temperature + fit.shift, axis=1)
        return predicted

    def with_gold(self, codes: NDArray[np.int64]) -> float:
        """Returns the average's score given gold labels; no temperature changes it."""
        ranked, weights, logits = self._average(codes)
        corrections = [ranked.corrections[name] for name in ranked.members]
        return self.score(logits - np.average(corrections, axis=0, weights=weights))


def regrets(folder: Path) -> dict[str, float]:
    """Returns each rule's regret on one table, and the calibration errors of `auto`."""
    table = Collected(folder)
    ranked = ranking.rank(table.held, table.evidence, balanced=table.balanced)
    seen = {n: _shifted(p, ranked.corrections[n]) for n, p in table.held.items()}
    shifted = {n: _shifted(p, ranked.corrections[n]) for n, p in table.test.items()}
    scored = {name: table.score(p) for name, p in shifted.items()}
    best = max(*(table.score(p) for p in table.test.values()), *scored.values())
    results = {}
    for name, rule in {"consensus": _agreement, **CRITERIA}.items():
        by = {one: rule(p, table.evidence) for one, p in seen.items()}
        results[name] = best - scored[max(by, key=by.__getitem__)]
    plain = np.exp(mean_logits(list(shifted.values())))
    results["average of all"] = best - table.score(plain)
    predicted = table.auto()
    results["auto"] = best - table.score(predicted["with"])
    results[f"auto with {GOLD} gold labels"] = float(
        np.mean([best - table.with_gold(gold) for gold in _gold(table)])
    )
    for when, probabilities in predicted.items():
        error = expected_calibration_error(table.labels, probabilities)
        results[f"{ERROR} {when}"] = error
    results["best"] = best
    return results


def _agreement(probabilities: NDArray[np.float64], evidence: Evidence) -> float:
    """Returns the share of instances whose prediction is the consensus label."""
    return float((probabilities.argmax(axis=1) == evidence.consensus).mean())


def _gold(table: Collected) -> list[NDArray[np.int64]]:
    """Returns draws of gold labels `[N]`."""
    results = []
    for draw in range(GOLD_DRAWS):
        gold = np.full(len(table.truth), -1)
        rows = np.random.default_rng([draw, 0x601D]).permutation(len(gold))[:GOLD]
        gold[rows] = table.truth[rows]
        results.append(gold)
    return results


def _scaled(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    values = np.asarray(probabilities, dtype=np.float64)
    return values / values.sum(axis=1, keepdims=True)


def _shifted(probabilities: NDArray[Any], correction: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(softmax(np.log(np.maximum(probabilities, 1e-12)) - correction, axis=1))


def report(results: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the regrets in points: means by rule, and `auto` by table."""
    table = 100 * pd.DataFrame(results).T
    rules = [name for name in table if name != "best" and not str(name).startswith(ERROR)]
    means = table[rules].agg(["mean", "max"]).T
    shown = table[["best", "auto", f"auto with {GOLD} gold labels", "consensus", f"{ERROR} with"]]
    return f"{means.round(1).to_string()}\n\n{shown.round(1).to_string()}"


def main() -> None:
    """Collects, or shows the table."""
    options = arguments(
        __doc__,
        commands=("collect", "table"),
        output=Path("runs/choice"),
        data_dir=data_folder(),
        datasets=DATASETS,
        draws=3,
    )
    if options.command == "collect":
        collect(options)
        return
    folders = sorted(path.parent for path in options.output.glob("*/mv_lr.npz"))
    results = {folder.name: regrets(folder) for folder in folders}
    show(options, results, report(results) if results else "no collected tables")


if __name__ == "__main__":
    main()
