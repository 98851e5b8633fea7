"""Standardising, predicting in blocks, consensus labels and the choice of the epoch, each the one
place for its step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.auto.evidence import weighed_consensus
from neucrowd_tf.training.early_stopping import History
from neucrowd_tf.training.features import ALIGNMENT, CONSTANT, in_blocks, standardise
from neucrowd_tf.training.validation import consensus_labels
from tests.crowds import array_of


class TestStandardise:
    def test_by_hand(self) -> None:
        """1 and 5: mean 3, deviation 2. The constant 7 keeps scale 1. Weights 3 and 1 give mean 2
        and variance (3 * 1 + 1 * 9) / 4 = 3.
        """
        x = array_of("1.0 7.0; 5.0 7.0", np.float32)
        mean, scale = standardise(x)
        assert mean.tolist() == [3, 7] and scale.tolist() == [2, 1]
        mean, scale = standardise(x, weights=np.array([3.0, 1.0]))
        assert_allclose(mean, [2, 7])
        assert_allclose(scale, [np.sqrt(3), 1])
        mean, scale = standardise(x, False)
        assert mean.tolist() == [0, 0] and scale.tolist() == [1, 1]

    def test_channels_of_images_and_a_transform(self) -> None:
        x = default_rng(2).uniform(1, 9, size=(4, 3, 3, 2))
        mean, scale = standardise(x, "square_root")
        for channel in range(2):
            values = np.sqrt(x[..., channel])
            assert_allclose([mean[channel], scale[channel]], [values.mean(), values.std()])

    @pytest.mark.parametrize("value", [0.1, 1e6, -3e-9, 0.0])
    def test_a_constant_column_becomes_0(self, value: float) -> None:
        x = np.full((1000, 1), value, np.float32)
        mean, scale = standardise(x)
        assert scale.tolist() == [1] and np.abs((x - mean) / scale).max() < 1e-9

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_what_counts_as_constant(self, kind) -> None:
        """1 and 1 + 2 s have deviation s: beyond the rounding of their type they are told apart."""
        limit = CONSTANT if kind is np.float32 else 2 * np.finfo(np.float64).eps
        for share, constant in ((0.6, True), (2.0, False)):
            x = np.array([[1], [1 + 2 * share * limit]], kind)
            assert (standardise(x)[1][0] == 1) == constant


class TestBlocks:
    def test_as_if_at_once(self) -> None:
        x = np.arange(11.0)[:, None]
        seen: list[int] = []

        def double(piece: np.ndarray) -> np.ndarray:
            seen.append(len(piece))
            return 2 * piece

        result = in_blocks(double, x, rows=4)
        assert_array_equal(result, 2 * x)
        assert seen == [4, 4, 3]
        assert result.ctypes.data % ALIGNMENT == 0  # of any other memory TensorFlow makes a copy

    def test_without_rows_the_shape_is_that_of_the_result(self) -> None:
        assert in_blocks(lambda piece: np.zeros((len(piece), 5)), np.zeros((0, 2))).shape == (0, 5)


class TestConsensus:
    def test_majority_with_seeded_ties(self) -> None:
        crowd = Annotations.from_dense([[0, 0, 1], [1, 1, 0]] + [[0, 1, -1]] * 40)
        first = consensus_labels(crowd, 0)
        assert first[:2].tolist() == [0, 1] and first.dtype == np.int64
        assert set(first[2:]) == {0, 1}
        assert_array_equal(first, consensus_labels(crowd, 0))
        assert not np.array_equal(first, consensus_labels(crowd, 1))

    def test_weighing_annotators_follows_the_reliable_pair(self) -> None:
        """Two annotators who always agree and three who guess: the pair is believed where the three
        outvote it; vote counts alone cannot tell them apart.
        """
        rng = default_rng(3)
        truth = rng.integers(2, size=300)
        dense = np.concatenate([np.tile(truth[:, None], 2), rng.integers(2, size=(300, 3))], axis=1)
        crowd = Annotations.from_dense(dense)
        plain = consensus_labels(crowd, 0)
        assert (plain == truth).mean() < 0.95
        assert (weighed_consensus(crowd, 0) == truth).mean() > 0.99
        counts = Annotations.from_votes(crowd.vote_counts())
        assert_array_equal(weighed_consensus(counts, 0), plain)


class TestBestEpoch:
    @staticmethod
    def _offer(
        history: History, values: list[Any], ties: list[float] | None = None, **options: Any
    ) -> list[bool]:
        offers = []
        for epoch, value in enumerate(values):
            history.logs.setdefault("loss", []).append(0.0)
            offers.append(history.offer(value, ties[epoch] if ties else 0.0, **options))
        return offers

    def test_keeps_the_first_of_equals(self) -> None:
        best = History()
        assert self._offer(best, [0.5, 0.7, 0.7, float("nan"), 0.6]) == [True, True] + [False] * 3
        assert best.best_epoch == 1 and best.best_value == 0.7

    def test_the_best_and_ties(self) -> None:
        best = History()
        self._offer(best, [-3.0, -1.0, -2.0])
        assert best.best_epoch == 1
        best = History()
        self._offer(best, [1.0, 1.0, 1.0], ties=[0.3, 0.1, 0.2])
        assert best.best_epoch == 1 and best.best_tie == 0.1

    def test_without_an_auc_the_log_loss_decides(self) -> None:
        best = History()
        for loss in (0.7, 0.5, 0.6):
            values = {"val_auc": float("nan"), "val_log_loss": loss}
            best.logs.setdefault("val_log_loss", []).append(loss)
            best.judge(values, "auc", None, 0.1)
        assert best.best_epoch == 1

    def test_patience(self) -> None:
        best = History()
        assert not best.waited(2)
        assert self._offer(best, [0.4, 0.5, 0.4]) == [True, True, False]
        assert not best.waited(2) and best.waited(1) and not best.waited(None)

    def test_with_min_delta_by_hand(self) -> None:
        better = self._offer(History(), [0.5, 0.55, 0.7, 0.75], min_delta=0.1)
        assert better == [True, False, True, False]  # .75 is better than .7 by less than .1
        assert self._offer(History(), [-0.5, -0.45, -0.3], min_delta=0.1)[1:] == [0, 1]
