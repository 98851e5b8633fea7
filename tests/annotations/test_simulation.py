"""Simulated annotators: the distributions they are drawn from, who labels what, and seeds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from neucrowd_tf.annotations import Annotations, simulation, statistics, thinning
from neucrowd_tf.errors import DataError
from tests.cases import cases, raises
from tests.crowds import array_of


@pytest.mark.parametrize(
    ("kind", "named"),
    cases("""
["mislabelling_annotators", {}], ["class_skill_annotators", {}], ["split_annotators", {}],
["confusion_annotators", {}], ["spammers", {"kind": "uniform"}], ["spammers", {"kind": "constant"}],
["adversaries", {}]
"""),
)
def test_matrices_are_distributions_and_seeded(kind: str, named) -> None:
    draw = getattr(simulation, kind)
    first, again, other = (draw(6, 3, seed, **named) for seed in (1, 1, 2))
    assert first.shape == (6, 3, 3) and (first >= 0).all() and np.allclose(first.sum(axis=2), 1)
    assert np.array_equal(first, again)
    assert named == {"kind": "uniform"} or not np.array_equal(first, other)


def test_split_annotators_have_the_share_of_certain_instances_of_iced_table_3() -> None:
    """For each class five of nine with .9, four with .22; by convolution 103 of 734."""
    matrices = simulation.split_annotators(9, 2, 0)
    correct = np.sort(matrices.diagonal(axis1=1, axis2=2), axis=0)
    assert np.allclose(correct, np.array([[0.22] * 4 + [0.9] * 5] * 2).T)
    votes = np.ones(1)
    for rate in correct[:, 0]:
        votes = np.convolve(votes, [1 - rate, rate])
    assert votes[[0, 1, 2, 7, 8, 9]].sum() == pytest.approx(103 / 734, abs=0.001)


def test_from_skills_by_hand() -> None:
    """P(correct) .7 and .4 of three classes: .3 and .6 are spread over two others."""
    matrix = simulation.from_skills([[0.7, 0.4, 1.0]])[0]
    assert np.allclose(matrix, array_of("0.7 0.15 0.15; 0.3 0.4 0.3; 0 0 1"))


def test_mislabelling_is_truncated_normal() -> None:
    """5,000 rates against scipy's truncated normal (mean .1, sd .1, cut at .01 and .5), by
    Kolmogorov and Smirnov.
    """
    rates = 1 - simulation.mislabelling_annotators(5000, 2, 0)[:, 0, 0]
    reference = stats.truncnorm((0.01 - 0.1) / 0.1, (0.5 - 0.1) / 0.1, loc=0.1, scale=0.1)
    assert rates.min() >= 0.01 and rates.max() <= 0.5
    assert stats.kstest(rates, reference.cdf).pvalue > 0.01


def test_dependence_by_quadrature() -> None:
    """Each annotator's rate stays; two err together as a bivariate normal says."""
    rate, rho, size = 0.2, 0.5, 40_000
    matrices = simulation.from_skills(np.full((2, 2), 1 - rate))
    truth = np.arange(size) % 2
    crowd = simulation.simulate(truth, matrices, 0, dependence=rho)
    wrong = (crowd.labels.reshape(-1, 2) != truth[:, None]).astype(float)
    cut = stats.norm.ppf(rate)
    both = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([cut, cut])
    assert np.allclose(wrong.mean(axis=0), rate, atol=0.01)
    assert wrong.prod(axis=1).mean() == pytest.approx(both, abs=0.01)
    independent = simulation.simulate(truth, matrices, 0)
    assert simulation.simulate(truth, matrices, 0, dependence=0.0) == independent
    with pytest.raises(DataError, match="dependence: expected 0 to less than 1"):
        simulation.simulate(truth, matrices, 0, dependence=1.0)


def test_spammers_and_adversaries() -> None:
    constant = simulation.spammers(30, 3, 0, kind="constant")
    assert (constant == constant[:, :1]).all()
    assert set(np.unique(constant)) == {0.0, 1.0}
    assert (constant.sum(axis=(0, 1)) > 0).all()
    adversary = simulation.adversaries(30, 3, 0)
    favourite = adversary.argmax(axis=2)
    assert (favourite != np.arange(3)).all()
    assert all(len(set(row)) == 3 for row in favourite.tolist())
    assert adversary.max(axis=2).min() >= 0.6
    assert simulation.adversaries(0, 3, 0).shape == (0, 3, 3)


def test_simulate_follows_the_matrices() -> None:
    """20,000 instances: each annotator's counted confusion lies within five standard errors of its
    matrix.
    """
    truth = np.arange(20_000) % 3
    matrices = simulation.confusion_annotators(3, 3, 4)
    crowd = simulation.simulate(truth, matrices, 4)
    counted = statistics.annotator_confusion(crowd, truth)
    sizes = counted.sum(axis=2, keepdims=True)
    assert (
        np.abs(counted / sizes - matrices) <= 5 * np.sqrt(matrices * (1 - matrices) / sizes) + 1e-9
    ).all()


