"""What labels, probabilities and verdicts are measured by, each with the figure that is wanted."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr, softmax

from benchmarks.certainty.classifiers import (
    RADIOGRAPHS,
    SIMULATED,
    real_classifiers,
    taught_classifiers,
)
from benchmarks.certainty.controls import control_crowds
from benchmarks.certainty.crowds import Array, read_crowds, read_outside_truth, thinned
from neucrowd_tf.aggregation import Consensus, DawidSkene, MajorityVote
from neucrowd_tf.aggregation.ordinal import OrdinalConsensus
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.certainty.labelling.belief import belief_of, with_less_lean
from neucrowd_tf.certainty.labelling.gain import Answers
from neucrowd_tf.certainty.labelling.plan import worths
from neucrowd_tf.certainty.skills import UNRELIABLE_NOTE
from neucrowd_tf.evaluation.without_truth import joint_probas

Row = dict[str, Any]
Figures = Iterator[Row]
GOLD, DRAWS = 30, 10
CONTROL_SEEDS = 1
CLASSIFIER_SEEDS = 2
RESAMPLES = 400
CHANCE_LABELS = 2.0  # that shrink accuracies of gold items alone
OPPOSED = ("judges6", "judges_adv24")
ORDERED = ("adult", "politifact", "politifact_2020", "covid", "abc", "web")
ORDERED_DRAWS = 4
MOST_DRAWN = 20_000  # labels of a crowd of ordered classes in which gold labels are drawn


@dataclasses.dataclass(frozen=True)
class Goal:
    """A figure, and what is wanted of it.

    Attributes:
        part: the measurement that its rows come from.
        figure: its name.
        of: computes it from the rows of the part.
        least, most: the bounds; None for no bound.
    """

    part: str
    figure: str
    of: Callable[[pd.DataFrame], float]
    least: float | None = None
    most: float | None = None


def drawn_gold(truth: Array, draw: int) -> Array:
    """Returns true labels of `GOLD` items that are drawn at random, -1 elsewhere."""
    rows = np.random.default_rng([draw, GOLD]).permutation(np.flatnonzero(truth >= 0))[:GOLD]
    gold = np.full(len(truth), -1)
    gold[rows] = truth[rows]
    return gold


def gold_alone(crowd: Annotations, gold: Array) -> Array:
    """Returns `[N, C]` a vote weighted by annotators' shrunk log odds on gold items."""
    size = crowd.num_classes
    marked = gold[crowd.instances] >= 0
    hits = marked & (crowd.labels == gold[crowd.instances])
    right = np.bincount(crowd.annotators, hits, crowd.num_annotators)
    total = np.bincount(crowd.annotators, marked, crowd.num_annotators)
    accuracy = (right + CHANCE_LABELS / size) / (total + CHANCE_LABELS)
    weights = np.log(max(size - 1, 1) * accuracy / (1.0 - accuracy))
    scores = np.zeros((crowd.num_instances, size))
    np.add.at(scores, (crowd.instances, crowd.labels), weights[crowd.annotators])
    return np.asarray(softmax(scores, axis=1))


def accuracy_of(probas: Array, truth: Array, rows: Array) -> float:
    """Returns the accuracy of the most probable classes; a tie counts by its share."""
    top = probas[rows] >= probas[rows].max(axis=1, keepdims=True) - 1e-9
    known = truth[rows]
    hits = top[np.arange(len(rows)), known] & (known >= 0)
    return float((hits / top.sum(axis=1)).mean())


def skills_hold(crowd: Annotations, truth: Array, skills: Any) -> float:
    """Returns how many skill intervals contain the share of right labels, of ten labels or more."""
    known = truth[crowd.instances] >= 0
    hits = known & (crowd.labels == truth[crowd.instances])
    total = np.bincount(crowd.annotators, known, crowd.num_annotators)
    share = np.bincount(crowd.annotators, hits, crowd.num_annotators) / np.maximum(total, 1)
    many = total >= 10
    inside = (skills.low <= share) & (share <= skills.high)
    return float(inside[many].mean())


