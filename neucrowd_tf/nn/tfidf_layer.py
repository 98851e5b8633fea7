"""Texts to vectors in a TensorFlow graph: n-grams of words and characters, TF-IDF, a reduction."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Codes32, Floats32, Tensor

_SPACE = 32
Terms = tuple[tuple[int, int], Sequence[str], Array]


class TextVectors(keras.layers.Layer):
    """A string tensor `[M]` (UTF-8) to features `[M, k]` float32.

    A table folds letters, and texts are split at spaces into words. The layer counts the n-grams of
    words, and of the characters of each word with a space on both sides. A count c of an n-gram
    with inverse document frequency w has weight (1 + log c) w. The weights of each kind are scaled
    to norm 1 and multiplied by its rows of `components`.
    """

    def __init__(
        self, table: Codes32, kinds: Sequence[Terms], components: Floats32, **options: object
    ) -> None:
        """Makes the tables of n-grams.

        Args:
            table: `[T]` the code point that stands for each code point below T. Those that become
                32, and all others, separate words.
            kinds: for words, then for characters: the shortest and longest n-gram, the n-grams, and
                their inverse document frequencies.
            components: `[V, k]` for the n-grams of all kinds in their order.
            **options: of a Keras layer.
        """
        super().__init__(trainable=False, **options)
        self.folded = tf.constant(table)
        self.lengths = []
        self.tables = []
        self.frequencies = []
        self.reductions = []
        start = 0
        for (shortest, longest), terms, weights in kinds:
            stop = start + len(terms)
            self.lengths.append(list(range(shortest, longest + 1)))
            self.tables.append(_positions(terms))
            self.frequencies.append(tf.constant(weights, tf.float64))
            self.reductions.append(tf.constant(components[start:stop], tf.float32))
            start = stop
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
        """Returns features `[size, k]` by n-grams of one kind `[T]` and their rows `[T]`."""
        reduction = self.reductions[kind]
        terms = tf.shape(reduction, tf.int64)[0]
        codes = self.tables[kind].lookup(grams)
        in_table = codes >= 0
        keys = tf.boolean_mask(rows * terms + codes, in_table)
        keys, _, counts = tf.unique_with_counts(keys)
        rows = keys // terms
        codes = keys % terms
        # In float64, because standardising enlarges the rounding errors of features that hardly
        # vary.
        weights = 1.0 + tf.math.log(tf.cast(counts, tf.float64))
        weights *= tf.gather(self.frequencies[kind], codes)
        lengths = tf.sqrt(tf.math.unsorted_segment_sum(weights**2, rows, size))
        weights /= tf.gather(lengths, rows)
        counted = weights[:, None] * tf.cast(tf.gather(reduction, codes), tf.float64)
        return tf.math.unsorted_segment_sum(counted, rows, size)


def _positions(terms: Sequence[str]) -> tf.lookup.StaticHashTable:
    """Returns a table of each term's position; -1 for other strings."""
    keys = tf.constant(list(terms), tf.string)
    pairs = tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(terms), dtype=tf.int64))
    return tf.lookup.StaticHashTable(pairs, default_value=-1)
