"""Measures how often a run's accuracy without true labels holds the true one.

    python -m benchmarks.without_truth [--data_dir=D] [--parts=FOLDER] [--json]
        [--output=results/without_truth.md]

Crowds with features: LabelMe, Music, 2,000 images of CIFAR-10N, RTE (texts), and simulated crowds
over three datasets, some of whose items mislead most annotators to the same wrong class: random
items, or those that a classifier confuses too. Predictions are those of majority vote with logistic
regression, in three folds. Each real crowd's family is left out of the calibration.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.certainty import WIDENING, fitted_crowds, learn, read_crowds, thinned
from benchmarks.timing import data_folder, flags, tell
from data import cifar10n, labelme, music
from neucrowd_tf.aggregation import Consensus, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Calibration
from neucrowd_tf.evaluation.without_truth import joint_probas, judge
from neucrowd_tf.io.labels import read_annotations

Array = NDArray[Any]
SIMULATED = (("cancer", 0.0), ("cancer", 0.1), ("digits", 0.1), ("digits", 0.25))
SIMULATED += (("usps", 0.05), ("usps", 0.2))
SHARES = [round(0.1 * tenth, 1) for tenth in range(11)]  # of the joint posterior
MISLED = 0.75  # probability that an annotator makes the shared mistake


def predictions(features: Array, labels: Array, seed: int = 0) -> Array:
    """Returns `[N, C]` held-out predictions of logistic regression; `labels` are all classes."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    return np.asarray(cross_val_predict(model, features, labels, cv=folds, method="predict_proba"))


def with_shared_mistakes(
    features: Array, truth: Array, share: float, *, confused: bool, seed: int
) -> Annotations:
    """Returns a crowd of 30 annotators with three labels per item.

    Args:
        features: `[N, D]`.
        truth: `[N]` class codes.
        share: of the items that mislead annotators to the same wrong class.
        confused: whether these are the items that a classifier finds hardest, with its wrong class.
        seed: of all draws.
    """
    rng = np.random.default_rng([34, seed])
    size, classes = len(truth), int(truth.max()) + 1
    scores = predictions(features, truth) if confused else rng.random((size, classes))
    rows = np.arange(size)
    margin = scores[rows, truth].copy()
    scores[rows, truth] = -1.0
    misled = np.zeros(size, dtype=bool)
    misled[np.argsort(margin)[: round(share * size)]] = True
    skills = rng.uniform(0.6, 0.95, 30)
    who = np.argsort(rng.random((size, 30)), axis=1)[:, :3]
    wrong = (truth[:, None] + rng.integers(1, classes, who.shape)) % classes
    given = np.where(rng.random(who.shape) < skills[who], truth[:, None], wrong)
    shared = misled[:, None] & (rng.random(who.shape) < MISLED)
    given = np.where(shared, scores.argmax(axis=1)[:, None], given)
    return Annotations(np.repeat(rows, 3), who.ravel(), given.ravel(), num_classes=classes)


def crowds(data_dir: Path) -> Iterator[tuple[str, str, Array, Annotations, Array]]:
    """Yields name, family, features, annotations and true labels of each crowd."""
    loaded = {"labelme": labelme.load(data_dir), "music": music.load(data_dir)}
    loaded["cifar10n"] = cifar10n.load(data_dir, size=2000)
    for name, dataset in loaded.items():
        features = dataset.features.reshape(len(dataset.features), -1)
        if features.shape[1] > 1000:
            features = PCA(60, random_state=0).fit_transform(features)
        family = "MS" if name == "music" else name
        yield name, family, features, dataset.annotations, np.asarray(dataset.truth)
    folder = data_dir / "rte_text"
    with (folder / "texts.csv").open(encoding="utf-8") as stream:
        texts = {row["task"]: row["text"] for row in csv.DictReader(stream)}
    crowd = read_annotations(folder / "annotations.csv", items=list(texts)).annotations
    with (folder / "truth.csv").open(encoding="utf-8") as stream:
        truth = {row["task"]: row["label"] for row in csv.DictReader(stream)}
    codes = {str(name): code for code, name in enumerate(crowd.class_names.tolist())}
    features = TfidfVectorizer(min_df=2).fit_transform(texts.values()).toarray()
    true = np.array([codes[truth[task]] for task in texts])
    yield "rte", "rte", features, crowd, true
    yield "rte, two labels", "rte", features, thinned(crowd, 2), true
    with h5py.File(data_dir / "usps" / "usps.h5") as stored:
        images, digits = stored["train"]["data"][:2000], stored["train"]["target"][:2000]
    tables = {"cancer": load_breast_cancer(return_X_y=True), "usps": (images, digits)}
    tables["digits"] = load_digits(return_X_y=True)
    for place, (name, share) in enumerate(SIMULATED):
        features, truth = (np.asarray(each) for each in tables[name])
        confused = place % 2 == 1
        crowd = with_shared_mistakes(
            features, truth.astype(np.int64), share, confused=confused, seed=place
        )
        kind = "confused" if confused else "random"
        yield f"{name}, {share:.0%} {kind}", "", features, crowd, truth.astype(np.int64)


