"""Whose a checkpoint is."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from neucrowd_tf.training.owner import owner_of
from neucrowd_tf.training.run import Run
from tests.crowds import array_of
from tests.processes import python
from tests.test_common import crowd_data

DENSE = array_of("0 1; 1 1; 0 -1; 1 0")
X = np.arange(8, dtype=np.float32).reshape(4, 2)
TEXTS = np.array([f"a text of {row}" for row in range(4)], dtype=object)


class Given:
    """What has arguments."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.arguments


def test_other_arguments_or_data_are_another_owner() -> None:
    crowd, votes = Annotations.from_dense(DENSE), Annotations.from_votes(np.array([[1, 1]] * 4))
    arguments = {"seed": 0, "rate": 0.1, "sizes": (3, 4), "model": None}
    models = [Given(seed=1), Given(seed=2), "dense", *map(keras.optimizers.SGD, (0.1, 0.2))]
    changes = [{}, {"seed": 1}, {"sizes": (4, 3)}, *({"model": model} for model in models)]
    owners = [owner_of(Given(**arguments | change), X, crowd) for change in changes]
    again = Given(**arguments | {"model": keras.optimizers.SGD(0.1)})
    assert owner_of(again, X, crowd) == owners[-2]
    plain, fewer = Given(**arguments), crowd.select(np.arange(crowd.num_annotations) > 0)
    for data in (
        (X + 1, crowd),
        (TEXTS, crowd),
        (X, fewer),
        (X, votes),
        (X, crowd, X[:1], np.array([1])),
    ):
        owners.append(owner_of(plain, *data))
    owners.append(owner_of(TwoStageClassifier(), X, crowd))
    assert len(set(owners)) == len(owners)


