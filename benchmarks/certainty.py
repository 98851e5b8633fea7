"""Learns the calibration of inferred labels on public crowds, and measures what it says.

    python -m benchmarks.certainty [--data_dir=D] [--parts=FOLDER] [--learn] [--json]
        [--output=results/certainty.md]

Crowds: the twelve of `truth_inference/`, LabelMe, Music, 4,000 images of CIFAR-10N, four of
`real_files/` with gold labels, and each of these thinned to two and three labels per item. When a
crowd is measured, its whole family (crowds of the same items or task) is left out of the learning.
`--learn` writes neucrowd_tf/certainty/recalibration.json, learned on all crowds. `--parts` keeps
each crowd's posteriors, so that a stopped run goes on.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.timing import data_folder, flags, tell
from data import cifar10n, labelme, music
from data import truth_inference as published
from neucrowd_tf.aggregation import Consensus, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Calibration, Certainty, annotator_skills
from neucrowd_tf.certainty import recalibration as learned
from neucrowd_tf.io.files.atomic import write_text

Array = NDArray[Any]
RELATIVES = ("CF CF_amt", "ZC_all ZC_in ZC_us", "rte snow_rte", "trec trec_rf10", "MS music")
FAMILY = {name: group.split()[0] for group in RELATIVES for name in group.split()}
# Item, annotator and label columns of the files with gold labels; numbers where no header is.
FILES: dict[str, tuple[str, tuple[Any, Any, Any]]] = {
    "snow_rte": ("snow_rte.tsv", ("orig_id", "!amt_worker_ids", "response")),
    "snow_wsd": ("snow_wsd.tsv", ("orig_id", "!amt_worker_ids", "response")),
    "barzan": ("barzan.txt", (1, 0, 2)),
    "trec_rf10": ("trec_rf10.txt", (("topicID", "docID"), "workerID", "label")),
}
WIDENING = 1.2  # of the shift's spread without gold labels: few families, and unknown relatives
GOLD = (20, 50, 200)
MODELS = ("consensus", "dawid_skene", "majority_vote")


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


def read_crowds(data_dir: Path) -> Iterator[tuple[str, Annotations, Array]]:
    """Yields name, annotations and true labels of each crowd."""
    for name in published.names(data_dir):
        crowd = published.load(data_dir, name)
        yield name, crowd.annotations, crowd.truth
    loaders: dict[str, Callable[[], Any]] = {
        "labelme": lambda: labelme.load(data_dir),
        "music": lambda: music.load(data_dir),
        "cifar10n": lambda: cifar10n.load(data_dir, size=4000),
    }
    for name, load in loaders.items():
        dataset = load()
        yield name, dataset.annotations, np.asarray(dataset.truth)
    for name, (file, columns) in FILES.items():
        yield name, *_with_gold(data_dir / "real_files", name, file, columns)


def _with_gold(
    folder: Path, name: str, file: str, columns: tuple[Any, Any, Any]
) -> tuple[Annotations, Array]:
    lines = (folder / file).read_text(encoding="utf-8").splitlines()
    rows: Iterator[Any] = (line.split() for line in lines)
    if not isinstance(columns[0], int):
        rows = csv.DictReader(lines, delimiter="\t")
    last: dict[tuple[str, str], str] = {}
    for row in rows:
        item, annotator, label = (
            "|".join(row[part] for part in key) if isinstance(key, tuple) else row[key]
            for key in columns
        )
        last[item, annotator] = label
    names = [
        sorted(set(column)) for column in zip(*((*key, last[key]) for key in last), strict=True)
    ]
    codes = [{value: code for code, value in enumerate(column)} for column in names]
    triples = np.array(
        [[codes[0][i], codes[1][r], codes[2][last[i, r]]] for i, r in last], np.int32
    )
    crowd = Annotations(
        *(np.ascontiguousarray(column) for column in triples.T),
        num_instances=len(names[0]),
        num_annotators=len(names[1]),
        num_classes=len(names[2]),
    )
    with (folder / "gold" / f"{name}.csv").open(encoding="utf-8") as stream:
        gold = {row["task"]: codes[2].get(row["truth"], -2) for row in csv.DictReader(stream)}
    return crowd, np.array([gold.get(item, -1) for item in names[0]])


def thinned(crowd: Annotations, labels: int) -> Annotations:
    """Returns a crowd with at most that many labels per item, drawn at random."""
    order = np.random.default_rng([0, labels]).permutation(crowd.num_annotations)
    grouped = order[np.argsort(crowd.instances[order], kind="stable")]
    place = np.arange(len(grouped))
    first = np.searchsorted(crowd.instances[grouped], crowd.instances[grouped])
    return crowd.select(np.sort(grouped[place - first < labels]))


def fitted_crowds(data_dir: Path, parts: Path | None) -> Iterator[Crowd]:
    """Yields every crowd, full and thinned, with the posteriors of both models."""
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
                    models = {"consensus": Consensus(), "dawid_skene": DawidSkene()}
                    probas = {key: model.fit(one).probas_ for key, model in models.items()}
                if path is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    np.savez(path, **probas)
            probas["majority_vote"] = MajorityVote().fit(one).probas_
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
    counts = [one.annotations.vote_counts().sum(axis=1) for one in crowds]
    counts = [one[one > 0] for one in counts]
    measured = {
        "items": [len(one) for one in counts],
        "classes": [one.annotations.num_classes for one in crowds],
        "labels": [float(one.mean()) for one in counts],
        "shared": [float((one > 1).mean()) for one in counts],
    }
    # A crowd a little smaller or sparser than the smallest is still alike.
    loose = {
        "items": (0.5, 1e9),
        "classes": (1.0, 1.5),
        "labels": (0.75, 10.0),
        "shared": (0.75, 2),
    }
    return {
        name: [round(min(values) * loose[name][0], 3), round(max(values) * loose[name][1], 3)]
        for name, values in measured.items()
    }


def calibration_error(said: Array, right: Array) -> float:
    """Returns the mean distance of said and true shares over ten equal bins."""
    bins = np.minimum((said * 10).astype(int), 9)
    gaps = [np.abs((said - right)[bins == each].sum()) for each in range(10)]
    return float(sum(gaps) / len(said))


def auc(said: Array, right: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(right, said)) if 0 < right.mean() < 1 else float("nan")


def scores(said: Array, right: Array) -> dict[str, float]:
    """Returns the figures of one crowd's probabilities."""
    clipped = np.clip(said, 1e-6, 1 - 1e-6)
    return {
        "calibration_error": calibration_error(said, right),
        "said_minus_true": abs(float(said.mean() - right.mean())),
        "brier": float(((said - right) ** 2).mean()),
        "log_loss": float(-np.log(np.where(right, clipped, 1 - clipped)).mean()),
        "auc": auc(said, right),
    }


