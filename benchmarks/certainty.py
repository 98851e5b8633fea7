"""Learns the calibration of inferred labels on public crowds, and measures it on other families.

    python -m benchmarks.certainty [--data_dir=D] [--outside=FOLDER] [--posteriors=FOLDER]

Crowds are those of `benchmarks/crowds.csv`, which names the repository and commit of each file,
and LabelMe, Music and 4,000 images of CIFAR-10N. Each is also thinned to two and three labels per
item. `--outside` has a folder `<owner>/<name>` with the files of each repository. `--posteriors`
keeps fitted posteriors, so that a command that was stopped goes on; empty it if methods change.

The command writes neucrowd_tf/certainty/recalibration.json, learned on all crowds, and prints
results/calibration.csv: each crowd's figures when its family is left out of the learning.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import arguments, data_folder
from data import cifar10n, labelme, music
from neucrowd_tf.aggregation import Consensus, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Calibration, annotator_skills
from neucrowd_tf.certainty import recalibration as learned
from neucrowd_tf.certainty.skills import CHANCE_NOTE, UNRELIABLE_NOTE
from neucrowd_tf.io.files.atomic import atomic_path, write_text

Array = NDArray[Any]
TABLE = Path(__file__).with_name("crowds.csv")
MODELS = {"consensus": Consensus(), "dawid_skene": DawidSkene(), "majority_vote": MajorityVote()}
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": r"\s+"}
WIDENING = 1.2  # of the shift's spread without gold labels: few families, and unknown relatives
MOST_COUNTED = 400  # instances of a large crowd
GOLD, DRAWS = 50, 5
# How far beyond the sizes of the learned crowds a crowd still counts as alike.
LOOSE = {
    "items": (0.5, 1e9),
    "classes": (1.0, 1.5),
    "labels": (0.75, 10.0),
    "shared": (0.75, 2),
    "agreement": (0.95, 2),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Crowd:
    """One crowd with its inferred labels.

    Attributes:
        name, family, kind, thinned: "rte", "rte", "first" or "outside", "full" (or 2, 3 labels).
        annotations: the crowd, or some of its labels.
        truth: `[N]` class codes; -1 unknown, -2 a class that nobody named.
        probas: by model (`MODELS`), `[N, C]`.
    """

    name: str
    family: str
    kind: str
    thinned: str
    annotations: Annotations
    truth: Array
    probas: dict[str, Array]

    @property
    def rows(self) -> Array:
        """The instances with a true label and at least one annotation."""
        return np.flatnonzero((self.truth != -1) & self.annotations.annotated)

    @property
    def votes(self) -> Array:
        return self.annotations.vote_counts()

    def right(self) -> Array:
        """Returns whether the inferred labels of `rows` are right."""
        return np.asarray(self.probas["consensus"].argmax(axis=1) == self.truth)[self.rows]

    def majority_vote(self) -> float:
        """Returns the expected accuracy of majority vote whose ties are drawn."""
        votes, truth = self.votes[self.rows], self.truth[self.rows]
        top = votes == votes.max(axis=1, keepdims=True)
        hits = top[np.arange(len(top)), truth] & (truth >= 0)
        return float((hits / top.sum(axis=1)).mean())


def table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Returns columns 0, 1, ... of a file; numbers name those of files without header."""
    header = None if columns[0].isdigit() else 0
    text = pd.read_csv(
        path, sep=SEPARATORS[path.suffix], header=header, dtype=str, encoding="utf-8-sig"
    ).rename(columns=str)
    parts = [[text[single] for single in name.split("|")] for name in columns]
    joined = [x[0].str.cat(pd.concat(x[1:], axis=1), sep="|") if x[1:] else x[0] for x in parts]
    return pd.concat(joined, axis=1, keys=range(len(columns))).dropna()


def read_crowd(row: dict[str, str], folder: Path) -> tuple[Annotations, Array]:
    """Returns annotations of people and true labels of a row of `crowds.csv`."""
    labels = table(folder / row["labels"], row["columns"].split())
    truth = table(folder / row["truth"], row["true_columns"].split()).drop_duplicates(0).copy()
    labels[2] = labels[2].str.removesuffix(".0")
    if row["classes"]:  # other items are tests of attention
        order = {name: str(code) for code, name in enumerate(row["classes"].split())}
        truth[1] = truth[1].map(order)
        truth = truth.dropna()
        labels = labels[labels[0].isin(truth[0])]
    if (models := folder / Path(row["labels"]).with_name("set.json")).exists():
        labels = labels[~labels[1].isin(json.loads(models.read_text("utf-8"))["models"])]
    crowd = Annotations.from_arrays(*(labels[code] for code in range(3)), duplicates="last")
    codes = {str(name): code for code, name in enumerate(crowd.class_names)}
    true = truth.set_index(0)[1].map(codes).fillna(-2)
    names = crowd.instance_names.astype(str)
    return crowd, true.reindex(names).fillna(-1).to_numpy(int)