def gold_labels(data_dir: Path) -> Figures:
    """Yields, for each crowd with outside truth, what thirty random gold labels bring."""
    for name, crowd, truth in read_outside_truth(data_dir):
        before = infer(crowd)
        known = np.flatnonzero((truth >= 0) & crowd.annotated)
        base = {"crowd": name, "skills_without": skills_hold(crowd, truth, before.skills)}
        for draw in range(DRAWS):
            gold = drawn_gold(truth, draw)
            rest = known[gold[known] < 0]
            result = infer(crowd, gold=gold)
            right = float((result.labels[rest] == truth[rest]).mean())
            headline = result.accuracy
            yield base | {
                "draw": draw,
                "accuracy": right,
                "gold_alone": accuracy_of(gold_alone(crowd, gold), truth, rest),
                "without": float((before.labels[rest] == truth[rest]).mean()),
                "stated": headline.value,
                "probability": float(result.probas[rest].max(axis=1).mean()),
                "holds": float(headline.low <= right <= headline.high),
                "skills_hold": skills_hold(crowd, truth, result.skills),
            }


def control_questions() -> Figures:
    """Yields what thirty control questions bring, whose true labels are known."""
    for kind, name, crowd, truth, control, seed in control_crowds(CONTROL_SEEDS):
        before = infer(crowd, skills=False).labels
        gold = drawn_gold(np.where(control, truth, -1), seed)
        result = infer(crowd, gold=gold, skills=False)
        others = ~control
        rest = control & (gold < 0)
        yield {
            "crowd": name,
            "kind": kind,
            "accuracy": float((result.labels == truth)[others].mean()),
            "without": float((before == truth)[others].mean()),
            "controls": float((result.labels == truth)[rest].mean()),
            "controls_without": float((before == truth)[rest].mean()),
            "said": float(result.unlike),
        }


def crowd_and_classifier(data_dir: Path) -> Figures:
    """Yields the labels of a crowd, a classifier and both."""
    simulated = taught_classifiers(CLASSIFIER_SEEDS)
    for kind, certainty, predicted, truth in itertools.chain(simulated, real_classifiers(data_dir)):
        joint = joint_probas(certainty, np.arange(len(truth)), predicted)
        ways = {"by_crowd": certainty.probas, "model": predicted, "joint": joint}
        figures = {key: float((one.argmax(axis=1) == truth).mean()) for key, one in ways.items()}
        yield {"crowd": kind, **figures}


def minority(cases: Path) -> Figures:
    """Yields the accuracy where two annotators of six are right, by thirty gold labels."""
    folder = cases / "gold_minority"
    labels, gold, truth = (
        pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("annotations", "gold", "truth")
    )
    crowd = Annotations.from_arrays(*(labels[column] for column in labels.columns[:3]))
    known = dict(zip(gold.iloc[:, 0], gold.iloc[:, 1], strict=True))
    result = infer(crowd, gold=known)
    true = truth.set_index(truth.columns[0]).iloc[:, 0]
    names = crowd.class_names[result.labels].astype(str)
    right = names == true.reindex(crowd.instance_names.astype(str)).to_numpy()
    yield {"crowd": "gold_minority", "accuracy": float(right[result.gold < 0].mean())}


