"""Similarities between embeddings, and the softmax over a tuplet that NeuCrowd and RLL share."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

EPSILON = 1e-12


def widened(x: Any) -> Any:
    """Returns a tensor, as float32 where it is float16: that rounds `EPSILON` to 0 and cannot hold
    squares from 256 on.
    """
    tensor = ops.convert_to_tensor(x)
    return (
        ops.cast(tensor, "float32")
        if keras.backend.standardize_dtype(tensor.dtype) == "float16"
        else tensor
    )


def cosine_similarity(a: Any, b: Any) -> Any:
    """Returns the cosine between vectors along the last axis (RLL, section III-A); 0 where one of
    them is zero.
    """
    a, b = widened(a), widened(b)
    dot = ops.sum(a * b, axis=-1)
    norms = ops.sum(ops.square(a), axis=-1) * ops.sum(ops.square(b), axis=-1)
    return dot * ops.rsqrt(ops.maximum(norms, EPSILON))


def euclidean_similarity(a: Any, b: Any, offset: float = 1.0) -> Any:
    """Returns `offset - ||a - b||` along the last axis (NeuCrowd, section 3.3.3: C - l2 distance).

    The gradient at distance zero, where the norm has none, is zero.
    """
    squared = ops.sum(ops.square(widened(a) - widened(b)), axis=-1)
    return offset - ops.sqrt(ops.maximum(squared, EPSILON))


def similarity(name: str, a: Any, b: Any, offset: float = 1.0) -> Any:
    """Returns "cosine" or "euclidean" similarity.

    Raises:
        ValueError: another name.
    """
    if name == "cosine":
        return cosine_similarity(a, b)
    if name == "euclidean":
        return euclidean_similarity(a, b, offset)
    raise ValueError(f"similarity: expected 'cosine' or 'euclidean', received {name!r}")


def tuplet_log_likelihood(
    similarities: Any, weights: Any, *, eta: float, weight_inside: bool
) -> Any:
    """Returns log p(positive | anchor) of each tuplet, `[..., n - 1] -> [...]`.

    Args:
        similarities: `[..., n - 1]` similarity to the anchor; the positive example comes first.
        weights: `[..., n - 1]` confidence or assurance of each example's label, within [0, 1].
        eta: the smoothing hyper-parameter, the inverse of a temperature.
        weight_inside: True multiplies the similarity inside the exponent, as both papers print it;
            False multiplies the exponential itself, as NeuCrowd's released code does, in which case
            an offset C cancels.

    References:
        RLL, eq. (3); NeuCrowd, section 3.3.3.
    """
    if weight_inside:
        logits = eta * weights * similarities
    else:
        # Deviation: a weight of 0 counts as 1e-6, or the loss of a tied positive example would be
        # infinite.
        logits = eta * similarities + ops.log(ops.maximum(weights, 1e-6))
    return logits[..., 0] - ops.logsumexp(logits, axis=-1)


@keras.saving.register_keras_serializable(package="neucrowd_tf")
class TupletLoss(keras.losses.Loss):
    """`-log p(positive | anchor)` for batches of tuplets, usable in anyone's model.

    Call it with weights `[batch, n - 1]` as `y_true` and similarities `[batch, n - 1]` as `y_pred`,
    positive first.
    """

    def __init__(
        self,
        eta: float = 10.0,
        weight_inside: bool = True,
        reduction: str = "mean",
        name: str = "tuplet_loss",
    ) -> None:
        super().__init__(reduction=reduction, name=name)
        self.eta, self.weight_inside = eta, weight_inside

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return -tuplet_log_likelihood(
            y_pred, y_true, eta=self.eta, weight_inside=self.weight_inside
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "eta": self.eta, "weight_inside": self.weight_inside}
