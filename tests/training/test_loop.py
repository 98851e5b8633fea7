"""The training loop: exact resume, best epoch, early stopping; and models that are used again
without being built again.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from neucrowd_tf.training.batches import step_numbers
from neucrowd_tf.training.learner import in_batches
from neucrowd_tf.training.loop import train
from neucrowd_tf.training.owner import with_network
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import (
    model_variables,
    optimizers_of,
    read_variables,
    reinitialise,
    to_text,
    write_variables,
)

X = default_rng(0).normal(size=(64, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.float32)[:, None]


def make_model(seed: int = 0) -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(
                8, activation="relu", kernel_initializer=keras.initializers.GlorotUniform(seed=seed)
            ),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3, seed=seed + 1),
            keras.layers.Dense(
                1, kernel_initializer=keras.initializers.GlorotUniform(seed=seed + 2)
            ),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse", steps_per_execution=4)
    return model


def batches(first_step: int) -> tf.data.Dataset:
    def pick(step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tf.random.stateless_uniform(
            [16], seed=tf.stack([tf.constant(3, tf.int64), step]), maxval=64, dtype=tf.int32
        )
        return tf.gather(X, rows), tf.gather(Y, rows)

    return step_numbers(first_step).map(pick)


class Killed(Exception):
    pass


@functools.cache
def shared_model() -> tuple[keras.Model, list[np.ndarray]]:
    """A model that is compiled once, and all its variables as a new one has them."""
    model = make_model()
    model.optimizer.build(model.trainable_variables)
    return model, read_variables(model_variables(model))


def weights_after(
    run: Run, kill_at: int | None = None, **options: Any
) -> tuple[list[np.ndarray], Any]:
    model, fresh = shared_model()
    write_variables(model_variables(model), fresh)

    def start(epoch: int) -> dict[str, float]:
        if epoch == kill_at:
            raise Killed
        return {"extra": float(epoch)}

    def evaluate() -> dict[str, float]:
        return {"log_loss": float(np.mean((np.asarray(model(X, training=False)) - Y) ** 2))}

    history = train(
        model,
        in_batches(model, batches, 4, run),
        epochs=6,
        run=run,
        evaluate=evaluate,
        monitor="log_loss",
        epoch_start=start,
        **options,
    )
    return read_variables(model_variables(model)), history


@functools.cache
def unbroken() -> tuple[list[np.ndarray], Any]:
    return weights_after(Run())


@pytest.mark.parametrize(
    "kill_at", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in (0, 4, 5))]
)
def test_a_killed_run_ends_where_an_unbroken_one_does(tmp_path: Path, kill_at: int) -> None:
    expected, whole = unbroken()
    run = Run(checkpoints=tmp_path, checkpoint_seconds=0)
    with pytest.raises(Killed):
        weights_after(run, kill_at)
    resumed, history = weights_after(run)
    for a, b in zip(expected, resumed, strict=True):
        assert_array_equal(a, b)
    assert history.logs == whole.logs
    again, _ = weights_after(run, kill_at=0)  # a finished stage is restored, not trained
    for a, b in zip(expected, again, strict=True):
        assert_array_equal(a, b)


def test_best_epoch_is_kept_and_patience_stops() -> None:
    model, _ = shared_model()
    values = iter([0.3, 0.9, 0.5, 0.4, 0.2, 0.1])
    seen: list[list[np.ndarray]] = []

    def evaluate() -> dict[str, float]:
        seen.append(read_variables(model.variables))
        return {"score": next(values)}

    history = train(
        model,
        in_batches(model, batches, 4, Run()),
        epochs=6,
        run=Run(),
        evaluate=evaluate,
        monitor="score",
        patience=2,
    )
    assert history.best_epoch == 1
    assert history.epochs == 4
    for remaining, then in zip(read_variables(model.variables), seen[1], strict=True):
        assert_array_equal(remaining, then)


class KillAt(keras.callbacks.Callback):
    """Kills a run between an epoch's checkpoint and what would follow."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.epoch + 1:
            raise Killed

    def on_train_end(self, logs: Any = None) -> None:
        raise Killed


