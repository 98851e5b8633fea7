"""The training loop beside `keras.Model.fit`: every optimizer, and the callbacks that users bring.

First fit, second fit of a reused network, and a resumed one.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf import CrowdLayer, NeuCrowd
from neucrowd_tf.errors import UsageError
from neucrowd_tf.nn.embedding_networks import make_optimizer
from neucrowd_tf.nn.steps import take_step
from neucrowd_tf.training.learner import in_batches
from neucrowd_tf.training.loop import train
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import model_variables, read_variables, reinitialise
from tests.cases import raises

opt, cb = keras.optimizers, keras.callbacks
RNG = default_rng(0)
X = RNG.normal(size=(24, 3)).astype(np.float32)
Y = (X[:, :1] > 0).astype(np.float32)
CROWD = np.where(RNG.random((24, 3)) < 0.8, Y > 0, Y == 0).astype(int)
STEPS, EPOCHS = 3, 4
EMA = {"use_ema": True, "ema_momentum": 0.6}


class Stepped(keras.Sequential):
    """Takes steps as this library's models do."""

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(data[0], training=True) - data[1]))
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        take_step(self.optimizer, tape.gradient(scaled, variables), variables)
        return {"loss": loss}


def network(kind: type[keras.Sequential], optimizer: Any) -> Any:
    layers = [keras.layers.Dense(4, "tanh", name="first"), keras.layers.Dense(1, name="last")]
    model = kind([keras.Input((3,)), *layers])
    model.compile(optimizer=optimizer, loss="mse", jit_compile=False)
    reinitialise(model, 5)
    return model


def batches(first: int) -> tf.data.Dataset:
    """All epochs have the same three batches."""
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat()
    return data.skip(first % STEPS)


class Killed(Exception):
    pass


def kill(epoch: int, logs: Any = None) -> None:
    if epoch == 2:
        raise Killed


def ours(model: Any, run: Run | None = None) -> list[np.ndarray]:
    run = run or Run()
    epoch = in_batches(model, batches, STEPS, run)
    train(model, epoch, epochs=EPOCHS, steps_per_epoch=STEPS, run=run)
    return read_variables(model.variables)


def assert_same(ones: list[np.ndarray], others: list[np.ndarray]) -> None:
    for one, other in zip(ones, others, strict=True):
        assert_array_equal(one, other)


OPTIMIZERS: dict[str, Any] = {
    "sgd, clipped, accumulated": lambda: opt.SGD(
        0.1, momentum=0.9, clipnorm=0.1, gradient_accumulation_steps=2
    ),
    "sgd, scaled": lambda: opt.SGD(0.1, loss_scale_factor=128.0),
    "sgd, global norm": lambda: opt.SGD(0.1, global_clipnorm=0.1, weight_decay=0.1),
    "average overwrites": lambda: opt.Adam(0.01, clipvalue=0.01, ema_overwrite_frequency=2, **EMA),
    "scaled automatically": lambda: opt.LossScaleOptimizer(
        opt.SGD(0.1, **EMA), dynamic_growth_steps=2
    ),
    "schedule": lambda: opt.AdamW(opt.schedules.CosineDecay(0.1, 8), weight_decay=0.1),
    "adadelta": lambda: opt.Adadelta(1.0),
    "adafactor": lambda: opt.Adafactor(0.01, gradient_accumulation_steps=2),
    "adagrad": lambda: opt.Adagrad(0.05),
    "adamax": lambda: opt.Adamax(0.01, gradient_accumulation_steps=3, **EMA),
    "ftrl": lambda: opt.Ftrl(0.05),
    "lamb": lambda: opt.Lamb(0.01),
    "lion": lambda: opt.Lion(0.01, clipnorm=0.5),
    "muon": lambda: opt.Muon(0.01),
    "nadam": lambda: opt.Nadam(0.01),
    "rmsprop": lambda: opt.RMSprop(0.01, centered=True, momentum=0.5),
    "schedule free": lambda: opt.ScheduleFreeAdamW(0.01),
    "several": lambda: opt.MultiOptimizer(
        opt.OptimizerMap(opt.Adam(0.01), {"last/.*": opt.SGD(0.1)})
    ),
}


def test_every_optimizer_of_keras_is_in_the_table() -> None:
    kinds = {type(make()) for make in OPTIMIZERS.values()}
    public = {getattr(opt, name) for name in dir(opt) if name[0].isupper()}
    assert public - {opt.Optimizer, opt.OptimizerMap} == kinds


# A kind of each: of momenta and accumulation, of averages with scaling, of copies of the weights.
OFTEN = ("sgd, clipped, accumulated", "scaled automatically", "schedule free")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in OFTEN else pytest.mark.slow) for n in OPTIMIZERS]
)
def test_an_optimizer_does_what_it_does_in_fit(name: str, tmp_path: Path) -> None:
    """To 1e-5 the weights of Keras' fit; again, and after a kill, to the same bytes."""
    theirs = network(keras.Sequential, OPTIMIZERS[name]())
    # Built within `fit`, ScheduleFreeAdamW would lose what it copies of the weights.
    theirs.optimizer.build(theirs.trainable_variables)
    theirs.fit(batches(0), epochs=EPOCHS, steps_per_epoch=STEPS, verbose=0, shuffle=False)
    model = network(Stepped, make_optimizer(OPTIMIZERS[name](), 0.5))
    start = read_variables(model.variables)
    first = ours(model)
    for a, b, c in zip(first, theirs.get_weights(), start, strict=True):
        assert_allclose(a, b, atol=1e-5)
        assert not np.array_equal(a, c), "nothing is trained"
    state = read_variables(model_variables(model))
    reinitialise(model, 5)
    assert_same(ours(model), first)
    assert_same(read_variables(model_variables(model)), state)
    reinitialise(model, 5)
    run = Run(tmp_path, checkpoint_seconds=0, callbacks=[cb.LambdaCallback(on_epoch_begin=kill)])
    with pytest.raises(Killed):
        ours(model, run)
    reinitialise(model, 5)
    assert_same(ours(model, Run(tmp_path, checkpoint_seconds=0)), first)


