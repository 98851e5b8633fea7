"""What the networks read, and the order in which they read it: variables and draws that serve every
fit of a compiled model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.crowding.selection import selection_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

PURPOSES = 16


class Crowd:
    """The data as variables whose sizes may change between fits without tracing anything anew.

    Attributes:
        features: `[N, ...]` as the classifier takes them.
        flat: `[N, d]`, the same as the other networks take them.
        annotators: `[R, e]` annotator features, one-hot vectors where none are given.
        instances, codes, labels: `[A]` the authentic annotations.
        observed: `[N, R]` bool.
        counts: `[R]` how many generated annotations of each annotator are selected.
    """

    def __init__(self, feature_shape: Sequence[int], annotator_size: int) -> None:
        def variable(shape: tuple[int | None, ...], dtype: Any) -> tf.Variable:
            return tf.Variable(
                np.zeros([size or 0 for size in shape], dtype),
                shape=shape,
                dtype=dtype,
                trainable=False,
            )

        self.feature_size, self.annotator_size = int(np.prod(feature_shape)), annotator_size
        self._features = variable((None, *feature_shape), np.float32)
        self._annotators = variable((None, annotator_size), np.float32)
        self.instances, self.codes, self.labels = (variable((None,), np.int32) for _ in range(3))
        self.observed = variable((None, None), np.bool_)
        self.counts = variable((None,), np.int32)
        self._seed = tf.Variable(0, dtype=tf.int32, trainable=False)

    def set(
        self,
        features: NDArray[np.float32],
        annotations: Annotations,
        annotators: NDArray[np.float32],
        seed: int,
    ) -> None:
        """Takes the data of a fit.

        Args:
            features: `[N, ...]`.
            annotations: of N instances; generated ones are left out.
            annotators: `[R, e]`.
            seed: from which every draw is derived.
        """
        authentic = annotations.observed()
        observed = observed_cells(authentic)
        for variable, value in (
            (self._features, features),
            (self._annotators, annotators),
            (self.instances, authentic.instances),
            (self.codes, authentic.annotators),
            (self.labels, authentic.labels),
            (self.observed, observed),
            (self.counts, selection_counts(observed)),
            (self._seed, seed % 2**31),
        ):
            variable.assign(value)

    @property
    def features(self) -> Any:
        return tf.convert_to_tensor(self._features)

    @property
    def flat(self) -> Any:
        return tf.reshape(self._features, [-1, self.feature_size])

    @property
    def annotators(self) -> Any:
        return tf.convert_to_tensor(self._annotators)

    @property
    def num_instances(self) -> Any:
        return tf.shape(self._features)[0]

    def draw(self, epoch: Any, purpose: int) -> Any:
        """Returns a seed `[2]` for one of `PURPOSES` purposes in one epoch."""
        return tf.stack(
            [tf.convert_to_tensor(self._seed), tf.cast(epoch, tf.int32) * PURPOSES + purpose]
        )


def observed_cells(annotations: Annotations) -> NDArray[np.bool_]:
    """Returns `[N, R]`: True where an annotator labelled an instance."""
    observed = np.zeros(annotations.shape, dtype=bool)
    observed[annotations.instances, annotations.annotators] = True
    return observed


def fold(seed: Any, number: Any) -> Any:
    """Returns a seed `[2]` of its own for each number."""
    return tf.random.experimental.stateless_fold_in(seed, number)


def shuffled(positions: Any, size: Any, seed: Any) -> Any:
    """Returns where a permutation of 0..size-1, a function of the seed alone, sends some
    positions."""
    return tf.random.experimental.index_shuffle(positions, tf.cast(seed, tf.int32), size - 1)


def batches_of(size: Any, batch: int) -> Any:
    """Returns how many batches `size` rows make."""
    return -tf.math.floordiv(-size, batch)


def batch_positions(index: Any, batch: int, size: Any) -> Any:
    """Returns the positions of a batch among 0..size-1; the last one may be smaller."""
    return tf.range(index * batch, tf.minimum((index + 1) * batch, size))


def at_labels(values: Any, labels: Any) -> Any:
    """Returns each entry's value at its label, `[..., C]` and `[...]` to `[...]`.

    A gather along a batch has a gradient of two dozen operations; this has one.
    """
    return tf.reduce_sum(tf.one_hot(labels, tf.shape(values)[-1]) * values, axis=-1)


def gradients(tape: tf.GradientTape, loss: Any, variables: Sequence[Any]) -> list[Any]:
    """Returns the gradients of Keras variables; zeros for one that the loss does not touch (an
    ablation's unused encoder).

    TensorFlow makes these zeros from its own variables only; from Keras' it raises an
    AttributeError.
    """
    return list(
        tape.gradient(
            loss,
            [variable.value for variable in variables],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
    )


# The loops below are written out, as AutoGraph's conversion of Python loops takes longer than all
# the rest of tracing.


def passes_over(passes: Any, count: Any, width: int, step: Callable[[Any, Any], Any]) -> Any:
    """Makes several passes over batches and returns the sums `[width]` over the last one.

    Args:
        passes, count: how many passes, and batches in each.
        step: `step(turn, index)` trains on a batch of a pass and returns what is summed.
    """

    def body(number: Any, sums: Any) -> tuple[Any, Any]:
        turn, index = number // count, number % count
        return number + 1, tf.where(index == 0, tf.zeros_like(sums), sums) + step(turn, index)

    return tf.while_loop(
        lambda number, _: number < passes * count,
        body,
        (tf.constant(0), tf.zeros([width])),
        parallel_iterations=1,
    )[1]


def gathered(
    count: Any, kinds: tuple[Any, ...], compute: Callable[[Any], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Computes matrices batch by batch and returns them whole.

    Args:
        count: how many batches.
        kinds: the dtype of each matrix.
        compute: `compute(index)` returns the rows `[b, R]` of each matrix.
    """
    arrays = tuple(
        tf.TensorArray(kind, count, infer_shape=False, element_shape=[None, None]) for kind in kinds
    )

    def body(index: Any, *arrays: Any) -> tuple[Any, ...]:
        return index + 1, *(
            array.write(index, part) for array, part in zip(arrays, compute(index), strict=True)
        )

    _, *filled = tf.while_loop(
        lambda index, *_: index < count, body, (tf.constant(0), *arrays), parallel_iterations=1
    )
    return tuple(array.concat() for array in filled)
