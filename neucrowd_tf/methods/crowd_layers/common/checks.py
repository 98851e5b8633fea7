"""Checks for tests of crowd layers, this project's and yours: what holds for any of them."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from scipy.special import softmax

from neucrowd_tf.declare.types import Array
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import AnnotatorHead

_CLASSES = 3


def check_head(
    head: AnnotatorHead, formula: Callable[..., Array] | None = None, seed: int = 0
) -> None:
    """Raises AssertionError unless a head is fit for training, sparse labels and saving.

    Its logits `[B, R, C]` follow the formula, are finite for sure and unsure classifiers, depend on
    every weight, and are the same for single cells. A copy made from its config computes the same.

    Args:
        head: not built yet; takes class probabilities `[B, 3]`.
        formula: one annotator's logits `[3]`, up to what they share, for one instance's
            probabilities `[3]` and the annotator's own weights, in the order of `head.weights`;
            called for each instance and annotator.
        seed: of the inputs and weights.
    """
    rng = np.random.default_rng(seed)
    inputs = rng.dirichlet(np.ones(_CLASSES), size=5).astype(np.float32)
    head(inputs)
    for weight in head.weights:
        weight.assign(rng.normal(size=weight.shape))
    weights = [np.asarray(weight) for weight in head.weights]
    logits = np.asarray(head(inputs))
    _require(logits.shape == (5, head.num_annotators, _CLASSES), f"logits are {logits.shape}")
    if formula is not None:
        for b, k in np.ndindex(*logits.shape[:2]):
            expected = softmax(formula(inputs[b], *(weight[k] for weight in weights)))
            np.testing.assert_allclose(softmax(logits[b, k]), expected, rtol=1e-4, atol=1e-6)
    sure = np.concatenate([np.eye(_CLASSES), np.full((1, _CLASSES), 1 / _CLASSES)])
    finite = np.isfinite(head(sure.astype(np.float32))).all()
    _require(finite, "a certain classifier has no finite logit")
    rows = np.array([0, 0, 4, 2])
    annotators = rng.integers(head.num_annotators, size=4)
    cells = head(inputs, (rows, annotators))
    np.testing.assert_allclose(cells, logits[rows, annotators], atol=1e-4)
    variables = [weight.value for weight in head.trainable_weights]
    with tf.GradientTape() as tape:
        answers = keras.ops.log_softmax(head(inputs))
        loss = -keras.ops.mean(answers[..., 0] + 0.5 * answers[..., 1])
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    for variable, gradient in zip(variables, gradients, strict=True):
        by_annotator = np.abs(np.reshape(gradient, (len(gradient), -1))).max(axis=1)
        reached = np.isfinite(by_annotator).all() and (by_annotator > 0).all()
        _require(reached, f"{variable.name}: gradient by annotator {by_annotator}")
    again = type(head).from_config(head.get_config())
    again(inputs)
    again.set_weights(weights)
    np.testing.assert_array_equal(again(inputs), logits)


def check_finds_random_annotator(make: Callable[..., CrowdLayerBase], **arguments: object) -> None:
    """Raises AssertionError unless a crowd layer recognises a random annotator.

    Three annotators are right and one answers at random. The layer has to classify well, with the
    random one lowest in `confusion_matrices_`, nearer to what he answered than to always right.

    Args:
        make: the estimator's class.
        **arguments: of it, in place of those below, which are of a linear classifier that is
            trained for a second.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(_CLASSES, size=200)
    features = rng.normal(size=(200, 4)) + 3.0 * np.eye(4)[truth]
    answers = np.stack([truth, truth, truth, rng.integers(_CLASSES, size=200)], axis=1)
    quick = {"base": {"hidden_units": (), "dropout": 0.0}, "epochs": 20, "learning_rate": 0.1}
    model = make(**{**quick, **arguments}).fit(features, answers)
    right = np.diagonal(model.confusion_matrices_, axis1=1, axis2=2).mean(axis=1)
    accuracy = model.score(features, truth)
    _require(accuracy > 0.9, f"accuracy {accuracy}")
    answered = np.mean([(answers[truth == c, 3] == c).mean() for c in range(_CLASSES)])
    # Fits of a second stay well below halfway to always right; a start at nearly the identity, and
    # corners of the simplex that say the same of everybody, lie above.
    _require(
        right[3] < (answered + 1) / 2,
        f"the random annotator has a mean diagonal of {right[3]:.2f} in confusion_matrices_, and"
        f" {answered:.2f} in its labels. Train longer, use a higher annotator_learning_rate, or"
        " set sees_instances if the head at the simplex's corners says nothing of an annotator",
    )
    _require(right[:3].min() > right[3] + 0.1, f"mean diagonals {right}")


def _require(holds: bool | np.bool_, message: str) -> None:
    """Raises AssertionError where something does not hold, with `python -O` too."""
    if not holds:
        raise AssertionError(message)
