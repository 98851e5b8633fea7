"""Ranking of annotators: planted spammers and adversaries, scores by hand, gaps."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.simulation import from_skills, simulate
from neucrowd_tf.errors import DataError, IdentitiesError
from neucrowd_tf.evaluation import rank_annotators
from neucrowd_tf.evaluation.annotators import (
    annotators_csv,
    informedness,
    leave_one_out_agreement,
    leave_one_out_posteriors,
    spam_scores,
)
from neucrowd_tf.evaluation.consensus import inferred


def _crowd(
    seed: int,
    classes: int,
    spammers: int = 10,
    adversaries: int = 0,
    prior: list[float] | None = None,
) -> tuple[Annotations, np.ndarray]:
    """40 annotators with six labels per instance, the first of them spammers of several kinds
    (uniform, constant, by the prior), then adversaries.
    """
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, 1000, p=prior)
    skills = rng.uniform(0.7, 0.95, 40)
    skills[spammers : spammers + adversaries] = 0.05
    matrices = from_skills(np.repeat(skills[:, None], classes, axis=1))
    even = np.full(classes, 1 / classes)
    for r in range(spammers):
        matrices[r] = (even, np.eye(classes)[r % classes], even if prior is None else prior)[r % 3]
    return simulate(truth, matrices, seed, rates=0.15), truth


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("classes", "prior"), [(2, None), (2, [0.75, 0.25]), (4, None)])
def test_planted_spammers_are_among_the_lowest_twelve(
    seed: int, classes: int, prior: list[float] | None
) -> None:
    crowd, _ = _crowd(seed, classes, prior=prior)
    table = rank_annotators(crowd)
    assert set(range(10)) <= set(table.index[-12:])
    assert set(table["spam_score"].nlargest(12).index) >= set(range(10))
    np.testing.assert_array_equal(table["rank"], np.arange(1, 41))


def test_adversaries_are_told_from_spammers() -> None:
    crowd, truth = _crowd(3, 2, spammers=5, adversaries=3)
    for table in (rank_annotators(crowd), rank_annotators(crowd, consensus=truth)):
        assert set(table.index[-3:]) == {5, 6, 7}
        assert (table.loc[[5, 6, 7], "informedness"] < -0.5).all()
        assert (table.loc[[5, 6, 7], "spam_score"] < 0.6).all()
        assert (table.loc[range(5), "spam_score"] > 0.8).all()
        assert (table.loc[range(8, 40), "informedness"] > 0.1).all()


def test_scores_by_hand() -> None:
    # Two classes: spam is 1 - (sensitivity + specificity - 1)^2. Recalls .9 and .8: 1 - .49.
    errors = np.array(
        [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.3, 0.7]], [[0.0, 1.0], [1.0, 0.0]]]
    )
    np.testing.assert_allclose(spam_scores(errors), [0.51, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(informedness(errors), [0.7, 0.0, -1.0])
    # Three classes, never right and evenly wrong: informedness (0 - 1) / 2; rows differ by two
    # cells of 1/2 each: distance 1/2 in each of three pairs, 1 - 1.5 / 6.
    wrong = (1 - np.eye(3))[None] / 2
    np.testing.assert_allclose([informedness(wrong)[0], spam_scores(wrong)[0]], [-0.5, 0.75])


def test_spam_score_agrees_with_a_loop_over_pairs() -> None:
    errors = np.random.default_rng(0).dirichlet(np.ones(4), (6, 4))
    expected = [
        1 - sum(np.sum((e[c] - e[d]) ** 2) for c in range(4) for d in range(c)) / 12 for e in errors
    ]
    np.testing.assert_allclose(spam_scores(errors), expected)


def test_agreement_and_accuracy_by_hand() -> None:
    crowd = Annotations.from_dense([[0, 0, 1, -1], [1, 1, 1, -1], [-1, -1, -1, 0]], num_classes=2)
    # Annotator 0: 1 of 2 others agree, then 2 of 2: 3/4; annotator 2: 0 of 2, 2 of 2; annotator 3
    # has nobody beside it.
    np.testing.assert_allclose(leave_one_out_agreement(crowd), [0.75, 0.75, 0.5, np.nan])
    table = rank_annotators(crowd, consensus=[0, 1, -1])
    assert table.loc[0, "accuracy"] == 1.0
    assert table["overlap"].sort_index().tolist() == [2, 2, 2, 0]
    assert table.loc[2, "accuracy"] == 0.5
    assert np.isnan(table.loc[3, "accuracy"])
    assert (table.loc[3, "accuracy_low"], table.loc[3, "accuracy_high"]) == (0.0, 1.0)
    # Nothing is known of annotator 3: chance.
    assert table.loc[3, "informedness"] == pytest.approx(0.0)
    assert table.loc[3, "spam_score"] == pytest.approx(1.0)


def test_an_annotators_own_label_does_not_speak_for_it() -> None:
    from neucrowd_tf.aggregation import DawidSkene

    crowd, _ = _crowd(4, 3)
    model = DawidSkene().fit(crowd)
    found = leave_one_out_posteriors(crowd, model)
    for row in range(0, crowd.num_annotations, 211):
        joint = model.priors_.copy()
        for other in np.flatnonzero(crowd.instances == crowd.instances[row]):
            if other != row:
                joint *= model.errors_[crowd.annotators[other], :, crowd.labels[other]]
        np.testing.assert_allclose(found[row], joint / joint.sum())


def test_consensus_is_close_to_truth() -> None:
    crowd, truth = _crowd(5, 2)
    ours, real = rank_annotators(crowd), rank_annotators(crowd, consensus=truth).loc
    inside = [
        ours.loc[r, "accuracy_low"] <= real[r, "accuracy"] <= ours.loc[r, "accuracy_high"]
        for r in range(40)
    ]
    assert np.mean(inside) > 0.9


def test_refusals_and_generated_labels() -> None:
    with pytest.raises(IdentitiesError, match="ranking"):
        rank_annotators(Annotations.from_votes([[1, 2]]))
    crowd, _ = _crowd(6, 2)
    with pytest.raises(DataError, match="consensus: expected 1000 class codes"):
        rank_annotators(crowd, consensus=[0, 1])
    free = np.argwhere(crowd.to_dense() < 0)[:5]
    more = crowd.with_generated(free[:, 0], free[:, 1], np.zeros(5, dtype=int))
    assert rank_annotators(more).equals(rank_annotators(crowd))


def test_annotators_csv_of_planted_spammers_and_of_annotators_without_labels() -> None:
    crowd, _ = _crowd(7, 4, spammers=6, adversaries=2)
    frame = pd.read_csv(io.StringIO(annotators_csv(inferred(crowd))))
    assert set(frame.index[frame["note"] == "unreliable"]) == set(range(8))
    dense = [[0, 0, 1, -1], [1, 1, 1, -1]] * 5
    idle = Annotations.from_dense(dense, annotator_names=["a", "b", "c", "new"])
    new = pd.read_csv(io.StringIO(annotators_csv(inferred(idle)))).iloc[3]
    assert (new["annotator"], new["num_labels"]) == ("new", 0)
    assert np.isnan(new["skill"]) and np.isnan(new["agreement_others"])
