"""What the networks read, and in which order: the data as variables that serve every fit of a
compiled model, batches, draws, and what the entropy selects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.crowd_layers.losses import cross_entropies
from neucrowd_tf.training.tuplets import step_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

PURPOSES = 16
_LEAST_ENTROPY = 1e-6
_LEAST_PROBABILITY = 1e-12


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

    def shaped(self, flat: Any) -> Any:
        """Returns `[B, d]` features as the classifier takes them."""
        return tf.reshape(flat, [-1, *self._features.shape[1:]])

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


class Counter:
    """A pipeline of step numbers that is made once and read by every fit (making one costs more
    than reading it).
    """

    def __init__(self) -> None:
        self._made: dict[int, tf.data.Dataset] = {}

    def __call__(self, first_step: int) -> tf.data.Dataset:
        if first_step not in self._made:
            self._made[first_step] = step_numbers(first_step)
        return self._made[first_step]


# What is drawn.


def label_probabilities(logits: Any, labels: Any) -> Any:
    """Returns softmax(logits) at one label each, `[..., C]` and `[...]` to `[...]`."""
    return tf.exp(-cross_entropies(labels, logits))


def pair_noise(seed: Any, shape: Any) -> Any:
    """Returns standard normal noise, a function of the seed `[2]` alone."""
    return tf.random.stateless_normal(shape, seed=seed)


def draw_labels(logits: Any, seed: Any) -> Any:
    """Returns labels drawn from `softmax(logits)`, `[..., C] -> [...]` int32, a function of the
    seed `[2]` alone.

    References:
        CrowdInG, section 3.2.1.
    """
    shape = tf.shape(logits)
    flat = tf.reshape(logits, [-1, shape[-1]])
    drawn = tf.random.stateless_categorical(flat, 1, seed, dtype=tf.int32)
    return tf.reshape(drawn, shape[:-1])


def draw_classes(latent: Any, columns: Any, seed: Any) -> Any:
    """Returns a class drawn from z-hat for each annotator, `[B, C] -> [B, R]` int32.

    References:
        CrowdInG, eq. 3 (z-hat ~ P(z-hat)).
    """
    logits = tf.math.log(tf.maximum(latent, _LEAST_PROBABILITY))[:, None, :]
    shape = [tf.shape(latent)[0], columns, tf.shape(latent)[1]]
    return draw_labels(tf.broadcast_to(logits, shape), seed)


def mixed(latent: Any, logits: Any) -> Any:
    """Returns log sum_z z-hat_z softmax(logits_z), `[..., C]` and `[..., C, C] -> [..., C]`."""
    weights = tf.math.log(tf.maximum(latent, _LEAST_PROBABILITY))[..., None]
    return tf.reduce_logsumexp(weights + tf.nn.log_softmax(logits), axis=-2)


# What the entropy decides: which generated annotations the discriminator learns from, and which
# instances teach the generator or the classifier.


def entropy(probabilities: Any) -> Any:
    """Returns the Shannon entropy of distributions in nats, `[..., C] -> [...]`; 0 log 0 counts as
    0.
    """
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)


def selection_counts(observed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Returns `[R]`: how many generated annotations of each annotator are taken.

    As many as there are authentic ones, but no more than the annotator has unlabelled instances:
    who labelled nearly everything has all the rest taken.

    Args:
        observed: `[N, R]` True where there is an authentic annotation.

    References:
        CrowdInG, section 3.3.1.
    """
    authentic = observed.sum(axis=0)
    return np.minimum(authentic, len(observed) - authentic).astype(np.int32)


def select_annotations(
    entropies: Any, observed: Any, counts: Any, seed: Any, *, by_entropy: bool = True
) -> tuple[Any, Any]:
    """Draws unobserved pairs without replacement, for each annotator the wanted number, with
    probability proportional to 1/entropy.

    Perturbing the logarithm of the weights with Gumbel noise and taking the largest is such a draw
    (Kool et al., 2019).

    Args:
        entropies: `[N, R]` of the generator's distribution for each pair.
        observed: `[N, R]` bool.
        counts: `[R]` from `selection_counts`.
        seed: `[2]`, decides the draw.
        by_entropy: False draws all unobserved pairs with the same probability (CrowdInGR).

    Returns:
        instance and annotator codes `[sum of counts]`, sorted by annotator.

    References:
        CrowdInG, section 3.3.1 (P(y) proportional to 1 / H(G)), section 4.5.1 (CrowdInGR).
    """
    uniform = tf.random.stateless_uniform(
        tf.shape(observed), seed=seed, minval=np.finfo(np.float32).tiny
    )
    keys = -tf.math.log(-tf.math.log(uniform))
    if by_entropy:
        keys -= tf.math.log(tf.maximum(entropies, _LEAST_ENTROPY))
    keys = tf.where(observed, -np.inf, keys)
    ranked = tf.argsort(tf.transpose(keys), axis=1, direction="DESCENDING", stable=True)
    taken = tf.sequence_mask(counts, tf.shape(ranked)[1])
    annotators = tf.cast(tf.where(taken)[:, 0], tf.int32)
    return tf.boolean_mask(ranked, taken), annotators


def split_by_entropy(entropies: Any, threshold: float) -> tuple[Any, Any]:
    """Returns the instances that update the generator, and the rest, which update the classifier.

    Where the classifier is sure it is more often right, so these instances show the generator what
    annotators make of a class; the updated generator then teaches the classifier on the instances
    of which it is not sure.

    Args:
        entropies: `[N]` of the classifier's predictions.
        threshold: t, the share of the instances, those with the lowest entropy, that go to the
            generator.

    Returns:
        two vectors of instance codes, `round(t N)` and the others, each by increasing entropy; of
        two instances or more, each gets one at least.

    References:
        CrowdInG, section 3.3.3.
    """
    order = tf.argsort(entropies, stable=True)
    # Deviation: t is a share rather than a value of the entropy, so that it means the same whatever
    # the number of classes.
    size = tf.cast(tf.round(threshold * tf.cast(tf.size(order), tf.float32)), tf.int32)
    size = tf.clip_by_value(size, 1, tf.maximum(tf.size(order) - 1, 1))
    return order[:size], order[size:]
