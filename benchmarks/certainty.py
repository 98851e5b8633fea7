"""Learns the calibration of inferred labels on public crowds, and measures it.

    python -m benchmarks.certainty [--data_dir=D] [--parts=FOLDER] [--learn] [--json]
        [--output=results/certainty.md]

Crowds are those of `benchmarks.crowds`, each also thinned to two and three labels per item. When
a crowd is measured, its family is left out of the learning. `--learn` writes
neucrowd_tf/certainty/recalibration.json, learned on all crowds. `--parts` keeps each crowd's
posteriors, so that a stopped run goes on.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from benchmarks.crowds import FAMILY, Array, read_crowds, thinned
from benchmarks.timing import arguments, data_folder, show
from data import truth_inference as published
from neucrowd_tf.aggregation import Consensus, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import agreement_coefficients
from neucrowd_tf.certainty import Calibration, Certainty, annotator_skills, skills
from neucrowd_tf.certainty import recalibration as learned
from neucrowd_tf.evaluation.intervals import wilson_interval
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import markdown_table

WIDENING = 1.2  # of the shift's spread without gold labels: few families, and unknown relatives
GOLD = (20, 50, 200)
MODELS = ("consensus", "dawid_skene", "majority_vote")
# How far beyond the sizes of the learned crowds a crowd still counts as alike.
LOOSE = {
    "items": (0.5, 1e9),
    "classes": (1.0, 1.5),
    "labels": (0.75, 10.0),
    "shared": (0.75, 2),
    "agreement": (0.95, 2),
}
SHOWN = (
    *("gain_consensus", "overturned", "raw_calibration_error", "calibration_error"),
    *("raw_said_minus_true", "said_minus_true", "covered", "width"),
    *("gold50_calibration_error", "gold50_said_minus_true", "annotators_covered"),
)


@dataclasses.dataclass(frozen=True)
class Crowd:
    """One crowd with its inferred labels.

    Attributes:
        name, thinned: "rte", "full" (or "2", "3" labels per item).
        annotations: the crowd.
        truth: `[N]` class codes; -1 unknown, -2 a class that nobody named.
        probas: by model (`MODELS`), `[N, C]`.
    """

    name: str
    thinned: str
    annotations: Annotations
    truth: Array
    probas: dict[str, Array]

    @property
    def family(self) -> str:
        return FAMILY.get(self.name, self.name)

    @property
    def rows(self) -> Array:
        """The instances with a true label and at least one annotation."""
        return np.flatnonzero((self.truth != -1) & self.annotations.annotated)

    def certainty(self, calibration: Calibration) -> Certainty:
        return calibration.apply(self.probas["consensus"], self.annotations.vote_counts())

    def right(self, model: str = "consensus") -> Array:
        """Returns whether the inferred labels of `rows` are right."""
        return np.asarray(self.probas[model].argmax(axis=1) == self.truth)[self.rows]


def fitted_crowds(data_dir: Path, parts: Path | None) -> Iterator[Crowd]:
    """Yields every crowd, full and thinned, with the posteriors of all models."""
    models = {
        "consensus": Consensus(),
        "dawid_skene": DawidSkene(),
        "majority_vote": MajorityVote(),
    }
    for name, crowd, truth in read_crowds(data_dir):
        mean = crowd.num_annotations / crowd.annotated.sum()
        kinds = {"full": crowd}
        kinds |= {str(k): thinned(crowd, k) for k in (2, 3) if mean > k + 0.5}
        for kind, one in kinds.items():
            path = None if parts is None else parts / f"{name}_{kind}.npz"
            if path is not None and path.exists():
                with np.load(path) as stored:
                    probas = dict(stored)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    probas = {key: model.fit(one).probas_ for key, model in models.items()}
                if path is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    np.savez(path, **probas)
            yield Crowd(name, kind, one, truth, probas)


def logistic(features: Array, right: Array, weights: Array) -> Array:
    """Returns the weighted logistic regression's coefficients, intercept first."""
    design = np.concatenate([np.ones((len(features), 1)), features], axis=1)
    found = np.zeros(design.shape[1])
    for _ in range(50):
        mean = expit(design @ found)
        slope = design.T @ (weights * (right - mean))
        curvature = (design * (weights * mean * (1 - mean))[:, None]).T @ design
        found = found + np.linalg.solve(curvature + 1e-9 * np.eye(len(found)), slope)
    return found