def test_a_resumed_run_knows_the_best_epoch_so_far_and_when_to_stop(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
    model.optimizer.build(model.trainable_variables)
    fresh = read_variables(model_variables(model))
    begun: list[int] = []

    def weights(
        run: Run, scores: list[float], losses: list[float], **options: Any
    ) -> tuple[list[np.ndarray], Any]:
        write_variables(model_variables(model), fresh)
        begun.clear()

        def evaluate() -> dict[str, float]:
            return {"score": scores[begun[-1]], "loss": losses[begun[-1]]}

        history = train(
            model, in_batches(model, batches, 1, run), epochs=6, run=run, evaluate=evaluate,
            monitor="score", epoch_start=begun.append, **options,
        )  # fmt: skip
        return read_variables(model.variables), history

    plain, even = [0.3, 0.9, 0.5, 0.4, 0.2, 0.1], [1.0] * 6
    tied, losses_of_tied = [0.3, 0.9, 0.5, 0.9, 0.2, 0.1], [1.0, 0.5, 1.0, 0.4, 1.0, 1.0]
    stop = {"stop_when": lambda logs: logs["val_score"][-1] == 0.4}
    cases: list[Any] = [
        (plain, even, {}, 2, 1, 6),  # the best epoch lies before the kill
        (tied, losses_of_tied, {"tie_break": "loss"}, 2, 3, 6),  # a tie is broken after it
        (plain, even, {"patience": 2}, 3, 1, 4),  # killed when patience had ended
        (plain, even, stop, 3, 1, 4),
    ]
    for number, (scores, losses, options, kill_at, best, epochs) in enumerate(cases):
        expected, unbroken = weights(Run(), scores, losses, **options)
        run = Run(checkpoints=tmp_path / str(number), checkpoint_seconds=0)
        with pytest.raises(Killed):
            killed = dataclasses.replace(run, callbacks=[KillAt(kill_at)])
            weights(killed, scores, losses, **options)
        result, history = weights(run, scores, losses, **options)
        assert (
            (history.best_epoch, history.epochs)
            == (unbroken.best_epoch, unbroken.epochs)
            == (best, epochs)
        )
        assert begun == list(range(kill_at + 1, epochs)), (
            "epochs before the checkpoint are not trained again"
        )
        for a, b in zip(expected, result, strict=True):
            assert_array_equal(a, b)


def test_a_loss_that_is_not_finite_is_an_error() -> None:
    model = make_model()
    model.compile(optimizer=keras.optimizers.SGD(1e30), loss="mse")
    with pytest.raises(FloatingPointError, match="learning rate"):
        train(model, in_batches(model, batches, 4, Run()), epochs=3, run=Run())


def test_reinitialise_equals_starting_afresh() -> None:
    model = make_model()
    reinitialise(model, 11)
    first = train(model, in_batches(model, batches, 4, Run()), epochs=2, run=Run()).logs["loss"]
    trained = read_variables(model_variables(model))
    reinitialise(model, 11)
    second = train(model, in_batches(model, batches, 4, Run()), epochs=2, run=Run()).logs["loss"]
    assert first == second
    for a, b in zip(trained, read_variables(model_variables(model)), strict=True):
        assert_array_equal(a, b)
    reinitialise(model, 12)
    assert (
        train(model, in_batches(model, batches, 4, Run()), epochs=2, run=Run()).logs["loss"]
        != first
    )


def test_stages_have_checkpoints_and_scalars_of_their_own(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = Run(checkpoints=tmp_path, tensorboard=tmp_path)
    weights_after(run.stage("one"))
    assert (tmp_path / "one" / "train.npz").exists()
    assert run.stage("one").stage("two").prefix == "one/two/"
    run.flush()
    events = EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    events.Reload()
    assert {"one/loss", "one/val_log_loss", "one/extra"} <= set(events.Tags()["tensors"])
    assert len(events.Tensors("one/loss")) == 6


def test_a_damaged_checkpoint_is_reported_and_the_run_starts_again(tmp_path: Path) -> None:
    expected, whole = unbroken()
    run = Run(checkpoints=tmp_path, checkpoint_seconds=0)
    with pytest.raises(Killed):
        weights_after(run, 4)
    path = tmp_path / "train.npz"
    content = bytearray(path.read_bytes())
    for place in range(len(content) // 2, len(content) // 2 + 300):  # more than a header's padding
        content[place] ^= 1
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=r"train\.npz: .*damaged.* starts again"):
        resumed, history = weights_after(run)
    assert history.logs == whole.logs
    for a, b in zip(expected, resumed, strict=True):
        assert_array_equal(a, b)


def test_a_checkpoint_with_other_fields_is_reported(tmp_path: Path) -> None:
    run = Run(checkpoints=tmp_path, checkpoint_seconds=0)
    with pytest.raises(Killed):
        weights_after(run, 4)
    model, _ = shared_model()
    owned = with_network(run, model, optimizers_of(model))
    arrays = owned.saved("train.npz")
    assert arrays is not None
    owned.save(
        "train.npz", arrays | {"record": to_text({"finished": False, "logs": {}, "wait": 1})}
    )
    with pytest.warns(UserWarning, match=r"train\.npz: .*another version's.* starts again"):
        assert weights_after(run)[1].epochs == unbroken()[1].epochs


@pytest.mark.parametrize("other", [{"owner": "another"}, {"prefix": "choose/round-0/"}])
def test_a_checkpoint_of_another_run_is_told_and_not_gone_on_from(
    tmp_path: Path, other: dict[str, str]
) -> None:
    expected, _ = unbroken()
    with pytest.raises(Killed):
        weights_after(Run(checkpoints=tmp_path, checkpoint_seconds=0, **other), 4)  # type: ignore[arg-type]
    run = Run(checkpoints=tmp_path, checkpoint_seconds=0)
    with pytest.warns(UserWarning, match=r"train\.npz: .* of another run, other data"):
        resumed, _ = weights_after(run)
    for a, b in zip(expected, resumed, strict=True):
        assert_array_equal(a, b)
    arrays = {"x": np.arange(3)}
    Run(checkpoints=tmp_path, **other).cached("kept", lambda: arrays)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match=r"kept\.npz: .* another run.* starts again"):
        assert run.cached("kept", lambda: {"x": np.ones(1)})["x"].size == 1
    assert run.cached("kept", lambda: arrays).keys() == {"x"}
