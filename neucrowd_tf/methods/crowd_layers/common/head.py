"""The base of annotator heads: from a classifier's probabilities to each annotator's label."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, TypedDict, Unpack, get_args

import keras
import numpy as np
from keras import ops

from neucrowd_tf.declare.types import Fields, Floats32, Tensor
from neucrowd_tf.nn.keras_private import maker_of

# Activations whose outputs do not sum to one over classes: they are logits or features.
_UNNORMALISED = ("linear", "relu", "leaky_relu", "gelu", "silu", "elu", "tanh", "log_softmax")

# Positions among a batch's instances, and codes of annotators, `[K]` each.
Cells = tuple[Tensor, Tensor]


class LayerOptions(TypedDict, total=False):
    """What any Keras layer takes; a head computes in float64 or, with any other dtype, float32."""

    name: str | None
    trainable: bool
    dtype: Any


class AnnotatorHead(keras.layers.Layer):
    """Base of the heads: class probabilities `[B, C]` to logits `[B, R, C]`.

    The softmax of an annotator's logits has the probability that the annotator gives each label.
    Called with cells too, a head returns only their logits `[K, C]`, and computes nothing for other
    annotators. Sequences `[B, T, C]` give `[B, T, R, C]`.

    A head makes its weights in `build` with `annotator_weight`. It implements `logits`, one formula
    for all annotators and for cells, with `of_instances`, `of_annotators` and `product`. Its
    penalty is among the `losses` of the Keras model that it is in. Keras saves the constructor's
    arguments if they are numbers, text and lists of them, and if the keyword that passes the rest
    on to the layer is called `kwargs`; other heads define `get_config`.

    Attributes:
        log_probabilities: whether the outputs are log-probabilities, which a loss uses without a
            softmax over an annotator's labels.
        takes_probabilities: whether the first input has class probabilities. A layer that cannot
            give them, such as a dense layer without activation, is then an error.
    """

    log_probabilities: ClassVar[bool] = False
    takes_probabilities: ClassVar[bool] = True

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        rest = inspect.getfullargspec(cls.__init__).varkw
        if rest not in (None, "kwargs") and cls.get_config is AnnotatorHead.get_config:
            raise TypeError(
                f"{cls.__name__}.__init__: write **kwargs, not **{rest}, or define get_config."
                " Keras saves no arguments otherwise, not even the layer's name."
            )

    def __init__(self, num_annotators: int, **kwargs: Unpack[LayerOptions]) -> None:
        check_int("num_annotators", num_annotators)
        super().__init__(**{**kwargs, "dtype": float_type(kwargs.get("dtype"))})
        self.num_annotators = num_annotators

    def annotator_weight(self, name: str, shape: tuple[int, ...], initializer: object) -> Tensor:
        """Returns a new weight `[R, *shape]`; see `shared_weight`."""
        return self.shared_weight(name, (self.num_annotators, *shape), initializer)

    def shared_weight(self, name: str, shape: tuple[int, ...], initializer: object) -> Tensor:
        """Returns a new weight `[*shape]`, which is stored as `self.<name>`.

        Every fit draws it anew with its initialiser, which is stored as `self.<name>_initializer`.
        """
        maker = keras.initializers.get(initializer)
        setattr(self, f"{name}_initializer", maker)
        weight = self.add_weight(shape=shape, initializer=maker, name=name)
        setattr(self, name, weight)
        return weight

    def call(self, inputs: Tensor, cells: Cells | None = None) -> Tensor:
        inputs = keras.tree.map_structure(lambda x: ops.cast(x, self.compute_dtype), inputs)
        leading = self._leading(inputs)
        are_sequences = cells is None and len(leading) > 1
        if are_sequences:
            inputs = keras.tree.map_structure(lambda x: ops.reshape(x, (-1, x.shape[-1])), inputs)
        logits = self.logits(inputs, cells)
        penalty = self.penalty(inputs)
        if not isinstance(penalty, float):
            self.add_loss(ops.cast(penalty, keras.config.floatx()))
        if are_sequences:
            return ops.reshape(logits, (*leading, *logits.shape[1:]))
        return logits

    def _leading(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Returns the inputs' shape without the last dimension: (B,) or, of sequences, (B, T)."""
        tensors = keras.tree.flatten(inputs)
        ranks = {len(x.shape) for x in tensors}
        if len(ranks) > 1 or min(ranks) < 2:
            shapes = " and ".join(str(tuple(x.shape)) for x in tensors)
            raise ValueError(
                f"{type(self).__name__}: expected inputs [B, ...] or, of sequences, [B, T, ...],"
                f" received {shapes}. Flatten what has more dimensions."
            )
        return tuple(ops.shape(tensors[0])[:-1])

    def compute_output_spec(self, *args: object, **kwargs: object) -> Tensor:
        """Returns what `call` gives; see `compute_output_shape`.

        Raises:
            ValueError: logits or features where class probabilities are needed.
        """
        if self.takes_probabilities:
            _check_probabilities(type(self).__name__, keras.tree.flatten((args, kwargs))[0])
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def compute_output_shape(self, *args: object, **kwargs: object) -> Tensor:
        """Raises NotImplementedError: only wrappers ask for it, which would repeat the penalty."""
        raise NotImplementedError(
            f"{type(self).__name__} takes sequences [B, T, ...] itself. Call it without"
            " TimeDistributed or another wrapper."
        )

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        """Returns logits `[B, R, C]`, or `[K, C]` of cells."""
        raise NotImplementedError

    def penalty(self, inputs: Tensor) -> Tensor:
        """Returns a scalar that is added to the loss of a batch with these inputs."""
        return 0.0


