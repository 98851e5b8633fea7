"""Agreement by pairs."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations, agreement
from neucrowd_tf.evaluation.agreement_tables import pairs
from tests.crowds import array_of


def test_a_pair_by_hand() -> None:
    """Of four shared instances three are labelled alike: p_o = .75. The first says 0 on two of
    four, the second on three: p_e = .5 .75 + .5 .25 = .5, kappa = .25 / .5 = .5.
    """
    crowd = Annotations.from_dense(array_of("0 0; 0 0; 1 1; 1 0; 1 -1"))
    (pair,) = pairs(crowd, least=4)
    assert (pair.first, pair.second, pair.shared) == (0, 1, 4)
    assert (pair.same, pair.kappa) == (0.75, pytest.approx(0.5))
    assert pairs(crowd, least=5) == []
    twice = Annotations([0, 0, 0], [0, 0, 1], [0, 1, 1], duplicates="all")
    assert (pairs(twice, 1)[0].shared, pairs(twice, 1)[0].same) == (1, 0.5)


def test_chance_corrected_by_hand() -> None:
    # (.75 - .5) / .5 = .5; full agreement by chance alone says nothing.
    corrected = agreement.chance_corrected([0.75, 1.0], [0.5, 1.0])
    np.testing.assert_allclose(corrected, [0.5, np.nan])
