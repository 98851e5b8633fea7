"""The printed second phase of Weighted Doctor Net."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from reproduction.controls.doctor_net import ControlledDoctorNet


@pytest.mark.slow
@pytest.mark.parametrize("option", [{"weight_softmax": "after"}, {"weight_schedule": "cyclic"}])
def test_printed_second_phases_learn(option: Any) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=120)
    x = rng.normal(size=(120, 5)) + 4 * np.eye(3, 5)[truth]
    labels = np.repeat(truth[:, None], 5, axis=1)
    labels[:, 4] = rng.integers(3, size=120)
    quick: Any = {"base": {"hidden_units": (16,)}, "epochs": 25, "learning_rate": 1e-2}
    model = ControlledDoctorNet(**quick, weight_epochs=5, **option)
    assert model.fit(x, Annotations.from_dense(labels)).score(x, truth) > 0.9
    assert model.annotator_weights_.sum() == pytest.approx(1.0, abs=1e-5)


def test_cyclic_optimizer_by_hand() -> None:
    import keras

    from reproduction.controls.doctor_net_model import CyclicSGD

    optimizer = CyclicSGD(half_cycle=2)
    variable, steps = keras.Variable([0.0]), []
    for _ in range(5):
        before = float(variable.numpy()[0])
        optimizer.apply([keras.ops.ones((1,))], [variable])
        steps.append(float(variable.numpy()[0]) - before)
    # Each step is momentum times the last one minus the rate.
    expected, last = [], 0.0
    for rate, momentum in ((1e-3, 0.9), (5.5e-3, 0.85), (1e-2, 0.8), (5.5e-3, 0.85), (1e-3, 0.9)):
        last = momentum * last - rate
        expected.append(last)
    np.testing.assert_allclose(steps, expected, atol=1e-7)
    assert CyclicSGD.from_config(optimizer.get_config()).half_cycle == 2