def _check_probabilities(head: str, inputs: Tensor) -> None:
    """Raises ValueError if a symbolic tensor is the output of a layer of logits or features."""
    try:
        layer, _ = maker_of(inputs)
    except AttributeError:  # a tensor of values
        return
    while isinstance(layer, keras.Model) and getattr(layer, "outputs", None):
        layer, _ = maker_of(layer.outputs[0])
    activation = getattr(getattr(layer, "activation", None), "__name__", "")
    if activation in _UNNORMALISED:
        raise ValueError(
            f"{head}: expected class probabilities, received the output of layer {layer.name!r},"
            f" whose activation is {activation}. Put keras.layers.Softmax() between the two, and"
            " serve the output of this layer."
        )


def float_type(dtype: object) -> str:
    """Returns "float64" of such a dtype or policy, else "float32"; None is Keras' float type.

    Half precision is too coarse for logarithms of small probabilities.
    """
    policy = keras.dtype_policies.get(dtype or keras.config.floatx())
    if policy.compute_dtype == "float64":
        return "float64"
    return "float32"


def stacked_identity(num_classes: int, scale: float = 1.0, off_diagonal: float = 0.0) -> Tensor:
    """Returns an initialiser of `[R, C, C]`: `scale` on each diagonal, `off_diagonal` elsewhere."""
    eye = np.eye(num_classes)
    return keras.initializers.Constant((scale * eye + off_diagonal * (1.0 - eye)).tolist())


def of_instances(values: Tensor, cells: Cells | None) -> Tensor:
    """Returns `[B, 1, h]` of a batch's values `[B, h]`, or `[K, h]` of the cells' instances."""
    if cells is None:
        return values[:, None]
    return ops.take(values, cells[0], axis=0)


def of_annotators(weights: Tensor, cells: Cells | None) -> Tensor:
    """Returns the weights `[R, ...]` of all annotators, or `[K, ...]` of the cells' ones."""
    if cells is None:
        return weights
    return ops.take(weights, cells[1], axis=0)


def product(inputs: Tensor, matrices: Tensor, cells: Cells | None) -> Tensor:
    """Returns inputs `[B, h]` times matrices that `of_annotators` gave: `[B, R, C]` or `[K, C]`."""
    if cells is not None:
        return ops.sum(ops.take(inputs, cells[0], axis=0)[:, :, None] * matrices, axis=1)
    annotators, width, classes = matrices.shape
    flat = ops.reshape(ops.transpose(matrices, (1, 0, 2)), (width, annotators * classes))
    return ops.reshape(ops.matmul(inputs, flat), (-1, annotators, classes))


def certain_answers(head: AnnotatorHead, num_classes: int) -> Floats32:
    """Returns each annotator's probabilities of labels if the class is certain.

    It is `[R, C true, C observed]`, the softmax of the head's logits at the corners of the simplex.
    """
    answers = ops.softmax(head(np.eye(num_classes, dtype=np.float32)), axis=-1)
    return np.ascontiguousarray(np.asarray(answers, dtype=np.float32).transpose(1, 0, 2))


def check_int(name: str, value: object) -> None:
    """Raises TypeError unless a value is an int, the only whole number that Keras saves."""
    if not isinstance(value, int):
        raise TypeError(
            f"{name}: expected an int, received {value!r}. Write int(...): Keras cannot save a"
            " layer with another number."
        )


def check_choice(name: str, value: object, choices: object) -> None:
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

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        limit = (6.0 / (shape[-2] + shape[-1])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype or "float32", seed=self.seed)

    def get_config(self) -> Fields:
        return {"seed": self.seed}
