"""The tables of the study of `auto`: draws of datasets with truth, and simulated crowds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial as of
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.simulation import (
    class_skill_annotators,
    confusion_annotators,
    simulate,
    spammers,
)
from neucrowd_tf.datasets import CrowdDataset

Codes = NDArray[np.int64]
# Features, annotations and truth to train on, test features and labels.
Table = tuple[NDArray[Any], Annotations, Codes, NDArray[Any], Codes]
Crowd = Callable[[NDArray[Any], Codes], Annotations]
Maker = Callable[[int, "Path | None"], Table]
Source = Callable[[int], tuple[NDArray[Any], NDArray[Any]]]
# Annotators' matrices, and labels per instance.
Annotators = Callable[[int], tuple[NDArray[Any], float]]

REAL = ("labelme", "music", "cifar10n")
IMAGES, SHARE, DRAWS = 2000, 0.9, (1, 2, 3)
LATER_DRAWS = (10701, 10702, 10703)
LIVING = (2, 3, 4, 5, 6, 7)  # CIFAR-10's classes that are animals
NATURAL = (4, 5, 6, 7)  # LabelMe's: forest, coast, mountain, opencountry
_STREAM = 36  # of a draw's numbers, which orders the rows


# --------------------------------------------------------------------------- helpers


def shuffled(x: NDArray[Any], truth: NDArray[Any], draw: int, crowd: Crowd) -> Table:
    """Returns a table of which a crowd labels half of the rows."""
    order = np.random.default_rng([draw, _STREAM]).permutation(len(truth))
    train, test = np.split(order, [len(order) // 2])
    features, labels = np.asarray(x, dtype=np.float32), np.asarray(truth, dtype=np.int64)
    annotations = crowd(features[train], labels[train])
    rows = np.flatnonzero(annotations.annotated)
    return (
        *(features[train][rows], annotations[rows], labels[train][rows]),
        *(features[test], labels[test]),
    )


def crowd_of(annotators: NDArray[Any], each: float, draw: int) -> Crowd:
    """Returns a crowd of annotators' matrices `[R, C, C]` with `each` labels per instance."""
    rates = np.full(len(annotators), each / len(annotators))
    return lambda _, truth: simulate(truth, annotators, draw, rates=rates)


def _tables(sources: Mapping[str, tuple[Source, Annotators]]) -> dict[str, Maker]:
    """Returns the makers of tables of simulated annotators."""

    def maker(source: Source, annotators: Annotators) -> Maker:
        return lambda draw, _: shuffled(*source(draw), draw, crowd_of(*annotators(draw), draw))

    return {name: maker(*pair) for name, pair in sources.items()}


def _classification(
    rows: int, features: int, informative: int, classes: int = 2, clusters: int = 2, **more: Any
) -> Source:
    return lambda draw: datasets.make_classification(
        rows,
        features,
        n_informative=informative,
        n_classes=classes,
        n_clusters_per_class=clusters,
        random_state=draw,
        **more,
    )


def _crowd(each: float, *groups: Callable[[int], NDArray[Any]]) -> Annotators:
    return lambda draw: (np.concatenate([group(draw) for group in groups]), each)


def _right(size: int, classes: int, accuracy: float, each: float) -> Annotators:
    return _crowd(each, of(confusion_annotators, size, classes, accuracy=accuracy))


