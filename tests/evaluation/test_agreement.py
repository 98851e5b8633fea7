"""Agreement by pairs, and models apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.evaluation.agreement import agreement, pairs


def test_a_pair_by_hand() -> None:
    """Of four shared instances three are labelled alike: p_o = .75. The first says 0 on two of
    four, the second on three: p_e = .5 .75 + .5 .25 = .5, kappa = .25 / .5 = .5.
    """
    crowd = Annotations.from_dense([[0, 0], [0, 0], [1, 1], [1, 0], [1, -1]])
    (pair,) = pairs(crowd, least=4)
    assert (pair.first, pair.second, pair.shared) == (0, 1, 4)
    assert (pair.same, pair.kappa) == (0.75, pytest.approx(0.5))
    assert pairs(crowd, least=5) == []


def test_they_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((80, 5)) < 0.7, rng.integers(0, 3, (80, 5)), -1)
    result = pairs(Annotations.from_dense(dense), least=1)
    assert len(result) == 10
    assert [pair.kappa for pair in result] == sorted(pair.kappa for pair in result)
    for pair in result:
        both = (dense[:, [pair.first, pair.second]] >= 0).all(axis=1)
        expected = cohen_kappa_score(*dense[both][:, [pair.first, pair.second]].T)
        assert pair.kappa == pytest.approx(expected) and pair.shared == both.sum()


def test_a_models_labels_are_counted_apart() -> None:
    rng = np.random.default_rng(0)
    people = rng.integers(0, 2, (60, 1)) ^ (rng.random((60, 3)) < 0.1)
    model = np.zeros((60, 1), dtype=int)  # says 0 throughout, which agrees with nobody
    crowd = Annotations.from_dense(
        np.concatenate([people, model], axis=1), annotator_names=["a", "b", "c", "gpt"]
    )
    result = agreement(crowd, ["gpt"])
    alone = Annotations.from_dense(people)
    kappa, alpha = result.coefficients["fleiss"], result.coefficients["krippendorff"]
    assert kappa.value == pytest.approx(statistics.fleiss_kappa(alone)) and kappa.low > 0.5
    expected = statistics.agreement_coefficients(alone.vote_counts(), np.eye(2))
    assert alpha.value == pytest.approx(expected["krippendorff"])
    (model,) = result.models
    assert (model.first, model.shared) == (3, 60) and 0.3 < model.same < 0.7
    assert model.kappa == pytest.approx(0.0)
    assert {pair.first for pair in result.pairs} | {pair.second for pair in result.pairs} == {
        0,
        1,
        2,
    }
    assert agreement(crowd).coefficients["fleiss"].value < 0.5
    assert result.overlap == 60 and result.enough


def test_too_few_instances_with_two_labels_are_not_judged() -> None:
    dense = np.full((200, 3), -1)
    dense[:, 0] = np.arange(200) % 2
    dense[:8, 1] = dense[:8, 0]
    result = agreement(Annotations.from_dense(dense))
    assert (result.overlap, result.coefficients["fleiss"].value, result.enough) == (8, 1.0, False)
    dense[:30, 1] = dense[:30, 0]
    assert agreement(Annotations.from_dense(dense)).enough


def test_chance_corrected_by_hand() -> None:
    # (.75 - .5) / .5 = .5; full agreement by chance alone says nothing.
    corrected = statistics.chance_corrected([0.75, 1.0], [0.5, 1.0])
    np.testing.assert_allclose(corrected, [0.5, np.nan])
