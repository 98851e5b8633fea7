"""Heads of later methods: values by hand, naive loops, invariants, and what a .keras file keeps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.crowd_layers.heads import HEADS
from tests.processes import python


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.fixture(scope="module")
def parts():
    from neucrowd_tf import layers as parts

    return parts


@pytest.fixture
def p():
    return softmax(np.random.default_rng(0).normal(size=(5, 3))).astype(np.float32)


def randomised(head, seed=1):
    rng = np.random.default_rng(seed)
    for weight in head.weights:
        weight.assign(rng.normal(size=weight.shape))
    return head


def test_volume_by_hand(parts):
    from neucrowd_tf.methods.geocrowdnet import negative_log_determinant

    # det [[2, 1], [1, 2]] = 3.
    assert float(negative_log_determinant(np.array([[2.0, 1.0], [1.0, 2.0]]))) == pytest.approx(
        -np.log(3.0), rel=1e-6
    )
    head = parts.GeoCrowdNetHead(2, "F", weight=0.5)
    # F = I: F^T F = I, whose logarithm is 0; doubled rows: F^T F = 2 I, -log 4.
    eye = np.eye(2, dtype=np.float32)
    assert float(head.penalty(eye)) == pytest.approx(0.0, abs=1e-6)
    assert float(head.penalty(np.tile(eye, (2, 1)))) == pytest.approx(-0.5 * np.log(4.0))


def test_volume_without_a_direction_has_no_gradient(parts):
    import tensorflow as tf

    head = parts.GeoCrowdNetHead(2, "F", weight=1.0)
    f = tf.Variable([[0.4, 0.6], [0.4, 0.6]])  # equal rows: the determinant is 0
    with tf.GradientTape() as tape:
        value = head.penalty(f)
    assert float(value) == 0.0
    np.testing.assert_array_equal(tape.gradient(value, f), np.zeros((2, 2)))


def test_volume_and_its_gradient_compile_with_xla(parts):
    import tensorflow as tf

    from neucrowd_tf.methods.geocrowdnet import negative_log_determinant

    gram = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]], np.float32)

    @tf.function(jit_compile=True, autograph=False)
    def compiled(matrix):
        with tf.GradientTape() as tape:
            tape.watch(matrix)
            value = negative_log_determinant(matrix)
        return value, tape.gradient(value, matrix)

    value, gradient = compiled(tf.constant(gram))
    assert float(value) == pytest.approx(-np.log(np.linalg.det(gram)), rel=1e-5)
    # A symmetric matrix's gradient is given for its lower triangle.
    both = (np.asarray(gradient) + np.asarray(gradient).T) / 2
    np.testing.assert_allclose(both, -np.linalg.inv(gram), atol=1e-5)


def test_volume_of_matrices_against_loop_and_order(parts, p):
    head = parts.GeoCrowdNetHead(3, "W", weight=0.1)
    head(p)
    randomised(head)
    matrices = softmax(np.asarray(head.matrix))
    stacked = np.concatenate([m.T for m in matrices])  # [R C observed, C true]
    expected = -0.1 * np.log(np.linalg.det(stacked.T @ stacked))
    assert float(head.penalty(p)) == pytest.approx(expected, rel=1e-4)
    value = np.asarray(head.matrix)
    head.matrix.assign(value[[2, 0, 1]])  # whoever comes first
    assert float(head.penalty(p)) == pytest.approx(expected, rel=1e-4)


def test_source_of_trace_regularisation(parts):
    head = parts.SoftplusConfusionHead(2, trace_weight=0.5)
    head(np.eye(2, dtype=np.float32))
    # softplus(1) = 1.3133, softplus(-5) = .0067: rows (.9949, .0051); the trace is 1.9898.
    one, other = np.log1p(np.exp(1.0)), np.log1p(np.exp(-5.0))
    expected = one / (one + other)
    np.testing.assert_allclose(
        head.matrices()[0], [[expected, 1 - expected]] * 1 + [[1 - expected, expected]], atol=1e-6
    )
    assert float(head.penalty(None)) == pytest.approx(0.5 * 2 * expected, rel=1e-5)
    randomised(head)
    np.testing.assert_allclose(np.asarray(head.matrices()).sum(axis=-1), 1.0, atol=1e-6)
    for row in np.asarray(head.matrix).reshape(-1, 2):
        np.testing.assert_allclose(
            np.log1p(np.exp(row)) / np.log1p(np.exp(row)).sum(),
            np.asarray(head._normalised(row)),
            atol=1e-5,
        )


@pytest.mark.parametrize("variant", ["A", "B"])
def test_union_against_loop(parts, p, variant):
    head = parts.UnionHead(2, variant)
    head(p)
    randomised(head)
    matrix = np.asarray(head.matrix)
    union = np.zeros((5, 2, 3))
    for b in range(5):
        for r in range(2):
            for y in range(3):
                if variant == "A":
                    union[b, r, y] = np.exp(sum(p[b, c] * matrix[r, c, y] for c in range(3)))
                else:
                    union[b, r, y] = sum(
                        p[b, c] * np.exp(matrix[r, c, y]) / np.exp(matrix[:, c]).sum()
                        for c in range(3)
                    )
    union /= union.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(np.exp(head(p)), union, rtol=1e-4)
    np.testing.assert_allclose(np.exp(head(p)).sum(axis=(1, 2)), 1.0, rtol=1e-5)


def test_union_loss_by_hand(parts):
    # One annotator, two classes, T = 0: every entry of the union is 1/2.
    loss = parts.AnnotationLoss(log_probabilities=True)
    head = parts.UnionHead(1, "B")
    head.build((None, 2))
    head.matrix.assign(np.zeros((1, 2, 2)))
    outputs = head(np.array([[0.9, 0.1]], np.float32))
    assert float(loss(np.array([[1]]), outputs)) == pytest.approx(np.log(2.0), rel=1e-6)
    # Two annotators: 1/4 each, log 4; what is missing costs nothing.
    head = parts.UnionHead(2, "B")
    head.build((None, 2))
    head.matrix.assign(np.zeros((2, 2, 2)))
    outputs = head(np.array([[0.9, 0.1]], np.float32))
    assert float(loss(np.array([[1, -1]]), outputs)) == pytest.approx(np.log(4.0), rel=1e-6)


def test_conal_by_hand(parts):
    head = parts.ConalHead(1, embedding_size=1)
    p, x = np.array([[0.25, 0.75]], np.float32), np.array([[3.0]], np.float32)
    head([p, x])
    head.common.assign([[1.0, 0.0], [0.0, 1.0]])
    head.matrix.assign([[[0.0, 1.0], [1.0, 0.0]]])
    head.instance.assign([[2.0]])
    head.annotator.assign([[[-5.0]]])
    # Unit embeddings 1 and -1: w = sigmoid(-1) = .26894. p W = (.25, .75), p W_1 = (.75, .25).
    w = 1 / (1 + np.exp(1.0))
    expected = [w * 0.25 + (1 - w) * 0.75, w * 0.75 + (1 - w) * 0.25]
    np.testing.assert_allclose(head([p, x])[0, 0], expected, rtol=1e-5)
    # The matrices differ by 1 in four cells: a distance of 2.
    assert float(head.penalty([p, x])) == pytest.approx(-1e-5 * 2.0, rel=1e-4)


def test_conal_against_loop(parts, p):
    x = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
    head = parts.ConalHead(2, embedding_size=3)
    head([p, x])
    randomised(head)
    instance = x @ np.asarray(head.instance) + np.asarray(head.bias)
    result = np.asarray(head([p, x]))
    for b in range(5):
        for r in range(2):
            v, u = instance[b], np.asarray(head.annotator)[r, 0]
            w = 1 / (1 + np.exp(-v @ u / np.linalg.norm(v) / np.linalg.norm(u)))
            expected = w * p[b] @ np.asarray(head.common)
            expected = expected + (1 - w) * p[b] @ np.asarray(head.matrix)[r]
            np.testing.assert_allclose(result[b, r], expected, atol=1e-4)
    # Embeddings count by their direction alone.
    head.annotator.assign(7.0 * np.asarray(head.annotator))
    np.testing.assert_allclose(head([p, x]), result, atol=1e-4)


def test_cells_of_a_head_of_two_inputs(parts, p):
    x = np.random.default_rng(5).normal(size=(5, 2)).astype(np.float32)
    head = parts.ConalHead(4, 2)
    head([p, x])
    randomised(head)
    rows, annotators = np.array([0, 0, 4, 2], np.int32), np.array([1, 3, 0, 3], np.int32)
    dense = np.asarray(head([p, x]))
    np.testing.assert_allclose(head([p, x], (rows, annotators)), dense[rows, annotators], atol=1e-4)


# One head with a penalty and one without; all of them with the slow tests.
OFTEN = ("MW", "geocrowdnet_w")


@pytest.mark.ci
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OFTEN else pytest.mark.slow) for name in HEADS]
)
def test_anyones_model_trains_and_is_saved(parts, tmp_path, name):
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=48)
    x = (rng.normal(size=(48, 3)) + 3 * np.eye(3)[truth]).astype(np.float32)
    y = np.repeat(truth[:, None], 4, axis=1)
    y[rng.random((48, 4)) < 0.4] = -1
    inputs = keras.Input((3,))
    hidden = keras.layers.Dense(8, activation="relu")(inputs)
    classes = keras.layers.Dense(3, activation="softmax")(hidden)
    taken = {"doctors": hidden, "conal": [classes, inputs]}.get(name, classes)
    head = HEADS[name]()
    loss = parts.AnnotationLoss(log_probabilities=head.log_probabilities)
    model = keras.Model(inputs, head(taken))
    model.compile(optimizer=keras.optimizers.Adam(0.03), loss=loss)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(24)
    history = model.fit(data, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(x), model(x), atol=1e-6)
    assert again.evaluate(data, verbose=0) == pytest.approx(model.evaluate(data, verbose=0))


def test_loss_is_the_mean_of_what_there_is(parts):
    loss = parts.AnnotationLoss()
    logits = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]], [[0.9, 0.1], [0.2, 0.8]]], np.float32))
    labels = np.array([[0, 1], [-1, 1]])
    expected = [-np.log(0.5), -np.log(0.75), -np.log(0.8)]
    assert float(loss(labels, logits)) == pytest.approx(np.mean(expected), rel=1e-5)
    weighted = (2 * (expected[0] + expected[1]) + expected[2]) / 5
    assert float(loss(labels, logits, np.array([2.0, 1.0]))) == pytest.approx(weighted, rel=1e-5)
    assert float(loss(np.full((2, 2), -1), logits)) == 0.0
    assert parts.AnnotationLoss.from_config(loss.get_config()).get_config() == loss.get_config()


@pytest.mark.parametrize("reduction", ["sum", "none", None, "mean", "mean_with_sample_weight"])
def test_reductions_of_the_loss(parts, reduction):
    loss = parts.AnnotationLoss(reduction=reduction)
    logits = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]], [[0.9, 0.1], [0.2, 0.8]]], np.float32))
    labels, weights = np.array([[0, 1], [-1, 1]]), np.array([2.0, 1.0])
    each = np.array([[-2 * np.log(0.5), -2 * np.log(0.75)], [0.0, -np.log(0.8)]])
    expected = {"sum": each.sum(), "none": each, None: each}.get(reduction, each.sum() / 5)
    np.testing.assert_allclose(loss(labels, logits, weights), expected, rtol=1e-5)


def test_loss_of_two_replicas_is_shared_between_them(parts, monkeypatch):
    import types

    import tensorflow as tf

    logits, labels = np.zeros((2, 3, 4), np.float32), np.ones((2, 3), np.int32)
    alone = float(parts.AnnotationLoss()(labels, logits))
    two = types.SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: two)
    assert float(parts.AnnotationLoss()(labels, logits)) == pytest.approx(alone / 2)
    assert float(parts.AnnotationLoss(reduction="sum")(labels, logits)) == pytest.approx(6 * alone)


@pytest.mark.ci
@pytest.mark.parametrize(
    "name", ["anno_reg", "trace_reg", "doctors", "geocrowdnet_f", "geocrowdnet_w", "conal"]
)
def test_penalties_with_mixed_precision(parts, name):
    import keras

    keras.config.set_dtype_policy("mixed_float16")
    try:
        inputs = keras.Input((3,))
        hidden = keras.layers.Dense(8, activation="relu")(inputs)
        classes = keras.layers.Dense(3, activation="softmax")(hidden)
        head = HEADS[name]()
        taken = {"doctors": hidden, "conal": [classes, inputs]}.get(name, classes)
        model = keras.Model(inputs, head(taken))
        model.compile(optimizer="sgd", loss=parts.AnnotationLoss(), run_eagerly=True)
        rng = np.random.default_rng(0)
        model.fit(rng.normal(size=(8, 3)), rng.integers(-1, 3, size=(8, 4)), verbose=0)
        assert model.losses and all(loss.dtype == "float32" for loss in model.losses)
    finally:
        keras.config.set_dtype_policy("float32")


LOAD = """
import sys
{imported}
for path in sys.argv[1:]:
    keras.models.load_model(path)
