"""Steps on the replicas of a strategy: who takes which part, and that one replica is one device."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.nn.steps import share_of
from neucrowd_tf.training.run import Run
from tests.processes import python


@pytest.fixture(scope="module")
def one_replica() -> Any:
    return tf.distribute.MirroredStrategy(["CPU:0"])


def test_replicas_take_consecutive_parts_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # Seven rows among three: from 7 * 0 // 3 = 0, 7 * 1 // 3 = 2, 7 * 2 // 3 = 4 to 7.
    batch = (tf.range(7), tf.constant(9))
    result = []
    for place in range(3):
        context = types.SimpleNamespace(num_replicas_in_sync=3, replica_id_in_sync_group=place)
        monkeypatch.setattr(tf.distribute, "get_replica_context", lambda held=context: held)
        rows, number = share_of(batch)
        assert int(number) == 9
        result.append(rows.numpy().tolist())
    assert result == [[0, 1], [2, 3], [4, 5, 6]]


def test_one_replica_trains_as_one_device_does(one_replica, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 4)).astype(np.float32)
    labels = np.where(rng.random((30, 3)) < 0.8, (features[:, :1] > 0), features[:, 1:2] > 0)
    model = CrowdLayer({"hidden_units": (5,), "batch_norm": True}, epochs=3, batch_size=8)
    alone = model.fit(features, labels.astype(int)).predict_proba(features)
    run = Run(tmp_path, strategy=one_replica, checkpoint_seconds=0)
    result = model.fit(features, labels.astype(int), run=run).predict_proba(features)
    # Batch norm over replicas takes a variance for E[x^2] - E[x]^2, which rounds otherwise.
    assert_allclose(result, alone, atol=1e-4)
    assert run.workers == 1
    assert run.first_worker


class Resolver:
    def cluster_spec(self) -> Any:
        return tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})


def test_only_the_first_worker_writes(tmp_path: Path) -> None:
    second = types.SimpleNamespace(should_checkpoint=False)
    strategy = types.SimpleNamespace(cluster_resolver=Resolver(), extended=second)
    run = Run(tmp_path, strategy=strategy)
    assert (run.workers, run.first_worker) == (2, False)
    run.cached("made", lambda: {"x": np.ones(1)})
    assert not list(tmp_path.iterdir())


REPLICAS = """
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from keras.optimizers import SGD
from neucrowd_tf import RLL, CrowdLayer, NeuCrowd, Run
from neucrowd_tf.methods.crowd_layers.doctor_net import WeightedDoctorNet
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
rng = np.random.default_rng(0)
x = rng.normal(size=(30, 4))
y = (x[:, 0] > 0).astype(int)
a = np.where(rng.random((30, 3)) < 0.8, y[:, None], 1 - y[:, None])
units, clipped = {"hidden_units": (6,), "dropout": 0.0}, SGD(0.1, clipnorm=0.05)
tuplets = {"encoder": units, "epochs": 2, "steps_per_epoch": 3, "optimizer": "sgd"}
layer = {"base": units, "epochs": 2, "batch_size": 8, "optimizer": "sgd"}
for kind, options in (
    (NeuCrowd, {**tuplets, "batch_size": 1, "learning_rate": 0.1, "sampler_warmup": 1}),
    (NeuCrowd, {**tuplets, "batch_size": 8, "learning_rate": 0.1}),  # of one anchor per class
    (CrowdLayer, {"base": units, "epochs": 2, "batch_size": 7, "optimizer": clipped}),
    (CrowdLayer, {**layer, "base": {**units, "batch_norm": True}}),  # statistics of whole batches
    (WeightedDoctorNet, layer),
    (RLL, {**tuplets, "batch_size": 3, "learning_rate": 0.1}),
):
    one = kind(**options).fit(x, a)
    two = kind(**options).fit(x, a, run=Run(strategy=strategy))
    assert_allclose(two.predict_proba(x), one.predict_proba(x), atol=1e-5)
    for name, values in one.history_.items():
        assert_allclose(two.history_[name], values, atol=1e-4, err_msg=name)
print("replicas work")
"""


def test_replicas_train_on_the_batches_of_one_device(repository: Path) -> None:
    """Sizes that do not divide by two; of batches of one, a replica has no rows."""
    done = python(repository, "-c", REPLICAS, timeout=900)
    assert "replicas work" in done.stdout, done.stderr[-2000:]