def without_gold(one: Crowd, calibration: Calibration) -> dict[str, float]:
    """Returns the figures of raw and recalibrated probabilities, and of the accuracy's interval."""
    certainty, rows, right = one.certainty(calibration), one.rows, one.right()
    raw = one.probas["consensus"].max(axis=1)[rows]
    found = {f"raw_{name}": value for name, value in scores(raw, right).items()}
    found |= scores(certainty.right()[rows], right)
    estimate = certainty.accuracy(rows)
    found |= {
        "covered": float(estimate.low <= right.mean() <= estimate.high),
        "width": estimate.high - estimate.low,
    }
    return found


def with_gold(one: Crowd, calibration: Calibration, size: int, draws: int = 10) -> dict[str, float]:
    """Returns the figures with gold labels of random items, which are left out of the scores."""
    rows, probas, votes = one.rows, one.probas["consensus"], one.annotations.vote_counts()
    found: dict[str, list[float]] = defaultdict(list)
    for draw in range(draws if len(rows) >= size + 50 else 0):
        chosen = np.random.default_rng([draw, size]).permutation(rows)
        gold = np.full(len(probas), -1)
        gold[chosen[:size]] = np.maximum(one.truth[chosen[:size]], -2)
        gold[gold == -2] = probas.shape[1]  # no class of the crowd: never agrees
        certainty = calibration.fitted(probas, votes, gold).apply(probas, votes)
        rest = np.sort(chosen[size:])
        right = probas[rest].argmax(axis=1) == one.truth[rest]
        estimate = certainty.accuracy(rest)
        for name, value in scores(certainty.right()[rest], right).items():
            found[name].append(value)
        found["covered"].append(float(estimate.low <= right.mean() <= estimate.high))
        found["width"].append(estimate.high - estimate.low)
    return {f"gold{size}_{name}": float(np.mean(values)) for name, values in found.items()}