"""


@pytest.mark.slow
def test_a_fresh_process_loads_every_head(repository, tmp_path):
    import keras

    from neucrowd_tf.methods.annot_mix import AnnotMixHead
    from neucrowd_tf.methods.ccc import CoupledHead
    from neucrowd_tf.methods.crowdar import ReliabilityHead
    from neucrowd_tf.methods.madl import MaDLHead

    others = {
        "coupled": lambda: CoupledHead(4),
        "annot_mix": lambda: AnnotMixHead(4, 3, 2),
        "madl": lambda: MaDLHead(4, 3, 2),
        "reliability": lambda: ReliabilityHead(4, 2),
    }
    paths = []
    for name, make in {**HEADS, **others}.items():
        inputs, second = keras.Input((3,)), keras.Input((3,))
        both = name in others or name == "conal"
        passed = [inputs, second] if both else inputs
        paths.append(str(tmp_path / f"{name}.keras"))
        keras.Model(passed, make()(passed)).save(paths[-1])
    orders = {"import keras, neucrowd_tf": paths, "import neucrowd_tf, keras": paths[:1]}
    for imported, files in orders.items():
        done = python(repository, "-c", LOAD.format(imported=imported), *files)
        assert done.returncode == 0, done.stderr[-2000:]


def test_every_registered_class_is_listed(repository):
    from neucrowd_tf.keras_objects import CLASSES

    folder = repository / "neucrowd_tf"
    registered = re.compile(r"@keras\.saving\.register_keras_serializable\(.*\)\nclass (\w+)")
    expected = {
        ".".join(path.relative_to(folder).with_suffix("").parts): tuple(names)
        for path in folder.rglob("*.py")
        if (names := registered.findall(path.read_text()))
    }
    assert expected == CLASSES, "list each Keras class in CLASSES of neucrowd_tf/keras_objects.py"


@pytest.mark.ci
def test_penalties_count_once_in_an_estimator(crowd):
    """The same fit on a matrix and on single annotations."""
    from neucrowd_tf.methods.geocrowdnet import GeoCrowdNetF

    x, _, annotations = crowd

    class Single(GeoCrowdNetF):
        _few_cells = staticmethod(lambda data: True)

    arguments = {"base": {"hidden_units": (4,), "dropout": 0.0}, "epochs": 2, "volume_weight": 0.5}
    first = GeoCrowdNetF(**arguments).fit(x, annotations)
    second = Single(**arguments).fit(x, annotations)
    np.testing.assert_allclose(first.predict_proba(x), second.predict_proba(x), atol=2e-3)
    without = GeoCrowdNetF(**{**arguments, "volume_weight": 0.0}).fit(x, annotations)
    assert np.abs(without.predict_proba(x) - first.predict_proba(x)).max() > 5e-3
