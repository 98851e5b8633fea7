"""Arguments of training: optimizers, monitors, callbacks, class weights, networks by reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf import CrowdLayer, Ensemble, NeuCrowd, Run, load
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.nested import nest
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.crowd_layers.common.bases import with_softmax
from neucrowd_tf.methods.two_stage import TwoStageClassifier
from neucrowd_tf.methods.two_stage.deep_labels import DeepLabels
from neucrowd_tf.nn.embedding_networks import make_optimizer
from neucrowd_tf.training.networks import BASES, configuration
from neucrowd_tf.training.validation import validation_figures
from tests.cases import raises
from tests.crowds import array_of, noisy_labels

RNG = default_rng(0)
TRUTH = RNG.integers(2, size=60)
X = (RNG.normal(size=(60, 3)) + 2 * TRUTH[:, None]).astype(np.float32)
ANSWERS = noisy_labels(RNG, TRUTH, 4, 0.8)
CROWD = Annotations.from_dense(ANSWERS, class_names=["cat", "dog"])
QUICK: Any = {"base": {"hidden_units": (4,)}, "epochs": 2, "restarts": 0}


def network(shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
    """Returns a linear network; tests name it as `module:function`."""
    return keras.Sequential([keras.Input(shape), keras.layers.Dense(classes or 2)])


def test_networks_by_reference() -> None:
    reference = f"{__name__}:network"
    assert configuration("base", reference, BASES) is network
    model = CrowdLayer(reference, epochs=20, learning_rate=0.1).fit(X, CROWD)
    assert model.score(X, CROWD) > 0.8
    encoder = NeuCrowd(encoder=reference, epochs=1, steps_per_epoch=2).fit(X, CROWD)
    assert encoder.transform(X).shape == (60, 2)
    assert nest(CrowdLayer, {"base": reference}, {"dropout": 0.5}) == {"base": reference}
    wrong = (f"{__name__}:nothing", f"{__name__}:", "no_such_module:network", "NoSuchNet")
    for name in wrong:
        raises(UsageError, f"base: .*{name.partition(':')[0]}", CrowdLayer(name).fit, X, CROWD)


class Probabilities(keras.Model):
    """A classifier whose last layer, in the order of their making, is none of its output's."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(2)
        self.unused = keras.layers.Dense(2)

    def call(self, features: Any) -> Any:
        return keras.ops.softmax(self.dense(features))


def test_a_bases_outputs_say_whether_they_are_probabilities() -> None:
    inputs = keras.Input((3,))
    dense, softmax = keras.layers.Dense, keras.ops.softmax
    logits = dense(2)(inputs)
    shared = keras.layers.Softmax()(logits)
    after = keras.layers.Reshape((2,))(shared)
    distributions = [softmax(logits), after, dense(2, activation=lambda x: softmax(x))(inputs)]
    # Of no row that is tried can it be seen.
    distributions.append(dense(2, "softmax")(keras.ops.log(-keras.ops.square(inputs))))
    bases = [Probabilities(), *(keras.Model(inputs, x) for x in distributions)]
    for base in bases:
        made = with_softmax(base, (3,), 2)
        assert_allclose(made(X), base(X), atol=1e-6)
    noisy = keras.layers.GaussianNoise(1.0, seed=0)(logits)
    # Of linear layers behind units that are 0 for some rows, the outputs say nothing.
    units = dense(1, "relu", kernel_initializer="ones")(inputs)
    linear = keras.Sequential([dense(2, kernel_initializer="ones")])(units)
    for output in (logits, noisy, linear, dense(2, kernel_initializer="zeros")(inputs)):
        base = keras.Model(inputs, output)
        before = [np.array(value) for value in base.variables]
        made = with_softmax(base, (3,), 2)
        assert_allclose(made(X), softmax(base(X)), atol=1e-6)
        for value, earlier in zip(base.variables, before, strict=True):
            assert_array_equal(value, earlier)
    positive = keras.ops.relu(dense(2)(inputs))
    for output, reason in (
        (keras.layers.Dropout(0.5)(shared), "before the softmax"),
        (positive, "logits of both signs"),
        (keras.layers.ReLU()(logits), "without a ReLU|relu"),
        (dense(2, "sigmoid")(inputs), "sigmoid"),
    ):
        raises(DataError, f"base: .*{reason}", with_softmax, keras.Model(inputs, output), (3,), 2)


@pytest.mark.parametrize("make", [CrowdLayer, NeuCrowd])
def test_a_learning_rate_without_effect_is_an_error(make) -> None:
    for optimizer in (keras.optimizers.SGD(0.1), {"class_name": "SGD", "config": {}}):
        with pytest.raises(UsageError, match="learning_rate: has no effect, because the optimizer"):
            make(optimizer=optimizer, learning_rate=0.5).fit(X, CROWD)
    optimizer = keras.optimizers.SGD(0.1)
    presets = {"learning_rate": 0.3, "epochs": 2}
    assert "learning_rate" not in nest(make, {"optimizer": optimizer}, presets)
    assert nest(make, {}, presets)["learning_rate"] == 0.3


