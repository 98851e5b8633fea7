"""Consensus and the ranking of instances by doubt."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.report import crowd as part


def test_entropy_by_hand() -> None:
    """(.5, .5) is log 2 / log 2 = 1; (1, 0) is 0; with three classes (.5, .5, 0) is log 2 / log 3 =
    .6309.
    """
    assert part.normalised_entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist() == [1.0, 0.0]
    assert part.normalised_entropy(np.array([[0.5, 0.5, 0.0]]))[0] == pytest.approx(
        0.6309, abs=1e-4
    )


def test_doubt_is_the_mean_of_ranks_by_hand() -> None:
    """Votes (2,2), (3,1), (4,0): entropies fall, so ranks 1, .5, 0. The model disagrees by .1, .2,
    .9: ranks 0, .5, 1.

    Means .5, .5, .5: equal scores are ordered by the share of votes, .5, .75, 1. With a model that
    disagrees by .9, .2, .1 the means are 1, .5, 0.
    """
    votes = Annotations.from_votes([[2, 2], [3, 1], [4, 0]])
    agreed = part.consensus(votes)
    assert agreed.labels.tolist() == [0, 0, 0] and agreed.method == "majority vote"
    equal = part.rank_by_doubt(votes, agreed, model=np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]))
    assert equal.score.tolist() == [0.5, 0.5, 0.5] and equal.rows.tolist() == [0, 1, 2]
    assert equal.share.tolist() == [0.5, 0.75, 1.0]
    clear = part.rank_by_doubt(votes, agreed, model=np.array([[0.1, 0.9], [0.8, 0.2], [0.9, 0.1]]))
    assert clear.score.tolist() == [1.0, 0.5, 0.0]
    np.testing.assert_allclose(clear.disagreement, [0.9, 0.2, 0.1])


def test_doubtful_instances_are_wrong_more_often(crowd: tuple[Annotations, np.ndarray]) -> None:
    annotations, truth = crowd
    agreed = part.consensus(annotations)
    doubts = part.rank_by_doubt(annotations, agreed, part.difficulties(annotations))
    wrong = agreed.labels[doubts.rows] != truth[doubts.rows]
    assert wrong[:60].mean() > 3 * max(wrong[60:].mean(), 1e-3)
    assert sorted(doubts.rows.tolist()) == np.flatnonzero(annotations.annotated).tolist()


def test_instances_without_labels_and_without_predictions() -> None:
    annotations = Annotations([0, 0, 2], [0, 1, 0], [0, 1, 1], num_instances=3)
    agreed = part.consensus(annotations)
    assert agreed.labels[1] == -1
    doubts = part.rank_by_doubt(
        annotations, agreed, model=np.array([[0.5, 0.5], [0.5, 0.5], [np.nan, np.nan]])
    )
    assert set(doubts.rows.tolist()) == {0, 2} and np.isfinite(doubts.score).all()