def test_what_an_optimizer_excludes_stays_excluded() -> None:
    mine = opt.AdamW(0.1)
    mine.exclude_from_weight_decay(var_names=["bias"])
    bias, kernel = keras.Variable([1.0], name="bias"), keras.Variable([1.0], name="kernel")
    copy = make_optimizer(mine, 0.5)
    assert [copy._use_weight_decay(each) for each in (bias, kernel)] == [False, True]


# ------------------------------------------------------------- on estimators


class Stop(cb.Callback):
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.model.stop_training = True


def estimator(**options: Any) -> CrowdLayer:
    rate = {} if "optimizer" in options else {"learning_rate": 0.1}
    base = {"hidden_units": (4,), "dropout": 0.0}
    return CrowdLayer(base, **{"epochs": EPOCHS, "batch_size": 8, **rate, **options})


def probabilities(model: Any, *callbacks: Any, **options: Any) -> np.ndarray:
    return model.fit(X, CROWD, callbacks=callbacks, **options).predict_proba(X)


def test_a_rate_that_a_callback_changed_ends_with_its_fit() -> None:
    model = estimator()
    with model.reused():
        plain = probabilities(model)
        slow = probabilities(model, cb.LearningRateScheduler(lambda epoch: 1e-4))
        assert np.abs(slow - plain).max() > 1e-2, "it has an effect"
        assert float(model.network.model.optimizer.learning_rate) == np.float32(0.1)
        assert_array_equal(probabilities(model), plain)
        # A list that fits share, with a callback that stops in the first epoch.
        stop = [Stop()]
        once = probabilities(model, *stop)
        assert model.n_iter_ == 1
        assert_array_equal(probabilities(model, *stop), once)
        assert_array_equal(probabilities(model), plain)


def test_default_monitors_find_their_figure(tmp_path: Path) -> None:
    callbacks = [
        cb.ReduceLROnPlateau(patience=0, min_delta=10.0, factor=0.5),
        cb.EarlyStopping(patience=2, min_delta=10.0),
        cb.CSVLogger(str(tmp_path / "log.csv")),
        cb.ModelCheckpoint(str(tmp_path / "best.keras"), save_best_only=True),
        cb.ModelCheckpoint(str(tmp_path / "{epoch}.weights.h5"), save_weights_only=True),
        cb.TerminateOnNaN(),
    ]
    model = estimator(epochs=9)
    result = probabilities(model, *callbacks, validation=(X, Y[:, 0].astype(int)))
    assert model.n_iter_ == 3, "the first epoch, and two that are no better by 10"
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert len(lines) == 4 and "val_loss" in lines[0]
    assert len(list(tmp_path.glob("*.weights.h5"))) == 3
    saved = keras.models.load_model(tmp_path / "best.keras")
    assert saved(X)["probabilities"].shape == result.shape


@functools.cache
def unaveraged() -> np.ndarray:
    return probabilities(estimator(optimizer=opt.SGD(0.1)))


@pytest.mark.parametrize("swap", [None, False, True])
def test_predictions_are_those_of_averaged_weights(swap: bool | None) -> None:
    plain = unaveraged()
    model = estimator(optimizer=opt.SGD(0.1, **EMA), annotator_learning_rate=0.05)
    callbacks = [] if swap is None else [cb.SwapEMAWeights(swap_on_epoch=swap)]
    callbacks += [cb.EarlyStopping("loss", patience=0, min_delta=10.0)] if swap else []
    with model.reused():
        averaged = probabilities(model, *callbacks)
        assert np.abs(averaged - plain).max() > 1e-3
        assert_array_equal(probabilities(model, *callbacks), averaged)


def test_an_interrupted_fit_goes_on_from_its_backup(tmp_path: Path) -> None:
    model = estimator(optimizer="adam")
    backup, begun = cb.BackupAndRestore(str(tmp_path / "backup")), []
    noted = cb.LambdaCallback(on_epoch_begin=lambda epoch, _: begun.append(epoch))
    with model.reused():
        expected = probabilities(model)
        with pytest.raises(Killed):
            probabilities(model, backup, cb.LambdaCallback(on_epoch_begin=kill))
        assert_array_equal(probabilities(model, backup, noted), expected)
    assert begun == [2, 3]


def test_weights_that_are_not_finite_are_an_error() -> None:
    # The loss of the only step is finite, and the weights that it leaves are not.
    with pytest.raises(FloatingPointError, match=r"weight .* is not finite. Lower the learning"):
        probabilities(estimator(epochs=1, batch_size=24, optimizer=opt.SGD(float("inf"))))


REJECTED: dict[str, tuple[Any, Any, str]] = {
    "best": (lambda: estimator(monitor="loss"), cb.BackupAndRestore("x"), "Run.checkpoints"),
    "tuplets": (
        lambda: NeuCrowd(epochs=1, steps_per_epoch=1, batch_size=4),
        cb.ModelCheckpoint("x.keras"),
        "ModelCheckpoint .*save_weights_only",
    ),
    "averages": (
        lambda: estimator(optimizer=opt.SGD(0.1, **EMA)),
        cb.EarlyStopping(restore_best_weights=True),
        "EarlyStopping .*use_ema",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_cannot_hold_is_rejected_by_name(name: str) -> None:
    make, callback, message = REJECTED[name]
    raises(UsageError, message, probabilities, make(), callback)
