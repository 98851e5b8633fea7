"""Consensus and the ranking of instances by doubt."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.evaluation.consensus import inferred
from neucrowd_tf.report.crowd import rank_by_doubt


def test_doubt_is_the_mean_of_ranks_by_hand() -> None:
    """Votes (2,2), (3,1), (4,0): probabilities rise, so ranks 1, .5, 0. The model disagrees by .1,
    .2, .9: ranks 0, .5, 1.

    Means .5, .5, .5: equal scores are ordered by the share of votes, .5, .75, 1. With a model that
    disagrees by .9, .2, .1 the means are 1, .5, 0.
    """
    agreed = inferred(Annotations.from_votes([[2, 2], [3, 1], [4, 0]]))
    agreed.model.labels_[0] = 0  # the tie
    equal = rank_by_doubt(agreed, np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]))
    assert equal.score.tolist() == [0.5, 0.5, 0.5] and equal.rows.tolist() == [0, 1, 2]
    assert equal.share.tolist() == [0.5, 0.75, 1.0]
    clear = rank_by_doubt(agreed, np.array([[0.1, 0.9], [0.8, 0.2], [0.9, 0.1]]))
    assert clear.score.tolist() == [1.0, 0.5, 0.0]
    np.testing.assert_allclose(clear.disagreement, [0.9, 0.2, 0.1])


def test_doubtful_instances_are_wrong_more_often(crowd: tuple[Annotations, np.ndarray]) -> None:
    annotations, truth = crowd
    agreed = inferred(annotations)
    doubts = rank_by_doubt(agreed)
    wrong = agreed.labels[doubts.rows] != truth[doubts.rows]
    assert wrong[:60].mean() > 3 * max(wrong[60:].mean(), 1e-3)
    assert sorted(doubts.rows.tolist()) == np.flatnonzero(annotations.annotated).tolist()


def test_items_without_labels_with_gold_labels_and_without_predictions() -> None:
    annotations = Annotations([0, 0, 2, 3], [0, 1, 0, 1], [0, 1, 1, 0], num_instances=4)
    agreed = inferred(annotations, np.array([-1, -1, -1, 1]))
    model = np.array([[0.5, 0.5], [0.5, 0.5], [np.nan, np.nan], [0.5, 0.5]])
    doubts = rank_by_doubt(agreed, model)
    assert set(doubts.rows.tolist()) == {0, 2} and np.isfinite(doubts.score).all()