def test_an_owner_is_the_same_in_each_process(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = f"""
from typing import Any
import numpy as np
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.training.owner import owner_of
DENSE, TEXTS = np.array({DENSE.tolist()}), np.array({TEXTS.tolist()}, dtype=object)
{inspect.getsource(Given)}
inner = Given(weights={{np.int64(0): 2.0, "b": (1, None)}})
given = Given(act=np.tanh, each=[len, Given], a={{np.int64(1): len, "b": 2}}, inner=inner)
print(owner_of(given, TEXTS, Annotations.from_dense(DENSE)))
"""
    done = python(repository, "-c", program, check=True)
    exec(program, {"__name__": "__main__"})
    assert capsys.readouterr().out == done.stdout


def owners_of_fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list of the owners that fits then have, which do nothing else."""
    owners: list[str] = []
    monkeypatch.setattr(TwoStageClassifier, "_fit", lambda self, _, run: owners.append(run.owner))
    answer = np.full((len(X), 2), 0.5)
    for kind in (TwoStageClassifier, TextClassifier):
        monkeypatch.setattr(kind, "_predict_proba", lambda self, _: answer)
    return owners


@pytest.mark.parametrize("features", [X, TEXTS])
def test_a_fits_checkpoints_are_its_own(
    features: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(seed: int = 0) -> Any:
        model = TwoStageClassifier(seed=seed)
        return model if features is X else TextClassifier(estimator=model)

    owners = owners_of_fits(monkeypatch)
    run = Run(checkpoints=tmp_path)
    for seed, passed in ((0, run), (0, run), (1, run), (0, Run(checkpoints=tmp_path, owner="x"))):
        make(seed).fit(features, Annotations.from_dense(DENSE), run=passed)
    assert owners[0] == owners[1] != owners[2] and owners[3] == "x"
    make().fit(features, Annotations.from_dense(DENSE))
    assert owners[4] == ""  # no checkpoints are anybody's


def test_texts_and_their_encoder_decide_and_not_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Encoder:
        takes = "texts"

        def __init__(self, digest: str, value: float) -> None:
            self.digest_, self.value = digest, value

        def transform(self, texts: np.ndarray) -> np.ndarray:
            return np.full((len(texts), 2), self.value, np.float32)

    owners = owners_of_fits(monkeypatch)
    crowd, held = Annotations.from_dense(DENSE), (TEXTS[:2], [0, 1])
    for digest, value, validation in (
        ("a", 1.0, held),
        ("a", 1.0 + 1e-7, held),
        ("b", 1.0, held),
        ("a", 1.0, (TEXTS[2:], [0, 1])),
    ):
        model = TextClassifier(Encoder(digest, value), estimator=TwoStageClassifier())
        model.fit(TEXTS, crowd, validation, run=Run(checkpoints=tmp_path))
    assert owners[0] == owners[1] and len(set(owners)) == 3


def layers_of(activation: str, units: int = 3) -> Any:
    def base(shape: tuple[int, ...], classes: int) -> keras.Model:
        # Without a seed all hidden units are dead at times.
        first, last = map(keras.initializers.GlorotUniform, (3, 4))
        hidden = keras.layers.Dense(units, activation, kernel_initializer=first)
        output = keras.layers.Dense(classes, kernel_initializer=last)
        return keras.Sequential([keras.Input(shape), hidden, output])

    return base


def network(activation: str = "relu", seed: int = 0) -> keras.Model:
    model = layers_of(activation)((2,), 2)
    rng = default_rng(seed)
    for variable in model.variables:
        variable.assign(rng.normal(size=variable.shape))
    return model


class Steady(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of somebody's own, without a configuration."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, step: Any) -> float:
        return self.rate


def remembering(rate: float) -> type[keras.optimizers.schedules.LearningRateSchedule]:
    """Returns a class of schedules whose method, not its configuration, knows the rate."""

    class Remembering(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> float:
            return rate

        def get_config(self) -> dict[str, Any]:
            return {}

    return Remembering


def stepping(factor: float) -> keras.optimizers.Optimizer:
    """Returns an optimizer whose method, not its configuration, knows a factor."""

    class Stepping(keras.optimizers.SGD):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            super().update_step(gradient * factor, variable, learning_rate)

    return Stepping(0.1)


class Fast:
    rate = 0.1


class Slow(Fast):
    rate = 0.01


def test_functions_count_by_what_they_do() -> None:
    crowd = Annotations.from_dense(DENSE)
    scale = 2

    def owner(model: Any) -> str:
        return owner_of(Given(model=model), X, crowd)

    def doubled(value: Any, by: int = scale) -> Any:
        return value * by

    different = [
        layers_of("relu"),
        layers_of("tanh"),
        layers_of("relu", 4),
        functools.partial(layers_of, "relu"),
        functools.partial(layers_of, "tanh"),
        lambda x: x + 1,
        lambda x: x + 2,
        lambda x, by=3: x + by,
        lambda x, by=4: x + by,
        lambda x: x + scale,
        doubled,
        network(),
        network("tanh"),
        Steady(0.1),
        Steady(0.2),
        remembering(0.1)(),
        remembering(0.2)(),
        keras.optimizers.SGD(remembering(0.1)()),
        keras.optimizers.SGD(remembering(0.2)()),
        stepping(1.0),
        stepping(2.0),
        type("Kind", (Fast,), {}),
        type("Kind", (Slow,), {}),
        lambda: keras.optimizers.SGD(0.1),
        lambda: keras.optimizers.SGD(0.2),
        {"activation": lambda x: x * 3},
        {"activation": lambda x: x * 4},
        keras.Sequential([keras.layers.Dense(2, activation=lambda x: x * 3)]),
        keras.Sequential([keras.layers.Dense(2, activation=lambda x: x * 4)]),
    ]
    owners = [owner(model) for model in different]
    assert len(set(owners)) == len(owners)
    # Names with the numbers that Keras adds are no difference, nor is a function made again.
    assert owner(stepping(2.0)) == owner(stepping(2.0))
    assert owner(network()) == owner(network()) and owner(layers_of("relu")) == owners[0]


def factor(value: Any) -> Any:
    return value * SCALES[0]


SCALES = (2.0, 3.0)


def through_helpers(value: Any) -> Any:
    return (lambda: factor(value))()


def test_what_a_function_names_in_its_module_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Annotations.from_dense(DENSE)
    owners = [owner_of(Given(model=through_helpers), X, crowd)]
    for name, value in (("SCALES", (4.0, 3.0)), ("factor", abs), ("factor", through_helpers)):
        monkeypatch.setitem(through_helpers.__globals__, name, value)
        owners.append(owner_of(Given(model=through_helpers), X, crowd))
    assert len(set(owners)) == 4


elsewhere = types.ModuleType("elsewhere")
elsewhere.__dict__.update(__file__="elsewhere.py", RATE=7.0, OFFSET=1.0)
RATE = 2.0


def rated(value: Any) -> Any:
    return value * RATE + elsewhere.OFFSET


@pytest.mark.parametrize("place", [vars(elsewhere), rated.__globals__])
def test_a_name_counts_in_each_module(place: dict[str, Any], monkeypatch) -> None:
    crowd = Annotations.from_dense(DENSE)
    before = owner_of(Given(model=rated), X, crowd)
    monkeypatch.setitem(place, "RATE", 3.0)
    assert owner_of(Given(model=rated), X, crowd) != before


class Listed(frozenset[type]):
    """A set with an order."""

    backwards = False

    def __iter__(self) -> Iterator[type]:
        return iter(sorted(super().__iter__(), key=str, reverse=self.backwards))


def test_the_order_of_a_set_does_not_count() -> None:
    crowd = Annotations.from_dense(DENSE)
    owners = set()
    for backwards in (False, True):
        kinds = Listed([type("Kind", (Fast,), {}), Slow])
        kinds.backwards = backwards
        owners.add(owner_of(Given(model=kinds), X, crowd))
    assert len(owners) == 1


def test_labels_that_a_method_made_up_count() -> None:
    crowd = Annotations.from_dense(DENSE)
    observed = crowd.select(np.arange(crowd.num_annotations) > 0)
    cell = (crowd.instances[:1], crowd.annotators[:1], crowd.labels[:1])
    marked = observed.with_generated(*cell)
    alike = Annotations(marked.instances, marked.annotators, marked.labels)
    assert owner_of(Given(), X, marked) != owner_of(Given(), X, alike)


@pytest.mark.parametrize("pretrained", [False, True])
def test_a_fit_goes_on_from_its_own_network_alone(pretrained: bool, tmp_path: Path) -> None:
    crowd = Annotations.from_dense(DENSE)

    def fit(base: Any, run: Run | None = None) -> np.ndarray:
        model = CrowdLayer(base, epochs=2, pretrained=pretrained)
        with warnings.catch_warnings(action="ignore"):
            return np.asarray(model.fit(X, crowd, run=run).predict_proba(X))

    bases = (network(), network(seed=1)) if pretrained else (layers_of("relu"), layers_of("tanh"))
    run = Run(checkpoints=tmp_path, progress=False)
    for base in bases:
        np.testing.assert_array_equal(fit(base, run), fit(base))
    files = [path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")]
    fit(bases[1], run)
    assert files == [path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")]


def test_other_first_weights_of_an_encoder_are_another_fit(tmp_path: Path) -> None:
    features, crowd, *_ = crowd_data(2)
    probabilities = []
    for seed in (0, 1):
        encoder = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
        encoder.layers[0].kernel.assign(default_rng(seed).normal(size=(6, 3)))
        model = registry.method("rll").make(
            encoder=encoder, pretrained=True, epochs=1, steps_per_epoch=1
        )
        with warnings.catch_warnings(action="ignore"):
            model.fit(features, crowd, run=Run(checkpoints=tmp_path, progress=False))
        probabilities.append(model.predict_proba(features))
    assert np.abs(probabilities[0] - probabilities[1]).max() > 0
