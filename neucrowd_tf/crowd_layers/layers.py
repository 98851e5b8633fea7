"""Annotator heads as Keras layers: from what a classifier says to what each annotator would answer.

Every head maps to logits `[B, R, C]`, whose softmax is the probability of each annotator's answer,
and has `penalty()`, what it adds to the loss.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import keras
from keras import ops

Connection = Literal["MW", "VW", "VB", "VW+B"]
Normalisation = Literal["row", "column"]


@keras.saving.register_keras_serializable("neucrowd_tf")
class StackedIdentity(keras.initializers.Initializer):
    """`[R, C, C]`: the identity matrix times `scale` for each annotator."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        return ops.broadcast_to(self.scale * ops.eye(shape[1], dtype=dtype or "float32"), shape)

    def get_config(self) -> dict[str, Any]:
        return {"scale": self.scale}


class AnnotatorHead(keras.layers.Layer):
    """Base of the heads: how many annotators there are, and no penalty."""

    def __init__(
        self,
        num_annotators: int,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        self.num_annotators = num_annotators

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (input_shape[0], self.num_annotators, input_shape[-1])

    def penalty(self) -> Any:
        """Returns a scalar that is added to the loss."""
        return 0.0

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_annotators": self.num_annotators}


@keras.saving.register_keras_serializable("neucrowd_tf")
class CrowdConnection(AnnotatorHead):
    """The crowd layer: class probabilities `[B, C]` to each annotator's logits `[B, R, C]`.

    Args:
        num_annotators: R.
        connection: "MW", a matrix for each annotator, `p W_k` (eq. 8 of DASC); "VW", a weight for
            each class, `p * w_k`; "VB", a bias for each class, `p + b_k`; or "VW+B", both.

    References:
        Rodrigues and Pereira (2018), Deep learning from crowds; DASC, eq. 8.
    """

    def __init__(
        self,
        num_annotators: int,
        connection: Connection = "MW",
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = "float32",
    ) -> None:
        if connection not in get_args(Connection):
            raise ValueError(
                f"connection: expected one of {', '.join(get_args(Connection))}, received"
                f" {connection!r}"
            )
        super().__init__(num_annotators, name=name, trainable=trainable, dtype=dtype)
        self.connection = connection
        self.matrix_initializer = StackedIdentity()
        self.vector_initializer = keras.initializers.Ones()
        self.bias_initializer = keras.initializers.Zeros()
        self.matrix: Any = None
        self.vector: Any = None
        self.bias: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        if self.connection == "MW":
            self.matrix = self.add_weight(
                shape=(self.num_annotators, classes, classes),
                initializer=self.matrix_initializer,
                dtype="float32",
                name="matrix",
            )
        if self.connection in ("VW", "VW+B"):
            self.vector = self.add_weight(
                shape=(self.num_annotators, classes),
                initializer=self.vector_initializer,
                dtype="float32",
                name="vector",
            )
        if self.connection in ("VB", "VW+B"):
            self.bias = self.add_weight(
                shape=(self.num_annotators, classes),
                initializer=self.bias_initializer,
                dtype="float32",
                name="bias",
            )

    def call(self, probabilities: Any) -> Any:
        p = ops.cast(probabilities, "float32")
        if self.connection == "MW":
            return annotator_product(p, self.matrix)
        logits = p[:, None, :]
        if self.vector is not None:
            logits = logits * self.vector[None]
        if self.bias is not None:
            logits = logits + self.bias[None]
        return logits

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "connection": self.connection}