def test_simulate_is_seeded_and_sparse() -> None:
    truth = np.arange(500) % 2
    matrices = simulation.class_skill_annotators(5, 2, 0)
    first, again, other = (
        simulation.simulate(truth, matrices, seed, rates=[0.5, 0.1, 0.1, 0.05, 0.0])
        for seed in (1, 1, 2)
    )
    assert first == again and first != other
    assert first.annotated.all() and (np.diff(first.instances) >= 0).all()
    counts = first.labels_per_annotator()
    assert counts[4] == 0 and counts[0] > counts[1] > counts[3]
    few = simulation.simulate(truth, matrices, 1, rates=0.1)
    # (1 - .1)^5 = .59 of the instances have one label because they would have none, and 5 * .1 *
    # .9^4 = .33 have one of their own.
    assert (few.vote_counts().sum(axis=1) == 1).mean() == pytest.approx(0.92, abs=0.04)
    named = simulation.simulate(
        [0, 1], matrices, 1, instance_names=["x", "y"], class_names=["no", "yes"]
    )
    assert named.instance_names.tolist() == ["x", "y"]
    assert named.class_names.tolist() == ["no", "yes"]


@pytest.mark.parametrize("at_least_one", [True, False])
def test_remove_annotations(at_least_one: bool) -> None:
    generator = default_rng(0)
    dense = np.where(generator.random((100, 8)) < 0.5, generator.integers(3, size=(100, 8)), -1)
    whole = Annotations.from_dense(dense, num_classes=3)
    total = whole.num_annotations
    remaining = {
        share: simulation.remove_annotations(whole, share, 5, at_least_one=at_least_one)
        for share in (0.1, 0.4, 0.8, 1.0)
    }
    for share, crowd in remaining.items():
        floor = int(whole.annotated.sum()) if at_least_one else 0
        assert crowd.num_annotations == max(round(share * total), floor)
        assert (crowd.vote_counts() <= whole.vote_counts()).all() and crowd.num_classes == 3
        assert crowd.annotated.tolist() == whole.annotated.tolist() or not at_least_one
    assert (
        remaining[0.4].vote_counts() <= remaining[0.8].vote_counts()
    ).all()  # a smaller share is a part of a larger one
    assert np.array_equal(remaining[1.0].vote_counts(), whole.vote_counts())
    assert remaining[1.0] == whole
    other = simulation.remove_annotations(whole, 0.4, 6, at_least_one=at_least_one)
    assert not np.array_equal(other.vote_counts(), remaining[0.4].vote_counts())


@pytest.mark.parametrize(
    ("function", "arguments", "named", "message"),
    cases(r"""
["from_skills", [[[0.5, 1.5]]], {}, "skills: expected probabilities from 0 to 1, received 1.5"],
["confusion_annotators", [2, 2, 0], {"accuracy": 1.5},
 "accuracy: expected probabilities from 0 to 1, received 1.5"],
["mislabelling_annotators", [2, 2, 0], {"mean_rate": 1.5},
 "mean_rate: expected a share above 0 and below 1, received 1.5"],
["class_skill_annotators", [2, 1, 0], {}, "at least two classes\\], received shape \\(2, 1\\)"],
["class_skill_annotators", [3, 2, 0], {"low": 0.9, "high": 0.4},
 "low: expected at most high \\(0.4\\), received 0.9"],
["class_skill_annotators", [3, 2, 0], {"high": Infinity},
 "low and high: expected probabilities from 0 to 1, received inf"],
["assignment", [3, 2, 0, [0.5, 1.5]], {}, "from 0 to 1, received 1.5$"],
["assignment", [3, 2, 0, 0.0], {}, "rates: expected one above 0"],
["assignment", [3, 2, 0, [0.5, 0.5, 0.5]], {},
 "rates: expected a number or one for each of 2 annotators, received shape \\(3,\\)"],
["simulate", [[0, 2], [[[0.5, 0.5], [0.5, 0.5]]], 0], {},
 "truth: expected class codes from 0 to 1, received 2 for instance 1"],
["simulate", [[0.0, 1.0], [[[0.5, 0.5], [0.5, 0.5]]], 0], {}, "of shape"],
["simulate", [[[0, 1]], [[[0.5, 0.5], [0.5, 0.5]]], 0], {}, "of shape"],
["simulate", [[], [[[0.5, 0.5], [0.5, 0.5]]], 0], {}, "of shape"],
["simulate", [[true, false], [[[0.5, 0.5], [0.5, 0.5]]], 0], {}, "of shape"],
["simulate", [[0, 1], [[[0.3, 0.3, 0.4], [0.3, 0.3, 0.4]]], 0], {}, "confusions: expected"],
["simulate", [[0, 1], [[[1, 1], [1, 1]]], 0], {}, "in each row, received a sum of 2"],
["simulate", [[0, 1], [[[1.5, -0.5], [0, 1]]], 0], {},
 "confusions: expected probabilities from 0 to 1, received 1.5"],
["spammers", [2, 2, 0], {"kind": "typo"}, "spammers: expected kind 'uniform'"]
"""),
)
def test_refuses(function: str, arguments, named, message: str) -> None:
    raises(DataError, message, getattr(simulation, function), *arguments, **named)


def test_a_share_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="keep: expected a share above 0"):
        simulation.remove_annotations(Annotations.from_dense([[0]]), 0.0, 0)


def test_thinned_and_flipped_crowds_keep_repeated_labels_and_whether_instances_have_names() -> None:
    twice = Annotations([0, 0, 1], [0, 0, 0], [0, 1, 1], duplicates="all")
    for crowd in (twice, Annotations.from_votes([[2, 1], [0, 3]])):
        named = crowd.replace(instance_names=["a", "b"])
        for change in (thinning.flip_labels, thinning.keep_share):
            assert not change(crowd, 1.0, 0).named and change(named, 1.0, 0).named
        flipped = thinning.flip_labels(crowd, 1.0, 0)
        assert np.array_equal(flipped.vote_counts(), crowd.vote_counts()[:, ::-1])
    raises(DataError, "no other class", thinning.flip_labels, Annotations.from_dense([[0]]), 0.5, 0)
