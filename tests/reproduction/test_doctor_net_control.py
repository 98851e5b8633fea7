"""The printed second phase of Weighted Doctor Net."""

from __future__ import annotations

import numpy as np


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