def opposed(data_dir: Path) -> Figures:
    """Yields what is said of two opposed groups, and what gold labels of `gold` bring."""
    for name, crowd, truth in read_outside_truth(data_dir):
        result = infer(crowd)
        rows = np.flatnonzero((truth >= 0) & crowd.annotated)
        right = float((result.labels[rows] == truth[rows]).mean())
        notes = [] if result.skills is None else result.skills.note.tolist()
        row: Row = {
            "crowd": name,
            "named": float(result.opposed is not None),
            "unreliable": notes.count(UNRELIABLE_NOTE),
            "holds": float(result.accuracy.low <= right <= result.accuracy.high),
            "accuracy": right,
        }
        hits = []
        groups = result.opposed
        for draw in range(DRAWS):
            if groups is None or name not in OPPOSED:
                break
            order = np.random.default_rng(draw).permutation(rows)
            differ = groups.differ(crowd)[order]
            chosen = np.concatenate([order[differ], order[~differ]])[:GOLD]
            gold = np.full(len(truth), -1)
            gold[chosen] = truth[chosen]
            rest = rows[gold[rows] < 0]
            hits.append(float((infer(crowd, gold=gold).labels[rest] == truth[rest]).mean()))
        if hits:
            row["with_gold"] = float(np.mean(hits))
        yield row


def judged(people: int, judges: int, person: float, judge: float, seed: int) -> Row:
    """Returns how right 120 items are that people and judges labelled, of 520 by judges."""
    rng = np.random.default_rng(seed)
    size, both = 520, 120
    truth = rng.random(size) < 0.7
    by_judges = np.where(rng.random((judges, size)) < judge, truth, ~truth)
    by_people = np.where(rng.random((people, size)) < person, truth, ~truth)
    dense = np.full((size, people + judges), -1)
    dense[:both, :people] = by_people[:, :both].T
    dense[:, people:] = by_judges.T
    names = [f"h{code}" for code in range(people)] + [f"j{code}" for code in range(judges)]
    crowd = Annotations.from_dense(dense, num_classes=2, annotator_names=names)
    labels = infer(crowd, models=names[people:]).labels[:both]
    votes = np.eye(2)[dense[:both, :people]].sum(axis=1)
    return {
        "crowd": f"{people} at {person}, {judges} at {judge}",
        "seed": seed,
        "accuracy": float((labels == truth[:both]).mean()),
        "people": accuracy_of(votes, truth.astype(int), np.arange(both)),
    }


def judges(_: Path) -> Figures:
    """Yields the labels of people and judges, five seeds each."""
    cases = ((1, 1, 0.95, 0.75), (1, 1, 1.0, 0.85), (1, 3, 0.95, 0.75), (2, 1, 0.95, 0.75))
    for case, seed in itertools.product(cases, range(5)):
        yield judged(*case, seed)


def declared_models(data_dir: Path) -> Figures:
    """Yields three radiologists beside eight declared models."""
    name = "xray_five_models"
    for found, crowd, truth in read_outside_truth(data_dir):
        if found == name:
            models = [one for one in crowd.annotator_names.astype(str) if one.startswith("model")]
            labels = infer(crowd, models=models).labels
            known = truth >= 0
            yield {"crowd": name, "accuracy": float((labels == truth)[known].mean())}


def consensus(data_dir: Path, outside: Path | None) -> Figures:
    """Yields the consensus beside its parts, on full and thinned crowds of all sources."""
    learned = read_crowds(data_dir, outside)
    checks = ((name, name, "check", *more) for name, *more in read_outside_truth(data_dir))
    for name, family, kind, crowd, truth in itertools.chain(learned, checks):
        mean = crowd.num_annotations / crowd.annotated.sum()
        for size in ("full", *(str(k) for k in (2, 3) if mean > k + 0.5)):
            one = crowd if size == "full" else thinned(crowd, int(size))
            rows = np.flatnonzero((truth != -1) & one.annotated)
            models = {
                "consensus": Consensus(),
                "dawid_skene": DawidSkene(),
                "one_coin": DawidSkene(one_coin=True),
                "majority_vote": MajorityVote(),
            }
            figures = {
                key: accuracy_of(model.fit(one).probas_, truth, rows)
                for key, model in models.items()
            }
            yield {"crowd": name, "family": family, "kind": kind, "thinned": size} | figures


