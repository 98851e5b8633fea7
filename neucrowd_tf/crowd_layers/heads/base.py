"""What annotator heads share: from what a classifier says to what each annotator would answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, Unpack, get_args

import keras
import numpy as np
from keras import ops

if TYPE_CHECKING:
    from numpy.typing import NDArray


@keras.saving.register_keras_serializable("neucrowd_tf")
class StackedIdentity(keras.initializers.Initializer):
    """`[R, C, C]`: for each annotator `scale` on the diagonal and `beside` elsewhere."""

    def __init__(self, scale: float = 1.0, beside: float = 0.0) -> None:
        self.scale, self.beside = scale, beside

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        eye = ops.eye(shape[1], dtype=dtype or "float32")
        return ops.broadcast_to(self.scale * eye + self.beside * (1.0 - eye), shape)

    def get_config(self) -> dict[str, Any]:
        return {"scale": self.scale, "beside": self.beside}


# Positions among a batch's instances, and codes of annotators, `[K]` each.
Cells = tuple[Any, Any]


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
        """Returns a new weight `[R, *shape]`; see `shared_weight`."""
        return self.shared_weight(name, (self.num_annotators, *shape), initializer)

    def shared_weight(self, name: str, shape: tuple[int, ...], initializer: Any) -> Any:
        """Returns a new weight `[*shape]`, which is stored as `self.<name>`.

        Every fit draws it anew with its initialiser, which is stored as `self.<name>_initializer`.
        """
        maker = keras.initializers.get(initializer)
        setattr(self, f"{name}_initializer", maker)
        weight = self.add_weight(shape=shape, initializer=maker, dtype="float32", name=name)
        setattr(self, name, weight)
        return weight

    def cells(self, inputs: Any, rows: Any, annotators: Any) -> Any:
        """Returns the logits `[K, C]` of K cells alone, where annotations are far fewer than cells.

        A head that gathers its weights for these annotators costs nothing for the others; this
        fallback computes all and gathers the result.

        Args:
            inputs: `[B, h]`, what `call` takes.
            rows: `[K]` positions among the inputs.
            annotators: `[K]` codes.
        """
        return self.take_cells(self(inputs), rows, annotators)

    def take_cells(self, logits: Any, rows: Any, annotators: Any) -> Any:
        """Returns `[K, C]` of logits `[B, R, C]`."""
        places = rows * self.num_annotators + annotators
        return ops.take(ops.reshape(logits, (-1, logits.shape[-1])), places, axis=0)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        several = isinstance(input_shape[0], (list, tuple))  # class probabilities come first
        batch, *_, classes = input_shape[0] if several else input_shape
        return (batch, self.num_annotators, classes)

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


class GatheringHead(AnnotatorHead):
    """Base of heads whose cells' logits need no other annotators' weights.

    A subclass implements `logits`, one formula for all annotators and for single cells, with
    `of_instances`, `of_annotators` and `product`.
    """

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        """Returns logits `[B, R, C]`, or `[K, C]` of cells."""
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        return self.logits(inputs, None)

    def cells(self, inputs: Any, rows: Any, annotators: Any) -> Any:
        return self.logits(inputs, (rows, annotators))


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


def of_instances(values: Any, cells: Cells | None) -> Any:
    """Returns `[B, 1, h]` of a batch's values `[B, h]`, or `[K, h]` of the cells' instances."""
    return values[:, None] if cells is None else ops.take(values, cells[0], axis=0)


def of_annotators(weights: Any, cells: Cells | None) -> Any:
    """Returns the weights `[R, ...]` of all annotators, or `[K, ...]` of the cells' ones."""
    return ops.convert_to_tensor(weights) if cells is None else ops.take(weights, cells[1], axis=0)


def product(inputs: Any, matrices: Any, cells: Cells | None) -> Any:
    """Returns inputs `[B, h]` times matrices that `of_annotators` gave: `[B, R, C]` or `[K, C]`."""
    if cells is None:
        return annotator_product(inputs, matrices)
    return cell_product(inputs, cells[0], matrices)


def certain_answers(head: AnnotatorHead, num_classes: int) -> NDArray[np.float32]:
    """Returns `[R, C true, C observed]`: each annotator's answers if the class is certain.

    These are the head's at the corners of the simplex.
    """
    answers = ops.softmax(head(np.eye(num_classes, dtype=np.float32)), axis=-1)
    return np.ascontiguousarray(np.asarray(answers, dtype=np.float32).transpose(1, 0, 2))


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raises ValueError unless a value is one of those of a `Literal`."""
    if value not in get_args(choices):
        shown = " or ".join(map(repr, get_args(choices)))
        raise ValueError(f"{name}: expected {shown}, received {value!r}")


def annotator_product(rows: Any, matrices: Any) -> Any:
    """Returns `[B, R, C]`: rows `[B, h]` times each of `[R, h, C]`, as one matrix product."""
    matrices = ops.convert_to_tensor(matrices)
    annotators, width, classes = matrices.shape
    flat = ops.reshape(ops.transpose(matrices, (1, 0, 2)), (width, annotators * classes))
    return ops.reshape(ops.matmul(rows, flat), (-1, annotators, classes))
