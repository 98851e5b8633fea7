"""Drawing n-tuplets by index.

A tuplet is an anchor, a positive example of the same class, and n - 2 negatives of other classes.

Instances are kept in an order in which each class is one block, and the running sum of their
relative probabilities turns a uniform number into an instance. To draw without repetition, the
intervals of earlier draws are cut out of the line and the next number is stretched over what is
left, so a tuplet needs exactly n uniform numbers and no rejection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from neucrowd_tf.errors import DataError


def uniform_batches(seed: int, batch: int, width: int) -> Any:
    """Returns `make(first_step)`, a pipeline of `[batch, width]` uniform numbers.

    They are functions of (seed, step) alone.
    """

    def draw(step: tf.Tensor) -> tf.Tensor:
        return tf.random.stateless_uniform(
            [batch, width], seed=tf.stack([tf.constant(seed, tf.int64), step]), dtype=tf.float64
        )

    return _pipelines(draw)


def _pipelines(draw: Callable[[tf.Tensor], tf.Tensor]) -> Callable[[int], tf.data.Dataset]:
    """Returns `make(first_step)`, a pipeline of what `draw` gives for each step from there on."""
    plain = tf.autograph.experimental.do_not_convert(draw)

    def make(first_step: int) -> tf.data.Dataset:
        steps = step_numbers(first_step)
        return prefetch(steps.map(plain, num_parallel_calls=1, deterministic=True))

    return make


def all_pairs(seed: int, positives: int, batch: int, width: int) -> Any:
    """Returns `make(first_step)`, batches of uniform numbers that stand for all pairs of positives.

    They are `[batch, width]`, functions of (seed, step) alone, and mean this to a `TupletIndex`
    that draws uniformly. Pairs are shuffled, each has negatives of its own, and every pass has the
    same ones. A pass leaves out the pairs that do not fill a batch.

    Args:
        seed: draws the order and the negatives.
        positives: how many instances have the positive class, at least 2.
        batch: tuplets a batch.
        width: n.
    """
    pairs = positives * (positives - 1)
    passes = max(1, pairs // batch)

    def draw(step: tf.Tensor) -> tf.Tensor:
        place = ((step % passes) * batch + tf.range(batch, dtype=tf.int64)) % pairs
        order = tf.constant([seed, pairs], tf.int64)
        pair = tf.random.experimental.index_shuffle(place, seed=order, max_index=pairs - 1)
        # The middle of the interval of an anchor, and of one of the others as its positive.
        first, second = pair // (positives - 1), pair % (positives - 1)
        members = [(first, positives), (second, positives - 1)]
        chosen = [(tf.cast(row, tf.float64) + 0.5) / size for row, size in members]
        draw_seed = tf.stack([tf.constant(seed, tf.int64), step % passes])
        shape = [batch, width - 2]
        negatives = tf.random.stateless_uniform(shape, seed=draw_seed, dtype=tf.float64)
        return tf.concat([tf.stack(chosen, axis=1), negatives], axis=1)

    return _pipelines(draw)


def class_batches(seed: int, labels: NDArray[np.integer[Any]], batch: int) -> Any:
    """Returns `make(first_step)`, a pipeline of `[batch // C, C]` int32 instance positions.

    They are functions of (seed, step) alone.

    Each column holds instances of one of the C classes that occur, without repeats unless the class
    has fewer than that many: those go round again. A batch is a pseudo-random permutation of each
    class, cut off, which costs no more for many instances than for few.

    Args:
        seed: draws the batches.
        labels: `[N]` class codes.
        batch: how many instances a batch has, rounded down to equal parts; at least two of each
            class.

    Raises:
        DataError: fewer than two classes occur.
    """
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(f"expected labels of at least two classes, received {len(classes)}")
    members = [tf.constant(np.flatnonzero(labels == c).astype(np.int32)) for c in classes]
    share = max(2, batch // len(classes))

    def draw(step: tf.Tensor) -> tf.Tensor:
        columns = []
        for column, rows in enumerate(members):
            size = int(rows.shape[0])
            place = tf.range(share, dtype=tf.int32) % size
            if size > 1:
                draw_seed = tf.stack([tf.constant(seed * len(members) + column, tf.int64), step])
                place = tf.random.experimental.index_shuffle(
                    place, seed=draw_seed, max_index=size - 1
                )
            columns.append(tf.gather(rows, place))
        return tf.stack(columns, axis=1)

    return _pipelines(draw)


def step_numbers(first: int, by: int = 1) -> tf.data.Dataset:
    """Returns the numbers `first`, `first + by`, ... without an end.

    `tf.data.Dataset.counter` gives them too, but it leaves the graph of its addition in the global
    graph with each call, for as long as the process lives. There is nothing to tune in it, and a
    pipeline's tuner makes tearing down its iterator wait up to .6 s.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.range(first, tf.int64.max, by).with_options(options)


