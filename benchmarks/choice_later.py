"""Tables of the study of choices that were written after auto's rule was fixed and that nothing was
changed for since: images, points, real crowds with two answers, graders, a crowd that fails where
it is hard.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from benchmarks.choice_kinds import Codes, Crowd, Table, crowd_of, pooled, shuffled
from neucrowd_tf.annotations import Annotations, simulation

LATER_DRAWS = (10701, 10702, 10703)
_ORDER = 36  # of the rows, among a draw's streams of numbers
LIVING = (2, 3, 4, 5, 6, 7)  # CIFAR-10's classes that are animals
NATURAL = (4, 5, 6, 7)  # LabelMe's: forest, coast, mountain, opencountry


def parity(draw: int, data_dir: Path | None) -> Table:
    """Returns 898 digits, even or odd: 16 annotators better at one of them and four who answer at
    random, three labels each.
    """
    bunch = datasets.load_digits()
    crowd = (
        simulation.class_skill_annotators(16, 2, draw, low=0.6),
        simulation.spammers(4, 2, draw),
    )
    return shuffled(
        bunch.data, bunch.target % 2, draw, crowd_of(np.concatenate(crowd), 3, draw), _ORDER
    )


def spirals(draw: int, data_dir: Path | None) -> Table:
    """Returns 450 points on three arms with six features that tell nothing: ten annotators, three
    labels each.
    """
    rng = np.random.default_rng([draw, 31])
    truth = np.arange(900) % 3
    turn = np.sqrt(rng.random(900)) * 2.5
    angle = turn * 2 + truth * 2 * np.pi / 3
    arms = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1)
    x = np.concatenate([arms + rng.normal(0, 0.15, arms.shape), rng.normal(size=(900, 6))], axis=1)
    return shuffled(x, truth, draw, _crowd(10, 3, draw, 0.7, 3), _ORDER)


def clusters(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,200 rows of five classes in fifteen clusters: 25 annotators, two labels each."""
    x, truth = datasets.make_classification(
        n_samples=2400,
        n_features=20,
        n_informative=8,
        n_classes=5,
        n_clusters_per_class=3,
        class_sep=1.5,
        random_state=draw,
    )
    return shuffled(x, truth, draw, _crowd(25, 5, draw, 0.7, 2), _ORDER)


def hard_ones(draw: int, data_dir: Path | None) -> Table:
    """Returns 284 cells of breast tumours: eight annotators who err the more often the nearer a
    cell lies to the other kind, three labels each.
    """
    bunch = datasets.load_breast_cancer()

    def crowd(x: NDArray[Any], truth: Codes) -> Annotations:
        rng = np.random.default_rng([draw, 32])
        sure = LogisticRegression(C=0.01).fit(scale(x), truth).predict_proba(scale(x))
        own = sure[np.arange(len(x)), truth][:, None]
        right = rng.uniform(0.6, 0.95, 8) * (0.5 + 0.5 * own)
        said = np.where(rng.random((len(x), 8)) < right, truth[:, None], 1 - truth[:, None])
        asked = rng.random((len(x), 8)) < 3 / 8
        return Annotations.from_dense(np.where(asked, said, -1), num_classes=2)

    return shuffled(bunch.data, bunch.target, draw, crowd, _ORDER)


def wide(draw: int, data_dir: Path | None) -> Table:
    """Returns 200 rows of 500 features, of which twenty tell two classes apart: twelve annotators,
    three labels each.
    """
    x, truth = datasets.make_classification(
        n_samples=400, n_features=500, n_informative=20, n_redundant=0, random_state=draw
    )
    return shuffled(x, truth, draw, _crowd(12, 2, draw, 0.75, 3), _ORDER)


def wide_control(draw: int, data_dir: Path | None) -> Table:
    """Returns what `wide` has with 4,000 rows to test on: of 200 a difference of five points is
    within chance. Written after `wide` was looked at, as its control.
    """
    x, truth = datasets.make_classification(
        n_samples=4200, n_features=500, n_informative=20, n_redundant=0, random_state=draw
    )
    return shuffled(x, truth, draw, _crowd(12, 2, draw, 0.75, 3), _ORDER, trained=200)


