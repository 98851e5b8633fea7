"""Which criterion chooses well without truth, and what an average saves: every candidate of `auto`
on datasets that have truth, then each criterion's choice scored by it.

    python -m benchmarks.choice collect --output=DIR [--data_dir=DIR]
        [--part=given|more|crowds|unseen|kinds|last|later]
        [--datasets=labelme,music] [--draws=1,2,3] [--crowds=given,half,spam,shared,rare]
    python -m benchmarks.choice table --input=DIR [--json] [--output=results/choice.md]

`collect` fits what `auto` would try in its budget, and goes on where it was stopped: one file a
dataset, draw, crowd and candidate. A draw of real data is nine tenths of its rows; simulated data
is drawn anew. Crowds: `given` as it is; `half` of the labels; `spam` a third of the annotators
answer at random; `shared` for a fifth of the instances, those at one side of the feature space,
seven labels in ten are the same wrong class; `rare` every second class keeps a tenth of its
instances. The part `given` is the datasets as they are, `more` nine more draws of LabelMe, looked
at when the rule was fixed, `crowds` one draw of each with each other crowd and two tables of other
shapes (`wine`, `many_classes`), `unseen` two draws of eight tables, most of them small, `kinds` two
of ten more, each with a kind of crowd of its own, `last` one more draw of those eighteen, `later`
three draws of eleven tables that were written when the rule was fixed, which nothing was changed
for.

Regret is the test accuracy of the best candidate minus that of what was chosen; where classes are
not met as often as in training (usps_syn, and crowds of the kind `rare`, which thin what is trained
on alone) it is balanced accuracy, and the target is balanced. `auto` is its rule with the
candidates that were tried; gold labels are drawn from the training instances, so many times a
table.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import t

from benchmarks.choice_kinds import KINDS
from benchmarks.choice_later import CONTROLS, LATER, LATER_DRAWS
from benchmarks.choice_tables import CROWDS, DRAWS, SHAPES, UNSEEN, drawn, with_crowd
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.choice import Auto, calibration, criteria, ranking, search, weights
from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.candidates import affordable
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.training.validation import consensus_labels

GIVEN = ("labelme", "music", "usps_syn", "gsad_syn", "syn1", "breast_cancer", "digits", "cifar10n")
BALANCED = ("usps_syn",)
# The draw that no decision has seen.
CONFIRMED = 10602
# Datasets, draws and crowds of each part.
PARTS: dict[str, tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...]]] = {
    "given": (GIVEN, DRAWS, CROWDS[:1]),
    "more": (("labelme",), tuple(range(4, 13)), CROWDS[:1]),
    "crowds": ((*GIVEN, *SHAPES), DRAWS[:1], CROWDS),
    "unseen": (tuple(UNSEEN), DRAWS[:2], CROWDS[:1]),
    "kinds": (tuple(KINDS), (10600, 10601), CROWDS[:1]),
    "last": ((*KINDS, *UNSEEN), (CONFIRMED,), CROWDS[:1]),
    "later": (tuple(LATER), LATER_DRAWS, CROWDS[:1]),
}
FOLDS, GOLD, GOLD_DRAWS = 3, 50, 10
ERROR = "calibration error"


# --------------------------------------------------------------------------- collect


def collect(options: argparse.Namespace) -> None:
    """Fits every candidate, cross-validated and on all rows, and keeps what it predicts."""
    datasets, draws, crowds = PARTS[options.part]
    for draw in options.draws or draws:
        for crowd in options.crowds or crowds:
            for name in options.datasets or datasets:
                # The datasets as they are belong to another part; a shape has one crowd.
                if options.part == "crowds" and (crowd == CROWDS[0]) != (name in SHAPES):
                    continue
                folder = options.output / f"{name}-{draw}-{crowd}"
                table = with_crowd(drawn(name, draw, options.data_dir), crowd, draw)
                collect_table(folder, *table, draw, balanced=_is_balanced(name, crowd))


def _is_balanced(dataset: str, crowd: str) -> bool:
    """Returns whether classes are not met as often as in training."""
    return dataset in BALANCED or crowd == "rare"


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
    tried, _ = affordable(x, annotations, Auto().budget, balanced=balanced)
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
        self.dataset, _, self.crowd = folder.name.rsplit("-", 2)
        self.balanced = _is_balanced(self.dataset, self.crowd)
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
        self.evidence = criteria.Evidence.of(crowd, self.consensus, 0)

    def score(self, probabilities: NDArray[Any]) -> float:
        """Returns the accuracy on test truth."""
        return accuracy(probabilities, self.labels, self.balanced)

    def known(self, gold: NDArray[np.int64] | None = None) -> ranking.Known:
        """Returns what gold labels `[N]` (-1 for none) tell of the candidates."""
        rows = np.full(len(self.truth), -1) if gold is None else gold
        return ranking.Known.of(rows, self._alive)

    @functools.cached_property
    def _alive(self) -> dict[str, NDArray[np.float64]]:
        """The candidates that `auto` would have tried on all folds."""
        first = self.fold == 0
        right = {n: p[first].argmax(axis=1) == self.consensus[first] for n, p in self.held.items()}
        base, root = right["mv_lr"].astype(np.float64), np.sqrt(first.sum())
        found = {}
        for name, hits in right.items():
            gap = hits - base
            if gap.mean() + search.ERRORS * gap.std(ddof=1) / root > -search.HOPELESS:
                found[name] = self.held[name]
        return found

    @functools.cached_property
    def _scored(self) -> ranking.Scored:
        return ranking.Scored.of(self._alive, self.evidence, balanced=self.balanced)

    def auto(self) -> dict[str, NDArray[np.float64]]:
        """Returns what `auto` predicts for test data, by its temperature: none, its own, and one
        that is fitted with the truth of the same held-out instances, which tells what could be had.
        """
        known = self.known()
        chosen = ranking.with_known(self._scored, known)
        each = self._weights(chosen, known)
        logits = mean_logits([self.test[name] for name in chosen.kept], each)
        found = {"without": np.exp(logits)}
        for when, rows in (("with", known.rows), ("by truth", self.truth)):
            fit = calibration.calibrate(
                [self.held[name] for name in chosen.kept],
                [chosen.corrections[name] for name in chosen.kept],
                each,
                self.evidence,
                rows,
            )
            found[when] = softmax(logits / fit.temperature + fit.shift, axis=1)
        return found

    def with_gold(self, gold: NDArray[np.int64]) -> float:
        """Returns the score of what `auto` averages given gold labels `[N]` (no temperature changes
        which class is the likeliest).
        """
        known = self.known(gold)
        chosen = ranking.with_known(self._scored, known)
        each = self._weights(chosen, known)
        shift = np.average([chosen.corrections[name] for name in chosen.kept], axis=0, weights=each)
        return self.score(mean_logits([self.test[name] for name in chosen.kept], each) - shift)

    def _weights(self, chosen: ranking.Ranked, known: ranking.Known) -> list[float]:
        return weights.weigh(self._alive, chosen, self.evidence, known, balanced=self.balanced)


def regrets(folder: Path) -> dict[str, float]:
    """Returns each rule's regret on one table, and the calibration errors of `auto`."""
    table = Collected(folder)
    unknown = ranking.Known.of(np.full(len(table.truth), -1), table.held)
    ranked = ranking.rank(table.held, table.evidence, unknown, balanced=table.balanced)
    seen = {n: _shifted(p, ranked.corrections[n]) for n, p in table.held.items()}
    shifted = {n: _shifted(p, ranked.corrections[n]) for n, p in table.test.items()}
    scored = {name: table.score(p) for name, p in shifted.items()}
    rivals = [*table.test.values(), *table.others.values()]
    best = max(max(table.score(p) for p in rivals), *scored.values())
    found = {
        name: best - scored[max(by, key=lambda one: by[one])]
        for name, by in _scores(seen, table).items()
    }
    plain = np.exp(mean_logits(list(shifted.values())))
    found["average of all"] = best - table.score(plain)
    predicted = table.auto()
    found["auto"] = best - table.score(predicted["with"])
    found[f"auto with {GOLD} gold labels"] = float(
        np.mean([best - table.with_gold(gold) for gold in _gold(table)])
    )
    for when, probabilities in predicted.items():
        error = calibration.expected_calibration_error(probabilities, table.labels)
        found[f"{ERROR} {when}"] = error
    found["best"] = best
    return found