def ordered(data_dir: Path, outside: Path | None) -> Figures:
    """Yields mean distances in classes: ours, median, mean, nominal consensus, and with gold."""
    learned = (
        (name, crowd, truth)
        for name, _, _, crowd, truth in read_crowds(data_dir, outside)
        if name in ORDERED
    )
    checks = (one for one in read_outside_truth(data_dir) if one[0] == "art_lay")
    for name, crowd, truth in itertools.chain(learned, checks):
        rows = np.flatnonzero((truth >= 0) & crowd.annotated)
        votes = crowd.vote_counts()[rows]
        means = votes @ np.arange(crowd.num_classes) / votes.sum(axis=1)
        labels = {
            "ours": infer(crowd, "ordinal", skills=False).labels[rows],
            "median": OrdinalConsensus(only="median").fit(crowd).labels_[rows],
            "mean": np.floor(means + 0.5),
            "consensus": Consensus().fit(crowd).labels_[rows],
        }
        distances = {key: np.abs(one - truth[rows]) for key, one in labels.items()}
        row: Row = {"crowd": name, "by_chance": above_best_by_chance([*distances.values()])}
        row |= {key: float(one.mean()) for key, one in distances.items()}
        without: list[float] = []
        with_gold: list[float] = []
        for draw in range(ORDERED_DRAWS if crowd.num_annotations <= MOST_DRAWN else 0):
            gold = drawn_gold(truth, draw)
            rest = gold[rows] < 0
            result = infer(crowd, "ordinal", gold=gold, skills=False)
            for into, one in ((without, labels["ours"]), (with_gold, result.labels[rows])):
                into.append(float(np.abs(one - truth[rows])[rest].mean()))
        if with_gold:
            row |= {"without_gold": np.mean(without), "with_gold": np.mean(with_gold)}
        yield row


def above_best_by_chance(distances: Sequence[Array]) -> float:
    """Returns how far the first of several methods is above the best of the others by chance.

    This is the mean over resampled items, if all methods are equally near.

    Args:
        distances: `[n]` of each method.
    """
    centred = np.stack([one - one.mean() for one in distances])
    size = centred.shape[1]
    drawn = np.random.default_rng(0).multinomial(size, np.full(size, 1.0 / size), RESAMPLES)
    means = drawn @ centred.T / size
    return float((means[:, 0] - means[:, 1:].min(axis=1)).mean())


def relabelled(data_dir: Path) -> Figures:
    """Yields how many labels are wrong of the first tenth to be labelled again by a newcomer."""
    for name, crowd, truth in read_outside_truth(data_dir):
        result = infer(crowd)
        yield {"crowd": name} | first_tenth(crowd, truth, result.probas, result.model.probas_)


def first_tenth(crowd: Annotations, truth: Array, probas: Array, posteriors: Array) -> Row:
    """Returns the shares of wrong labels by the command's order and by entropy.

    Args:
        crowd: with identities.
        truth: `[N]` class codes, -1 if unknown.
        probas: `[N, C]` recalibrated.
        posteriors: `[N, C]` the consensus' own.
    """
    known = (truth != -1) & crowd.annotated
    budget = int(known.sum() / 10)
    wrong = posteriors.argmax(axis=1) != truth
    more = crowd.with_annotators(["newcomer"])
    belief = belief_of(more, with_less_lean(probas, crowd.vote_counts()))
    worth = worths(list(belief.probas[:, None]), Answers.of(belief.errors[-1:]))[0][:, 0]
    row = {"ours": share_of_wrong(worth[known].round(9), wrong[known], budget)}
    for key, values in (("entropy", probas), ("entropy_of_posterior", posteriors)):
        scores = entr(values).sum(axis=1)[known].round(9)
        row[key] = share_of_wrong(scores, wrong[known], budget)
    return row | {"wrong": float(wrong[known].mean())}


def share_of_wrong(scores: Array, wrong: Array, budget: int) -> float:
    """Returns the share of wrong labels of the first items; of ties an item counts in part."""
    if len(scores) <= budget:
        return float(wrong.sum() / max(budget, 1))
    cut = np.sort(scores)[::-1][budget - 1]
    above = scores > cut
    tied = scores == cut
    hits = wrong[above].sum() + (budget - above.sum()) * wrong[tied].mean()
    return float(hits / budget)