def measured(
    features: Array, crowd: Annotations, truth: Array, calibration: Calibration, draws: int = 6
) -> dict[str, float]:
    """Returns the figures of one crowd: accuracies and intervals, without and with gold labels."""
    rows = np.flatnonzero(crowd.annotated & (truth >= 0))
    votes, size = crowd.vote_counts(), crowd.num_classes
    labels = MajorityVote(seed=0).fit(crowd).labels_
    model = np.full((len(rows), size), 1e-6)
    model[:, np.unique(labels[rows])] = predictions(features[rows], labels[rows])
    posteriors = Consensus().fit(crowd).probas_
    right = float((model.argmax(axis=1) == truth[rows]).mean())
    certainty = calibration.apply(posteriors, votes)
    judged = judge(certainty, rows, model)
    joint, places = judged.posterior.argmax(axis=1), np.arange(len(rows))
    value, low, high = judged.accuracy("model")
    found = {
        "items": len(rows),
        "true": right,
        "expected": value,
        "low": low,
        "high": high,
        "covered": float(low <= right <= high),
        "labels": float((joint == truth[rows]).mean()),
        "labels_joint": float(judged.posterior[places, joint].mean()),
        "labels_crowd": float(certainty.probas[rows, joint].mean()),
        "labels_expected": float(joint_probas(certainty, rows, model).max(axis=1).mean()),
        "consensus": float((posteriors.argmax(axis=1) == truth)[rows].mean()),
        "consensus_expected": float(certainty.right()[rows].mean()),
    }
    with_gold = []
    for draw in range(draws):
        chosen = np.random.default_rng(draw).permutation(rows)[:50]
        gold = np.full(len(truth), -1)
        gold[chosen] = truth[chosen]
        certainty = calibration.fitted(posteriors, votes, gold).apply(posteriors, votes)
        value, low, high = judge(certainty, rows, model, gold=gold[rows]).accuracy("model")
        with_gold.append((low <= right <= high, high - low, abs(value - right)))
    names = ("gold50_covered", "gold50_width", "gold50_error")
    return found | dict(zip(names, np.mean(with_gold, axis=0).tolist(), strict=True))


def shrinkage(rows: dict[str, dict[str, float]], families: dict[str, str]) -> list[float]:
    """Returns the mean distances of expected and true accuracies of labels, four variants."""

    def gap(name: str, share: float) -> float:
        row = rows[name]
        expected = share * row["labels_joint"] + (1 - share) * row["labels_crowd"]
        return abs(expected - row["labels"])

    left_out = []
    for name in rows:
        others = [other for other in rows if families[other] != families[name]]
        best = min(SHARES, key=lambda share: sum(gap(other, share) for other in others))
        left_out.append(gap(name, best))
    pairs = (("labels_expected", "labels"), ("labels_joint", "labels"))
    pairs += (("consensus_expected", "consensus"),)
    gaps = [np.mean([abs(row[a] - row[b]) for row in rows.values()]) for a, b in pairs]
    return [*map(float, gaps), float(np.mean(left_out))]


def main() -> None:
    """Runs the command."""
    parser = flags(__doc__)
    parser.add_argument("--data_dir", type=Path, default=data_folder(), help="the published data")
    parser.add_argument("--parts", type=Path, help="a folder that keeps each crowd's posteriors")
    parser.add_argument("--output", type=Path, help="the page to write")
    given = parser.parse_args()
    public = list(fitted_crowds(read_crowds(Path(given.data_dir)), given.parts))
    calibrations: dict[str, Calibration] = {}
    rows, families = {}, {}
    for name, family, features, crowd, truth in crowds(Path(given.data_dir)):
        if family not in calibrations:
            made = learn([one for one in public if one.family != family])
            wide = made.covariance * WIDENING**2
            calibrations[family] = dataclasses.replace(made, covariance=wide)
        families[name] = family or name.split(",")[0]
        rows[name] = measured(features, crowd, truth, calibrations[family])
    means = {key: float(np.mean([row[key] for row in rows.values()])) for key in rows["music"]}
    real = {name: row for name, row in rows.items() if "%" not in name}
    lines = [
        "# Accuracy of models without true labels",
        "",
        "`python -m benchmarks.without_truth --data_dir=DATA` makes this page. The interval is the",
        "80% interval of a run's accuracy (`accuracy_low` and `accuracy_high` in metrics.json).",
        "`labels` is the accuracy of crowd and model together, `labels_expected` the mean of their",
        "probabilities (labels.csv); `labels_joint` and `labels_crowd` are what they are mixed of.",
        "",
        "| mean of abs(expected - true) | labels | joint posterior | consensus"
        " | labels, share chosen on the other families |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {kind} crowds | {' | '.join(f'{gap:.3f}' for gap in shrinkage(some, families))} |"
            for kind, some in (("real", real), ("all", rows))
        ),
        "",
        f"| crowd | {' | '.join(means)} |",
        "|---|" + "--:|" * len(means),
    ]
    for name, row in {**rows, "mean": means}.items():
        lines.append(f"| {name} | {' | '.join(f'{value:.3f}' for value in row.values())} |")
    tell(given, {"rows": rows, "means": means}, "\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
