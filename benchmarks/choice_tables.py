"""The tables of the study of `auto`: datasets that have truth, drawn anew, with several crowds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.choice_kinds import KINDS, Table, crowd_of, pooled, shuffled
from benchmarks.choice_later import CONTROLS, LATER
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.datasets import CrowdDataset

REAL = ("labelme", "music", "cifar10n")
CROWDS = ("given", "half", "spam", "shared", "rare")
IMAGES, SHARE, DRAWS = 2000, 0.9, (1, 2, 3)
_ORDER = 4  # of the unseen tables' rows, among a draw's streams of numbers


def drawn(name: str, draw: int, data_dir: Path | None) -> Table:
    """Returns features, annotations, truth, test features and test labels of a draw."""
    if name in SHAPES:
        return SHAPES[name](draw)
    makers = UNSEEN | KINDS | LATER | CONTROLS
    if name in makers:
        return makers[name](draw, data_dir)
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.datasets.bundled  # noqa: F401
    from neucrowd_tf import registry

    found = registry.dataset(name).load(data_dir, draw)
    x, test = found.features, found.test.features
    rows = np.arange(len(x))
    if name in REAL:
        rows = _rows(draw, len(x), IMAGES if name == "cifar10n" else int(SHARE * len(x)))
    if x.ndim == 4:
        x, test = pooled(x), pooled(test)
    return x[rows], found.annotations[rows], _truth(found)[rows], test, found.test.labels


def _truth(dataset: CrowdDataset) -> NDArray[np.int64]:
    if dataset.truth is None:
        raise ValueError(f"{dataset.name}: expected a dataset with truth, received one without")
    return dataset.truth


def _rows(draw: int, among: int, size: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng([draw, 9]).choice(among, size, replace=False))


def wine(draw: int) -> Table:
    """Returns 89 of scikit-learn's 178 wines to train on: few rows, nine annotators who are right
    two times in three, three labels each.
    """
    from sklearn.datasets import load_wine

    bunch = load_wine()
    annotators = simulation.confusion_annotators(9, 3, draw, accuracy=0.67)
    return shuffled(bunch.data, bunch.target, draw, crowd_of(annotators, 3, draw), 5)


def many_classes(draw: int) -> Table:
    """Returns 1,200 rows of 15 classes: three labels each by 120 annotators, the busiest of whom
    gave a hundred times as many as the laziest.
    """
    from sklearn.datasets import make_classification

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
    rates = np.minimum(1.0, 3 * rates / rates.sum())
    return shuffled(x, truth, draw, crowd_of(annotators, rates, draw), 6)


# Shapes that none of the datasets has.
SHAPES = {"wine": wine, "many_classes": many_classes}


# --------------------------------------------------------------------------- unseen


def iris(draw: int, data_dir: Path | None) -> Table:
    """Returns 75 of scikit-learn's irises: five annotators, three labels each."""
    from sklearn.datasets import load_iris

    bunch = load_iris()
    annotators = simulation.confusion_annotators(5, 3, draw, accuracy=0.65)
    return shuffled(bunch.data, bunch.target, draw, crowd_of(annotators, 3, draw), _ORDER)


def diabetes(draw: int, data_dir: Path | None) -> Table:
    """Returns 221 of scikit-learn's diabetes patients, whose progression is low, middle or high:
    eight annotators whose skill differs by class, three labels each.
    """
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes()
    truth = np.digitize(bunch.target, np.quantile(bunch.target, [1 / 3, 2 / 3]))
    return shuffled(
        bunch.data,
        truth,
        draw,
        crowd_of(simulation.class_skill_annotators(8, 3, draw), 3, draw),
        _ORDER,
    )


def moons(draw: int, data_dir: Path | None) -> Table:
    """Returns 400 points of two half moons, which no line separates: five annotators of some skill,
    two who guess and one who mostly says the contrary, three labels each.
    """
    from sklearn.datasets import make_moons

    x, truth = make_moons(800, noise=0.25, random_state=draw)
    crowd = (
        simulation.class_skill_annotators(5, 2, draw, low=0.6),
        simulation.spammers(2, 2, draw),
        simulation.adversaries(1, 2, draw),
    )
    return shuffled(x, truth, draw, crowd_of(np.concatenate(crowd), 3, draw), _ORDER)


def blobs(draw: int, data_dir: Path | None) -> Table:
    """Returns 600 points of six overlapping clouds, the largest six times the smallest: fifteen
    annotators, two labels each.
    """
    from sklearn.datasets import make_blobs

    sizes = [360, 300, 240, 150, 90, 60]
    x, truth = make_blobs(sizes, n_features=10, cluster_std=6.0, random_state=draw)
    annotators = simulation.confusion_annotators(15, 6, draw, accuracy=0.6)
    return shuffled(x, truth, draw, crowd_of(annotators, 2, draw), _ORDER)


def rare_class(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,000 rows, a tenth of them of the second class: nine annotators whose skill differs
    by class, four labels each.
    """
    from sklearn.datasets import make_classification

    x, truth = make_classification(
        n_samples=2000,
        n_features=20,
        n_informative=8,
        n_redundant=4,
        weights=[0.9],
        class_sep=1.0,
        random_state=draw,
    )
    return shuffled(
        x, truth, draw, crowd_of(simulation.class_skill_annotators(9, 2, draw), 4, draw), _ORDER
    )


def few_labels(draw: int, data_dir: Path | None) -> Table:
    """Returns 800 rows of five classes in 80 features: 40 annotators, a label and a half each."""
    from sklearn.datasets import make_classification

    x, truth = make_classification(
        n_samples=1600,
        n_features=80,
        n_informative=15,
        n_redundant=15,
        n_classes=5,
        n_clusters_per_class=2,
        class_sep=1.5,
        random_state=draw,
    )
    annotators = simulation.confusion_annotators(40, 5, draw, accuracy=0.7)
    return shuffled(x, truth, draw, crowd_of(annotators, 1.5, draw), _ORDER)


def gases(draw: int, data_dir: Path | None) -> Table:
    """Returns 600 sensor readings of GSAD's gases 3 to 6, which GSAD-Syn has not: seven annotators,
    two labels each.
    """
    from data.gsad import read

    x, labels = read(data_dir)
    found = np.flatnonzero(labels >= 3)
    rows = np.random.default_rng([draw, 7]).choice(found, 1200, replace=False)
    annotators = simulation.confusion_annotators(7, 4, draw, accuracy=0.55)
    return shuffled(x[rows], labels[rows] - 3, draw, crowd_of(annotators, 2, draw), _ORDER)


def pictures(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,000 of CIFAR-10N's images that no other draw has, their labels those that were
    given.
    """
    import data  # noqa: F401
    from neucrowd_tf import registry

    found = registry.dataset("cifar10n").load(data_dir, draw)
    size = len(found.features)
    seen = np.concatenate([_rows(other, size, IMAGES) for other in DRAWS])
    left = np.setdiff1d(np.arange(size), seen)
    rows = np.sort(np.random.default_rng([draw, 8]).choice(left, 1000, replace=False))
    x, test = pooled(found.features[rows]), pooled(found.test.features)
    return x, found.annotations[rows], _truth(found)[rows], test, found.test.labels


# Tables that no decision had seen when they were added; the weights of members were made on them.
UNSEEN: dict[str, Callable[[int, Path | None], Table]] = {
    "iris": iris,
    "diabetes": diabetes,
    "moons": moons,
    "blobs": blobs,
    "rare_class": rare_class,
    "few_labels": few_labels,
    "gases": gases,
    "pictures": pictures,
}


# --------------------------------------------------------------------------- crowds


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