@keras.saving.register_keras_serializable("neucrowd_tf")
class ConfusionHead(AnnotatorHead):
    """Anno-Reg: a softmax makes each annotator's matrix stochastic, and its trace is penalised.

    Args:
        num_annotators: R.
        normalisation: "row" makes each W_k a confusion matrix [true, observed], so `p W_k` is a
            distribution by itself; "column" is eq. 10 as printed, inside eq. 8's softmax.
        trace_weight: lambda of eq. 11, on the mean trace over annotators.
        initial: W_k is `initial` times the identity at first; near 0 training fails outright.

    References:
        Tanno et al. (2019), Learning from noisy labels by regularized estimation of annotator
        confusion; DASC, eqs. 10 and 11.
    """

    def __init__(
        self,
        num_annotators: int,
        normalisation: Normalisation = "row",
        trace_weight: float = 0.01,
        initial: float = 2.0,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = "float32",
    ) -> None:
        if normalisation not in get_args(Normalisation):
            raise ValueError(
                f"normalisation: expected 'row' or 'column', received {normalisation!r}"
            )
        super().__init__(num_annotators, name=name, trainable=trainable, dtype=dtype)
        self.normalisation, self.trace_weight, self.initial = normalisation, trace_weight, initial
        self.matrix_initializer = StackedIdentity(initial)
        self.matrix: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        self.matrix = self.add_weight(
            shape=(self.num_annotators, classes, classes),
            initializer=self.matrix_initializer,
            dtype="float32",
            name="matrix",
        )

    def matrices(self) -> Any:
        """Returns the stochastic matrices `[R, C true, C observed]`."""
        # Deviation: eq. 10 prints a softmax over columns; rows make W_k the confusion matrix that
        # the text speaks of.
        return ops.softmax(
            ops.convert_to_tensor(self.matrix), axis=-1 if self.normalisation == "row" else -2
        )

    def call(self, probabilities: Any) -> Any:
        products = annotator_product(ops.cast(probabilities, "float32"), self.matrices())
        if self.normalisation == "column":
            return products
        # Rows of p and of W_k sum to one, so the logarithm is a logit whose softmax is the product
        # itself.
        return ops.log(ops.maximum(products, 1e-12))

    def penalty(self) -> Any:
        """Returns lambda times the mean trace (eq. 11)."""
        # Deviation: the mean over annotators instead of the sum, as in Tanno et al., so that lambda
        # does not depend on their number.
        return self.trace_weight * ops.mean(ops.trace(self.matrices(), axis1=-2, axis2=-1))

    def get_config(self) -> dict[str, Any]:
        own = {
            "normalisation": self.normalisation,
            "trace_weight": self.trace_weight,
            "initial": self.initial,
        }
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable("neucrowd_tf")
class DoctorHeads(AnnotatorHead):
    """A linear classifier for each annotator on shared features: `[B, h]` to logits `[B, R, C]`
    (DASC, eq. 5).

    Args:
        num_annotators: R.
        num_classes: C.
        l2: kernel penalty, `l2 * sum(kernel ** 2) / R`: what the penalty of one classifier would
            be, on average.
        seed: draws the kernels.
    """

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        l2: float = 0.0,
        seed: int = 0,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(num_annotators, name=name, trainable=trainable, dtype=dtype)
        self.num_classes, self.l2, self.seed = num_classes, l2, seed
        self.kernel_initializer = HeadsUniform(seed)
        self.bias_initializer = keras.initializers.Zeros()
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = int(input_shape[-1])  # type: ignore[arg-type]
        shape = (self.num_annotators, width, self.num_classes)
        self.kernel = self.add_weight(
            shape=shape, initializer=self.kernel_initializer, dtype="float32", name="kernel"
        )
        self.bias = self.add_weight(
            shape=(self.num_annotators, self.num_classes),
            initializer=self.bias_initializer,
            dtype="float32",
            name="bias",
        )

    def call(self, features: Any) -> Any:
        return annotator_product(ops.cast(features, "float32"), self.kernel) + self.bias[None]

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (input_shape[0], self.num_annotators, self.num_classes)

    def penalty(self) -> Any:
        """Returns the kernels' mean penalty."""
        return (
            self.l2 * ops.sum(ops.square(ops.convert_to_tensor(self.kernel))) / self.num_annotators
            if self.l2
            else 0.0
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "l2": self.l2,
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable("neucrowd_tf")
class HeadsUniform(keras.initializers.Initializer):
    """Glorot's uniform initialiser for `[R, h, C]` kernels, with the fans of one annotator's `[h,
    C]`.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        limit = (6.0 / (shape[-2] + shape[-1])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype or "float32", seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed}


@keras.saving.register_keras_serializable("neucrowd_tf")
class Standardise(keras.layers.Layer):
    """`(x - mean) / scale` with constants that are weights, after a signed square root where asked
    for.

    Args:
        square_root: whether `sign(x) sqrt(|x|)` comes first (pooled activations have long tails).
    """

    def __init__(
        self,
        square_root: bool = False,
        *,
        name: str | None = None,
        trainable: bool = False,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        self.square_root = square_root
        self.mean: Any = None
        self.scale: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = (int(input_shape[-1]),)  # type: ignore[arg-type]
        self.mean = self.add_weight(
            shape=width, initializer="zeros", trainable=False, dtype="float32", name="mean"
        )
        self.scale = self.add_weight(
            shape=width, initializer="ones", trainable=False, dtype="float32", name="scale"
        )

    def call(self, features: Any) -> Any:
        x = ops.cast(features, "float32")
        if self.square_root:
            x = ops.sign(x) * ops.sqrt(ops.abs(x))
        return (x - self.mean) / self.scale

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "square_root": self.square_root}


def annotator_product(rows: Any, matrices: Any) -> Any:
    """Returns `[B, R, C]`: rows `[B, h]` times each of `[R, h, C]`, as one matrix product."""
    matrices = ops.convert_to_tensor(matrices)
    annotators, width, classes = matrices.shape
    flat = ops.reshape(ops.transpose(matrices, (1, 0, 2)), (width, annotators * classes))
    return ops.reshape(ops.matmul(rows, flat), (-1, annotators, classes))