def learn(crowds: Sequence[Crowd], model: str = "consensus") -> Calibration:
    """Returns the calibration of a model on these crowds, each with equal weight.

    The shifts' covariance is the empirical-Bayes estimate over families, by EM with Laplace's
    approximation for each crowd; a large crowd counts for 400 instances.
    """
    evidence = [
        learned.evidence(one.probas[model], one.annotations.vote_counts())[one.rows]
        for one in crowds
    ]
    right = [one.right(model).astype(float) for one in crowds]
    weights = [np.full(len(one), 100.0 / len(one)) for one in right]
    found = logistic(np.concatenate(evidence), np.concatenate(right), np.concatenate(weights))
    members = {one.family: sum(other.family == one.family for other in crowds) for one in crowds}
    covariance = np.diag([0.5, 0.05])
    for _ in range(30):
        seconds = []
        for features, hits in zip(evidence, right, strict=True):
            z = found[0] + features @ found[1:]
            design = np.stack([np.ones(len(z)), z], axis=1)
            precision, weight, shift = (
                np.linalg.inv(covariance),
                min(1.0, 400 / len(z)),
                np.zeros(2),
            )
            for _ in range(15):
                mean = expit(z + design @ shift)
                slope = weight * design.T @ (hits - mean) - precision @ shift
                spread = weight * mean * (1 - mean)
                curvature = (design * spread[:, None]).T @ design + precision
                shift = shift + np.linalg.solve(curvature, slope)
            seconds.append(np.outer(shift, shift) + np.linalg.inv(curvature))
        shares = [1.0 / members[one.family] for one in crowds]
        covariance = np.average(seconds, axis=0, weights=shares)
    return Calibration(found, np.zeros(2), covariance)


def ranges(crowds: Sequence[Crowd]) -> dict[str, list[float]]:
    """Returns the ranges of sizes within which the calibration was learned."""
    measured: dict[str, list[float]] = {name: [] for name in LOOSE}
    for one in crowds:
        votes = one.annotations.vote_counts()
        counts = votes.sum(axis=1)[one.annotations.annotated]
        agreement = agreement_coefficients(votes, np.eye(votes.shape[1]))["krippendorff"]
        row = (len(counts), votes.shape[1], counts.mean(), (counts > 1).mean(), agreement)
        for values, value in zip(measured.values(), row, strict=True):
            values.append(float(value))
    return {
        name: [round(min(values) * LOOSE[name][0], 3), round(max(values) * LOOSE[name][1], 3)]
        for name, values in measured.items()
    }


def scores(said: Array, right: Array) -> dict[str, float]:
    """Returns the figures of one crowd's probabilities; calibration errors are over ten bins."""
    clipped, bins = np.clip(said, 1e-6, 1 - 1e-6), np.minimum((said * 10).astype(int), 9)
    gaps = np.abs(np.bincount(bins, said - right)).sum()
    return {
        "calibration_error": float(gaps / len(said)),
        "said_minus_true": abs(float(said.mean() - right.mean())),
        "brier": float(((said - right) ** 2).mean()),
        "log_loss": float(-np.log(np.where(right, clipped, 1 - clipped)).mean()),
        "auc": float(roc_auc_score(right, said)) if 0 < right.mean() < 1 else float("nan"),
    }


