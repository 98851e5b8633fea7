"""Every head, the loss and the metrics by the modes that Keras has, in a user's own model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf import layers
from neucrowd_tf.saving import keras_objects as parts
from tests.cases import cases, raises
from tests.crowds import array_of
from tests.methods.crowd_layers.heads import HEADS, PAIRS, model_with_head

RNG = default_rng(0)
X = RNG.normal(size=(8, 3, 3)).astype(np.float32)
Y = RNG.integers(-1, 3, size=(8, 3, 4))
FLAT_X = X.reshape(24, 3)
FLAT_Y = Y.reshape(24, 4)
# A head with and one without a penalty, and one with two inputs; all of them with the slow tests.
OFTEN = ("MW", "geocrowdnet_f", "conal")
EACH = [pytest.param(name, marks=[] if name in OFTEN else pytest.mark.slow) for name in HEADS]


@pytest.fixture(autouse=True)
def policy() -> Iterator[None]:
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")


def step(
    name: str, x: Any = FLAT_X, y: Any = FLAT_Y, **options: Any
) -> tuple[dict[str, float], Any]:
    """Returns the figures of one step, and the model."""
    keras.utils.set_random_seed(0)
    model, head = model_with_head(name, (None,) * (x.ndim - 2))
    loss = parts.AnnotationLoss(log_probabilities=head.log_probabilities)
    metrics = [parts.AnnotationAccuracy(), parts.AnnotationLogLoss()]
    model.compile(keras.optimizers.SGD(0.1), loss, metrics=metrics, **options)
    return model.train_on_batch(x, y, return_dict=True), model


def assert_equal(one: tuple[dict[str, float], Any], other: tuple[dict[str, float], Any]) -> None:
    assert one[0] == pytest.approx(other[0], rel=1e-4, abs=1e-6)
    for ours, theirs in zip(one[1].weights, other[1].weights, strict=True):
        assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5, err_msg=ours.path)


@pytest.mark.parametrize("name", EACH)
def test_sequences_are_as_many_instances(name: str) -> None:
    if name == "annot_mix":
        pytest.skip("draws masks")
    sequences = step(name, X, Y, run_eagerly=True)
    assert_equal(sequences, step(name, run_eagerly=True))
    assert sequences[1](X).shape == (8, 3, 4, 3)
    assert sequences[1].output_shape == (None, None, 4, 3)


@pytest.mark.parametrize("name", [name for name in HEADS if name not in (*PAIRS, "ccc")])
def test_time_distributed_is_refused(name: str) -> None:
    inputs = keras.Input((2, 3))
    with pytest.raises(NotImplementedError, match=r"takes sequences \[B, T, ...\] itself"):
        keras.layers.TimeDistributed(HEADS[name]())(inputs)


def test_inputs_of_different_ranks_are_refused() -> None:
    images = keras.Input((4, 4, 1))
    with pytest.raises(ValueError, match=r"expected inputs \[B, ...\].*Flatten"):
        parts.ConalHead(4)([keras.Input((3,)), images])


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("dtype", ["float64", "mixed_float16", "mixed_bfloat16"])
def test_dtypes(name: str, dtype: str) -> None:
    keras.config.set_dtype_policy(dtype)
    if dtype == "float64":
        keras.config.set_floatx(dtype)
    figures, model = step(name, run_eagerly=True)
    assert all(np.isfinite(value) for value in figures.values())
    expected = "float64" if dtype == "float64" else "float32"
    head = model.layers[-1]
    assert {weight.dtype for weight in head.trainable_weights} == {expected}
    assert model.output.dtype == expected
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


@pytest.mark.parametrize("name", EACH)
def test_batches_without_labels_or_items(name: str) -> None:
    figures, model = step(name, y=np.full_like(FLAT_Y, -1), run_eagerly=True)
    assert np.isnan(figures["annotation_accuracy"]) and np.isnan(figures["annotation_log_loss"])
    penalty = sum(float(loss) for loss in model.losses) if name != "geocrowdnet_f" else 0.0
    assert figures["loss"] == pytest.approx(penalty, rel=0.1, abs=0.01)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert model(FLAT_X[:0]).shape == (0, 4, 3)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("jit", [False, True])
def test_compiled_steps(name: str, jit: bool) -> None:
    if name == "annot_mix":
        pytest.skip("draws masks")
    assert_equal(step(name, jit_compile=jit), step(name, run_eagerly=True))


@pytest.mark.parametrize("name", EACH)
def test_a_model_is_exported(name: str, tmp_path) -> None:
    """The whole one, and the classifier alone (doctors have none), serve with TensorFlow."""

    model, _ = model_with_head(name)
    models = [model]
    if name != "doctors":
        models.append(keras.Model(model.input, model.get_layer("classes").output))
    for each in models:
        each.export(tmp_path / each.name, verbose=False)
        served = tf.saved_model.load(tmp_path / each.name)
        assert_allclose(served.serve(FLAT_X), each(FLAT_X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", EACH)
def test_a_model_is_exported_to_onnx(name: str, tmp_path) -> None:
    pytest.importorskip("tf2onnx", reason="pip install .[onnx]")
    runtime = pytest.importorskip("onnxruntime", reason="pip install .[onnx]")
    if name == "ccc":
        pytest.skip("tf2onnx has no Log1p; the classifier alone is exported")
    model, _ = model_with_head(name)
    expected = model(FLAT_X)  # Keras exports what was called, as a trained model was
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    (answers,) = session.run(None, {session.get_inputs()[0].name: FLAT_X})
    assert_allclose(answers, expected, rtol=1e-4, atol=1e-5)


BEYOND = [
    (array_of("0 3;"), "int"),
    (array_of("0 -2;"), "int"),
    (array_of("0 nan;"), "float"),
    (array_of("0 0.5;"), "float"),
    (np.array([[0, 2**32]]), "wide"),
]


@pytest.mark.parametrize(("codes", "kind"), BEYOND)
def test_codes_that_no_class_has(codes, kind: str) -> None:
    logits = tf.constant(RNG.normal(size=(1, 2, 3)).astype(np.float32))
    loss = parts.AnnotationLoss()
    message = "AnnotationLoss: a label is no code below the number of classes"
    raises(tf.errors.InvalidArgumentError, message, loss, codes, logits)

    @tf.function(jit_compile=True)
    def compiled(codes: Any, logits: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(codes, logits)
        return value, tape.gradient(value, logits)

    value, gradient = compiled(tf.constant(codes), logits)
    assert np.isnan(value) and np.isnan(gradient).any()
    assert np.isfinite(compiled(tf.zeros_like(codes), logits)[0])


def test_a_metric_raises_where_a_compiler_drops_the_check() -> None:
    model, _ = model_with_head("MW")
    metrics = [parts.AnnotationAccuracy()]
    model.compile("sgd", parts.AnnotationLoss(), metrics=metrics, jit_compile=True)
    with pytest.raises(ValueError, match="AnnotationAccuracy: a label is no code below"):
        model.fit(FLAT_X, FLAT_Y + 1, verbose=0)


def small(**compiled: Any) -> Any:
    """Returns a model of two classes and four annotators that always says 95% class 0."""

    constant = keras.initializers.Constant([3.0, 0.0])
    dense = keras.layers.Dense(
        2, "softmax", kernel_initializer="zeros", bias_initializer=constant, name="classes"
    )
    classes = dense(inputs := keras.Input((1,)))
    outputs = {"classes": classes, "annotators": parts.CrowdConnection(4)(classes)}
    model = keras.Model(inputs, outputs if "metrics" in compiled else outputs["annotators"])
    model.compile("sgd", run_eagerly=True, **compiled)
    return model


def test_metrics_are_of_labels_that_are_there() -> None:
    labels = np.where(np.arange(40).reshape(10, 4) % 4 == 0, 0, -1)
    labels[5:] = -1
    truth = np.array([0, 1, *[-1] * 8])
    model = small(
        loss={"annotators": parts.AnnotationLoss(labels_per_item=0.5)},
        metrics={
            "annotators": [parts.AnnotationAccuracy(), parts.AnnotationLogLoss()],
            "classes": [parts.AnnotationAccuracy(), parts.AnnotationLogLoss(from_logits=False)],
        },
    )
    logged = model.evaluate(
        np.zeros((10, 1)),
        {"annotators": labels, "classes": truth},
        batch_size=5,
        verbose=0,
        return_dict=True,
    )
    assert logged["annotators_annotation_accuracy"] == 1.0
    assert logged["annotators_annotation_log_loss"] == pytest.approx(0.339668, abs=1e-5)
    assert logged["loss"] == pytest.approx(0.339668, abs=1e-5)  # the second batch has no label
    assert logged["classes_annotation_accuracy"] == 0.5
    sure = 1 / (1 + np.exp(-3))
    expected = -(np.log(sure) + np.log(1 - sure)) / 2
    assert logged["classes_annotation_log_loss"] == pytest.approx(expected, rel=1e-4)


def test_class_weights_are_of_labels() -> None:
    logits = RNG.normal(size=(2, 2, 3)).astype(np.float32)
    labels = array_of("0 1; 2 -1")
    each = np.asarray(parts.AnnotationLoss(reduction="none")(labels, logits))
    expected = (2 * each[0, 0] + each[0, 1] + 0.5 * each[1, 0]) / 3.5
    for weights in ([2.0, 1.0, 0.5], {0: 2, 2: 0.5}):
        loss = parts.AnnotationLoss(class_weight=weights)
        assert float(loss(labels, logits)) == pytest.approx(expected, rel=1e-5)
        assert loss.get_config() == parts.AnnotationLoss.from_config(loss.get_config()).get_config()
    for other in ([1, 1, 1, 1], [1, 1], [], {3: 1.0}):
        with pytest.raises(ValueError, match=r"class_weight: there are 3 classes, received .*Give"):
            parts.AnnotationLoss(class_weight=other)(labels, logits)
    for wrong in ([1, -1], [[1]], {"cat": 1}, [np.nan]):
        raises(ValueError, "class_weight", parts.AnnotationLoss, class_weight=wrong)
    with pytest.raises(ValueError, match="labels_per_item: has no effect"):
        parts.AnnotationLoss(labels_per_item=2, reduction="sum")
    raises(ValueError, "labels_per_item: expected", parts.AnnotationLoss, labels_per_item=0)


@pytest.mark.parametrize(
    "shape",
    cases("""
