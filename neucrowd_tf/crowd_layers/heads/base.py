"""What annotator heads share: from what a classifier says to what each annotator would answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypedDict, Unpack

import keras
from keras import ops


@keras.saving.register_keras_serializable("neucrowd_tf")
class StackedIdentity(keras.initializers.Initializer):
    """`[R, C, C]`: the identity matrix times `scale` for each annotator."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        return ops.broadcast_to(self.scale * ops.eye(shape[1], dtype=dtype or "float32"), shape)

    def get_config(self) -> dict[str, Any]:
        return {"scale": self.scale}


class LayerOptions(TypedDict, total=False):
    """What any Keras layer takes; a head computes in float32 where nothing else is said."""

    name: str | None
    trainable: bool
    dtype: Any


class AnnotatorHead(keras.layers.Layer):
    """Base of the heads: class probabilities `[B, C]` to logits `[B, R, C]`.

    The softmax of an annotator's logits is how likely the annotator gives each label.

    A head keeps its arguments, all that the network depends on, as attributes of their names, makes
    its weights in `build` with `annotator_weight` and computes logits in `call`. In a Keras model
    of anyone's, its penalties are among the model's `losses`, which `fit` adds.

    Attributes:
        log_probabilities: whether the outputs are log-probabilities that a loss takes as they are,
            without a softmax over an annotator's labels.
        penalised: which penalties a call adds to Keras' losses: "all", those of the "batch" alone,
            or "none" (a training loop of one's own adds the others).
    """

    log_probabilities: ClassVar[bool] = False
    penalised: Literal["all", "batch", "none"] = "all"

    def __init__(self, num_annotators: int, **layer: Unpack[LayerOptions]) -> None:
        super().__init__(**{"dtype": "float32", **layer})
        self.num_annotators = num_annotators
        # Within a layer's call Keras' mixed precision casts to that layer's dtype. This one is not
        # tracked as a part of the head.
        object.__setattr__(self, "_penalties", _Penalties(self._terms, self.dtype_policy))

    def annotator_weight(self, name: str, shape: tuple[int, ...], initializer: Any) -> Any:
        """Returns a new weight `[R, *shape]`.

        Every fit draws it anew with its initialiser, which is stored as `self.<name>_initializer`.
        Store the weight itself as `self.<name>`.
        """
        maker = keras.initializers.get(initializer)
        setattr(self, f"{name}_initializer", maker)
        return self.add_weight(
            shape=(self.num_annotators, *shape), initializer=maker, dtype="float32", name=name
        )

    def cells(self, inputs: Any, rows: Any, annotators: Any) -> Any:
        """Returns the logits `[K, C]` of K cells alone, where annotations are far fewer than cells.

        A head that gathers its weights for these annotators costs nothing for the others; this
        fallback computes all and gathers the result.

        Args:
            inputs: `[B, h]`, what `call` takes.
            rows: `[K]` positions among the inputs.
            annotators: `[K]` codes.
        """
        logits = self(inputs)
        places = rows * self.num_annotators + annotators
        return ops.take(ops.reshape(logits, (-1, logits.shape[-1])), places, axis=0)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (input_shape[0], self.num_annotators, input_shape[-1])

    def __call__(self, inputs: Any, *args: Any, **options: Any) -> Any:
        outputs = super().__call__(inputs, *args, **options)
        self.add_penalties(inputs)
        return outputs

    def add_penalties(self, inputs: Any) -> None:
        """Adds to Keras' losses what `penalised` says, unless a graph is only being drawn."""
        first = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
        if isinstance(first, keras.KerasTensor) or self.penalised == "none":
            return
        for term in self._penalties(inputs):
            if not isinstance(term, (int, float)):
                self.add_loss(term)

    def _terms(self, inputs: Any) -> list[Any]:
        terms = [self.batch_penalty(inputs)]
        return [*terms, self.penalty()] if self.penalised == "all" else terms

    def penalty(self) -> Any:
        """Returns a scalar that is added to the loss."""
        return 0.0

    def batch_penalty(self, inputs: Any) -> Any:
        """Returns a scalar of a batch's inputs `[B, h]` that is added to the loss."""
        return 0.0

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, each of which is an attribute of its name."""
        config = super().get_config()
        arguments = inspect.signature(type(self).__init__).parameters
        names = arguments.keys() - config.keys() - {"self", "layer"}
        return config | {name: getattr(self, name) for name in sorted(names)}


class _Penalties(keras.layers.Layer):
    """Computes the penalties of a head in the head's dtype."""

    def __init__(self, terms: Callable[[Any], list[Any]], dtype: Any) -> None:
        super().__init__(dtype=dtype)
        self._terms = terms
        self.built = True

    def call(self, inputs: Any) -> list[Any]:
        return self._terms(inputs)


def cell_product(inputs: Any, rows: Any, matrices: Any) -> Any:
    """Returns `[K, C]`: input `[h]` of each of K rows times its own of the matrices `[K, h, C]`."""
    return ops.sum(ops.take(inputs, rows, axis=0)[:, :, None] * matrices, axis=1)


def annotator_product(rows: Any, matrices: Any) -> Any:
    """Returns `[B, R, C]`: rows `[B, h]` times each of `[R, h, C]`, as one matrix product."""
    matrices = ops.convert_to_tensor(matrices)
    annotators, width, classes = matrices.shape
    flat = ops.reshape(ops.transpose(matrices, (1, 0, 2)), (width, annotators * classes))
    return ops.reshape(ops.matmul(rows, flat), (-1, annotators, classes))