def test_annotators_rate_replaces_that_of_any_optimizer() -> None:
    created = keras.optimizers.SGD(0.1, momentum=0.5)
    for optimizer in ("sgd", created, lambda: keras.optimizers.SGD(0.1)):
        replaced = make_optimizer(optimizer, 0.7, always=True)
        assert float(np.asarray(replaced.learning_rate)) == pytest.approx(0.7)
    still = CrowdLayer(
        **QUICK, optimizer=keras.optimizers.Adam(0.1), annotator_learning_rate=0.0
    ).fit(X, CROWD)
    assert_allclose(still.confusion_matrices_[0], still.confusion_matrices_[1])


def test_figures_by_hand() -> None:
    p = array_of("0.9 0.1; 0.6 0.4; 0.7 0.3; 0.2 0.8")
    figures = validation_figures(p, array_of("0 0 1 1"))
    # Of four pairs, .3 < .4 is the one in the wrong order.
    assert figures["auc"] == 0.75 and figures["accuracy"] == 0.75
    assert figures["log_loss"] == pytest.approx(-np.log([0.9, 0.6, 0.3, 0.8]).mean())
    assert np.isnan(validation_figures(p[:2], np.array([0, 0]))["auc"])
    assert "auc" not in validation_figures(p, array_of("0 0 1 1"), auc=False)


@pytest.mark.parametrize("monitor", ["accuracy", "auc", "loss"])
def test_monitors_of_a_crowd_layer(monitor: str) -> None:
    model = CrowdLayer(**{**QUICK, "epochs": 6}, monitor=monitor, patience=2)
    model.fit(X, CROWD)
    values = model.history_["loss" if monitor == "loss" else f"val_{monitor}"]
    best = min(values) if monitor == "loss" else max(values)
    assert values[model.best_epoch_] == best  # type: ignore[index]
    assert ("val_accuracy" in model.history_) == (monitor != "loss")
    assert len(model.rows_) == (60 if monitor == "loss" else 48)
    raises(UsageError, "min_delta: without monitor", CrowdLayer(min_delta=0.1).fit, X, CROWD)


def test_class_weights_shift_labels_and_names_are_checked() -> None:
    quick: Any = {"base": {"hidden_units": ()}, "epochs": 20, "learning_rate": 0.05}
    for make, predict in (
        (CrowdLayer, lambda model: model.predict_annotators(X)[..., 1].mean()),
        (DeepLabels, lambda model: model.predict_proba(X)[:, 1].mean()),
    ):
        model: Any = make(**quick)
        with model.reused():
            shares = [
                predict(model.set_params(class_weight=weights).fit(X, CROWD))
                for weights in ({"dog": 0.125}, {"dog": 1.0, "cat": 1}, None, {"dog": 8.0})
            ]
        assert shares[0] + 0.05 < shares[1] == shares[2] < shares[3] - 0.05
    with pytest.raises(UsageError, match=r"no class is named 'bird'\. There are cat, dog\."):
        CrowdLayer(**quick, class_weight={"bird": 2.0}).fit(X, CROWD)


class Seen(keras.callbacks.Callback):
    """Notes the logs of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: list[dict[str, float]] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.logs.append(dict(logs))


def test_callbacks_of_fit() -> None:
    seen = Seen(), Seen()
    model = CrowdLayer(**QUICK)
    names = np.array(["cat", "dog"])[TRUTH]
    model.fit(X, CROWD, (X, names), run=Run(callbacks=[seen[0]]), callbacks=[seen[1]])
    assert seen[0].logs == seen[1].logs and len(seen[0].logs) == 2
    assert {"loss", "val_accuracy"} <= seen[0].logs[0].keys()
    shapes: list[Any] = []
    embed = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: shapes.append(embed.model(X).shape)
    )
    NeuCrowd(epochs=1, steps_per_epoch=2).fit(X, CROWD, callbacks=[embed])
    assert shapes == [(60, 32)]
    with pytest.raises(UsageError, match="callbacks: TwoStageClassifier trains no network"):
        TwoStageClassifier().fit(X, CROWD, callbacks=[Seen()])
    with pytest.raises(UsageError, match="callbacks: TwoStageClassifier trains no network"):
        Ensemble(TwoStageClassifier(), size=1).fit(X, CROWD, run=Run(callbacks=[Seen()]))


class Bare(keras.Model):
    """A classifier without layers."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[-1], 2), name="kernel")

    def call(self, features: Any) -> Any:
        return features @ self.kernel

    def get_config(self) -> dict[str, Any]:
        return {}


def test_a_base_without_layers_is_an_error_and_within_a_model_gives_logits() -> None:
    bare, inputs = Bare(), keras.Input((3,))
    model = CrowdLayer(keras.Model(inputs, bare(inputs)), epochs=1, restarts=0).fit(X, CROWD)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-6)
    with pytest.raises(DataError, match="base: expected a Keras classifier with layers, received"):
        CrowdLayer(bare, epochs=1).fit(X, CROWD)


