"""Which candidates are tried, which of them again, and the members that make other mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.auto import Auto, pooling, search
from neucrowd_tf.methods.auto.candidate_selection import Selected
from neucrowd_tf.methods.auto.candidates import (
    BUDGET,
    COUNTING,
    LETTERS,
    REDUCING,
    Candidate,
    affordable,
    candidates,
    self_trained,
)
from neucrowd_tf.methods.auto.evidence import Evidence
from tests.crowds import array_of


def crowd(each: int, annotators: int, rare: int = 20) -> Annotations:
    """Returns 60 instances with `each` labels of two classes, `rare` of them in the second one."""
    instances = np.repeat(np.arange(60), each)
    who = (instances + np.tile(np.arange(each), 60)) % annotators
    labels = (instances < rare).astype(np.int64)
    return Annotations(instances, who, labels, num_annotators=annotators, num_classes=2)


def test_the_data_decide_what_comes_early() -> None:
    x = default_rng(0).normal(size=(60, 5)).astype(np.float32)
    few = {"sparse": crowd(2, 30), "dense": crowd(2, 3), "rare": crowd(2, 3, rare=10)}
    third = {
        name: affordable(x, each, None, balanced=False, methods=None)[0][2].name
        for name, each in few.items()
    }
    assert third == {"sparse": "dasc_crowd_layer", "dense": "anno_reg", "rare": "iced"}
    names = ["mv_lr", "dasc_anno_reg", "anno_reg"]
    assert self_trained(few["sparse"], names) == ["dasc_anno_reg"]
    assert self_trained(few["dense"], names) == []
    chosen, reasons, left = affordable(x, few["dense"], 9.0, balanced=False, methods=None)
    assert sum(one.seconds for one in chosen) == pytest.approx(9.0 - left) and left > 0.4 * 9 - 1e-9
    assert "does not fit into the budget of 9 s" in reasons["crowdingu"]


def test_networks_on_texts_cost_a_reduction_once() -> None:
    texts, few = np.array(["word " * 200] * 60, object), crowd(2, 3)
    cheap, reasons, _ = affordable(texts, few, 5.0, balanced=False, methods=None)
    assert {one.name for one in cheap} == {"mv_lr", "ds_lr", "softprob"}
    assert len(set(reasons.values())) == 1  # which the report states in one line
    several, _, left = affordable(texts, few, 100.0, balanced=False, methods=None)
    assert sum("Cs" not in one.hparams for one in several) > 2
    letters = 60 * 1000
    extra = COUNTING * letters + REDUCING * letters / LETTERS
    assert sum(one.seconds for one in several) + extra == pytest.approx(100.0 - left)


def test_the_heaviest_networks_are_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x, each = np.zeros((2, 1), np.float32), crowd(1, 1)[:2]
    seconds = {"a": 6.0, "regression": 1.0, "b": 9.0, "c": 3.0}
    tasks = {
        name: search.Task(
            Candidate(name, name, {"Cs": (1.0,)} if name == "regression" else {}, cost / 3),
            *(x, each, [], 7),
        )
        for name, cost in seconds.items()
    }
    again = array_of("0.9 0.1; 0.5 0.5")

    def outcomes(function, tasks, jobs, action):
        assert function is search.held_out
        return {one.name: search.Outcome(one.name, 0.0, again) for one in tasks}

    monkeypatch.setattr(search, "outcomes", outcomes)
    first = array_of("0.1 0.9; 0.5 0.5")
    predicted = dict.fromkeys(tasks, first)
    fits = Auto()._repeat(tasks, list(tasks), 17.0, predicted, slice(None))
    # 17 s: two of 6 for a, none of 9 for b, one of 3 for c.
    assert {name: [one.name for one in several] for name, several in fits.items()} == {
        "a": ["a", "a-2", "a-3"],
        "regression": ["regression"],
        "b": ["b"],
        "c": ["c", "c-2"],
    }
    cube = 9.0 ** (1 / 3)  # the geometric mean's odds of .1 once and .9 twice
    assert_allclose(predicted["a"][0], [cube / (1 + cube), 1 / (1 + cube)])
    assert_allclose(predicted["c"], 0.5)
    assert predicted["b"] is first


def test_members_that_make_other_mistakes_have_half_of_the_even_weight() -> None:
    each = crowd(2, 30)
    labels = each.vote_counts().argmax(axis=1)
    held = dict.fromkeys("abcd", np.where(np.eye(2)[labels] > 0, 0.8, 0.2))
    selected = Selected(list("abcd"), dict.fromkeys("abcd", np.zeros(2)), unlike=["d", "e"])
    weights = pooling.weigh(held, selected, Evidence.of(each, labels, 0))
    # Members alike have the same fitted weight, 1/4; even parts are 1/6 and 1/2.
    assert_allclose(weights, [0.25 / 4 + 0.75 / 6] * 3 + [0.25 / 4 + 0.75 / 2], atol=1e-3)


def test_networks_for_images_are_convolutional() -> None:
    rng = default_rng(0)
    images = rng.random((300, 8, 8, 3), dtype=np.float32)
    labels = Annotations(np.arange(300), np.arange(300) % 4, rng.integers(0, 2, 300))
    by_name = {one.name: one for one in candidates(images, labels)}
    assert by_name["anno_reg"].hparams["base"] == by_name["mv_dl"].hparams["base"] == "small_cnn"
    # 20 epochs of 300 images with 64 pixels.
    assert by_name["anno_reg"].cost == pytest.approx(1 + 20 * 300 * 64 * 7e-7)
    flat = {one.name: one for one in candidates(images.reshape(300, -1), labels)}
    assert "base" not in flat["anno_reg"].hparams
    assert affordable(images, labels, None, balanced=False, methods=None)[2] > BUDGET