def judged(certainty: Certainty, rows: Array, right: Array) -> dict[str, float]:
    """Returns the figures of some instances' probabilities, and of the accuracy's interval."""
    estimate = certainty.accuracy(rows)
    return scores(certainty.right()[rows], right) | {
        "covered": float(estimate.low <= right.mean() <= estimate.high),
        "width": estimate.high - estimate.low,
    }


def without_gold(one: Crowd, calibration: Calibration) -> dict[str, float]:
    """Returns the figures of raw and of recalibrated probabilities."""
    figures = judged(one.certainty(calibration), one.rows, one.right())
    for model, name in (("consensus", "raw"), ("dawid_skene", "dawid_skene")):
        raw = scores(one.probas[model].max(axis=1)[one.rows], one.right(model))
        figures |= {f"{name}_{key}": value for key, value in raw.items()}
    return figures


def with_gold(one: Crowd, calibration: Calibration, size: int, draws: int = 10) -> dict[str, float]:
    """Returns the figures with gold labels of random items, which are left out of the scores."""
    rows, probas, votes = one.rows, one.probas["consensus"], one.annotations.vote_counts()
    results = []
    for draw in range(draws if len(rows) >= size + 50 else 0):
        chosen = np.random.default_rng([draw, size]).permutation(rows)
        gold = np.full(len(probas), -1)
        gold[chosen[:size]] = one.truth[chosen[:size]]
        gold[gold == -2] = probas.shape[1]  # no class of the crowd: never agrees
        certainty = calibration.fitted(probas, votes, gold).apply(probas, votes)
        rest = np.sort(chosen[size:])
        results.append(judged(certainty, rest, probas[rest].argmax(axis=1) == one.truth[rest]))
    means = pd.DataFrame(results).mean(skipna=False)
    return {f"gold{size}_{name}": float(value) for name, value in means.items()}


def annotators(one: Crowd, calibration: Calibration) -> dict[str, float]:
    """Returns how often annotators' intervals cover their accuracy, their width over Wilson's, and
    how right the verdict "unreliable" is.
    """
    crowd, skill = one.annotations, annotator_skills(one.annotations, one.certainty(calibration))
    checked = one.truth[crowd.instances] != -1
    who = crowd.annotators[checked]
    hits = crowd.labels[checked] == one.truth[crowd.instances[checked]]
    total = np.bincount(who, minlength=crowd.num_annotators)
    right = np.bincount(who, hits, minlength=crowd.num_annotators)
    many = total >= 5
    if many.sum() < 3:
        return {}
    share = right[many] / total[many]
    low, high = wilson_interval(right[many], total[many], 0.8)
    covered = (skill.low[many] <= share) & (share <= skill.high[many])
    verdict = (skill.note == skills.UNRELIABLE_NOTE)[many]
    noted = (skill.note == skills.CHANCE_NOTE)[many]
    limit = (1.0 / crowd.num_classes + right.sum() / total.sum()) / 2
    return {
        "annotators_covered": float(covered.mean()),
        "annotators_width_ratio": float(
            (skill.high - skill.low)[many].mean() / (high - low).mean()
        ),
        "unreliable_said": float(verdict.sum()),
        "unreliable_right": float((verdict & (share < limit)).sum()),
        "unreliable_true": float((share < limit).sum()),
        "chance_said": float(noted.sum()),
        "chance_right": float((noted & (share < limit)).sum()),
    }


def labels(one: Crowd) -> dict[str, float]:
    """Returns the consensus' gain over majority vote in points, and overturned unanimous labels."""
    rows, votes = one.rows, one.annotations.vote_counts()
    benchmark = published.Benchmark(one.annotations, one.truth)
    gains = {
        f"gain_{name}": 100 * (benchmark.accuracy(probas) - benchmark.accuracy(votes.astype(float)))
        for name, probas in one.probas.items()
    }
    unanimous = (votes.max(axis=1) == votes.sum(axis=1)) & one.annotations.annotated
    overturned = one.probas["consensus"].argmax(axis=1) != votes.argmax(axis=1)
    return gains | {
        "overturned": 100 * float(overturned[unanimous].mean()) if unanimous.any() else 0.0,
        "items": float(len(rows)),
    }


