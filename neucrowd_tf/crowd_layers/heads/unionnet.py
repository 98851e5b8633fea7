"""UnionNet's head: one distribution over the labels of all annotators together."""

from __future__ import annotations

from typing import Any, Literal, Unpack, get_args

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import (
    AnnotatorHead,
    LayerOptions,
    annotator_product,
    cell_product,
)

Variant = Literal["A", "B"]


@keras.saving.register_keras_serializable("neucrowd_tf")
class NearIdentity(keras.initializers.Initializer):
    """`[R, C, C]`: `1 - epsilon` on the diagonals, the rest shared by what is beside them."""

    def __init__(self, epsilon: float = 1e-5) -> None:
        self.epsilon = epsilon

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        eye = ops.eye(shape[1], dtype=dtype or "float32")
        beside = self.epsilon / max(shape[1] - 1, 1)
        return ops.broadcast_to((1.0 - self.epsilon) * eye + beside * (1.0 - eye), shape)

    def get_config(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}


@keras.saving.register_keras_serializable("neucrowd_tf")
class UnionHead(AnnotatorHead):
    """The labels of all annotators as one vector, with one transition matrix to it.

    The vector has R C entries. Outputs are log-probabilities that sum to one over annotators and
    labels together; their softmax over labels is what an annotator would answer.

    Args:
        num_annotators: R.
        variant: "A" takes the softmax of `p T`; "B" that of T for each true class, `p softmax(T)`.
        epsilon: the matrices are the identity but for `epsilon` at first.

    References:
        Wei et al. (2022), Deep learning from multiple noisy annotators as a union, eqs. 2, 6 and 7.
    """

    log_probabilities = True

    def __init__(
        self,
        num_annotators: int,
        variant: Variant = "B",
        epsilon: float = 1e-5,
        **layer: Unpack[LayerOptions],
    ) -> None:
        if variant not in get_args(Variant):
            raise ValueError(f"variant: expected 'A' or 'B', received {variant!r}")
        super().__init__(num_annotators, **layer)
        self.variant, self.epsilon = variant, epsilon
        self.matrix: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        self.matrix = self.annotator_weight(
            "matrix", (classes, classes), NearIdentity(self.epsilon)
        )

    def transition(self) -> Any:
        """Returns variant B's matrices `[R, C true, C observed]`.

        Those of a true class sum to one over annotators and labels.
        """
        weights = ops.convert_to_tensor(self.matrix)
        return ops.exp(weights - ops.logsumexp(weights, axis=(0, 2), keepdims=True))

    def call(self, probabilities: Any) -> Any:
        p = ops.cast(probabilities, "float32")
        if self.variant == "B":
            return ops.log(ops.maximum(annotator_product(p, self.transition()), 1e-30))
        scores = annotator_product(p, self.matrix)
        return scores - ops.logsumexp(scores, axis=(1, 2), keepdims=True)

    def cells(self, inputs: Any, rows: Any, annotators: Any) -> Any:
        p = ops.cast(inputs, "float32")
        if self.variant == "B":
            matrices = ops.take(self.transition(), annotators, axis=0)
            return ops.log(ops.maximum(cell_product(p, rows, matrices), 1e-30))
        # Every annotator's scores are in the sum below the line.
        scores = annotator_product(p, self.matrix)
        scores = scores - ops.logsumexp(scores, axis=(1, 2), keepdims=True)
        places = rows * self.num_annotators + annotators
        return ops.take(ops.reshape(scores, (-1, scores.shape[-1])), places, axis=0)
