"""NeuCrowd end to end: ablations, C classes, options, devices, and real reviews."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.neucrowd import NeuCrowd
from tests.processes import python

TINY: dict[str, Any] = {
    "epochs": 2,
    "steps_per_epoch": 3,
    "batch_size": 16,
    "encoder": {"hidden_units": (8, 4)},
}


def crowd(
    num_classes: int = 2, size: int = 90, seed: int = 0
) -> tuple[np.ndarray, Annotations, np.ndarray]:
    x, y = make_blobs(size, 6, centers=num_classes, cluster_std=2.0, random_state=seed)
    rng = np.random.default_rng(seed)
    labels = np.where(
        rng.uniform(size=(size, 5)) < 0.85, y[:, None], rng.integers(0, num_classes, (size, 5))
    )
    return x.astype(np.float32), Annotations.from_dense(labels, num_classes=num_classes), y


def fitted(options: dict[str, Any]) -> NeuCrowd:
    """A fit with these options that is long enough to bring the loss down."""
    x, annotations, _ = crowd()
    longer = {
        **TINY,
        "epochs": 3,
        "steps_per_epoch": 8,
        "learning_rate": 0.02,
        "encoder": {**TINY["encoder"], "dropout": 0.0},
        "sampler_warmup": 1,
    }
    return NeuCrowd(**{**longer, **options}).fit(x, annotations)


@pytest.fixture(scope="module")
def plain() -> list[float]:
    """The losses of a fit with the defaults."""
    return list(fitted({}).history_["loss"])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"safety_aware": False}, marks=pytest.mark.ci),
        *(
            pytest.param(change, marks=pytest.mark.slow)
            for change in (
                {"sampling_network": False},
                {"anchor": "sum"},
                {"weight_inside": False},
                {"encoder": {**TINY["encoder"], "initializer": "normal"}},
                {"similarity": "cosine"},
                {"pool_factor": 3},
                {"unsafe_weight": 0.0},
            )
        ),
    ],
)
def test_each_option_trains_and_makes_a_difference(
    change: dict[str, Any], plain: list[float]
) -> None:
    """The seed is the same, so an option that is not used would give the same numbers as before."""
    x, _, y = crowd()
    model = fitted(change)
    losses = model.history_["loss"]
    assert not np.allclose(losses, plain, rtol=1e-3), "the option does nothing"
    assert len(losses) == 3 and min(losses[1:]) < losses[0], "the loss does not come down"
    assert model.score(x, y) >= 0.9
    assert ("sampler_loss" in model.history_) == change.get("sampling_network", True)
    assert ("safe_share" in model.history_) == change.get("safety_aware", True)


MIRRORED = """
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from neucrowd_tf.training import Run
from neucrowd_tf.neucrowd.robust_anchor import robust_anchors
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
rng = np.random.default_rng(0)
anchors, assurance = rng.normal(size=(8, 3)).astype("f"), rng.uniform(0.1, 1, 8).astype("f")
whole = robust_anchors(tf.constant(anchors), tf.constant(assurance), tf.zeros(8, tf.int32), 1).numpy()
data = tf.data.Dataset.from_tensor_slices((anchors, assurance)).batch(8)
@tf.function
def step(batch):
    return strategy.run(lambda a, b: robust_anchors(a, b, tf.zeros(tf.shape(a)[0], tf.int32), 1), args=batch)
parts = strategy.experimental_local_results(step(next(iter(strategy.experimental_distribute_dataset(data)))))
assert len(parts) == 2
for part in parts:
    np.testing.assert_allclose(part.numpy(), whole, rtol=1e-5)
import sys
sys.path.insert(0, {tests!r})
from test_estimator import TINY, crowd
from neucrowd_tf.neucrowd import NeuCrowd
x, annotations, y = crowd()
options = dict(epochs=5, steps_per_epoch=10, batch_size=32, seed=1)
a = NeuCrowd(**options).fit(x, annotations, run=Run(strategy=strategy))
b = NeuCrowd(**options).fit(x, annotations, run=Run(strategy=strategy))
np.testing.assert_array_equal(a.predict_proba(x), b.predict_proba(x))
assert a.score(x, y) > 0.9, a.score(x, y)
print("mirrored works")
"""  # noqa: E501


def test_two_logical_devices_share_one_anchor(repository: pathlib.Path) -> None:
    code = MIRRORED.replace("{tests!r}", repr(str(pathlib.Path(__file__).parent)))
    done = python(repository, "-c", code)
    assert "mirrored works" in done.stdout, done.stderr[-2000:]