def symmetric_ties(_: Path) -> Figures:
    """Yields the greatest distance from .5 where five annotators oppose five, under other names."""
    for draw in range(6):
        rng = np.random.default_rng(draw)
        names = rng.permutation([f"a{code}" for code in range(10)])
        labels = np.array(["x", "y"] * 5)
        if draw % 2:
            labels = np.array(["y", "x"] * 5)
        crowd = Annotations.from_arrays(["t"] * 10, names, labels)
        away = float(np.abs(infer(crowd, seed=draw).probas - 0.5).max())
        yield {"crowd": f"tie, names {draw}", "away": away}


def cells(results: Path) -> Figures:
    """Yields the gains of results/people_and_models.csv, which has a command of its own."""
    for row in pd.read_csv(results).to_dict("records"):
        name = "/".join(str(row[key]) for key in list(row)[:5] if pd.notna(row[key]))
        yield {"crowd": name, "gain": row["together"] - row["annotators"]}


def calibrated(results: Path) -> Figures:
    """Yields errors and coverage of results/calibration.csv."""
    for row in pd.read_csv(results).to_dict("records"):
        yield {
            "crowd": row["name"],
            "family": row["family"],
            "kind": row["kind"],
            "thinned": row["thinned"],
            "error": abs(row["expected"] - row["true"]),
            "by_tenths": row["calibration_error"],
            "holds": float(row["low"] <= row["true"] <= row["high"]),
        }


def of(name: str, how: str = "mean", *, less: str = "") -> Callable[[pd.DataFrame], float]:
    """Returns a function that computes the mean, least or greatest value of a column.

    Args:
        name: of the column.
        how: "mean", "min", "max" or "sum".
        less: of a column that is subtracted.
    """

    def figure(rows: pd.DataFrame) -> float:
        values = rows[name] - rows[less] if less else rows[name]
        return float(getattr(values, how)())

    return figure


def among(
    column: str, values: Collection[str], figure: Callable[[pd.DataFrame], float]
) -> Callable[[pd.DataFrame], float]:
    """Returns a function that computes a figure of the rows with one of some values in a column."""
    return lambda rows: figure(rows[rows[column].isin(values)])


def each(name: str, figure: Callable[[pd.DataFrame], float]) -> Callable[[pd.DataFrame], float]:
    """Returns a function that computes a figure of groups' means, such as of "crowd"."""
    return lambda rows: figure(rows.groupby(name).mean(numeric_only=True))


def below(rows: pd.DataFrame, ours: str, others: Sequence[str], how: str = "max") -> pd.Series:
    """Returns `[rows]` the best, the "max" or "min", of other columns less ours."""
    return getattr(rows[list(others)], how)(axis=1) - rows[ours]


def near_the_best(rows: pd.DataFrame) -> float:
    """Returns on how many crowds, but opposed groups, the consensus is near its best part."""
    some = rows[~rows.crowd.isin(OPPOSED)]
    return float((below(some, "consensus", PARTS) <= 0.02).mean())


def joint_lead(rows: pd.DataFrame) -> float:
    """Returns by how much labels by crowd and classifier lead the better of both, by family."""
    ahead = -below(rows, "joint", PARENTS)
    return float(ahead.groupby(rows.crowd.str.split("_").str[0]).mean().mean())


