"""Annotators who err together count once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from benchmarks.certainty.models import ITEMS, MODELS, simulated
from neucrowd_tf.aggregation import families
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.families import with_shares
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.errors import UsageError
from tests.cases import raises
from tests.crowds import Labelled, array_of, noisy_labels

NAMES = [f"m{i}" for i in range(MODELS)]


def members(crowd: Annotations) -> np.ndarray:
    return np.isin(crowd.annotator_names.astype(str), NAMES)


@pytest.mark.parametrize(("each", "families_once"), [(1, 1), (5, 0)])
def test_a_small_excess_counts_if_people_share_no_items(each: int, families_once: int) -> None:
    crowd, _ = simulated(("independent", 0.0, 2, each, 0.7), 7)
    excess, _ = families.excess_agreement(crowd, members(crowd))
    assert families.INDEPENDENT / 2 < excess < families.INDEPENDENT
    assert len(families.dependent_families(crowd, members(crowd))) == families_once


@pytest.mark.parametrize(
    ("kind", "correlation", "classes", "each", "gain"),
    [
        ("copies", 0.8, 2, 2, 0.02),
        pytest.param("difficulty", 0.8, 4, 2, 0.02, marks=pytest.mark.slow),
        ("copies", 0.8, 4, 1, -0.02),
    ],
)
def test_models_that_err_together_help_and_never_outvote_people(
    kind: str, correlation: float, classes: int, each: int, gain: float
) -> None:
    crowd, truth = simulated((kind, correlation, classes, each, 0.8), 0)
    people = crowd.select(~members(crowd)[crowd.annotators])
    result = infer(crowd, models=NAMES)
    (family,) = result.families
    assert family.members.sum() == MODELS and family.independent < 3
    alone = infer(people)
    assert (result.labels == truth).mean() >= (alone.labels == truth).mean() + gain
    ours, theirs, rows = result.skills, alone.skills, ~members(crowd)
    inside = (ours.low <= theirs.low) & (ours.high >= theirs.high)
    assert inside[rows].all() and not inside[~rows].any()
    assert (ours.note[rows] == "near chance").sum() < 4
    assert "count as one source" in result.lines()[1]


def test_independent_models_are_counted_one_by_one() -> None:
    crowd, _ = simulated(("independent", 0.0, 2, 5, 0.8), 0)
    assert families.dependent_families(crowd, members(crowd)) == []


def test_excess_agreement_by_hand() -> None:
    # People agree in 30 of 40 items (.5 beyond chance). Two models are copies (1 beyond chance).
    # They agree with three of four people's labels: .25 of .5 + .09 / 2 is expected.
    dense = np.zeros((40, 4), dtype=int)
    dense[:10, 0] = 1
    dense[10:20, 2:] = dense[35:, 2:] = 1
    crowd = Annotations.from_dense(dense)
    votes = array_of("40 0;")
    assert families.beyond_chance(votes, votes.sum(1), 2) == 1.0
    excess, correlation = families.excess_agreement(crowd, array_of("0 0 1 1", bool))
    across = 2 * (np.mean(dense[:, :2] == dense[:, 2:3])) - 1
    assert excess == pytest.approx(1 - across**2 / (0.5 + 0.5 / np.sqrt(40)))
    assert correlation == pytest.approx(1.0)


def test_symbols_by_hand() -> None:
    dense = array_of("0 0 0; 0 0 1; 1 -1 -1; -1 -1 -1")
    crowd = Annotations.from_dense(dense, num_classes=2)
    assert families.symbols(crowd, np.ones(3, bool)).tolist() == [4, 1, families.LEVELS + 5, -1]


def test_gold_labels_and_items_of_models_alone() -> None:
    crowd, truth = simulated(("copies", 0.8, 2, 2, 0.8), 1)
    first = crowd.select((crowd.instances >= 40) | members(crowd)[crowd.annotators])
    gold = np.where(np.arange(len(truth)) >= 200, 1 - truth, -1)
    family = families.Family(members(crowd), 0.8)
    fit = families.fit_with_families(DawidSkene, first, [family], gold)
    assert (fit.labels_[200:] == gold[200:]).all() and fit.annotated_.all()
    assert np.isfinite(fit.probas_).all() and np.allclose(fit.probas_.sum(axis=1), 1)
    assert families.effective_votes(first, [family]).sum(axis=1)[:40].tolist() == [1] * 40
    alone = first.select(members(first)[first.annotators])  # nobody else: the method as it is
    expected = DawidSkene().fit(alone).probas_
    assert np.array_equal(families.fit_with_families(DawidSkene, alone, [family]).probas_, expected)


def prompts(correlation: float, people: int, seed: int = 0) -> Labelled:
    """Returns labels of prompts a0, ..., e9 of five models, and of people p0, ..., and truth."""
    rng = default_rng([seed, people])
    truth = rng.integers(3, size=ITEMS)

    def labels(width: int) -> np.ndarray:
        other = (truth[:, None] + rng.integers(1, 3, (ITEMS, width))) % 3
        return np.where(rng.random((ITEMS, width)) < 0.7, truth[:, None], other)

    models = [
        np.where(rng.random((ITEMS, 10)) < correlation, labels(1), labels(10)) for _ in "abcde"
    ]
    names = [f"{model}{i}" for model in "abcde" for i in range(10)]
    dense = np.concatenate([*models, labels(people)], axis=1)
    return Annotations.from_dense(
        dense, annotator_names=[*names, *(f"p{i}" for i in range(people))]
    ), truth


def test_related_annotators_are_named_and_families_count_once() -> None:
    crowd, truth = prompts(0.9, people=3)
    plain = infer(crowd, "dawid_skene")
    assert plain.related() == [[f"{model}{i}" for i in range(10)] for model in "abcde"]
    assert "--family='a0|a1|" in " ".join(plain.lines())
    result = infer(crowd, "dawid_skene", families=[f"{model}*" for model in "abcde"])
    assert len(result.families) == 5 and result.related() == []
    assert (result.labels == truth).mean() > (plain.labels == truth).mean() + 0.01
    alone, truth = prompts(0.9, people=0)  # nobody else: each family is one annotator
    alone = alone.replace(instance_names=list(map(str, range(ITEMS))))
    result = infer(alone, "dawid_skene", families=[f"{model}*" for model in "abcde"])
    assert result.certainty.votes.sum(axis=1).tolist() == [5] * ITEMS
    assert len(result.skills.skill) == 50
    assert_array_equal(result.model.annotator_names_, alone.annotator_names)
    assert_array_equal(result.model.instance_names_, alone.instance_names)
    independent, _ = prompts(0.0, people=3)
    assert infer(independent, "dawid_skene").related() == []


def test_a_family_without_shared_items_has_no_correlation() -> None:
    dense = np.tile([[0], [1]], (20, 4))
    dense[:20, 0] = -1
    dense[20:, 1] = -1
    lines = " ".join(
        infer(Annotations.from_dense(dense), "majority_vote", families=["0|1"]).lines()
    )
    assert "0, 1: these 2 annotators count as one source. They share no items" in lines
    assert "nan" not in lines


def test_patterns_of_families() -> None:
    crowd = Annotations.from_dense(np.zeros((2, 4), int), annotator_names=["a*", "ab", "c", "d"])
    masks = families.named_families(crowd, ["a*", "c|d"])
    assert [one.tolist() for one in masks] == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert families.named_families(crowd, "c|d")[0].tolist() == [0, 0, 1, 1]
    assert families.named_models("ab", crowd.annotator_names) == ("ab",)
    for pattern in (["c"], ["a*", "ab|d"]):
        raises(UsageError, "--family", families.named_families, crowd, pattern)


def judged(
    people: float, model: float, models: int, size: int = 240
) -> tuple[Annotations, np.ndarray, list[str]]:
    """One person labels half of the items, models all; seven of ten are of class 1."""
    rng = default_rng(0)
    truth = (rng.random(size) < 0.7).astype(int)

    def labels(right: float, width: int) -> np.ndarray:
        return noisy_labels(rng, truth, width, right)

    person = labels(people, 1)
    person[size // 2 :] = -1
    names = ["person", *(f"judge{i}" for i in range(models))]
    dense = np.hstack([person, labels(model, models)])
    return Annotations.from_dense(dense, annotator_names=names), truth, names[1:]


@pytest.mark.parametrize(
    ("person", "judge", "judges"), [(0.95, 0.75, 1), (1, 0.85, 3), (0.8, 0.8, 9)]
)
def test_models_overturn_nobody_whom_people_do_not_contradict(
    person: float, judge: float, judges: int
) -> None:
    crowd, _, models = judged(person, judge, judges)
    result = infer(crowd, models=models)
    half = np.arange(120)
    by_person = crowd.annotators == 0
    assert (result.labels[half] == crowd.labels[by_person]).all()
    assert result.skills.skill.argmax() == 0 or person <= judge


def test_models_do_not_shift_class_shares() -> None:
    rng = default_rng(1)
    truth = (rng.random(600) < 0.2).astype(int)
    people = noisy_labels(rng, truth, 3, 0.85)
    # Models share a lean: they call a third of the items of class 0 class 1.
    lean = np.where((truth == 0) & (rng.random(600) < 0.35), 1, truth)
    models = noisy_labels(rng, lean, 5, 0.95)
    names = [f"p{i}" for i in range(3)] + [f"m{i}" for i in range(5)]
    crowd = Annotations.from_dense(np.hstack([people, models]), annotator_names=names)
    result = infer(crowd, models=["m*"])
    shares = [one.labels.mean() for one in (result, result.people)]
    assert shares[0] < shares[1] + 0.05
    assert np.mean(result.labels == truth) > np.mean(result.people.labels == truth) - 0.01


def test_with_shares_by_hand() -> None:
    probas = array_of("0.5 0.5; 0.8 0.2")
    rows = np.ones(2, dtype=bool)
    even = with_shares(probas, rows, np.array([0.5, 0.5]))
    odds = probas[:, 1] / probas[:, 0] * (even[0, 1] / even[0, 0])
    assert even[:, 1] / even[:, 0] == pytest.approx(odds)
    assert even.mean(axis=0) == pytest.approx([0.5, 0.5], abs=1e-3)