def pooled(images: NDArray[Any]) -> NDArray[np.float32]:
    """Returns means of 4 x 4 pixels, a row an image; other features unchanged."""
    if images.ndim != 4:
        return images
    size, height, width, channels = images.shape
    blocks = images.reshape(size, height // 4, 4, width // 4, 4, channels)
    return np.asarray(blocks.mean(axis=(2, 4)).reshape(size, -1), dtype=np.float32)


def _loaded(name: str, draw: int, data_dir: Path | None) -> tuple[CrowdDataset, Codes]:
    """Returns a registered dataset and its truth."""
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.datasets.bundled  # noqa: F401
    from neucrowd_tf import registry

    dataset = registry.dataset(name).load(data_dir, draw)
    if dataset.truth is None:
        raise ValueError(f"{name}: expected a dataset with truth, received one without")
    return dataset, dataset.truth


def _rows(draw: int, among: int, size: int) -> Codes:
    return np.sort(np.random.default_rng([draw, 9]).choice(among, size, replace=False))


# --------------------------------------------------------------------------- sources


def _parity(draw: int) -> tuple[NDArray[Any], NDArray[Any]]:
    x, digits = datasets.load_digits(return_X_y=True)
    return x, digits % 2


def _spirals(draw: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Points on three arms, with six features of noise."""
    rng = np.random.default_rng([draw, 31])
    truth = np.arange(900) % 3
    turn = np.sqrt(rng.random(900)) * 2.5
    angle = turn * 2 + truth * 2 * np.pi / 3
    arms = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1)
    near = arms + rng.normal(0, 0.15, arms.shape)
    return np.concatenate([near, rng.normal(size=(900, 6))], axis=1), truth


def _grades(draw: int) -> tuple[NDArray[Any], NDArray[Any]]:
    x, y = datasets.make_regression(
        n_samples=1600, n_features=15, n_informative=8, noise=20.0, random_state=draw
    )
    return x, np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))


def _graders(draw: int) -> tuple[NDArray[Any], float]:
    """Annotators a grade too strict, too lenient or neither for a third of the items."""
    rows = np.arange(5)
    annotators = np.full((12, 5, 5), 0.05)
    for annotator, lean in enumerate(np.random.default_rng([draw, 33]).choice([-1, 0, 1], 12)):
        annotators[annotator, rows, rows] += 0.45
        annotators[annotator, rows, np.clip(rows + lean, 0, 4)] += 0.30
    return annotators, 2.5


def _skewed(draw: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Counts, flags and sizes over several powers of ten; the classes follow a rule."""
    rng = np.random.default_rng([draw, 34])
    sizes = rng.lognormal(0, 2, (3000, 4))
    counts, flags = rng.poisson(3, (3000, 4)), rng.random((3000, 4)) < 0.3
    first = (sizes[:, 0] > 1) & (flags[:, 0] | (counts[:, 0] > 3))
    truth = np.where(first, 0, np.where(np.log(sizes[:, 1]) + counts[:, 1] > 3, 1, 2))
    return np.concatenate([sizes, counts, flags], axis=1), truth


# --------------------------------------------------------------------------- tables with data


def post(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,000 of USPS' digits: 30 annotators, two labels each."""
    from data.usps import read

    x, labels = read(data_dir)
    rows = np.random.default_rng([draw, 35]).choice(len(x), 2000, replace=False)
    crowd = crowd_of(*_right(30, 10, 0.6, 2)(draw), draw)
    return shuffled(x[rows], labels[rows], draw, crowd)


def hard_ones(draw: int, data_dir: Path | None) -> Table:
    """Returns 284 tumours; annotators err more often the nearer a cell is to the other kind."""

    def crowd(x: NDArray[Any], truth: Codes) -> Annotations:
        rng = np.random.default_rng([draw, 32])
        sure = LogisticRegression(C=0.01).fit(scale(x), truth).predict_proba(scale(x))
        ease = sure[np.arange(len(x)), truth][:, None]
        right = rng.uniform(0.6, 0.95, 8) * (0.5 + 0.5 * ease)
        labels = np.where(rng.random((len(x), 8)) < right, truth[:, None], 1 - truth[:, None])
        asked = rng.random((len(x), 8)) < 3 / 8
        return Annotations.from_dense(np.where(asked, labels, -1), num_classes=2)

    x, truth = datasets.load_breast_cancer(return_X_y=True)
    return shuffled(x, truth, draw, crowd)


def _two_kinds(name: str, second: tuple[int, ...], size: int) -> Maker:
    """Returns the maker of a real dataset whose classes are merged into two."""

    def make(draw: int, data_dir: Path | None) -> Table:
        dataset, truth = _loaded(name, draw, data_dir)
        kind = np.isin(range(len(dataset.class_names)), second).astype(np.int64)
        rows = np.random.default_rng([draw, 37]).choice(len(truth), size, replace=False)
        rows.sort()
        crowd = dataset.annotations[rows]
        merged = Annotations(
            *(crowd.instances, crowd.annotators, kind[crowd.labels]),
            instance_names=crowd.instance_names,
            annotator_names=crowd.annotator_names,
            class_names=["first", "second"],
        )
        x, test = pooled(dataset.features[rows]), pooled(dataset.test.features)
        return x, merged, kind[truth[rows]], test, kind[dataset.test.labels]

    return make


# --------------------------------------------------------------------------- the parts


# Tables that were written after the rule was fixed; nothing was changed for them.
LATER = {
    "hard_ones": hard_ones,
    "post": post,
    "living": _two_kinds("cifar10n", LIVING, 1500),
    "scenes": _two_kinds("labelme", NATURAL, 800),
} | _tables(
    {
        "parity": (
            _parity,
            _crowd(3, of(class_skill_annotators, 16, 2, low=0.6), of(spammers, 4, 2)),
        ),
        "spirals": (_spirals, _right(10, 3, 0.7, 3)),
        "clusters": (_classification(2400, 20, 8, 5, 3, class_sep=1.5), _right(25, 5, 0.7, 2)),
        "wide": (_classification(400, 500, 20, n_redundant=0), _right(12, 2, 0.75, 3)),
        "grades": (_grades, _graders),
        "skewed": (_skewed, _right(60, 3, 0.75, 1.5)),
        "uncommon": (
            _classification(2000, 25, 10, 3, weights=[0.8, 0.15], class_sep=1.2),
            _right(15, 3, 0.7, 3),
        ),
    }
)


def drawn(name: str, draw: int, data_dir: Path | None) -> Table:
    """Returns features, annotations, truth, test features and test labels of a draw."""
    if name in LATER:
        return LATER[name](draw, data_dir)
    dataset, truth = _loaded(name, draw, data_dir)
    rows = np.arange(len(truth))
    if name in REAL:
        rows = _rows(draw, len(rows), IMAGES if name == "cifar10n" else int(SHARE * len(rows)))
    x, test = pooled(dataset.features), pooled(dataset.test.features)
    return x[rows], dataset.annotations[rows], truth[rows], test, dataset.test.labels