def read_crowds(data_dir: Path, outside: Path | None) -> Iterator[tuple[Any, ...]]:
    """Yields name, family, kind, annotations and true labels of each crowd."""
    for row in csv.DictReader(TABLE.read_text("utf-8").splitlines()):
        if row["repository"] and outside is None:
            continue
        folder = outside / row["repository"] if row["repository"] and outside else data_dir
        yield row["name"], row["family"], row["kind"], *read_crowd(row, folder)
    loaded = {
        "labelme": (labelme.load(data_dir), "labelme"),
        "music": (music.load(data_dir), "MS"),
        "cifar10n": (cifar10n.load(data_dir, size=4000), "cifar10n"),
    }
    for name, (dataset, family) in loaded.items():
        yield name, family, "first", dataset.annotations, np.asarray(dataset.truth)


def thinned(crowd: Annotations, labels: int) -> Annotations:
    """Returns a crowd with at most that many labels per item, drawn at random."""
    order = np.random.default_rng([0, labels]).permutation(crowd.num_annotations)
    grouped = order[np.argsort(crowd.instances[order], kind="stable")]
    first = np.searchsorted(crowd.instances[grouped], crowd.instances[grouped])
    return crowd.select(np.sort(grouped[np.arange(len(grouped)) - first < labels]))


def fitted_crowds(options: Any) -> Iterator[Crowd]:
    """Yields every crowd, full and thinned, with the posteriors of all models."""
    for name, family, kind, crowd, truth in read_crowds(options.data_dir, options.outside):
        mean = crowd.num_annotations / crowd.annotated.sum()
        for size in ("full", *(str(k) for k in (2, 3) if mean > k + 0.5)):
            one = crowd if size == "full" else thinned(crowd, int(size))
            path = options.posteriors and options.posteriors / f"{name}_{size}.npz"
            if path and path.exists():
                probas = dict(np.load(path))
            else:
                probas = {key: model.fit(one).probas_ for key, model in MODELS.items()}
                if path:
                    with atomic_path(path) as written:
                        np.savez(written, **probas)
            yield Crowd(name, family, kind, size, one, truth, probas)


@functools.cache
def sample(one: Crowd, model: str) -> tuple[Array, Array, float]:
    """Returns evidence and whether labels are right, of some instances, and the spread's factor."""
    rows = np.random.default_rng(0).permutation(one.rows)[:MOST_COUNTED]
    probas, votes = one.probas[model], one.votes
    right = (probas.argmax(axis=1) == one.truth)[rows].astype(float)
    return learned.evidence(probas, votes)[rows], right, learned.spread_of(votes)


def learn(crowds: Sequence[Crowd], model: str = "consensus") -> Calibration:
    """Returns the calibration of a model on these crowds.

    Each crowd has the weight 1 / its shift's variance / the number of crowds in its family. The
    shifts' covariance is the empirical-Bayes estimate, by EM with Laplace's approximation for each
    crowd.
    """
    members = Counter(one.family for one in crowds)
    evidence, right, spreads = zip(*(sample(one, model) for one in crowds), strict=True)
    shares = 1.0 / np.array([members[one.family] for one in crowds]) / spreads
    shares *= len(members) / shares.sum()
    weights = [np.full(len(y), 300 * w / len(y)) for y, w in zip(right, shares, strict=True)]
    regression = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8)
    regression.fit(np.concatenate(evidence), np.concatenate(right), np.concatenate(weights))
    coefficients = np.concatenate([regression.intercept_, regression.coef_[0]])
    logits = np.zeros((len(crowds), MOST_COUNTED))
    hits, used = np.zeros_like(logits), np.zeros_like(logits)
    for row, (features, y) in enumerate(zip(evidence, right, strict=True)):
        logits[row, : len(y)] = coefficients[0] + features @ coefficients[1:]
        hits[row, : len(y)], used[row, : len(y)] = y, 1.0
    covariance, factors = np.diag([0.5, 0.05]), np.array(spreads)[:, None, None]
    for _ in range(20):
        shift, error = shifts(logits, hits, used, covariance * factors)
        seconds = (shift[:, :, None] * shift[:, None] + error) / factors
        covariance = np.average(seconds, axis=0, weights=shares)
    return Calibration(coefficients, np.zeros(2), covariance * WIDENING**2, ranges(crowds))


def shifts(logits: Array, hits: Array, used: Array, covariances: Array) -> tuple[Array, Array]:
    """Returns `Calibration.shift_of` for K crowds at once, by Newton's method.

    Args:
        logits, hits, used: `[K, n]`, the last 0 where a crowd has fewer instances.
        covariances: `[K, 2, 2]` of the shifts.
    """
    design = np.stack([used, logits * used], axis=2)
    precision, shift = np.linalg.inv(covariances), np.zeros((len(logits), 2))
    for _ in range(100):
        mean = expit(logits + np.einsum("kni,ki->kn", design, shift))
        slope = np.einsum("kni,kn->ki", design, mean - hits)
        slope += np.einsum("kij,kj->ki", precision, shift)
        weight = (mean * (1 - mean))[:, :, None]
        curvature = design.transpose(0, 2, 1) @ (design * weight) + precision
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        shift -= step / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
        if np.abs(step).max() < 1e-6:
            break
    return shift, np.linalg.inv(curvature)


