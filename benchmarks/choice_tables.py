"""The tables of the study of `auto`: datasets that have truth, drawn anew, with several crowds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations

REAL = ("labelme", "music", "cifar10n")
CROWDS = ("given", "half", "spam", "shared", "rare")
IMAGES, SHARE = 2000, 0.9
Table = tuple[NDArray[Any], Annotations, NDArray[np.int64], NDArray[Any], NDArray[np.int64]]


def drawn(name: str, draw: int, data_dir: Path | None) -> Table:
    """Returns features, annotations, truth, test features and test labels of a draw."""
    if name in SHAPES:
        return SHAPES[name](draw)
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.datasets.bundled  # noqa: F401
    from neucrowd_tf import registry

    found = registry.dataset(name).load(data_dir, draw)
    x, test = found.features, found.test.features
    rng = np.random.default_rng([draw, 9])
    rows = np.arange(len(x))
    if name in REAL:
        size = IMAGES if name == "cifar10n" else int(SHARE * len(x))
        rows = np.sort(rng.choice(len(x), size, replace=False))
    if x.ndim == 4:
        x, test = _pooled(x), _pooled(test)
    if found.truth is None:
        raise ValueError(f"{name}: expected a dataset with truth, received one without")
    return x[rows], found.annotations[rows], found.truth[rows], test, found.test.labels


def _pooled(images: NDArray[Any]) -> NDArray[np.float32]:
    """Returns means of 4 x 4 pixels, a row an image."""
    size, height, width, channels = images.shape
    blocks = images.reshape(size, height // 4, 4, width // 4, 4, channels)
    return np.asarray(blocks.mean(axis=(2, 4)).reshape(size, -1), dtype=np.float32)


def wine(draw: int) -> Table:
    """Returns 89 of scikit-learn's 178 wines to train on: few rows, nine annotators who are right
    two times in three, three labels each.
    """
    from sklearn.datasets import load_wine

    from neucrowd_tf.annotations import simulation

    bunch = load_wine()
    order = np.random.default_rng([draw, 5]).permutation(len(bunch.target))
    truth = bunch.target.astype(np.int64)
    annotators = simulation.confusion_annotators(9, 3, draw, accuracy=0.67)
    return _halves(bunch.data, truth, order, annotators, np.full(9, 1 / 3), draw)


def many_classes(draw: int) -> Table:
    """Returns 1,200 rows of 15 classes: three labels each by 120 annotators, the busiest of whom
    gave a hundred times as many as the laziest.
    """
    from sklearn.datasets import make_classification

    from neucrowd_tf.annotations import simulation

    x, truth = make_classification(
        n_samples=2400,
        n_features=60,
        n_informative=20,
        n_redundant=10,
        n_classes=15,
        n_clusters_per_class=1,
        class_sep=1.2,
        flip_y=0.0,
        random_state=draw,
    )
    annotators = simulation.confusion_annotators(120, 15, draw, accuracy=0.6)
    rates = 1.0 / np.arange(1, 121)
    order = np.random.default_rng([draw, 6]).permutation(len(x))
    rates = np.minimum(1.0, 3 * rates / rates.sum())
    return _halves(x, truth.astype(np.int64), order, annotators, rates, draw)


def _halves(
    x: NDArray[Any],
    truth: NDArray[np.int64],
    order: NDArray[np.int64],
    annotators: NDArray[Any],
    rates: NDArray[Any],
    draw: int,
) -> Table:
    """Returns a table whose first half, in that order, is trained on."""
    from neucrowd_tf.annotations import simulation

    train, test = np.split(order, [len(order) // 2])
    crowd = simulation.simulate(truth[train], annotators, draw, rates=rates)
    rows = np.flatnonzero(crowd.annotated)
    features = np.asarray(x, dtype=np.float32)
    return features[train][rows], crowd[rows], truth[train][rows], features[test], truth[test]


# Shapes that the rule had not met when it was made.
SHAPES = {"wine": wine, "many_classes": many_classes}


def with_crowd(table: Table, kind: str, draw: int) -> Table:
    """Returns the table with another crowd, without the instances that it leaves unlabelled."""
    x, crowd, truth, test, test_labels = table
    rng = np.random.default_rng([draw, CROWDS.index(kind)])
    labels, keep = np.array(crowd.labels), np.ones(len(crowd.labels), dtype=bool)
    if kind == "half":
        keep = rng.random(len(keep)) < 0.5
    elif kind == "spam":
        count = crowd.num_annotators
        bad = np.isin(crowd.annotators, rng.choice(count, max(1, count // 3), replace=False))
        labels[bad] = rng.integers(0, crowd.num_classes, bad.sum())
    elif kind == "shared":
        flat = x.reshape(len(x), -1)
        side = ((flat - flat.mean(axis=0)) / (flat.std(axis=0) + 1e-6)) @ rng.normal(
            size=flat.shape[1]
        )
        hard = (side > np.quantile(side, 0.8))[crowd.instances] & (rng.random(len(keep)) < 0.7)
        labels[hard] = (truth[crowd.instances[hard]] + 1) % crowd.num_classes
    elif kind == "rare":
        thinned = (truth % 2 == 1) & (rng.random(len(truth)) > 0.1)
        keep = ~thinned[crowd.instances]
    changed = Annotations(
        *(crowd.instances[keep], crowd.annotators[keep], labels[keep]),
        instance_names=crowd.instance_names,
        annotator_names=crowd.annotator_names,
        class_names=crowd.class_names,
    )
    rows = np.flatnonzero(changed.annotated)
    return x[rows], changed[rows], truth[rows], test, test_labels