PARTS = ("dawid_skene", "one_coin", "majority_vote")
PARENTS = ("by_crowd", "model")
FULL = ("full",)
THINNED = ("2", "3")
KINDS = (("outside", "outside truth", 0.085), ("first", "first families", 0.063))
SCALES = ("median", "mean", "consensus")
GOALS = (
    Goal("gold_labels", "accuracy of other items", of("accuracy")),
    Goal("gold_labels", "less that of gold alone", of("accuracy", less="gold_alone"), 0.0),
    Goal("gold_labels", "less that without gold", of("accuracy", less="without"), 0.0),
    Goal(
        "gold_labels",
        "least, of a crowd, less the better of both",
        each("crowd", lambda rows: -below(rows, "accuracy", ("gold_alone", "without")).max()),
        -0.02,
    ),
    Goal(
        "gold_labels",
        "mean |stated - true|",
        lambda rows: float((rows.stated - rows.accuracy).abs().mean()),
        most=0.06,
    ),
    Goal("gold_labels", "80% intervals that hold", of("holds"), 0.75),
    Goal("gold_labels", "skill intervals that hold", of("skills_hold"), 0.8),
    *(
        goal
        for kind in ("alike", "unlike")
        for goal in (
            Goal(
                "control_questions",
                f"{kind}: other items, less that without gold",
                among("kind", (kind,), of("accuracy", less="without")),
                0.0 if kind == "alike" else -0.01,
            ),
            Goal(
                "control_questions",
                f"{kind}: other control questions, less that without gold",
                among("kind", (kind,), of("controls", less="controls_without")),
                0.0,
            ),
            Goal(
                "control_questions",
                f"{kind}: least, of a family, of other items",
                among("kind", (kind,), each("crowd", of("accuracy", "min", less="without"))),
            ),
            Goal(
                "control_questions",
                f"{kind}: crowds whose gold items are said to be unlike the others",
                among("kind", (kind,), of("said")),
            ),
        )
    ),
    *(
        Goal(
            "crowd_and_classifier",
            f"joint labels less those of the better parent, {words}",
            among("crowd", (kind,), lambda rows: -below(rows, "joint", PARENTS).mean()),
            0.0,
        )
        for kind, words in SIMULATED.items()
    ),
    Goal(
        "crowd_and_classifier",
        "joint labels less those of the better parent, real crowds",
        lambda rows: joint_lead(rows[~rows.crowd.isin(SIMULATED)]),
        0.0,
    ),
    Goal(
        "crowd_and_classifier",
        f"joint labels less those of the better parent, {RADIOGRAPHS}",
        lambda rows: joint_lead(rows[rows.crowd == RADIOGRAPHS][:1]),
        0.0,
    ),
    Goal("minority", "accuracy on gold_minority", of("accuracy", "min"), 0.83),
    Goal("opposed", "groups named on both", among("crowd", OPPOSED, of("named", "min")), 1.0),
    Goal(
        "opposed",
        "groups named elsewhere",
        lambda rows: float(rows[~rows.crowd.isin(OPPOSED)].named.sum()),
        most=0.0,
    ),
    Goal(
        "opposed",
        "annotators called unreliable",
        among("crowd", OPPOSED, of("unreliable", "sum")),
        most=0.0,
    ),
    Goal("opposed", "intervals that hold", among("crowd", OPPOSED, of("holds")), 1.0),
    Goal("opposed", "least accuracy with 30 drawn gold labels", of("with_gold", "min"), 0.7),
    Goal(
        "judges",
        "least, of a case, less people's accuracy",
        each("crowd", of("accuracy", "min", less="people")),
        -0.01,
    ),
    Goal("declared_models", "xray_five_models", of("accuracy", "min"), 0.873),
    Goal("cells", "people and models: mean gain", of("gain"), 0.06),
    Goal("cells", "people and models: worst cell", of("gain", "min"), -0.006),
    *(
        Goal(
            "consensus",
            f"less {other}, {words} crowds",
            among("thinned", sizes, of("consensus", less=other)),
            0.0,
        )
        for other in PARTS
        for words, sizes in (("full", FULL), ("thinned", THINNED))
    ),
    Goal("consensus", "mean on full crowds", among("thinned", FULL, of("consensus"))),
    Goal("consensus", "mean on thinned crowds", among("thinned", THINNED, of("consensus"))),
    Goal(
        "consensus",
        "full crowds within .02 of the best part",
        among("thinned", FULL, near_the_best),
        0.9,
    ),
    Goal("consensus", "all crowds within .02 of the best part", near_the_best, 0.9),
    *(
        goal
        for kind, words, most in KINDS
        for goal in (
            Goal(
                "calibrated",
                f"error, {words}",
                among("kind", (kind,), each("family", of("error"))),
                most=most,
            ),
            Goal(
                "calibrated",
                f"intervals that hold, {words}",
                among("kind", (kind,), each("family", of("holds"))),
                0.75,
                0.9,
            ),
            Goal(
                "calibrated",
                f"error by tenths of probability, {words}, mean of cases",
                among("kind", (kind,), of("by_tenths")),
            ),
        )
    ),
    Goal(
        "ordered",
        "mean distance above the best of three",
        lambda rows: float(-below(rows, "ours", SCALES, "min").mean()),
        most=0.01,
    ),
    Goal("ordered", "the same by chance, if all are equally near", of("by_chance")),
    Goal(
        "ordered",
        "mean distance less the best method's mean",
        lambda rows: float(rows.ours.mean() - rows[list(SCALES)].mean().min()),
        most=0.01,
    ),
    Goal(
        "ordered",
        "with 30 gold labels, less without",
        of("with_gold", less="without_gold"),
        most=0.0,
    ),
    Goal(
        "relabelled",
        "crowds on which at least as many are wrong as by entropy",
        lambda rows: float((rows.ours >= rows.entropy - 1e-9).sum()),
        10.0,
    ),
    Goal(
        "relabelled",
        "the same, entropy of the consensus' own probabilities",
        lambda rows: float((rows.ours >= rows.entropy_of_posterior - 1e-9).sum()),
        10.0,
    ),
    Goal("symmetric_ties", "greatest distance from .5", of("away", "max"), most=1e-6),
)


