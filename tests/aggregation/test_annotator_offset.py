"""Annotators who differ from the average in one number, and ties that nothing breaks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import expit, logit

from neucrowd_tf.aggregation import Consensus
from neucrowd_tf.aggregation.annotator_offset import annotator_offsets
from neucrowd_tf.aggregation.symmetry import even_ties
from neucrowd_tf.annotations import Annotations
from tests.crowds import Labelled, array_of


def simulated(seed: int = 0) -> Labelled:
    """Three good and four poor annotators of two classes."""
    rng = default_rng(seed)
    truth = rng.integers(2, size=300)
    right = rng.random((300, 7)) < array_of("0.9 0.9 0.9 0.6 0.6 0.6 0.6")
    return Annotations.from_dense(np.where(right, truth[:, None], 1 - truth[:, None])), truth


def test_good_annotators_outvote_more_poor_ones() -> None:
    crowd, truth = simulated()
    fit = annotator_offsets(crowd)
    votes = crowd.vote_counts().argmax(axis=1)
    assert (fit.probas.argmax(axis=1) == truth).mean() > (votes == truth).mean() + 0.02
    right = np.einsum("rcc->rc", fit.errors)
    assert right[:3].min() > right[3:].max()
    assert np.allclose(fit.errors.sum(axis=2), 1.0)


def test_one_item_by_hand() -> None:
    # Its own belief is taken out, so that nothing but the average annotator is left.
    crowd = Annotations.from_dense([[0, 0, 1]])
    shares = array_of("2/3 1/3")
    priors = (shares + 0.5) / 2
    average = array_of("2/3 1/3")  # of classes 0 and 1, by vote shares
    beliefs = shares
    for _ in range(60):
        logs = np.log(priors)
        for label in (0, 0, 1):
            usual = float(beliefs @ average)
            hits = beliefs[label] + 10 * usual
            expected = expit(logit(average) + logit(hits / 11) - logit(usual))
            logs += np.log([expected[c] if c == label else 1 - expected[c] for c in (0, 1)])
        beliefs = np.exp(logs) / np.exp(logs).sum()
    assert annotator_offsets(crowd).probas[0] == pytest.approx(beliefs, abs=0.03)


def test_gold_labels_stay_and_items_without_labels_have_the_prior() -> None:
    crowd, truth = simulated(1)
    few = crowd.select(crowd.instances != 3)
    gold = np.where(np.arange(300) == 5, 1 - truth, -1)
    fit = annotator_offsets(few, gold)
    assert fit.probas[5, 1 - truth[5]] == 1.0
    assert fit.probas[3] == pytest.approx(fit.priors)


@pytest.mark.parametrize("row", [[0, 1] * 5, [1] * 5 + [0] * 5, [0] * 5 + [1] * 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_tie_is_even_whatever_names_and_seeds_are(row: list[int], seed: int) -> None:
    result = Consensus(seed=seed, restarts=2).fit(Annotations.from_dense([row]))
    assert (result.probas_ == 0.5).all()


def test_only_ties_that_nothing_breaks_are_even() -> None:
    probas = np.array([[0.9, 0.1]] * 3)
    # Annotator 1 agrees with 2 elsewhere, annotator 0 with nobody.
    broken = Annotations.from_dense(array_of("0 1 -1; 0 1 1; 1 0 0"))
    assert even_ties(broken, probas)[0] == pytest.approx([0.9, 0.1])
    symmetric = Annotations.from_dense(array_of("0 1; 1 0; 0 0"))
    evened = even_ties(symmetric, probas)
    assert (evened == probas).all()  # item 2 prefers class 0
    both = Annotations.from_dense(array_of("0 1; 0 0; 1 1"))
    assert even_ties(both, probas)[:, 0] == pytest.approx([0.5, 0.9, 0.9])
