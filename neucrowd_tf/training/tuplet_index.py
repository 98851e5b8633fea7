"""Drawing n-tuplets by index.

A tuplet is an anchor, a positive example of the same class, and n - 2 negatives of other classes.

Instances are kept in an order in which each class is one block, and the running sum of their
relative probabilities turns a uniform number into an instance. To draw without repetition, the
intervals of earlier draws are cut out of the line and the next number is stretched over the
remaining length, so a tuplet needs exactly n uniform numbers and no rejection.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Floats, Integers, Tensor
from neucrowd_tf.errors import DataError


class TupletIndex:
    """The instances of a training set by class, and how a uniform number becomes one of them.

    Args:
        labels: `[N]` class codes.
        classes: the classes that take the positive role in turn; two classes default to the
            positive one alone (class 1), more classes to all of them.
        negatives: n - 2, how many different negatives a tuplet needs.
        names: of all classes, for errors.

    Raises:
        DataError: a class that takes the positive role has fewer than two instances, or too few
            others are left.

    References:
        NeuCrowd, section 3.2, definition 1; RLL, section III-A (the groups g_i).
    """

    def __init__(
        self,
        labels: Integers,
        negatives: int,
        classes: Sequence[int] | None = None,
        names: Sequence[object] | None = None,
    ) -> None:
        counts = np.bincount(labels)
        if classes is None:
            if len(counts) == 2 and counts.min() > 0:
                classes = [1]
            else:
                classes = np.flatnonzero(counts >= 2).tolist()
        for code in classes:
            others = len(labels) - counts[code]
            name = code if names is None else names[code]
            if counts[code] < 2:
                raise DataError(
                    f"class {name!r}: expected at least two instances to pair in a tuplet, received"
                    " one"
                )
            if others < negatives:
                raise DataError(
                    f"class {name!r}: expected at least {negatives} instances of other classes,"
                    f" received {others}"
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

    def cumulative(self, relative: Array | None = None) -> Floats:
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

    def draw(
        self, uniforms: Tensor, cumulative: Tensor, arrays: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns tuplets `[batch, n]` and the index of each one's class, `[batch]`.

        A tuplet has instance positions: anchor, positive, negatives.

        Args:
            uniforms: `[batch, n]` float64 in [0, 1).
            cumulative: `[N + 1]` float64, from `cumulative()`.
            arrays: `order` and `blocks` of this index (None), or variables that hold those of an
                index with as many instances, classes and negatives.
        """
        order, blocks = arrays or (self.order, self.blocks)
        batch = tf.shape(uniforms)[0]
        classes = len(self.classes)
        # A batch that is smaller than the number of classes begins with any of them. It is drawn by
        # digits that choose no instance.
        first = tf.cast(uniforms[0, 0] * 2.0**40, tf.int64) % classes
        first = tf.where(batch < classes, tf.cast(first, tf.int32), 0)
        which = tf.math.floormod(tf.range(batch) + first, classes)
        bounds = tf.gather(blocks, which)
        start = tf.gather(cumulative, bounds[:, 0])
        end = tf.gather(cumulative, bounds[:, 1])
        begin = tf.zeros_like(start)
        total = tf.fill(tf.shape(start), cumulative[-1])
        anchor, cut = self._pick(uniforms[:, 0], start, end, [], cumulative)
        positive, _ = self._pick(uniforms[:, 1], start, end, [cut], cumulative)
        cuts = [(start, end - start)]
        rows = [anchor, positive]
        for slot in range(self.negatives):
            row, cut = self._pick(uniforms[:, 2 + slot], begin, total, cuts, cumulative)
            rows.append(row)
            if slot + 1 < self.negatives:
                cuts = _insert(cuts, cut)
        return tf.gather(order, tf.stack(rows, axis=1)), which

    @staticmethod
    def _pick(
        u: Tensor, low: Tensor, high: Tensor, cuts: list[tuple[Tensor, Tensor]], cumulative: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the block position whose interval holds `low + u * (remaining length)`.

        The second value is that interval as (begin, length).

        `cuts` are in order of their beginnings; each one that lies before the point pushes it
        behind itself.
        """
        remaining = high - low
        for _, length in cuts:
            remaining = remaining - length
        # u < 1, but the product may round up to the end; one part in 10^15 keeps the point inside.
        point = low + tf.minimum(u, 1.0 - 1e-15) * remaining
        for begin, length in cuts:
            point = tf.where(point >= begin, point + length, point)
        row = tf.searchsorted(cumulative, point, side="right") - 1
        row = tf.clip_by_value(row, 0, tf.shape(cumulative)[0] - 2)
        begin = tf.gather(cumulative, row)
        return row, (begin, tf.gather(cumulative, row + 1) - begin)


def _insert(
    cuts: list[tuple[Tensor, Tensor]], new: tuple[Tensor, Tensor]
) -> list[tuple[Tensor, Tensor]]:
    """Returns cuts in order of their beginnings with one more, row by row.

    Neighbours are compared and exchanged.
    """
    ordered = []
    begin, length = new
    for other_begin, other_length in cuts:
        first = begin < other_begin
        ordered.append((tf.where(first, begin, other_begin), tf.where(first, length, other_length)))
        begin = tf.where(first, other_begin, begin)
        length = tf.where(first, other_length, length)
    return [*ordered, (begin, length)]