def grades(draw: int, data_dir: Path | None) -> Table:
    """Returns 800 rows with five grades: twelve annotators, each a grade too strict, too lenient or
    neither for a third of what they see, two and a half labels each.
    """
    x, y = datasets.make_regression(
        n_samples=1600, n_features=15, n_informative=8, noise=20.0, random_state=draw
    )
    truth = np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
    rng = np.random.default_rng([draw, 33])
    leaning = rng.choice([-1, 0, 1], 12)
    rows = np.arange(5)
    annotators = np.zeros((12, 5, 5))
    for who, lean in enumerate(leaning):
        annotators[who] = 0.05
        annotators[who, rows, rows] += 0.45
        annotators[who, rows, np.clip(rows + lean, 0, 4)] += 0.30
    return shuffled(x, truth, draw, crowd_of(annotators, 2.5, draw), _ORDER)


def skewed(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,500 rows whose features are counts, flags and sizes over several powers of ten, and
    whose three classes are a rule's: 60 annotators, one label and a half each.
    """
    rng = np.random.default_rng([draw, 34])
    sizes = rng.lognormal(0, 2, (3000, 4))
    counts, flags = rng.poisson(3, (3000, 4)), rng.random((3000, 4)) < 0.3
    first = (sizes[:, 0] > 1) & (flags[:, 0] | (counts[:, 0] > 3))
    truth = np.where(first, 0, np.where(np.log(sizes[:, 1]) + counts[:, 1] > 3, 1, 2))
    x = np.concatenate([sizes, counts, flags], axis=1)
    return shuffled(x, truth, draw, _crowd(60, 3, draw, 0.75, 1.5), _ORDER)


def uncommon(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,000 rows, four in five of one class and one in twenty of the third, met alike in
    the test: 15 annotators, three labels each.
    """
    x, truth = datasets.make_classification(
        n_samples=2000,
        n_features=25,
        n_informative=10,
        n_classes=3,
        n_clusters_per_class=2,
        weights=[0.8, 0.15],
        class_sep=1.2,
        random_state=draw,
    )
    return shuffled(x, truth, draw, _crowd(15, 3, draw, 0.7, 3), _ORDER)


def post(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,000 of USPS' digits: 30 annotators, two labels each."""
    from data.usps import read

    x, truth = read(data_dir)
    rows = np.random.default_rng([draw, 35]).choice(len(x), 2000, replace=False)
    return shuffled(x[rows], truth[rows], draw, _crowd(30, 10, draw, 0.6, 2), _ORDER)


def living(draw: int, data_dir: Path | None) -> Table:
    """Returns 1,500 of CIFAR-10N's images, animals or vehicles, with the labels that were given."""
    return _two_kinds("cifar10n", draw, data_dir, LIVING, 1500)


def scenes(draw: int, data_dir: Path | None) -> Table:
    """Returns 800 of LabelMe's images, natural or built, with the labels that were given."""
    return _two_kinds("labelme", draw, data_dir, NATURAL, 800)


LATER: dict[str, Callable[[int, Path | None], Table]] = {
    "parity": parity,
    "spirals": spirals,
    "clusters": clusters,
    "hard_ones": hard_ones,
    "wide": wide,
    "grades": grades,
    "skewed": skewed,
    "uncommon": uncommon,
    "post": post,
    "living": living,
    "scenes": scenes,
}


CONTROLS: dict[str, Callable[[int, Path | None], Table]] = {"wide_control": wide_control}


def _crowd(size: int, classes: int, draw: int, accuracy: float, each: float) -> Crowd:
    """Returns a crowd that is right so often, with so many labels each instance."""
    annotators = simulation.confusion_annotators(size, classes, draw, accuracy=accuracy)
    return crowd_of(annotators, each, draw)


def _two_kinds(
    name: str, draw: int, data_dir: Path | None, second: tuple[int, ...], size: int
) -> Table:
    """Returns a real dataset whose classes are of two kinds, a draw of its instances."""
    import data  # noqa: F401  (registers the datasets)
    from neucrowd_tf import registry

    found = registry.dataset(name).load(data_dir, draw)
    if found.truth is None:
        raise ValueError(f"{name}: expected a dataset with truth, received one without")
    kind = np.isin(range(len(found.class_names)), second).astype(np.int64)
    rows = np.random.default_rng([draw, 37]).choice(len(found.features), size, replace=False)
    rows.sort()
    crowd = found.annotations[rows]
    merged = Annotations(
        *(crowd.instances, crowd.annotators, kind[crowd.labels]),
        instance_names=crowd.instance_names,
        annotator_names=crowd.annotator_names,
        class_names=["first", "second"],
    )
    x, test = found.features[rows], found.test.features
    if x.ndim == 4:
        x, test = pooled(x), pooled(test)
    return x, merged, kind[found.truth[rows]], test, kind[found.test.labels]
