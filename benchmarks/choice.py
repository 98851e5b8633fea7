"""The study of `auto`: all its candidates on datasets with truth, and the regret of each criterion.

    python -m benchmarks.choice collect --output=DIR [--data_dir=DIR] [--part=given|later]
        [--datasets=labelme,music] [--draws=1,2,3]
    python -m benchmarks.choice table --input=DIR [--json] [--output=FILE]

`collect` fits the candidates that fit into `auto`'s budget. It writes one file per dataset, draw
and candidate, and continues an interrupted collection. A draw of real data is nine tenths of its
rows; simulated data is redrawn.

The part `given` has three draws of each dataset. `later` has three draws of eleven tables that were
written after the rule was fixed, and nothing was changed for them. results/STUDIES.md names the
commit and the commands of the other parts of results/choice.md.

Regret is the test accuracy of the best candidate minus that of the chosen one. If classes are not
as frequent as in training (usps_syn) it is balanced accuracy, and the target is balanced. `auto` is
its rule with the candidates that were tried, each fitted once. Gold labels are drawn from the
training instances, ten times per table.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from benchmarks.choice_tables import DRAWS, LATER, LATER_DRAWS, drawn
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.choice import Auto, pooling, ranking, search
from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.candidates import affordable
from neucrowd_tf.choice.evidence import CRITERIA, Evidence
from neucrowd_tf.evaluation.intervals import mean_interval
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.metrics import expected_calibration_error
from neucrowd_tf.training.validation import consensus_labels

GIVEN = ("labelme", "music", "usps_syn", "gsad_syn", "syn1", "breast_cancer", "digits", "cifar10n")
BALANCED = ("usps_syn",)
# Datasets and draws of each part.
PARTS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "given": (GIVEN, DRAWS),
    "later": (tuple(LATER), LATER_DRAWS),
}
FOLDS, GOLD, GOLD_DRAWS = 3, 50, 10
ERROR = "calibration error"


# --------------------------------------------------------------------------- collect


def collect(options: argparse.Namespace) -> None:
    """Fits every candidate, cross-validated and on all rows, and keeps what it predicts."""
    datasets, draws = PARTS[options.part]
    for draw in options.draws or draws:
        for name in options.datasets or datasets:
            table = drawn(name, draw, options.data_dir)
            collect_table(
                options.output / f"{name}-{draw}-given", *table, draw, balanced=name in BALANCED
            )


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
        "consensus": consensus_labels(annotations, draw, weigh_annotators=True),
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
        began = time.process_time()
        task = search.Task(one, x, annotations, splits, draw)
        (outcome,) = search.side_by_side(search.held_out, [task], 1)
        if outcome.probabilities is None:
            sys.stderr.write(f"{folder.name} {one.name}: {outcome.reason}\n")
            continue
        task = dataclasses.replace(task, candidate=one.with_strength(outcome.strength))
        ((_, fitted),) = search.side_by_side(search.fitted, [task], 1)
        tested = np.asarray(fitted.predict_proba(test))
        spent = time.process_time() - began
        right = float((tested.argmax(axis=1) == test_labels).mean())
        sys.stderr.write(
            f"{folder.name} {one.name}: {right:.3f}, {spent:.1f} s of a core, predicted"
            f" {4 * one.cost:.1f}\n"
        )
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
        self.balanced = folder.name.rsplit("-", 2)[0] in BALANCED
        self.truth, self.labels = table["truth"], table["test_labels"]
        self.consensus, self.fold = table["consensus"], table["fold"]
        tried = [str(name) for name in table["tried"]]
        files = {path.stem: load_arrays(path) for path in sorted(folder.glob("*.npz"))}
        del files["table"]
        # Others than those that are tried count for what is best.
        self.others = {n: f["test"] for n, f in files.items() if n not in tried}
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
        codes = np.full(len(self.truth), -1) if codes is None else codes
        gold = ranking.Gold.of(codes, self._alive)
        ranked = ranking.rank(self._alive, self.evidence, gold, balanced=self.balanced)
        weights = pooling.weigh(self._alive, ranked, self.evidence, gold, balanced=self.balanced)
        return ranked, weights, mean_logits([self.test[name] for name in ranked.members], weights)

    def auto(self) -> dict[str, NDArray[np.float64]]:
        """Returns `auto`'s predictions for test data without a temperature and with two of them.

        "with" is its own temperature; "by truth" is fitted to the truth of the same instances.
        """
        ranked, weights, logits = self._average()
        predicted = {"without": np.exp(logits)}
        for when, codes in (("with", np.full(len(self.truth), -1)), ("by truth", self.truth)):
            fit = pooling.calibrate(self.held, ranked, weights, self.evidence, codes)
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
    none = ranking.Gold.of(np.full(len(table.truth), -1), table.held)
    ranked = ranking.rank(table.held, table.evidence, none, balanced=table.balanced)
    seen = {n: _shifted(p, ranked.corrections[n]) for n, p in table.held.items()}
    shifted = {n: _shifted(p, ranked.corrections[n]) for n, p in table.test.items()}
    scored = {name: table.score(p) for name, p in shifted.items()}
    rivals = [*table.test.values(), *table.others.values()]
    best = max(max(table.score(p) for p in rivals), *scored.values())
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


def _kind(name: str) -> str:
    """Returns the part of the study that a table belongs to."""
    return "written later" if name.rsplit("-", 2)[0] in LATER else "as given"


def report(results: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the page: regret by rule and part, and `auto` by table."""
    parts: dict[str, list[str]] = {}
    for name in results:
        parts.setdefault(_kind(name), []).append(name)
    every = next(iter(results.values()))
    rules = [rule for rule in every if rule != "best" and not rule.startswith(ERROR)]
    lines = [
        "# Choosing without truth",
        "",
        "Made by `python -m benchmarks.choice`, which says what is measured. Regret in points: mean"
        " over tables with its 95 % interval (t), and the largest. A negative one is better than"
        " every single candidate. The rule was made on all tables but those written later.",
        "",
        "| rule | "
        + " | ".join(f"{kind} ({len(names)}) | largest" for kind, names in parts.items())
        + " |",
        "|---|" + "---|" * (2 * len(parts)),
    ]
    for rule in rules:
        cells = []
        for names in parts.values():
            values = [100 * results[name][rule] for name in names]
            mean = mean_interval(values)
            spread = f" ± {mean.high - mean.estimate:.1f}" if len(values) > 1 else ""
            cells += [f"{mean.estimate:.1f}{spread}", f"{max(values):.1f}"]
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    with_gold = f"auto with {GOLD} gold labels"
    gains = [100 * (row["auto"] - row[with_gold]) for row in results.values()]
    draws = f"{GOLD_DRAWS} draws of them each"
    mean = mean_interval(gains)
    lines += [
        "",
        f"{GOLD} gold labels gain {mean.estimate:.3f} ± {mean.high - mean.estimate:.3f} points"
        f" over all {len(results)} tables, {draws}, {min(gains):.2f} to {max(gains):.2f}.",
        "",
        "`auto`, table by table (dataset, draw, crowd); calibration error on test truth: without"
        " temperature, with it, and, to compare, with one fitted to the truth of the training"
        " instances, which `auto` has not.",
        "",
        "| table | best candidate | auto's regret | with gold labels | consensus' regret"
        " | calibration error |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        cells = [f"{100 * row[rule]:.1f}" for rule in ("best", "auto", with_gold, "consensus")]
        errors = [f"{value:.3f}" for rule, value in row.items() if rule.startswith(ERROR)]
        lines.append(f"| {name} | {' | '.join(cells)} | {', '.join(errors)} |")
    return "\n".join(lines) + "\n"


def _several(kind: type, text: str) -> list[Any]:
    return [kind(one) for one in text.split(",")]


def main() -> None:
    """Reads the arguments and collects, or writes the table."""
    parser = argparse.ArgumentParser(description="The study of auto.")
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("collect")
    first.add_argument("--output", type=Path, required=True)
    first.add_argument("--data_dir", type=Path)
    first.add_argument("--part", choices=tuple(PARTS), default="given")
    for flag, kind in (("datasets", str), ("draws", int)):
        first.add_argument(f"--{flag}", type=functools.partial(_several, kind))
    second = commands.add_parser("table")
    second.add_argument("--input", type=Path, required=True)
    second.add_argument("--output", type=Path)
    second.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.command == "collect":
        collect(options)
        return
    folders = sorted(path.parent for path in options.input.glob("*/table.npz"))
    results = {
        folder.name: regrets(folder) for folder in folders if (folder / "mv_lr.npz").exists()
    }
    page = report(results)
    if options.output is not None:
        write_text(options.output, page)
    if options.json:
        sys.stdout.write(json.dumps(results) + "\n")
    (sys.stderr if options.json else sys.stdout).write(page)


if __name__ == "__main__":
    main()