def annotators(one: Crowd, calibration: Calibration) -> dict[str, float]:
    """Returns how often annotators' intervals cover their accuracy, their width over Wilson's, and
    how right the verdict "unreliable" is.
    """
    from neucrowd_tf.evaluation.intervals import wilson_interval

    crowd, skills = one.annotations, annotator_skills(one.annotations, one.certainty(calibration))
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
    covered = (skills.low[many] <= share) & (share <= skills.high[many])
    verdict = (skills.note == "unreliable")[many]
    limit = (1.0 / crowd.num_classes + right.sum() / total.sum()) / 2
    return {
        "annotators_covered": float(covered.mean()),
        "annotators_width_ratio": float(
            (skills.high - skills.low)[many].mean() / (high - low).mean()
        ),
        "unreliable_said": float(verdict.sum()),
        "unreliable_right": float((verdict & (share < limit)).sum()),
        "unreliable_true": float((share < limit).sum()),
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


def measured(crowds: Sequence[Crowd]) -> list[dict[str, Any]]:
    """Returns every figure of every crowd, its family left out of the learning."""
    rows = []
    for family in dict.fromkeys(one.family for one in crowds):
        calibration = learn([one for one in crowds if one.family != family])
        open_ = dataclasses.replace(calibration, covariance=calibration.covariance * WIDENING**2)
        for one in (one for one in crowds if one.family == family):
            row: dict[str, Any] = {"crowd": one.name, "thinned": one.thinned, "family": family}
            row |= labels(one) | without_gold(one, open_) | annotators(one, open_)
            for size in GOLD:
                row |= with_gold(one, open_, size)
            rows.append(row)
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Returns means over families (of means over each family's crowds), and the worst crowds."""
    found: dict[str, float] = {}
    for name in dict.fromkeys(key for row in rows for key in row):
        if name in ("crowd", "thinned", "family"):
            continue
        for kind in ("", "full", "thinned"):
            if kind and not name.startswith("gain"):
                continue
            groups: dict[str, list[float]] = defaultdict(list)
            for row in rows:
                if name in row and kind in ("", "full" if row["thinned"] == "full" else "thinned"):
                    groups[row["family"]].append(row[name])
            means = [np.nanmean(values) for values in groups.values() if not np.isnan(values).all()]
            found[f"{name}_{kind}" if kind else name] = float(np.mean(means))
    found["gain_worst"] = min(row["gain_consensus"] for row in rows)
    found["overturned"] = float(np.mean([r["overturned"] for r in rows if r["thinned"] != "full"]))
    for kind in ("full", "thinned"):
        some = [r for r in rows if (r["thinned"] == "full") == (kind == "full")]
        said = sum(row.get("unreliable_said", 0.0) for row in some)
        right = sum(row.get("unreliable_right", 0.0) for row in some)
        true = sum(row.get("unreliable_true", 0.0) for row in some)
        found[f"unreliable_precision_{kind}"] = right / said if said else float("nan")
        found[f"unreliable_recall_{kind}"] = right / true if true else float("nan")
    return found


def page(rows: Sequence[dict[str, Any]], means: dict[str, float]) -> str:
    """Returns the tables in Markdown."""
    shown = ("gain_consensus", "overturned", "raw_calibration_error", "calibration_error")
    shown += ("raw_said_minus_true", "said_minus_true", "covered", "width")
    shown += ("gold50_calibration_error", "gold50_said_minus_true", "annotators_covered")
    lines = [
        "# Certainty on public crowds",
        "",
        "`python -m benchmarks.certainty --data_dir=DATA` makes this page. Each crowd's family is",
        "left out of the learning when it is measured. Means are over families.",
        "",
        "| figure | mean over families |",
        "|---|--:|",
        *(f"| {name} | {value:.3f} |" for name, value in means.items()),
        "",
        "| crowd | labels per item | " + " | ".join(shown) + " |",
        "|---|---|" + "--:|" * len(shown),
    ]
    for row in rows:
        cells = (f"{row[name]:.3f}" if name in row else "" for name in shown)
        lines.append(f"| {row['crowd']} | {row['thinned']} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Runs the command."""
    parser = flags(__doc__)
    parser.add_argument("--data_dir", type=Path, default=data_folder(), help="the published data")
    parser.add_argument("--parts", type=Path, help="a folder that keeps each crowd's posteriors")
    parser.add_argument("--output", type=Path, help="the page to write")
    parser.add_argument("--learn", action="store_true", help="write recalibration.json")
    given = parser.parse_args()
    crowds = list(fitted_crowds(Path(given.data_dir), given.parts))
    if given.learn:
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
        return
    rows = measured(crowds)
    means = summary(rows)
    tell(given, means, page(rows, means))


if __name__ == "__main__":
    main()
