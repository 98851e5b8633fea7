"""Agreement by pairs, and models apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.evaluation.agreement import agreement, pairs
from neucrowd_tf.evaluation.annotator_table import annotator_table


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
    found = pairs(Annotations.from_dense(dense), least=1)
    assert len(found) == 10
    assert [pair.kappa for pair in found] == sorted(pair.kappa for pair in found)
    for pair in found:
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
    found = agreement(crowd, ["gpt"])
    alone = Annotations.from_dense(people)
    assert found.kappa == pytest.approx(statistics.fleiss_kappa(alone)) and found.kappa > 0.5
    assert found.alpha == pytest.approx(statistics.krippendorff_alpha(alone))
    ((name, met, share, kappa),) = found.models
    assert (name, met) == ("gpt", 60) and 0.3 < share < 0.7 and kappa == pytest.approx(0.0)
    assert {pair.first for pair in found.pairs} | {pair.second for pair in found.pairs} == {0, 1, 2}
    assert agreement(crowd).kappa < 0.5


def test_annotators_without_labels_have_a_row_and_no_figures() -> None:
    crowd = Annotations.from_dense(
        [[0, 0, 1, -1], [1, 1, 1, -1]] * 5, annotator_names=["a", "b", "c", "new"]
    )
    header, rows = annotator_table(crowd)
    new = dict(zip(header, rows[3], strict=True))
    assert (new["annotator"], new["num_labels"], new["note"]) == ("new", 0, "few labels")
    assert np.isnan(new["accuracy"]) and np.isnan(new["agreement_others"])
    assert agreement(crowd).pairs == []