def measured(part: str, options: Any, results: Path) -> list[Row]:
    """Returns the rows of a part, which are kept in `options.kept` if that is named."""
    path = options.kept and options.kept / f"{part}.json"
    if path and path.exists():
        rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
        return rows
    data_dir = options.data_dir
    parts: dict[str, Callable[[], Figures]] = {
        "gold_labels": lambda: gold_labels(data_dir),
        "control_questions": control_questions,
        "crowd_and_classifier": lambda: crowd_and_classifier(data_dir),
        "minority": lambda: minority(options.cases),
        "opposed": lambda: opposed(data_dir),
        "judges": lambda: judges(data_dir),
        "declared_models": lambda: declared_models(data_dir),
        "cells": lambda: cells(results / "people_and_models.csv"),
        "consensus": lambda: consensus(data_dir, options.outside),
        "calibrated": lambda: calibrated(results / "calibration.csv"),
        "ordered": lambda: ordered(data_dir, options.outside),
        "relabelled": lambda: relabelled(data_dir),
        "symmetric_ties": lambda: symmetric_ties(data_dir),
    }
    rows = list(parts[part]())
    if path:
        path.write_text(json.dumps(rows, default=float), encoding="utf-8")
    return rows


def table(rows: dict[str, list[Row]]) -> pd.DataFrame:
    """Returns a row per goal: the figure, what is wanted, and whether it is reached."""
    lines = []
    for goal in GOALS:
        if goal.part not in rows:
            continue
        value = goal.of(pd.DataFrame(rows[goal.part]))
        bounds = [(sign, bound) for sign, bound in ((">=", goal.least), ("<=", goal.most))]
        wanted = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
        reached = (goal.least is None or value >= goal.least - 1e-9) and (
            goal.most is None or value <= goal.most + 1e-9
        )
        lines.append(
            {
                "part": goal.part,
                "figure": goal.figure,
                "value": round(value, 4),
                "wanted": wanted,
                "reached": ("yes" if reached else "no") if wanted else "",
            }
        )
    return pd.DataFrame(lines)