def figures(one: Crowd, calibration: Calibration) -> dict[str, Any]:
    """Returns every figure of a crowd."""
    row: dict[str, Any] = {"crowd": one.name, "thinned": one.thinned, "family": one.family}
    row |= labels(one) | without_gold(one, calibration) | annotators(one, calibration)
    for size in GOLD:
        row |= with_gold(one, calibration, size)
    return row


def measured(crowds: Sequence[Crowd]) -> list[dict[str, Any]]:
    """Returns every figure of every crowd, its family left out of the learning."""
    rows = []
    for family in dict.fromkeys(one.family for one in crowds):
        calibration = learn([one for one in crowds if one.family != family])
        wide = dataclasses.replace(calibration, covariance=calibration.covariance * WIDENING**2)
        rows += [figures(one, wide) for one in crowds if one.family == family]
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Returns means over families (of means over each family's crowds), and the worst gain.

    Gains are also those of full and of thinned crowds alone. Precision and recall of the verdicts
    on annotators are over all crowds.
    """
    table = pd.DataFrame(rows)
    full = table["thinned"] == "full"
    means = table.groupby("family").mean(numeric_only=True).mean().to_dict()
    for kind, some in (("full", table[full]), ("thinned", table[~full])):
        gains = some.groupby("family").mean(numeric_only=True).filter(like="gain").mean()
        means |= {f"{name}_{kind}": value for name, value in gains.items()}
        total = some.sum(numeric_only=True)
        for verdict in ("unreliable", "chance"):
            right = total[f"{verdict}_right"]
            means[f"{verdict}_precision_{kind}"] = right / total[f"{verdict}_said"]
            means[f"{verdict}_recall_{kind}"] = right / total["unreliable_true"]
    means |= {"gain_worst": table["gain_consensus"].min()}
    means |= {"overturned": table.loc[~full, "overturned"].mean()}
    return {str(name): float(value) for name, value in means.items()}


def page(rows: Sequence[dict[str, Any]], means: dict[str, float]) -> str:
    """Returns the tables in Markdown."""
    cells = (
        [row["crowd"], row["thinned"], *(f"{row.get(name, np.nan):.3f}" for name in SHOWN)]
        for row in rows
    )
    lines = [
        "# Certainty on public crowds",
        "",
        "`python -m benchmarks.certainty --data_dir=DATA` makes this page. Each crowd's family is",
        "left out of the learning when it is measured. Means are over families.",
        "",
        *markdown_table(("figure", "mean"), ((k, f"{v:.3f}") for k, v in means.items())),
        "",
        *markdown_table(("crowd", "labels per item", *SHOWN), cells),
    ]
    return "\n".join([*lines, ""])


def write_calibration(crowds: Sequence[Crowd]) -> None:
    """Writes the package's coefficients, learned on all crowds."""
    models = {}
    for name in MODELS:
        calibration = learn(crowds, name)
        models[name] = {
            "weights": calibration.weights.round(6).tolist(),
            "covariance": (calibration.covariance * WIDENING**2).round(6).tolist(),
        }
    names = sorted({one.name for one in crowds})
    values = {"models": models, "ranges": ranges(crowds), "crowds": names}
    path = Path(learned.__file__).with_name("recalibration.json")
    write_text(path, json.dumps(values, indent=1) + "\n")


def main() -> None:
    """Learns the calibration, or measures it."""
    options = arguments(__doc__, data_dir=data_folder(), parts=None, output=None, learn=False)
    crowds = list(fitted_crowds(options.data_dir, options.parts))
    if options.learn:
        write_calibration(crowds)
        return
    rows = measured(crowds)
    means = summary(rows)
    show(options, {"means": means}, page(rows, means))


if __name__ == "__main__":
    main()