def prefetch(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the pipeline with prefetched elements.

    They are on the GPU if there is one; a strategy places them itself.
    """
    devices = tf.config.list_logical_devices("GPU")
    if devices and not tf.distribute.has_strategy():
        return dataset.apply(tf.data.experimental.prefetch_to_device(devices[0].name))
    return dataset.prefetch(tf.data.AUTOTUNE)


class TupletIndex:
    """The instances of a training set by class, and how a uniform number becomes one of them.

    Args:
        labels: `[N]` class codes.
        classes: the classes that take the positive role in turn; two classes default to the
            positive one alone (class 1), more classes to all of them.
        negatives: n - 2, how many different negatives a tuplet needs.

    Raises:
        DataError: a class that takes the positive role has fewer than two instances, or too few
            others are left.

    References:
        NeuCrowd, section 3.2, definition 1; RLL, section III-A (the groups g_i).
    """

    def __init__(
        self, labels: NDArray[np.integer[Any]], negatives: int, classes: Sequence[int] | None = None
    ) -> None:
        counts = np.bincount(labels)
        if classes is None:
            two = len(counts) == 2 and counts.min() > 0
            classes = [1] if two else np.flatnonzero(counts >= 2).tolist()
        for c in classes:
            if c >= len(counts) or counts[c] < 2:
                raise DataError(
                    f"class {c}: expected at least two instances to pair in a tuplet, received"
                    f" {counts[c] if c < len(counts) else 0}"
                )
            if len(labels) - counts[c] < negatives:
                raise DataError(
                    f"class {c}: expected at least {negatives} instances of other classes, received"
                    f" {len(labels) - counts[c]}"
                )
        if not len(classes):
            raise DataError(
                "expected a class with at least two instances to pair in a tuplet, received none"
            )
        self.labels = np.asarray(labels)
        self.classes = np.asarray(classes, dtype=np.int32)
        self.negatives = negatives
        self.order = np.argsort(labels, kind="stable").astype(np.int32)
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self.blocks = np.stack([bounds[self.classes], bounds[self.classes + 1]], axis=1)

    def cumulative(self, relative: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Returns `[N + 1]` running sums of the instances' relative probabilities `[N]`.

        They are in class order; None for uniform.

        A class (or the rest, for its negatives) that is left fewer instances than a tuplet needs
        gets equal probabilities, so that drawing without repetition stays possible.
        """
        share = np.ones(len(self.order))
        if relative is not None:
            share = np.asarray(relative, dtype=np.float64)[self.order]
        for start, end in self.blocks:
            if (share[start:end] > 0).sum() < 2:
                share[start:end] = 1.0
        for start, end in self.blocks:
            outside = np.ones(len(share), dtype=bool)
            outside[start:end] = False
            if (share[outside] > 0).sum() < self.negatives:
                share[outside] = 1.0
        return np.concatenate([[0.0], np.cumsum(share)])

    def draw(self, uniforms: Any, cumulative: Any) -> tuple[Any, Any]:
        """Returns tuplets `[batch, n]` and the index of each one's class, `[batch]`.

        A tuplet has instance positions: anchor, positive, negatives.

        Args:
            uniforms: `[batch, n]` float64 in [0, 1).
            cumulative: `[N + 1]` float64, from `cumulative()`.
        """
        batch = tf.shape(uniforms)[0]
        which = tf.math.floormod(tf.range(batch), len(self.classes))
        bounds = tf.gather(tf.constant(self.blocks), which)
        start, end = tf.gather(cumulative, bounds[:, 0]), tf.gather(cumulative, bounds[:, 1])
        begin, total = tf.zeros_like(start), tf.fill(tf.shape(start), cumulative[-1])
        anchor, cut = self._pick(uniforms[:, 0], start, end, [], cumulative)
        positive, _ = self._pick(uniforms[:, 1], start, end, [cut], cumulative)
        cuts, rows = [(start, end - start)], [anchor, positive]
        for slot in range(self.negatives):
            row, cut = self._pick(uniforms[:, 2 + slot], begin, total, cuts, cumulative)
            rows.append(row)
            if slot + 1 < self.negatives:
                cuts = _insert(cuts, cut)
        return tf.gather(tf.constant(self.order), tf.stack(rows, axis=1)), which

    @staticmethod
    def _pick(
        u: Any, low: Any, high: Any, cuts: list[tuple[Any, Any]], cumulative: Any
    ) -> tuple[Any, tuple[Any, Any]]:
        """Returns the block position whose interval holds `low + u * (remaining length)`.

        The second value is that interval as (begin, length).

        `cuts` are in order of their beginnings; each one that lies before the point pushes it
        behind itself.
        """
        left = high - low
        for _, length in cuts:
            left = left - length
        # u < 1, but the product may round up to the end; one part in 10^15 keeps the point inside.
        point = low + tf.minimum(u, 1.0 - 1e-15) * left
        for begin, length in cuts:
            point = tf.where(point >= begin, point + length, point)
        row = tf.searchsorted(cumulative, point, side="right") - 1
        row = tf.clip_by_value(row, 0, tf.shape(cumulative)[0] - 2)
        begin = tf.gather(cumulative, row)
        return row, (begin, tf.gather(cumulative, row + 1) - begin)


def _insert(cuts: list[tuple[Any, Any]], new: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    """Returns cuts in order of their beginnings with one more, row by row.

    Neighbours are compared and exchanged.
    """
    ordered = []
    begin, length = new
    for other_begin, other_length in cuts:
        first = begin < other_begin
        ordered.append((tf.where(first, begin, other_begin), tf.where(first, length, other_length)))
        begin, length = tf.where(first, other_begin, begin), tf.where(first, other_length, length)
    return [*ordered, (begin, length)]
