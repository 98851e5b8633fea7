"""Majority vote: ties, missing labels, vote counts alone, gold labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import MajorityVote as CrowdKitMajorityVote
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from neucrowd_tf.aggregation import MajorityVote, majority_labels
from neucrowd_tf.aggregation.base import vote_shares
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError, UsageError
from tests.cases import raises
from tests.crowds import array_of

DENSE = array_of("0 0 1; 1 1 1; 2 -1 0; -1 -1 -1")


def test_hand_worked() -> None:
    result = MajorityVote(ties="first").fit(DENSE)
    # Votes 2 1 0 | 0 3 0 | 1 0 1 | none; in all 3, 4 and 1 of 8. The last row has none: the
    # commonest class, 1.
    assert_array_equal(result.labels_, [0, 1, 0, 1])
    assert_allclose(result.probas_, array_of("2/3 1/3 0; 0 1 0; 0.5 0 0.5; 3/8 4/8 1/8"))
    assert_allclose(result.priors_, array_of("3/8 4/8 1/8"))
    assert_array_equal(result.annotated_, [True, True, True, False])
    # Annotator 0 says 0 1 2 to labels 0 1 0, annotator 1 says 0 1, annotator 2 says 1 1 0.
    assert_allclose(result.skills_, array_of("2/3 1 2/3"))
    assert_allclose(result.errors_[0], array_of("0.5 0 0.5; 0 1 0; 1/3 1/3 1/3"))


def test_tie_rules() -> None:
    votes = array_of("1 1 0; 0 2 2; 3 0 0; 0 0 0")  # in all 4, 3, 2
    assert_array_equal(majority_labels(votes, "first"), [0, 1, 0, 0])
    assert_array_equal(majority_labels(votes[:2], "prior"), [1, 1])
    assert_array_equal(majority_labels(votes, "prior"), [0, 1, 0, 0])
    raises(UsageError, "'coin'", majority_labels, votes, "coin")


def test_random_ties_are_seeded_fair_and_stay_within_the_tied_classes() -> None:
    votes = np.tile([2, 0, 2, 1], (4000, 1))
    first = majority_labels(votes, "random", seed=1)
    assert_array_equal(first, majority_labels(votes, "random", seed=1))
    assert (first != majority_labels(votes, "random", seed=2)).any()
    assert set(first) == {0, 2}
    assert abs((first == 0).mean() - 0.5) < 0.04  # five standard errors


def test_gold_labels() -> None:
    crowd = Annotations.from_dense(
        DENSE, instance_names=["a", "b", "c", "d"], class_names=["x", "y", "z"]
    )
    with_gold = MajorityVote(ties="first").fit(crowd, {"c": "z", "d": "y"})
    assert_array_equal(with_gold.labels_, [0, 1, 2, 1])
    assert_array_equal(with_gold.probas_[2:], array_of("0 0 1; 0 1 0"))
    assert with_gold.annotated_.all()
    same = MajorityVote(ties="first").fit(crowd, array_of("-1 -1 2 1"))
    assert_array_equal(same.probas_, with_gold.probas_)
    series = MajorityVote(ties="first").fit(crowd, pd.Series({"c": "z", "d": "y"}))
    assert_array_equal(series.probas_, with_gold.probas_)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({"e": "x"}, "task 'e', label 'x': no annotation has this task"),
        ({"a": "w"}, "task 'a', label 'w': the classes are 'x', 'y', 'z'. Correct the label"),
        (array_of("0 1 3 -1"), "row 2: expected a class code from 0 to 2 or -1"),
        (np.array([0, 1]), "expected 4 class codes, received int64 of shape"),
        (array_of("0.0 1.0 2.0 -1.0"), "expected 4 class codes, received float64"),
    ],
)
def test_unusable_gold_labels_are_one_clear_error(gold, message: str) -> None:
    crowd = Annotations.from_dense(
        DENSE, instance_names=["a", "b", "c", "d"], class_names=["x", "y", "z"]
    )
    raises(DataError, message, MajorityVote().fit, crowd, gold)


def test_annotators_are_measured_against_gold_labels_and_chance_is_left_without_evidence() -> None:
    # Gold turns the first label into 1: annotator 0 is then right once of twice. Annotator 1 gave
    # none: 1/2, whatever the class.
    result = MajorityVote().fit(array_of("0 -1; 1 -1"), array_of("1 -1"))
    assert result.errors_ is not None
    assert_array_equal(result.errors_, [[[0.5, 0.5], [0.5, 0.5]]] * 2)
    assert_array_equal(result.skills_, [0.5, 0.5])
    assert_array_equal(MajorityVote().fit(array_of("0 -1; 1 -1")).skills_, [1.0, 0.5])


def test_vote_shares_by_hand() -> None:
    # Annotator 0 said 1 with weight 3, annotator 1 said 0 with weight 1; the others have no label.
    one_hot = sparse.csr_matrix(array_of("0 3.0 1.0 0; 0 0 0 0; 0 0 0 0"))
    assert_array_equal(vote_shares(one_hot, 2), array_of("0.25 0.75; 0.5 0.5; 0.5 0.5"))


@pytest.mark.parametrize("label_type", [int, str, bool])
def test_series_and_frame_as_crowd_kit_gives_them(label_type: type) -> None:
    rng = default_rng(0)
    rows = [
        (f"t{t}", w, label_type(rng.random() < 0.3 + 0.4 * (t % 2)))
        for t in range(40)
        for w in range(5)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    theirs, ours = CrowdKitMajorityVote(), MajorityVote()
    expected = theirs.fit_predict_proba(frame)
    result = ours.fit_predict_proba(Annotations.from_frame(frame))
    pd.testing.assert_frame_equal(
        result.loc[expected.index], expected, check_names=False, check_column_type=False
    )
    labels = ours.fit_predict(Annotations.from_frame(frame))
    assert labels.index.name == "task"
    assert (labels.loc[theirs.labels_.index] == theirs.labels_).all()
    assert_allclose(ours.skills_, theirs.skills_.loc[ours.annotator_names_.tolist()])
