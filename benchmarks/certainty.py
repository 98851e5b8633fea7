"""Learns the calibration of inferred labels on public crowds, and measures what it says.

    python -m benchmarks.certainty [--data_dir=D] [--parts=FOLDER] [--fresh=FOLDER] [--learn]
        [--json] [--output=results/certainty.md]

Crowds: the twelve of `truth_inference/`, LabelMe, Music, 4,000 images of CIFAR-10N, four of
`real_files/` with gold labels, and each of these thinned to two and three labels per item. When a
crowd is measured, its whole family (crowds of the same items or task) is left out of the learning.
`--learn` writes neucrowd_tf/certainty/recalibration.json, learned on all crowds. `--parts` keeps
each crowd's posteriors, so that a stopped run goes on. `--fresh` is a folder like `--data_dir`:
the crowds of `FRESH` in its `truth_inference/` are measured with the package's coefficients.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.timing import data_folder, flags, tell
from data import cifar10n, labelme, music
from data import truth_inference as published
from neucrowd_tf.aggregation import Consensus, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.certainty import Calibration, Certainty, annotator_skills, skills
from neucrowd_tf.certainty import recalibration as learned
from neucrowd_tf.certainty.coefficients import coefficients
from neucrowd_tf.io.files.atomic import write_text

Array = NDArray[Any]
RELATIVES = (
    "CF CF_amt",
    "ZC_all ZC_in ZC_us",
    "rte snow_rte",
    "trec trec_rf10",
    "MS music",
    "politifact abc",
)
FAMILY = {name: group.split()[0] for group in RELATIVES for name in group.split()}
# Item, annotator and label columns of the files with gold labels; numbers where no header is.
FILES: dict[str, tuple[str, tuple[Any, Any, Any]]] = {
    "snow_rte": ("snow_rte.tsv", ("orig_id", "!amt_worker_ids", "response")),
    "snow_wsd": ("snow_wsd.tsv", ("orig_id", "!amt_worker_ids", "response")),
    "barzan": ("barzan.txt", (1, 0, 2)),
    "trec_rf10": ("trec_rf10.txt", (("topicID", "docID"), "workerID", "label")),
}
WIDENING = 1.2  # of the shift's spread without gold labels: few families, and unknown relatives
# Crowds that had no part in any choice: where they come from (a label per item and annotator, the
# last one of several; `politifact` and `abc` are the statements of one source each).
TRUTH_INFERENCE = (
    "zhydhkcws/crowd_truth_infer @ 8d216471071f09b9e474ee19f8d692447f982f88: datasets/"
)
AGGREGATION = "JunjieChiang/Label-Aggregation @ d153fa4c651d3f4e495a0d5f8929de7af1128608: data/"
FACTS = "KevinRoitero/crowdsourcingTruthfulness @ 47d1e18b980e2afe998ad97c5ae0321acd1183e3: "
FACTS += "SIGIR2020/crowdsourced-data/"
FRESH = {
    "bluebird": TRUTH_INFERENCE + "d_Duck Identification",
    "product": TRUTH_INFERENCE + "d_jn-product",
    "dog": TRUTH_INFERENCE + "s4_Dog data",
    "face": TRUTH_INFERENCE + "s4_Face Sentiment Identification",
    "reuters": AGGREGATION + "ruters",
    "leaves": AGGREGATION + "leaves",
    "fej2013": AGGREGATION + "fej2013",
    "temp": AGGREGATION + "temp",
    "politifact": FACTS + "S6.csv",
    "abc": FACTS + "S3.csv",
}
LEFT_OUT = (
    "HITspam was measured with them and then left out, because all labels of an item are equal in",
    "its file, also where the truth differs. With it 0.58 of the intervals contain the true",
    "accuracy, and said_minus_true is 0.134.",
)
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
    yield from read_published(data_dir)
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


def read_published(folder: Path) -> Iterator[tuple[str, Annotations, Array]]:
    """Yields name, annotations and true labels of each crowd of `truth_inference/`."""
    for name in published.names(folder):
        crowd = published.load(folder, name)
        yield name, crowd.annotations, crowd.truth


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


def fitted_crowds(
    crowds: Iterable[tuple[str, Annotations, Array]], parts: Path | None
) -> Iterator[Crowd]:
    """Yields every crowd, full and thinned, with the posteriors of all models."""
    for name, crowd, truth in crowds:
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


def alpha(votes: Array) -> float:
    """Returns Krippendorff's alpha."""
    return coefficients(votes, np.eye(votes.shape[1]))["krippendorff"]