[2],
[2, 3],
[3, 2],
[2, 2, 1],
[2, 2, 3],
[4, 1]
"""),
)
def test_weights_of_another_shape_are_refused(shape: list[int]) -> None:
    logits = np.zeros((2, 2, 3), np.float32)
    with pytest.raises(ValueError, match="sample_weight has the shape"):
        parts.AnnotationLoss()(np.zeros((2, 2), int), logits, np.ones(shape))
    for usable in ((2, 1), (2, 2), (1, 2)):
        parts.AnnotationLoss()(np.zeros((2, 2), int), logits, np.ones(usable))


def test_class_weight_of_fit_and_true_labels_are_refused() -> None:
    model = small(loss=parts.AnnotationLoss())
    x = np.zeros((4, 1))
    labels = np.zeros((4, 4), int)
    with pytest.raises(ValueError, match=re.escape("AnnotationLoss(class_weight=...)")):
        model.fit(x, labels, class_weight={0: 2.0}, verbose=0)
    model.fit(x, labels, sample_weight=np.ones((4, 1)), verbose=0)
    with pytest.raises(ValueError, match=r"need codes of shape.*second output"):
        model.fit(x, labels, validation_data=(x, labels[:, 0]), verbose=0)


def test_a_head_that_keras_cannot_save_by_name_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"Own.__init__: write \*\*kwargs, not \*\*options"):

        class Own(layers.ConfusionHead):
            def __init__(self, num_annotators: int, **options: object) -> None:
                super().__init__(num_annotators, **options)

    class Saved(layers.ConfusionHead):
        def __init__(self, num_annotators: int, **options: object) -> None:
            super().__init__(num_annotators, **options)

        def get_config(self) -> dict[str, object]:
            return {"num_annotators": self.num_annotators, "name": self.name}

    class Derived(Saved):
        """Its constructor and configuration are inherited together."""

    assert Derived.from_config(Derived(3, name="a").get_config()).name == "a"
