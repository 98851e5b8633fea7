"""Temperatures of annotators' answers, and labels drawn from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from baselines.dasc_crowding import (
    TEMPERATURES,
    Calibrated,
    FilledByGenerator,
    drawn_labels,
    fit_temperatures,
    held_out_annotations,
    softened,
)
from baselines.dasc_ensemble import AveragedMethods
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import UsageError

RNG = np.random.default_rng(0)


class Fixed:
    """Predicts the same probabilities always."""

    def __init__(self, answers: np.ndarray) -> None:
        self.answers = answers

    def predict_annotators(self, features: Any) -> np.ndarray:
        return self.answers[np.asarray(features)[:, 0].astype(int)]


def test_softened_by_hand() -> None:
    # T = 2 takes the root: (.64, .36) -> (.8, .6) / 1.4; T = 1/2 squares: (.75, .25) -> (.9, .1).
    np.testing.assert_allclose(softened([0.64, 0.36], np.array(2.0)), [8 / 14, 6 / 14], rtol=1e-6)
    two = softened([[0.75, 0.25], [0.64, 0.36]], np.array([0.5, 2.0]))
    np.testing.assert_allclose(two, [[0.9, 0.1], [8 / 14, 6 / 14]], rtol=1e-6)


def test_temperatures_are_found_and_few_labels_keep_the_crowds() -> None:
    # Annotator 0's answers are told too surely (the true ones are at T = 3), annotator 1's not;
    # annotator 2 gave two labels.
    size = 4000
    annotators = np.repeat([0, 1], size)
    truth = RNG.dirichlet(np.ones(4), 2 * size)
    stated = truth.copy()
    stated[:size] = softened(truth[:size], np.array(1 / 3))
    labels = np.array([RNG.choice(4, p=p) for p in truth])
    labels, annotators = np.append(labels, [0, 1]), np.append(annotators, [2, 2])
    stated = np.concatenate([stated, truth[:2]])
    result = fit_temperatures(stated, labels, annotators, 4)
    assert result[0] == pytest.approx(3.0, rel=0.2) and result[1] == pytest.approx(1.0, rel=0.15)
    assert result[1] <= result[2] <= result[0]
    losses = [
        -np.log(softened(stated, np.array(t))[np.arange(len(labels)), labels]).sum()
        for t in TEMPERATURES
    ]
    assert result[3] == TEMPERATURES[int(np.argmin(losses))]  # who gave none: the crowd's own


def test_every_instance_and_annotator_keeps_a_label() -> None:
    dense = RNG.integers(-1, 3, (40, 5))
    dense[:, 0] = 1
    whole = Annotations.from_dense(dense, num_classes=3)
    rest, held = held_out_annotations(whole, 0.3, 1)
    assert len(held) == round(0.3 * whole.num_annotations)
    assert rest.num_annotations + len(held) == whole.num_annotations
    assert np.bincount(rest.instances, minlength=40).min() >= 1
    assert np.bincount(rest.annotators, minlength=5).min() >= 1
    left = rest.to_dense(np.int32)
    assert (left[whole.instances[held], whole.annotators[held]] == -1).all()
    everything, most = held_out_annotations(Annotations.from_dense(np.eye(3, dtype=int)), 0.9, 0)
    assert everything.num_annotations + len(most) == 9


def test_labels_are_drawn_as_often_as_predicted() -> None:
    answers = RNG.dirichlet(np.ones(3), (2, 4)).astype(np.float32)
    features = np.arange(2, dtype=np.float32)[:, None]
    cells = np.full(20_000, 1), np.full(20_000, 2)
    labels = drawn_labels(Fixed(answers), features, cells, np.random.default_rng(1))
    np.testing.assert_allclose(np.bincount(labels) / 20_000, answers[1, 2], atol=0.02)
    sure = Fixed(np.tile(np.eye(3, dtype=np.float32)[[2, 0, 1, 0]], (2, 1, 1)))
    cells = np.array([0, 1, 0, 1]), np.array([0, 1, 2, 3])
    np.testing.assert_array_equal(
        drawn_labels(sure, features, cells, np.random.default_rng(1)), [2, 0, 1, 0]
    )
    soft = Calibrated(Fixed(answers), np.full(4, 2.0)).predict_annotators(features)
    np.testing.assert_allclose(soft, softened(answers, np.full(4, 2.0)))


@pytest.mark.slow
def test_rounds_are_filled_with_drawn_calibrated_labels() -> None:
    truth = np.repeat([0, 1, 2], [40, 20, 12])
    features = (RNG.normal(size=(72, 4)) + 4.0 * np.eye(3, 4)[truth]).astype(np.float32)
    dense = np.where(RNG.random((72, 8)) < 0.7, truth[:, None], RNG.integers(3, size=(72, 8)))
    dense[RNG.random((72, 8)) > 0.5] = -1
    dense[:, 0] = truth
    annotations = Annotations.from_dense(dense, num_classes=3)
    fixed: dict[str, Any] = {
        "generator": {"name": "dasc_crowd_layer", "epochs": 3}, "quota": 60, "rounds": 2,
        "pick": "last", "epochs": 3, "seed": 4,
    }  # fmt: skip
    drawn = FilledByGenerator(**fixed).fit(features, annotations)
    assert drawn.temperatures_.shape == (8,)
    assert set(drawn.temperatures_) <= set(TEMPERATURES)
    assert [len(each) for each in drawn.selections_] == [60, 60]
    likely = drawn.generator_.predict_annotators(features).argmax(axis=2)
    rows, columns, labels = np.concatenate(drawn.selections_).T
    assert (likely[rows, columns] != labels).any()


def test_a_preset_is_one_that_a_method_has() -> None:
    crowd = Annotations([0, 1, 2], [0, 1, 0], [0, 1, 1], num_classes=2)
    for kind in (FilledByGenerator, AveragedMethods):
        with pytest.raises(UsageError, match=r"^preset: no presets for .*: .*label"):
            kind(preset="labelm").fit(np.eye(3), crowd)