def ranges(crowds: Sequence[Crowd]) -> dict[str, list[float]]:
    """Returns the ranges of sizes within which the calibration was learned."""
    counts = [one.annotations.vote_counts().sum(axis=1) for one in crowds]
    counts = [one[one > 0] for one in counts]
    measured = {
        "items": [len(one) for one in counts],
        "classes": [one.annotations.num_classes for one in crowds],
        "labels": [float(one.mean()) for one in counts],
        "shared": [float((one > 1).mean()) for one in counts],
        "agreement": [alpha(one.annotations.vote_counts()) for one in crowds],
    }
    # A crowd a little smaller or sparser than the smallest is still alike.
    loose = {
        "items": (0.5, 1e9),
        "classes": (1.0, 1.5),
        "labels": (0.75, 10.0),
        "shared": (0.75, 2),
        "agreement": (0.95, 2),
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


def constant_scores(right: Array) -> dict[str, float]:
    """Returns the scores of the best constant, the crowd's true accuracy."""
    return {
        f"constant_{name}": scores(np.full(len(right), right.mean()), right)[name]
        for name in ("brier", "log_loss")
    }


def without_gold(one: Crowd, calibration: Calibration) -> dict[str, float]:
    """Returns the figures of raw and recalibrated probabilities, and of the accuracy's interval."""
    certainty, rows, right = one.certainty(calibration), one.rows, one.right()
    raw = one.probas["consensus"].max(axis=1)[rows]
    found = {f"raw_{name}": value for name, value in scores(raw, right).items()}
    found |= scores(certainty.right()[rows], right) | constant_scores(right)
    old = one.probas["dawid_skene"]
    before = scores(old.max(axis=1)[rows], one.right("dawid_skene"))
    found |= {f"dawid_skene_{name}": value for name, value in before.items()}
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

    crowd, judged = one.annotations, annotator_skills(one.annotations, one.certainty(calibration))
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
    covered = (judged.low[many] <= share) & (share <= judged.high[many])
    verdict = (judged.note == skills.UNRELIABLE_NOTE)[many]
    noted = (judged.note == skills.CHANCE_NOTE)[many]
    limit = (1.0 / crowd.num_classes + right.sum() / total.sum()) / 2
    return {
        "annotators_covered": float(covered.mean()),
        "annotators_width_ratio": float(
            (judged.high - judged.low)[many].mean() / (high - low).mean()
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
        noted, low = (
            sum(row.get(f"chance_{key}", 0.0) for row in some) for key in ("said", "right")
        )
        found[f"chance_precision_{kind}"] = low / noted if noted else float("nan")
        found[f"chance_recall_{kind}"] = low / true if true else float("nan")
    return found


def planted(seeds: int = 6) -> list[str]:
    """Returns a table: shares of planted annotators with twenty labels that `near_chance` finds.

    Each of the simulated crowds has 400 items, three or five labels per item, 32 annotators with a
    mean accuracy of .7 or .8, three who guess, two who always give one class, three adversaries.
    """
    counts: dict[tuple[int, str], list[bool]] = defaultdict(list)
    kinds = np.repeat(["ordinary", "guess", "constant", "adversary"], (32, 3, 2, 3))
    for size, each, accuracy, seed in itertools.product(
        (2, 3, 4), (3, 5), (0.7, 0.8), range(seeds)
    ):
        truth = np.random.default_rng([9, seed, size]).integers(0, size, 400)
        parts = [simulation.confusion_annotators(32, size, seed, accuracy=accuracy)]
        parts += [simulation.spammers(3, size, seed)]
        parts += [simulation.spammers(2, size, seed, kind="constant")]
        parts += [simulation.adversaries(3, size, seed)]
        crowd = simulation.simulate(truth, np.concatenate(parts), seed, rates=each / 40)
        for kind, noted in zip(kinds, skills.near_chance(crowd), strict=True):
            counts[size, str(kind)].append(bool(noted))
    names = list(dict.fromkeys(kinds.tolist()))
    lines = [f"| classes | {' | '.join(names)} |", "|--:|" + "--:|" * len(names)]
    for size in (2, 3, 4):
        cells = " | ".join(f"{np.mean(counts[size, name]):.2f}" for name in names)
        lines.append(f"| {size} | {cells} |")
    return lines


def nested(crowds: Sequence[Crowd]) -> list[str]:
    """Returns lines of a table: the constants chosen without each family, and how they do on it.

    The shift's widening and the spread of annotators' quantiles are the least that cover 80% of the
    other families, the least certain consensus is the lowest with a precision of .93 there.
    """
    families = list(dict.fromkeys(one.family for one in crowds))
    grids: dict[str, tuple[float, ...]] = {
        "widening": (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.6),
        "spread": (0.83, 0.85, 0.87, 0.89, 0.91),
        "weak": (0.0, 0.2, 0.3, 0.4),
    }
    found: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    right: dict[tuple[str, str, float], float] = defaultdict(float)
    for family in families:
        base = learn([one for one in crowds if one.family != family])
        for one in (one for one in crowds if one.family == family):
            for value in grids["widening"]:
                wide = dataclasses.replace(base, covariance=base.covariance * value**2)
                found["widening", family, value].append(without_gold(one, wide)["covered"])
            wide = dataclasses.replace(base, covariance=base.covariance * WIDENING**2)
            with mock.patch.object(skills, "draws_for", lambda size: 60):
                for value in grids["spread"]:
                    with mock.patch.object(skills, "SPREAD", value):
                        row = annotators(one, wide)
                    found["spread", family, value] += [row["annotators_covered"]] if row else []
                for value in grids["weak"]:
                    with mock.patch.object(skills, "WEAK", value):
                        row = annotators(one, wide)
                    found["weak", family, value].append(row.get("unreliable_said", 0.0))
                    right["weak", family, value] += row.get("unreliable_right", 0.0)
    lines = ["| constant | chosen without each family | on the families left out | as they are |"]
    lines.append("|---|---|--:|--:|")
    for name, default in (("widening", WIDENING), ("spread", skills.SPREAD), ("weak", skills.WEAK)):

        def score(value: float, some: Sequence[str], name: str = name) -> float:
            if name != "weak":
                return float(np.mean([np.mean(found[name, each, value]) for each in some]))
            said = sum(sum(found[name, each, value]) for each in some)
            return sum(right[name, each, value] for each in some) / said if said else 1.0

        least = 0.93 if name == "weak" else 0.8
        chosen = {}
        for family in families:
            others = [each for each in families if each != family]
            enough = [value for value in grids[name] if score(value, others) >= least]
            chosen[family] = min(enough, default=grids[name][-1])
        if name == "weak":
            said = sum(sum(found[name, each, chosen[each]]) for each in families)
            reached = sum(right[name, each, chosen[each]] for each in families) / max(said, 1.0)
        else:
            reached = float(np.mean([score(chosen[each], [each]) for each in families]))
        values = ", ".join(f"{value:g}" for value in chosen.values())
        lines.append(f"| {name} | {values} | {reached:.3f} | {score(default, families):.3f} |")
    return lines


SHOWN = ("gain_consensus", "overturned", "raw_calibration_error", "calibration_error")
SHOWN += ("raw_said_minus_true", "said_minus_true", "covered", "width")
SHOWN += ("gold50_calibration_error", "gold50_said_minus_true", "annotators_covered")


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Returns a table of crowds in Markdown."""
    lines = [
        f"| crowd | labels per item | {' | '.join(SHOWN)} |",
        "|---|---|" + "--:|" * len(SHOWN),
    ]
    for row in rows:
        cells = (f"{row[name]:.3f}" if name in row else "" for name in SHOWN)
        lines.append(f"| {row['crowd']} | {row['thinned']} | {' | '.join(cells)} |")
    return lines


def page(
    rows: Sequence[dict[str, Any]], fresh: Sequence[dict[str, Any]], constants: Sequence[str]
) -> str:
    """Returns the tables in Markdown; `constants` is the table of `nested`."""
    means, tried = summary(rows), summary(fresh) if fresh else {}
    lines = [
        "# Certainty on public crowds",
        "",
        "`python -m benchmarks.certainty --data_dir=DATA` makes this page. Each crowd's family is",
        "left out of the learning when it is measured. Means are over families. Fresh crowds are",
        "those of the last tables; nothing was learned or chosen on them, except that little",
        "agreement counts as unlike the learned crowds, which was added afterwards.",
        "",
        "| figure | mean over families | fresh crowds |",
        "|---|--:|--:|",
        *(
            f"| {name} | {value:.3f} | {tried.get(name, np.nan):.3f} |"
            for name, value in means.items()
        ),
        "",
        *table(rows),
    ]
    if fresh:
        lines += [
            "",
            "## Fresh crowds, tried once",
            "",
            *LEFT_OUT,
            "",
            *table(fresh),
            "",
            "| crowd | source |",
        ]
        lines += ["|---|---|", *(f"| {name} | {source} |" for name, source in FRESH.items())]
    lines += ["", "## Constants chosen without each family", "", *constants]
    lines += ["", "## Planted annotators who are noted as near chance", "", *planted()]
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
    """Runs the command."""
    parser = flags(__doc__)
    parser.add_argument("--data_dir", type=Path, default=data_folder(), help="the published data")
    parser.add_argument("--parts", type=Path, help="a folder that keeps each crowd's posteriors")
    parser.add_argument(
        "--fresh", type=Path, help="a folder with crowds that nothing was chosen on"
    )
    parser.add_argument("--output", type=Path, help="the page to write")
    parser.add_argument("--learn", action="store_true", help="write recalibration.json")
    given = parser.parse_args()
    crowds = list(fitted_crowds(read_crowds(Path(given.data_dir)), given.parts))
    if given.learn:
        write_calibration(crowds)
        return
    others = fitted_crowds(read_published(given.fresh), given.parts) if given.fresh else ()
    fresh = [figures(one, Calibration.learned()) for one in others]
    rows = measured(crowds)
    means = {"means": summary(rows), "fresh": summary(fresh) if fresh else {}}
    tell(given, means, page(rows, fresh, nested(crowds)))


if __name__ == "__main__":
    main()
