"""Ten more tables of the study of `auto`, each with a kind of crowd of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from neucrowd_tf.annotations import Annotations, simulation

Codes = NDArray[np.int64]
# Features, annotations and truth to train on, test features and labels.
Table = tuple[NDArray[Any], Annotations, Codes, NDArray[Any], Codes]
# What labels instances, by their features and their truth.
Crowd = Callable[[NDArray[Any], Codes], Annotations]
_ORDER = 19  # of the rows, among a draw's streams of numbers


def wines(draw: int, data_dir: Path | None) -> Table:
    """Returns half of scikit-learn's wines: six annotators of some skill and two who mostly name
    another wine, three labels each.
    """
    bunch = datasets.load_wine()
    crowd = (simulation.confusion_annotators(6, 3, draw), simulation.adversaries(2, 3, draw))
    return shuffled(
        bunch.data, bunch.target, draw, crowd_of(np.concatenate(crowd), 3, draw), _ORDER
    )


def handwriting(draw: int, data_dir: Path | None) -> Table:
    """Returns 700 of USPS' ten digits: twenty annotators, six of whom copy one of little skill
    wherever they are asked, two labels each.
    """
    from data.usps import read

    x, labels = read(data_dir)
    rows = np.random.default_rng([draw, 20]).choice(len(x), 1400, replace=False)
    annotators = simulation.confusion_annotators(20, 10, draw, accuracy=0.65)

    def copied(x: NDArray[Any], truth: Codes) -> Annotations:
        whole = simulation.simulate(truth, annotators, draw).to_dense()
        whole[:, 1:7] = whole[:, :1]
        asked = np.random.default_rng([draw, 21]).random(whole.shape) < 0.1
        return Annotations.from_dense(np.where(asked, whole, -1), num_classes=10)

    return shuffled(x[rows], labels[rows], draw, copied, _ORDER)


def tumours(draw: int, data_dir: Path | None) -> Table:
    """Returns 284 of scikit-learn's breast cancers: eight annotators who judge by two features
    each, so that the same ones are hard for all of them, three labels each.
    """
    bunch = datasets.load_breast_cancer()
    return shuffled(bunch.data, bunch.target, draw, _weak(8, 2, 3, draw), _ORDER)


def quantiles(draw: int, data_dir: Path | None) -> Table:
    """Returns 500 points of three shells, which no line separates: twelve annotators, a label and a
    third each.
    """
    x, truth = datasets.make_gaussian_quantiles(
        n_samples=1000, n_features=6, n_classes=3, random_state=draw
    )
    annotators = simulation.confusion_annotators(12, 3, draw, accuracy=0.8)
    return shuffled(x, truth, draw, crowd_of(annotators, 4 / 3, draw), _ORDER)


def hastie(draw: int, data_dir: Path | None) -> Table:
    """Returns 600 points whose ten squares sum to more than usual or not: nine annotators, a third
    of whom guess, four labels each.
    """
    x, truth = datasets.make_hastie_10_2(n_samples=1200, random_state=draw)
    crowd = (
        simulation.class_skill_annotators(6, 2, draw, low=0.6),
        simulation.spammers(3, 2, draw),
    )
    return shuffled(
        x, (truth > 0).astype(int), draw, crowd_of(np.concatenate(crowd), 4, draw), _ORDER
    )


def circles(draw: int, data_dir: Path | None) -> Table:
    """Returns 300 points of two circles: five annotators of some skill and three who always give
    one answer, three labels each.
    """
    x, truth = datasets.make_circles(600, noise=0.15, factor=0.5, random_state=draw)
    crowd = (
        simulation.class_skill_annotators(5, 2, draw, low=0.65),
        simulation.spammers(3, 2, draw, kind="constant"),
    )
    return shuffled(x, truth, draw, crowd_of(np.concatenate(crowd), 3, draw), _ORDER)


def friedman(draw: int, data_dir: Path | None) -> Table:
    """Returns 500 rows of Friedman's first function in four steps: seven annotators who err to the
    steps beside, two and a half labels each.
    """
    x, value = datasets.make_friedman1(1000, n_features=10, noise=1.0, random_state=draw)
    truth = np.digitize(value, np.quantile(value, [0.25, 0.5, 0.75]))
    right = np.random.default_rng([draw, 22]).uniform(0.5, 0.85, 7)
    near = np.eye(4, k=1) + np.eye(4, k=-1)
    near /= near.sum(axis=1, keepdims=True)
    annotators = right[:, None, None] * np.eye(4) + (1 - right)[:, None, None] * near
    return shuffled(x, truth, draw, crowd_of(annotators, 2.5, draw), _ORDER)


def words(draw: int, data_dir: Path | None) -> Table:
    """Returns 600 documents as counts of 250 words from four topics: forty annotators, two labels
    each.
    """
    rng = np.random.default_rng([draw, 23])
    shares = rng.dirichlet(np.full(250, 0.5))
    topics = np.stack([rng.dirichlet(np.maximum(60 * shares, 1e-3)) for _ in range(4)])
    truth = rng.integers(0, 4, 1200)
    mixed = 0.5 * shares + 0.5 * topics[truth]
    x = np.stack([rng.multinomial(rng.poisson(40) + 5, row / row.sum()) for row in mixed])
    annotators = simulation.confusion_annotators(40, 4, draw, accuracy=0.7)
    return shuffled(x, truth, draw, crowd_of(annotators, 2, draw), _ORDER)


def uneven(draw: int, data_dir: Path | None) -> Table:
    """Returns 900 rows of four classes, the largest twelve times the smallest: ten annotators whose
    skill differs by class, three labels each.
    """
    x, truth = datasets.make_classification(
        n_samples=1800,
        n_features=25,
        n_informative=10,
        n_redundant=5,
        n_classes=4,
        n_clusters_per_class=1,
        weights=[0.6, 0.25, 0.1, 0.05],
        class_sep=1.2,
        random_state=draw,
    )
    annotators = simulation.class_skill_annotators(10, 4, draw, low=0.5)
    return shuffled(x, truth, draw, crowd_of(annotators, 3, draw), _ORDER)


def numerals(draw: int, data_dir: Path | None) -> Table:
    """Returns 600 of scikit-learn's digits: ten annotators who judge by eight pixels each and share
    what is hard so, two labels each.
    """
    bunch = datasets.load_digits()
    rows = np.random.default_rng([draw, 24]).choice(len(bunch.target), 1200, replace=False)
    return shuffled(bunch.data[rows], bunch.target[rows], draw, _weak(10, 16, 2, draw), _ORDER)


KINDS: dict[str, Callable[[int, Path | None], Table]] = {
    "wines": wines,
    "handwriting": handwriting,
    "tumours": tumours,
    "quantiles": quantiles,
    "hastie": hastie,
    "circles": circles,
    "friedman": friedman,
    "words": words,
    "uneven": uneven,
    "numerals": numerals,
}


def shuffled(
    x: NDArray[Any],
    truth: NDArray[Any],
    draw: int,
    crowd: Crowd,
    stream: int,
    trained: int | None = None,
) -> Table:
    """Returns a table of which a crowd labels half of the rows, or so many, to train on, in an
    order drawn from a stream of the draw's numbers.
    """
    order = np.random.default_rng([draw, stream]).permutation(len(truth))
    train, test = np.split(order, [len(order) // 2 if trained is None else trained])
    features, labels = np.asarray(x, dtype=np.float32), np.asarray(truth, dtype=np.int64)
    annotations = crowd(features[train], labels[train])
    rows = np.flatnonzero(annotations.annotated)
    return (
        *(features[train][rows], annotations[rows], labels[train][rows]),
        *(features[test], labels[test]),
    )


def pooled(images: NDArray[Any]) -> NDArray[np.float32]:
    """Returns means of 4 x 4 pixels, a row an image."""
    size, height, width, channels = images.shape
    blocks = images.reshape(size, height // 4, 4, width // 4, 4, channels)
    return np.asarray(blocks.mean(axis=(2, 4)).reshape(size, -1), dtype=np.float32)


def crowd_of(annotators: NDArray[Any], rates: float | NDArray[Any], draw: int) -> Crowd:
    """Returns a crowd of annotators' matrices `[R, C, C]`, who label so many labels an instance
    together, or each a share `[R]` of the instances.
    """
    if isinstance(rates, (int, float)):
        rates = np.full(len(annotators), rates / len(annotators))

    def crowd(x: NDArray[Any], truth: Codes) -> Annotations:
        return simulation.simulate(truth, annotators, draw, rates=rates)

    return crowd


def _weak(annotators: int, inputs: int, each: float, draw: int) -> Crowd:
    """Returns a crowd each of whom answers by a regression on a few features of their own, drawn
    from its probabilities.
    """

    def crowd(x: NDArray[Any], truth: Codes) -> Annotations:
        rng, scaled, size = np.random.default_rng([draw, 25]), scale(x), int(truth.max()) + 1
        dense = np.full((len(x), annotators), -1)
        for who in range(annotators):
            some = rng.choice(x.shape[1], inputs, replace=False)
            found = LogisticRegression(max_iter=500).fit(scaled[:, some], truth)
            likely = np.cumsum(found.predict_proba(scaled[:, some]), axis=1)[:, :-1]
            said = (rng.random(len(x))[:, None] >= likely).sum(axis=1)
            asked = rng.random(len(x)) < each / annotators
            dense[asked, who] = said[asked]
        return Annotations.from_dense(dense, num_classes=size)

    return crowd