@functools.cache
def sizes_of(one: Crowd) -> dict[str, float]:
    """Returns `learned.sizes` of a crowd."""
    return learned.sizes(one.votes)


def ranges(crowds: Sequence[Crowd]) -> dict[str, list[float]]:
    """Returns the ranges of sizes within which the calibration is learned."""
    sizes = pd.DataFrame([sizes_of(one) for one in crowds], dtype=float)
    return {
        name: [round(sizes[name].min() * low, 3), round(sizes[name].max() * high, 3)]
        for name, (low, high) in LOOSE.items()
    }


def figures(one: Crowd, calibration: Calibration) -> dict[str, Any]:
    """Returns a crowd's estimates, with and without gold labels, and the true values."""
    probas, rows, right = one.probas["consensus"], one.rows, one.right()
    certainty = calibration.apply(probas, one.votes)
    expected = certainty.right()[rows]
    bins = np.minimum((expected * 10).astype(int), 9)
    gaps = np.abs(np.bincount(bins, expected - right, minlength=10))
    row = {name: getattr(one, name) for name in ("name", "family", "kind", "thinned")}
    row |= sizes_of(one) | {"true": right.mean()}
    row |= dict(zip(("expected", "low", "high"), certainty.accuracy(rows), strict=True))
    row |= {"calibration_error": gaps.sum() / len(rows), "unlike": len(certainty.notes)}
    row |= {"majority_vote": one.majority_vote()} | annotators(one, certainty)
    errors, inside = [], []
    for draw in range(DRAWS if len(rows) > 2 * GOLD else 0):
        chosen = np.random.default_rng([draw, GOLD]).permutation(rows)
        gold = np.full(len(probas), -1)
        gold[chosen[:GOLD]] = np.where(one.truth < 0, probas.shape[1], one.truth)[chosen[:GOLD]]
        rest = np.sort(chosen[GOLD:])
        estimate = calibration.fitted(probas, one.votes, gold).apply(probas, one.votes)
        low, high = (accuracy := estimate.accuracy(rest)).low, accuracy.high
        true = (probas.argmax(axis=1) == one.truth)[rest].mean()
        errors.append(abs(accuracy.value - true))
        inside.append(low <= true <= high)
    return row | {"gold_error": np.mean(errors or [np.nan]), "gold_in": np.mean(inside or [np.nan])}


def annotators(one: Crowd, certainty: learned.Certainty) -> dict[str, float]:
    """Returns how often annotators' intervals hold, and how right the notes on them are."""
    crowd, judged = one.annotations, annotator_skills(one.annotations, certainty)
    checked = one.truth[crowd.instances] != -1
    hits = checked & (crowd.labels == one.truth[crowd.instances])
    total, right = (
        np.bincount(crowd.annotators, x, minlength=crowd.num_annotators) for x in (checked, hits)
    )
    many = total >= 5
    share = right[many] / total[many]
    bad = share < (1.0 / crowd.num_classes + right.sum() / total.sum()) / 2
    inside = (judged.low[many] <= share) & (share <= judged.high[many])
    row = {"annotators_in": inside.mean() if many.sum() > 2 else np.nan, "bad": bad.sum()}
    for name, note in (("unreliable", UNRELIABLE_NOTE), ("near_chance", CHANCE_NOTE)):
        noted = (judged.note == note)[many]
        row |= {name: noted.sum(), f"{name}_right": (noted & bad).sum()}
    return row


def main() -> None:
    """Writes the package's coefficients, and prints the figures of families left out."""
    options = arguments(__doc__, data_dir=data_folder(), outside=Path, posteriors=Path)
    warnings.simplefilter("ignore")  # not converged, on small sets
    crowds, models = list(fitted_crowds(options)), {}
    for name in MODELS:
        calibration = learn(crowds, name)
        weights, covariance = calibration.weights.round(6), calibration.covariance.round(6)
        models[name] = {"weights": weights.tolist(), "covariance": covariance.tolist()}
    names = sorted({one.name for one in crowds})
    values = {"models": models, "ranges": ranges(crowds), "crowds": names}
    path = Path(learned.__file__).with_name("recalibration.json")
    write_text(path, json.dumps(values, indent=1) + "\n")
    rows = []
    for family in sorted({one.family for one in crowds}):
        calibration = learn([one for one in crowds if one.family != family])
        rows += [figures(one, calibration) for one in crowds if one.family == family]
    pd.DataFrame(rows).round(3).to_csv(sys.stdout, index=False)


if __name__ == "__main__":
    main()
