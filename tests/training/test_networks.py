"""Networks as configurations, and optimizers and schedules as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.nested import nest
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.nn.embedding_networks import make_optimizer
from neucrowd_tf.training.networks import BASES, configuration
from neucrowd_tf.training.run import Run
from tests.cases import cases, raises

X = default_rng(0).normal(size=(40, 3)).astype(np.float32)
CROWD = Annotations.from_dense((X[:, :2] > 0).astype(int))
COSINE = {"class_name": "CosineDecay", "config": {"initial_learning_rate": 0.1, "decay_steps": 9}}


def test_flags_stand_for_options_of_a_configuration() -> None:
    presets = {"base": "small_cnn", "dropout": 0.3, "hidden_units": (9,), "epochs": 2}
    # Of a preset, options that the base lacks are left out; the user's own are kept, and checked.
    assert nest(CrowdLayer, {}, presets) == {
        "base": {"name": "small_cnn", "dropout": 0.3},
        "epochs": 2,
    }
    flags = {"base": "dense", "hidden_units": [4]}
    assert nest(CrowdLayer, flags, presets) == {
        "base": {"name": "dense", "dropout": 0.3, "hidden_units": [4]},
        "epochs": 2,
    }
    created = registry.method("crowd_layer").make(dataset="music", dropout=0.1)
    assert created.base["dropout"] == 0.1 and created.base["batch_norm"] is True
    with pytest.raises(UsageError, match="dropout: has no effect on base"):
        nest(CrowdLayer, {"base": keras.Sequential(), "dropout": 0.1})


@pytest.mark.parametrize(
    ("base", "message"),
    cases("""
[{"name": "vgg"}, "base: expected the name 'dense' or 'small_cnn' or 'resnet18', rec"],
[{"name": "resnet18", "dropout": 0.1}, "base: 'resnet18' has no option 'dropout'"],
[{"units": 4}, "base: 'dense' has no option 'units'. It has hidden_units"],
[{"batch_norm": 1}, "batch_norm: expected True or False, received 1"]
"""),
)
def test_wrong_configurations(base: dict[str, Any], message: str) -> None:
    raises(UsageError, message, configuration, "base", base, BASES)
    raises(UsageError, message, CrowdLayer(base).fit, X, CROWD)


def test_optimizers_are_made_from_any_value_and_share_nothing() -> None:
    passed = keras.optimizers.SGD(0.25, momentum=0.5)
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 9)
    adamw = {"class_name": "AdamW", "config": {"learning_rate": COSINE, "weight_decay": 0.1}}
    for optimizer, rate, kind in (
        ("adam", schedule, "FusedAdam"),
        ("rmsprop", COSINE, "RMSprop"),
        (passed, 1.0, "SGD"),
        (adamw, 1.0, "AdamW"),
        (lambda: keras.optimizers.SGD(schedule), 1.0, "SGD"),
    ):
        first, second = (make_optimizer(optimizer, rate) for _ in range(2))
        assert type(first).__name__ == kind and first is not second and first is not passed
        expected = 0.25 if optimizer is passed else 0.1
        assert float(np.asarray(first.learning_rate)) == pytest.approx(expected)
    unknown = {"class_name": "SGD", "config": {"speed": 1}}
    for wrong in ({}, {"class_name": "Nothing"}, unknown, lambda: "sgd"):
        raises(UsageError, "optimizer: ", make_optimizer, wrong, 1.0)


def test_a_schedule_resumes_with_the_same_bytes(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    class Kill(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 2:
                raise Killed

    model = CrowdLayer(epochs=4, batch_size=10, learning_rate=COSINE, restarts=0)
    folder = {"checkpoints": tmp_path, "checkpoint_seconds": 0.0}
    with model.reused():
        whole = model.fit(X, CROWD).predict_proba(X)
        with pytest.raises(Killed):
            model.fit(X, CROWD, run=Run(**folder, callbacks=[Kill()]))
        model.set_params(seed=1).fit(X, CROWD)  # what the network holds in between is no matter
        resumed = model.set_params(seed=0).fit(X, CROWD, run=Run(**folder)).predict_proba(X)
    np.testing.assert_array_equal(resumed, whole)
    constant = CrowdLayer(epochs=4, batch_size=10, learning_rate=0.1, restarts=0).fit(X, CROWD)
    assert not np.array_equal(constant.predict_proba(X), whole)
