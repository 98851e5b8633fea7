"""Groups of annotators who do not take the same for the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.certainty.inference import infer, once_is_as_good
from neucrowd_tf.certainty.opposed_groups import opposed_groups
from neucrowd_tf.cli.commands import call
from tests.crowds import Labelled


def opposed(size: int = 200) -> Labelled:
    """Four annotators follow what looks right, three what is; these differ in half of the items."""
    rng = default_rng(0)
    truth = rng.integers(2, size=size)
    looks = np.where(rng.random(size) < 0.5, truth, 1 - truth)
    followed = np.stack([looks] * 4 + [truth] * 3, axis=1)
    labels = np.where(rng.random((size, 7)) < 0.9, followed, 1 - followed)
    names = [f"{kind}{i}" for kind, count in (("looks", 4), ("truth", 3)) for i in range(count)]
    return Annotations.from_dense(labels, annotator_names=names), truth


def test_opposed_groups_are_named_without_verdicts() -> None:
    crowd, truth = opposed()
    groups = opposed_groups(crowd)
    assert {*np.flatnonzero(groups.members[0])} in ({0, 1, 2, 3}, {4, 5, 6})
    assert groups.differ(crowd).mean() == pytest.approx(0.5, abs=0.1)
    result = infer(crowd)
    assert {*result.skills.note} == {"opposed groups"}
    accuracy = result.certainty.accuracy()
    assert accuracy.low < (result.labels == truth).mean() < accuracy.high
    assert any("Two groups are opposed: " in line for line in result.lines())
    assert result.related() == []
    # The interval of a skill holds whichever group is right.
    for share in groups.skills(crowd):
        assert ((result.skills.low <= share) & (share <= result.skills.high)).all()


def test_gold_items_on_which_groups_differ_are_no_random_ones() -> None:
    crowd, truth = opposed()
    groups = opposed_groups(crowd)
    order = np.argsort(~groups.differ(crowd), kind="stable")
    gold = np.full(len(truth), -1)
    gold[order[:40]] = truth[order[:40]]
    result = infer(crowd, gold=gold)
    assert result.by_groups and result.opposed is None and result.estimates is None
    assert not any("drawn at random" in line for line in result.lines())
    assert any(line.startswith("On gold items two opposed groups") for line in result.lines())
    assert np.mean(result.labels == truth) > 0.9
    random = np.where(np.arange(len(truth)) % 5 == 0, truth, -1)
    assert not infer(crowd, gold=random).by_groups


@pytest.mark.parametrize("seed", range(4))
def test_independent_annotators_are_in_no_groups(seed: int) -> None:
    truth = default_rng(seed).integers(2, size=200)
    matrices = simulation.confusion_annotators(8, 2, seed, accuracy=0.75)
    assert opposed_groups(simulation.simulate(truth, matrices, seed)) is None
    poor = simulation.confusion_annotators(8, 2, seed, accuracy=0.5)
    assert opposed_groups(simulation.simulate(truth, poor, seed)) is None


def beside_good_ones(bad: np.ndarray, truth: np.ndarray, good: int = 8) -> Annotations:
    """Returns a crowd of some annotators and of others who are right in 80% of the items."""
    rng = default_rng(1)
    right = rng.random((len(truth), good)) < 0.8
    others = np.where(right, truth[:, None], rng.integers(truth.max() + 1, size=right.shape))
    return Annotations.from_dense(np.hstack([bad, others]))


@pytest.mark.parametrize(("size", "copies"), [(2, 2), (4, 4)])
def test_copies_are_a_family_and_no_group(size: int, copies: int) -> None:
    rng = default_rng(0)
    truth = rng.integers(size, size=200)
    source = rng.integers(size, size=200)
    result = infer(beside_good_ones(np.stack([source] * copies, axis=1), truth))
    assert result.opposed is None
    assert result.related() == [[str(code) for code in range(copies)]]
    if copies == 2:
        assert [*np.flatnonzero(result.skills.note == "unreliable")] == [0, 1]


def test_two_who_swap_classes_are_unreliable_and_no_group() -> None:
    rng = default_rng(0)
    truth = rng.integers(3, size=200)
    swapped = np.where(truth < 2, 1 - truth, truth)[:, None]
    bad = np.where(rng.random((200, 2)) < 0.8, swapped, rng.integers(3, size=(200, 2)))
    result = infer(beside_good_ones(bad, truth, 4))
    assert result.opposed is None
    assert [*np.flatnonzero(result.skills.note == "unreliable")] == [0, 1]


def test_groups_have_two_sources_each_beside_copies_and_families() -> None:
    crowd, _ = opposed()
    dense = crowd.to_dense()
    copied = Annotations.from_dense(dense[:, [0, 1, 2, 3, 4, 5, 5]])
    groups = opposed_groups(copied)
    assert groups.members[:, 5].sum() == groups.members[:, 6].sum() == 1
    assert (groups.members[:, 5] == groups.members[:, 6]).all()
    assert opposed_groups(Annotations.from_dense(dense[:, [0, 1, 2, 3, 4, 4, 4]])) is None
    assert opposed_groups(crowd, [np.arange(7) > 3]) is None
    assert infer(crowd, families=["truth*"]).opposed is None


def test_gold_draws_items_on_which_groups_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd, truth = opposed()
    path, output = tmp_path / "annotations.csv", tmp_path / "gold.csv"
    crowd.to_frame().to_csv(path, index=False)
    assert call("gold", [f"--annotations={path}", f"--output={output}", "--size=30"]) == 0
    assert "on which two opposed groups of annotators differ" in capsys.readouterr().err
    rows = pd.read_csv(output)["task"].to_numpy(int)
    assert opposed_groups(crowd).differ(crowd)[rows].all()
    gold = np.full(len(truth), -1)
    gold[rows] = truth[rows]
    taught = infer(crowd, gold=gold)
    assert (taught.labels == truth)[gold < 0].mean() > 0.85
    assert "opposed groups" not in taught.skills.note


def test_a_family_that_makes_held_out_labels_worse_is_not_as_good() -> None:
    rng = default_rng(0)
    truth = rng.integers(3, size=150)
    right = rng.random((150, 8)) < np.array([0.95] * 5 + [0.4] * 3)
    labels = np.where(right, truth[:, None], rng.integers(3, size=(150, 8)))
    copies = np.repeat(rng.integers(3, size=150)[:, None], 3, axis=1)
    crowd = Annotations.from_dense(np.hstack([labels, copies]))
    unknown = np.full(150, -1)
    assert not once_is_as_good(crowd, np.arange(5), np.where(np.arange(150) < 60, truth, -1))
    assert once_is_as_good(crowd, np.arange(8, 11), unknown)