def test_a_consensus_of_one_class_is_an_error() -> None:
    answers = np.zeros((60, 3), int)
    answers[:, 0] = TRUTH
    raises(DataError, "labels of at least two classes, received only 0", NeuCrowd().fit, X, answers)


def made_in_main(shape: tuple[int, ...], classes: int = 2) -> keras.Model:
    """Returns a network, as a function of a notebook does."""
    return keras.Sequential([keras.layers.Dense(4, "relu"), keras.layers.Dense(classes)])


made_in_main.__module__ = "__main__"
SHORT: Any = {"epochs": 1, "steps_per_epoch": 2}
SAVED: list[tuple[str, Any]] = [
    ("function", lambda: CrowdLayer(network, epochs=2, restarts=0)),
    ("of a notebook", lambda: CrowdLayer(made_in_main, epochs=2, restarts=0)),
    ("lambda", lambda: CrowdLayer(lambda s, c: network(s, c), epochs=2, restarts=0)),
    ("encoder", lambda: NeuCrowd(encoder=lambda s: network(s), **SHORT)),
    ("nested", lambda: Ensemble(CrowdLayer(made_in_main, epochs=1, restarts=0), size=1)),
    (
        "optimizer",
        lambda: CrowdLayer(
            **QUICK,
            optimizer=keras.optimizers.AdamW(
                keras.optimizers.schedules.CosineDecay(1e-2, 10), weight_decay=1e-3
            ),
        ),
    ),
    ("function of an optimizer", lambda: CrowdLayer(**QUICK, optimizer=keras.optimizers.Nadam)),
    (
        "schedule",
        lambda: CrowdLayer(
            **QUICK, learning_rate=keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5)
        ),
    ),
    (
        "activation",
        lambda: CrowdLayer(
            {"hidden_units": (4,), "activation": keras.activations.gelu}, epochs=1, restarts=0
        ),
    ),
]


@pytest.mark.filterwarnings("ignore:base. each fit draws:UserWarning")
@pytest.mark.filterwarnings("ignore:encoder. each fit draws:UserWarning")
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in SAVED])
def test_what_is_fitted_is_saved_and_fits_again_as_before(make, tmp_path: Path) -> None:
    model = make().fit(X, CROWD)
    model.save(tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    again = loaded.fit(X, CROWD).predict_proba(X)
    assert_allclose(again, model.fit(X, CROWD).predict_proba(X), atol=1e-6)


def test_functions_that_python_can_import_are_saved_by_name(tmp_path: Path) -> None:
    CrowdLayer(network).save(tmp_path / "saved")
    assert load(tmp_path / "saved").base == f"{__name__}:network"
    with pytest.raises(TypeError, match=r"base: a function that Python cannot import .* Fit it"):
        CrowdLayer(made_in_main).save(tmp_path / "saved")
    assert load(tmp_path / "saved").base == f"{__name__}:network"


class Twice(keras.layers.Layer):
    """A layer that Keras does not know."""

    def call(self, inputs: Any) -> Any:
        return 2.0 * inputs


Twice.__module__ = "__main__"


def test_a_layer_that_keras_does_not_know_is_named_before_anything_is_replaced(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "saved"
    CrowdLayer(network, epochs=1, restarts=0).save(folder)
    base = keras.Sequential([keras.Input((3,)), Twice(), keras.layers.Dense(2)])
    model = CrowdLayer(base, pretrained=True, epochs=1, restarts=0).fit(X, CROWD)
    raises(DataError, r"nothing was saved.*Keras does not know Twice\. Put", model.save, folder)
    assert load(folder).base == f"{__name__}:network"
    with keras.saving.custom_object_scope({"Twice": Twice}):
        model.save(folder)
        loaded = load(folder)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    raises(DataError, "Keras does not know Twice", load, folder)


def test_images_have_their_channels_last_whatever_keras_says() -> None:
    images = default_rng(0).random((40, 8, 8, 3)).astype(np.float32)
    crowd = ANSWERS[:40]
    fits = []
    for order in ("channels_last", "channels_first"):
        keras.config.set_image_data_format(order)
        try:
            if order == "channels_first":
                with pytest.raises(UsageError, match=r"base: images are .height, width, channels"):
                    CrowdLayer("MobileNetV2").fit(images, crowd)
            fits.append(CrowdLayer("small_cnn", epochs=1, restarts=0).fit(images, crowd))
        finally:
            keras.config.set_image_data_format("channels_last")
    assert_array_equal(*(model.predict_proba(images) for model in fits))
    with pytest.warns(UserWarning, match=r"numpy.moveaxis\(images, 1, -1\)"):
        CrowdLayer("small_cnn", epochs=1, restarts=0).fit(np.moveaxis(images, -1, 1), crowd)
