"""Texts to vectors in a TensorFlow graph: n-grams of words and characters, TF-IDF, a reduction."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Codes32, Floats32, Tensor

_SPACE = 32
Terms = tuple[tuple[int, int], Sequence[str], Array]


class TextVectors(keras.layers.Layer):
    """A string tensor `[M]` (UTF-8) to `[M, k]` float32.

    Letters are folded by a table and split at spaces into words. The n-grams of words, and those of
    the characters of each word with a space on both sides, are counted; a count c of an n-gram with
    inverse document frequency w weighs (1 + log c) w; each kind's weights are scaled to length 1
    and multiplied with its rows of `components`.
    """

    def __init__(
        self, table: Codes32, kinds: Sequence[Terms], components: Floats32, **options: object
    ) -> None:
        """Makes the tables of n-grams.

        Args:
            table: what each code point up to its length becomes; 32 and others part words.
            kinds: of words and of characters: the shortest and longest n-gram, the n-grams, and
                their weights.
            components: `[V, k]` for the n-grams of all kinds in their order.
            **options: of a Keras layer.
        """
        super().__init__(trainable=False, **options)
        self.folded = tf.constant(table)
        self.lengths = [list(range(least, most + 1)) for (least, most), _, _ in kinds]
        sizes = [len(terms) for _, terms, _ in kinds]
        self.tables = [
            tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    tf.constant(list(terms), tf.string), tf.range(len(terms), dtype=tf.int64)
                ),
                default_value=-1,
            )
            for _, terms, _ in kinds
        ]
        self.weights_of = [tf.constant(weights, tf.float64) for _, _, weights in kinds]
        parts = np.split(components, np.cumsum(sizes)[:-1])
        self.reductions = [tf.constant(block, tf.float32) for block in parts]
        self.built = True

    def call(self, texts: Tensor) -> Tensor:
        """Returns `[M, k]`."""
        codes = tf.strings.unicode_decode(texts, "UTF-8")
        flat = codes.flat_values
        size = tf.size(self.folded)
        folded = tf.gather(self.folded, tf.minimum(flat, size - 1))
        codes = codes.with_flat_values(tf.where(flat < size, folded, _SPACE))
        words = tf.strings.split(tf.strings.unicode_encode(codes, "UTF-8"))
        rows = tf.shape(texts)[0]
        counted = tf.strings.ngrams(words, self.lengths[0], " ")
        total = self._reduced(0, counted.flat_values, counted.value_rowids(), rows)
        padded = tf.strings.join([" ", words.flat_values, " "])
        letters = tf.strings.unicode_split(padded, "UTF-8")
        counted = tf.strings.ngrams(letters, self.lengths[1], "")
        of_word = tf.gather(words.value_rowids(), counted.value_rowids())
        return tf.cast(total + self._reduced(1, counted.flat_values, of_word, rows), tf.float32)

    def _reduced(self, kind: int, grams: Tensor, rows: Tensor, size: Tensor) -> Tensor:
        """Returns `[size, k]` of n-grams and the rows they stand in."""
        reduction = self.reductions[kind]
        terms = tf.shape(reduction, tf.int64)[0]
        codes = self.tables[kind].lookup(grams)
        in_table = codes >= 0
        keys = tf.boolean_mask(rows * terms + codes, in_table)
        keys, _, counts = tf.unique_with_counts(keys)
        rows = keys // terms
        codes = keys % terms
        # In float64: the features are standardised, which enlarges what rounding leaves of those
        # that hardly vary.
        weights = 1.0 + tf.math.log(tf.cast(counts, tf.float64))
        weights *= tf.gather(self.weights_of[kind], codes)
        lengths = tf.sqrt(tf.math.unsorted_segment_sum(weights**2, rows, size))
        weights /= tf.gather(lengths, rows)
        counted = weights[:, None] * tf.cast(tf.gather(reduction, codes), tf.float64)
        return tf.math.unsorted_segment_sum(counted, rows, size)