def _scores(
    seen: Mapping[str, NDArray[np.float64]], table: Collected
) -> dict[str, dict[str, float]]:
    """Returns every criterion's score of every candidate."""
    single: Mapping[str, Callable[..., float]] = criteria.SINGLE
    scores = {
        name: {one: rule(p, table.evidence) for one, p in seen.items()}
        for name, rule in single.items()
    }
    scores["consensus of the others and the crowd"] = criteria.posterior_agreement(
        seen, table.evidence, balanced=table.balanced
    )
    scores["mean rank of all these"] = criteria.mean_rank(scores)
    return scores


def _gold(table: Collected) -> list[NDArray[np.int64]]:
    """Returns draws of gold labels `[N]`."""
    found = []
    for draw in range(GOLD_DRAWS):
        gold = np.full(len(table.truth), -1)
        rows = np.random.default_rng([draw, 0x601D]).permutation(len(gold))[:GOLD]
        gold[rows] = table.truth[rows]
        found.append(gold)
    return found


def _scaled(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    values = np.asarray(probabilities, dtype=np.float64)
    return values / values.sum(axis=1, keepdims=True)


def _shifted(probabilities: NDArray[Any], correction: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(softmax(np.log(np.maximum(probabilities, 1e-12)) - correction, axis=1))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns mean and half width of the 95 % interval (t); infinite for one value."""
    if len(values) < 2:
        return float(np.mean(values)), float("inf")
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return float(np.mean(values)), float(t.ppf(0.975, len(values) - 1)) * error


PARTS_OF_PAGE = (
    *("as given", "LabelMe again", "small tables", "other crowds", "other shapes"),
    *("kinds of crowds", "confirmed on", "written later", "control"),
)


def _kind(name: str) -> str:
    """Returns which part of the study a table belongs to."""
    dataset, draw, crowd = name.rsplit("-", 2)
    if int(draw) == CONFIRMED:
        return "confirmed on"
    if dataset in CONTROLS:
        return "control"
    if dataset in LATER:
        return "written later"
    if dataset in KINDS:
        return "kinds of crowds"
    if dataset in UNSEEN:
        return "small tables"
    if dataset in SHAPES:
        return "other shapes"
    if crowd != CROWDS[0]:
        return "other crowds"
    return "as given" if int(draw) in DRAWS else "LabelMe again"


def report(found: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the page: regret by rule and part, and `auto` by table."""
    parts = {kind: [name for name in found if _kind(name) == kind] for kind in PARTS_OF_PAGE}
    parts = {kind: names for kind, names in parts.items() if names}
    every = next(iter(found.values()))
    rules = [rule for rule in every if rule != "best" and not rule.startswith(ERROR)]
    lines = [
        "# Choosing without truth",
        "",
        "Made by `python -m benchmarks.choice`, which says what is measured. Regret in points: mean"
        " over tables with its 95 % interval (t), and the largest. A negative one is better than"
        " every single candidate. The rule was made on all tables but those it was"
        " confirmed on.",
        "",
        "| rule | "
        + " | ".join(f"{part} ({len(names)}) | largest" for part, names in parts.items())
        + " |",
        "|---|" + "---|" * (2 * len(parts)),
    ]
    for rule in rules:
        cells = []
        for names in parts.values():
            values = [100 * found[name][rule] for name in names]
            middle, half = interval(values)
            spread = f" ± {half:.1f}" if len(values) > 1 else ""
            cells += [f"{middle:.1f}{spread}", f"{max(values):.1f}"]
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    with_gold = f"auto with {GOLD} gold labels"
    gains = [100 * (row["auto"] - row[with_gold]) for row in found.values()]
    draws = f"{GOLD_DRAWS} draws of them each"
    middle, half = interval(gains)
    lines += [
        "",
        f"{GOLD} gold labels gain {middle:.3f} ± {half:.3f} points over all {len(found)} tables,"
        f" {draws}, {min(gains):.2f} to {max(gains):.2f}.",
        "",
        "`auto`, table by table (dataset, draw, crowd); calibration error on test truth: without"
        " temperature, with it, and, to compare, with one fitted to the truth of the training"
        " instances, which `auto` has not.",
        "",
        "| table | best candidate | auto's regret | with gold labels | consensus' regret"
        " | calibration error |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        cells = [f"{100 * row[rule]:.1f}" for rule in ("best", "auto", with_gold, "consensus")]
        errors = [f"{value:.3f}" for rule, value in row.items() if rule.startswith(ERROR)]
        lines.append(f"| {name} | {' | '.join(cells)} | {', '.join(errors)} |")
    return "\n".join(lines) + "\n"


def _several(kind: type, text: str) -> list[Any]:
    return [kind(one) for one in text.split(",")]


def main() -> None:
    """Reads the arguments and collects, or writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("collect")
    first.add_argument("--output", type=Path, required=True)
    first.add_argument("--data_dir", type=Path)
    first.add_argument("--part", choices=tuple(PARTS), default="given")
    for flag, kind in (("datasets", str), ("draws", int), ("crowds", str)):
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
    found = {folder.name: regrets(folder) for folder in folders if (folder / "mv_lr.npz").exists()}
    page = report(found)
    if options.output is not None:
        write_text(options.output, page)
    if options.json:
        sys.stdout.write(json.dumps(found) + "\n")
    (sys.stderr if options.json else sys.stdout).write(page)


if __name__ == "__main__":
    main()
