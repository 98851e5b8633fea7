"""What annotator heads share: from what a classifier says to what each annotator would answer."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self, TypedDict, Unpack, get_args

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from neucrowd_tf.errors import DataError

# Positions among a batch's instances, and codes of annotators, `[K]` each.
Cells = tuple[Any, Any]


class LayerOptions(TypedDict, total=False):
    """What any Keras layer takes; a head computes in float32 where nothing else is said."""

    name: str | None
    trainable: bool
    dtype: Any


class AnnotatorHead(keras.layers.Layer):
    """Base of the heads: class probabilities `[B, C]` to logits `[B, R, C]`.

    The softmax of an annotator's logits is how likely the annotator gives each label. Called with
    cells too, a head gives `[K, C]`, the logits of these alone; then nothing is computed for the
    other annotators.

    A head keeps its arguments, all that the network depends on, as attributes of their names, and
    makes its weights in `build` with `annotator_weight`. It implements `logits`, one formula for
    all annotators and for cells, with `of_instances`, `of_annotators` and `product`. Its penalty is
    among the `losses` of the Keras model that it is in.

    Attributes:
        log_probabilities: whether the outputs are log-probabilities that a loss takes as they are,
            without a softmax over an annotator's labels.
    """

    log_probabilities: ClassVar[bool] = False

    def __new__(cls, *args: Any, **passed: Any) -> Self:
        head: Self = super().__new__(cls, *args, **passed)
        object.__setattr__(head, "_passed", passed)
        return head

    def __init__(self, num_annotators: int, **layer: Unpack[LayerOptions]) -> None:
        super().__init__(**{"dtype": "float32", **layer})
        self.num_annotators = num_annotators

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

    def call(self, inputs: Any, cells: Cells | None = None) -> Any:
        logits, penalty = self.logits(inputs, cells), self.penalty(inputs)
        if not isinstance(penalty, float):
            self.add_loss(penalty)
        return logits

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        """Returns logits `[B, R, C]`, or `[K, C]` of cells."""
        raise NotImplementedError

    def penalty(self, inputs: Any) -> Any:
        """Returns a scalar that is added to the loss of a batch with these inputs."""
        return 0.0

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, each of which is an attribute of its name.

        Those that were passed on by `**kwargs` are as they were passed.

        Raises:
            DataError: an argument that is no attribute, or `*args`.
        """
        config = super().get_config()
        arguments = inspect.signature(type(self).__init__).parameters
        values = dict(vars(self)["_passed"])
        for name, argument in arguments.items():
            if argument.kind is argument.VAR_KEYWORD or name in {"self", *config}:
                continue
            if not hasattr(self, name):
                raise DataError(
                    f"{type(self).__name__}: its argument {name} is not saved. Keep it as"
                    f" self.{name}, or define get_config."
                )
            values[name] = getattr(self, name)
        return {**values, **config}


def stacked_identity(num_classes: int, scale: float = 1.0, beside: float = 0.0) -> Any:
    """Returns an initialiser of `[R, C, C]`: `scale` on each diagonal and `beside` elsewhere."""
    eye = np.eye(num_classes)
    return keras.initializers.Constant((scale * eye + beside * (1.0 - eye)).tolist())


def of_instances(values: Any, cells: Cells | None) -> Any:
    """Returns `[B, 1, h]` of a batch's values `[B, h]`, or `[K, h]` of the cells' instances."""
    return values[:, None] if cells is None else ops.take(values, cells[0], axis=0)


def of_annotators(weights: Any, cells: Cells | None) -> Any:
    """Returns the weights `[R, ...]` of all annotators, or `[K, ...]` of the cells' ones."""
    return ops.convert_to_tensor(weights) if cells is None else ops.take(weights, cells[1], axis=0)


def product(inputs: Any, matrices: Any, cells: Cells | None) -> Any:
    """Returns inputs `[B, h]` times matrices that `of_annotators` gave: `[B, R, C]` or `[K, C]`."""
    if cells is not None:
        return ops.sum(ops.take(inputs, cells[0], axis=0)[:, :, None] * matrices, axis=1)
    annotators, width, classes = matrices.shape
    flat = ops.reshape(ops.transpose(matrices, (1, 0, 2)), (width, annotators * classes))
    return ops.reshape(ops.matmul(inputs, flat), (-1, annotators, classes))


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


@keras.saving.register_keras_serializable("neucrowd_tf")
class HeadsUniform(keras.initializers.Initializer):
    """Glorot's uniform initialiser for `[R, h, C]` kernels.

    The fans are those of one annotator's `[h, C]`.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        limit = (6.0 / (shape[-2] + shape[-1])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype or "float32", seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed}
