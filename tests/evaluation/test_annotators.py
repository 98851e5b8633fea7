"""Ranking of annotators: planted spammers and adversaries, scores by hand, gaps."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.annotations.simulation import from_skills, simulate
from neucrowd_tf.certainty.skills import agreement_beyond_chance, near_chance
from neucrowd_tf.errors import DataError, IdentitiesError
from neucrowd_tf.evaluation import rank_annotators
from neucrowd_tf.evaluation.annotators import annotators_csv
from neucrowd_tf.evaluation.cached_consensus import inferred
from tests.cases import raises
from tests.crowds import Labelled, array_of


def _crowd(
    seed: int,
    classes: int,
    spammers: int = 10,
    adversaries: int = 0,
    prior: list[float] | None = None,
) -> Labelled:
    """40 annotators with six labels per instance, the first of them spammers of several kinds
    (uniform, constant, by the prior), then adversaries.
    """
    rng = default_rng(seed)
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
    assert_array_equal(table["rank"], np.arange(1, 41))


def test_adversaries_are_told_from_spammers() -> None:
    crowd, _ = _crowd(3, 2, spammers=5, adversaries=3)
    table = rank_annotators(crowd)
    assert set(table.index[-3:]) == {5, 6, 7}
    assert (table.loc[[5, 6, 7], "beyond_chance"] < -0.5).all()
    assert (table.loc[range(5), "beyond_chance"].abs() < 0.4).all()
    assert (table.loc[range(8, 40), "beyond_chance"] > 0.2).all()
    assert near_chance(crowd)[:8].all()


def test_agreement_by_hand() -> None:
    crowd = Annotations.from_dense(array_of("0 0 1 -1; 1 1 1 -1; -1 -1 -1 0"), num_classes=2)
    # Annotator 0: 1 of 2 others agree, then 2 of 2: 3/4; annotator 2: 0 of 2, 2 of 2; annotator 3
    # has nobody beside it.
    assert_allclose(statistics.leave_one_out_agreement(crowd), [0.75, 0.75, 0.5, np.nan])
    # The others' shares of class 0 and 1 are (.5, .5), (0, 1) for annotator 0, whose labels are
    # half 0: chance is .25 * .5 + .75 * .5. Annotator 2 gives one class: as by chance.
    beyond, shared = agreement_beyond_chance(crowd, np.ones(4))
    assert_allclose(beyond, [0.25, 0.25, 0.0, 0.0])
    assert shared.tolist() == [2, 2, 2, 0]
    # The mean of the crowd's is 1/6; the second time annotator 2 counts for (0 + 10) / 12 = .833,
    # the others for (3 + 10) / 12 = 1.083.
    share = 1.083333 / (1.083333 + 0.833333)
    beyond, _ = agreement_beyond_chance(crowd, array_of("1.083333 1.083333 0.833333 1.0"))
    assert_allclose(beyond[0], (share + 1) / 2 - (share / 4 + (2 - share) / 4), atol=1e-6)
    table = rank_annotators(crowd).sort_index()
    assert table["overlap"].tolist() == [2, 2, 2, 0] and np.isnan(table.loc[3, "beyond_chance"])
    assert table.loc[0, "beyond_chance"] == pytest.approx(1.5)


def test_refusals_and_generated_labels() -> None:
    raises(IdentitiesError, "ranking", rank_annotators, Annotations.from_votes([[1, 2]]))
    raises(DataError, "at least one annotation", rank_annotators, [[-1, -1]])
    crowd, _ = _crowd(6, 2)
    free = np.argwhere(crowd.to_dense() < 0)[:5]
    more = crowd.with_generated(free[:, 0], free[:, 1], np.zeros(5, dtype=int))
    assert rank_annotators(more).equals(rank_annotators(crowd))


def test_annotators_csv_of_planted_spammers_and_of_annotators_without_labels() -> None:
    crowd, truth = _crowd(7, 4, spammers=6, adversaries=2)
    frame = pd.read_csv(io.StringIO(annotators_csv(inferred(crowd), truth, None)))
    assert set(frame.index[frame["note"] == "unreliable"]) == set(range(8))
    dense = [[0, 0, 1, -1], [1, 1, 1, -1]] * 5
    idle = Annotations.from_dense(dense, annotator_names=["a", "b", "c", "new"])
    new = pd.read_csv(
        io.StringIO(annotators_csv(inferred(idle), np.zeros(10, dtype=int), None))
    ).iloc[3]
    assert (new["annotator"], new["num_labels"]) == ("new", 0)
    assert np.isnan(new["skill"]) and np.isnan(new["agreement_others"])
    three = inferred(Annotations.from_dense(np.array(dense)[:, :3]))  # the same labels
    assert len(three.skills.skill) == 3


def test_a_remembered_consensus_has_the_names_of_its_classes() -> None:
    crowd, truth = _crowd(7, 4)
    gold = np.where(np.arange(len(truth)) < 30, truth, -1)
    for names in ("a b c d", "e f g h"):
        named = crowd.replace(class_names=names.split())
        assert list(inferred(named, gold).estimates[1]) == names.split()


def test_an_annotators_other_labels_of_an_item_are_no_votes_of_others() -> None:
    # Annotator 0 labels item 0 twice beside annotator 1, and item 1 twice alone.
    triples = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 0, 0)]
    crowd = Annotations(*np.array(triples).T, duplicates="all")
    beyond, shared = agreement_beyond_chance(crowd, np.ones(2))
    assert shared.tolist() == [2, 1]
    # Of two labels one agrees with 1's, as by chance; 1's agrees with one of two.
    assert beyond.tolist() == [0.0, 0.0]
    assert statistics.leave_one_out_agreement(crowd).tolist() == [0.5, 0.5]
