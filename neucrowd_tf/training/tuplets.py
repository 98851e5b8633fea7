"""Drawing n-tuplets by index, and the Keras models that train an embedding network.

A tuplet is an anchor, a positive example of the same class, and n - 2 negatives of other classes.

Instances are kept in an order in which each class is one block, and the running sum of their
relative probabilities turns a uniform number into an instance. To draw without repetition, the
intervals of earlier draws are cut out of the line and the next number is stretched over what is
left, so a tuplet needs exactly n uniform numbers and no rejection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from neucrowd_tf.errors import DataError
from neucrowd_tf.nn.similarity import similarity
from neucrowd_tf.nn.steps import replicas, share_of, summed, take_step
from neucrowd_tf.nn.tuplet_loss import tuplet_log_likelihood
from neucrowd_tf.training.features import in_blocks


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
            if counts[c] < 2:
                raise DataError(
                    f"class {c}: expected at least two instances to pair in a tuplet, received one"
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


class EncoderModel(keras.Model):
    """An encoder, its training instances, and a training step.

    A subclass defines the step in `batch_losses`.

    A batch of the pipeline says which instances to take (or holds the random numbers that say so);
    features stay where they are. The trained variables are those of the encoder and whatever else
    the subclass holds.
    """

    def __init__(
        self, encoder: keras.Model, features: NDArray[np.float32], *, slot_dropout: bool = False
    ) -> None:
        """Sets up training.

        Args:
            encoder: `[None, d] -> [None, h]`.
            features: `[N, d]` as the encoder takes them.
            slot_dropout: whether an instance that stands twice in a training batch is embedded
                twice, with two dropout masks.
        """
        super().__init__()
        self.slot_dropout = slot_dropout
        self.encoder = encoder
        self.instances = tf.constant(features)
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns embeddings."""
        return self.encoder(features, training=training)

    def distinct(self, rows: Any) -> tuple[Any, Any]:
        """Returns the features of the distinct instances among `[...]` positions.

        The second value has the place `[...]` of each position there. All instances are returned if
        that is less work.
        """
        count = rows.shape.num_elements()
        if count is not None and len(self.instances) <= count:
            return self.instances, rows
        flat, places = tf.unique(tf.reshape(rows, [-1]))
        return tf.gather(self.instances, flat), tf.reshape(places, tf.shape(rows))

    def embed_rows(self, rows: Any, training: bool, network: keras.Model | None = None) -> Any:
        """Returns float32 embeddings `[..., h]` of instances `[...]`, by default the encoder's.

        Each distinct instance is embedded once.
        """
        network = network or self.encoder
        if self.slot_dropout and training:
            return self.embed_slots(network, rows)
        features, places = self.distinct(rows)
        return tf.cast(tf.gather(network(features, training=training), places), tf.float32)

    def embed_slots(self, network: keras.Model, rows: Any) -> Any:
        """Returns embeddings `[..., h]` of instances `[...]`, each with a dropout mask of its own.

        Of a chain of layers, those before the first dropout see each distinct instance once.
        """
        layers = [x for x in network.layers if not isinstance(x, keras.layers.InputLayer)]
        masks = [isinstance(layer, keras.layers.Dropout) for layer in layers]
        first = 0
        if all(isinstance(layer, keras.layers.Dense | keras.layers.Dropout) for layer in layers):
            first = masks.index(True) if any(masks) else len(layers)
        features, places = self.distinct(rows)
        for layer in layers[:first]:
            features = layer(features)
        embedded = tf.gather(features, tf.reshape(places, [-1]))
        if first:
            for layer, mask in zip(layers[first:], masks[first:], strict=True):
                embedded = layer(embedded, training=True) if mask else layer(embedded)
        else:
            embedded = network(embedded, training=True)
        return tf.reshape(tf.cast(embedded, tf.float32), [*rows.shape, embedded.shape[-1]])

    def batch_losses(self, data: Any) -> Any:
        """Returns the losses `[B]` of one batch of the pipeline, in float32.

        Their mean is minimised. Of replicas, each returns those of its part of the batch; if losses
        depend on the whole batch, each returns all of them.
        """
        raise NotImplementedError

    def global_mean(self, values: Any) -> Any:
        """Returns this replica's share of the mean over the batch of all replicas.

        Replicas' gradients are summed; the parts of a batch may be of different sizes.
        """
        if replicas() == 1:
            return tf.reduce_mean(values)
        return tf.reduce_sum(values) / summed(tf.cast(tf.size(values), values.dtype))

    def logged(self, values: Any) -> Any:
        """Returns what a metric of the values is given: their mean over all replicas' parts."""
        return values if replicas() == 1 else summed(self.global_mean(values))

    def penalty(self, network: keras.Model) -> Any:
        """Returns the network's weight penalties, this replica's share of them."""
        return tf.add_n(network.losses) / replicas() if network.losses else 0.0

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            losses = self.batch_losses(data)
            loss = self.global_mean(losses) + self.penalty(self.encoder)
            loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        take_step(self.optimizer, tape.gradient(loss, variables), variables)
        self.loss_tracker.update_state(self.logged(losses))
        return {"loss": self.loss_tracker.result()}

    def embed(self, features: Any) -> NDArray[np.float32]:
        """Returns embeddings `[M, h]` of features as the encoder takes them, with dropout off."""
        return in_blocks(lambda block: self._embed(tf.convert_to_tensor(block)), features, 8192)

    @tf.function(reduce_retracing=True, autograph=False)
    def _embed(self, features: Any) -> Any:
        return tf.cast(self.encoder(features, training=False), tf.float32)


class TupletModel(EncoderModel):
    """An encoder trained to tell each anchor's positive example from the negatives of its tuplet.

    One batch of the pipeline is `[batch, n]` uniform numbers; the tuplets they stand for are drawn
    inside the step, so features are never copied: each distinct instance is embedded once a step
    and its embedding is gathered.

    References:
        RLL, section III-A and III-B (eq. 3); NeuCrowd, sections 3.2 and 3.3.3.
    """

    def __init__(
        self,
        encoder: keras.Model,
        features: NDArray[np.float32],
        index: TupletIndex,
        confidence: NDArray[np.float32],
        *,
        eta: float,
        similarity_name: str,
        offset: float = 1.0,
        weight_inside: bool = True,
        slot_dropout: bool = False,
    ) -> None:
        """Sets up training.

        Args:
            encoder: `[None, d] -> [None, h]`.
            features: `[N, d]` as the encoder takes them.
            index: the instances by class.
            confidence: `[N]` in each instance's label, within [0, 1]; NeuCrowd's assurance.
            eta, similarity_name, offset, weight_inside: see `neucrowd_tf.nn.tuplet_loss`.
            slot_dropout: see `EncoderModel`.
        """
        super().__init__(encoder, features, slot_dropout=slot_dropout)
        self.index = index
        self.eta, self.weight_inside = eta, weight_inside
        self.similarity_name, self.offset = similarity_name, offset
        self.confidence = tf.constant(confidence, dtype=tf.float32)
        self.cumulative = self.add_weight(
            shape=(len(features) + 1,),
            dtype="float64",
            trainable=False,
            name="cumulative",
            initializer="zeros",
            autocast=False,
        )
        self.set_probabilities(None)
        self.built = True

    def set_probabilities(self, relative: NDArray[Any] | None) -> None:
        """Sets the relative probability of drawing each instance, `[N]`; None for uniform."""
        self.cumulative.assign(self.index.cumulative(relative))

    def draw(self, uniforms: Any) -> tuple[Any, Any]:
        """Returns tuplets `[batch, n]` and their classes.

        A class is an index of `index.classes`.
        """
        return self.index.draw(uniforms, tf.convert_to_tensor(self.cumulative))

    def fixed_loss(self, size: int = 1024, *, as_trained: bool = False) -> float:
        """Returns the mean loss of the same uniformly drawn tuplets.

        It does not depend on how the model draws and selects. Dropout is off.

        Args:
            size: how many tuplets.
            as_trained: whether `anchors` replaces their anchors, as in training. Models with other
                anchors can be compared only without.
        """
        return float(self._fixed_loss(size, as_trained))

    @tf.function(reduce_retracing=True, autograph=False)
    def _fixed_loss(self, size: int, as_trained: bool) -> Any:
        width = self.index.negatives + 2
        uniforms = tf.random.stateless_uniform([size, width], seed=[0, size], dtype=tf.float64)
        tuplets, classes = self.index.draw(uniforms, tf.constant(self.index.cumulative(None)))
        embeddings = self.embed_rows(tuplets, training=False)
        anchors = embeddings[:, 0]
        if as_trained:
            anchors = self.anchors(embeddings, tuplets, classes, training=False)
        return tf.reduce_mean(self.losses_to(anchors, embeddings, tuplets))

    def anchors(self, embeddings: Any, tuplets: Any, classes: Any, training: bool) -> Any:
        """Returns the anchors' embeddings `[batch, h]`; a subclass may replace them."""
        return embeddings[:, 0]

    def tuplet_losses(self, tuplets: Any, classes: Any, training: bool = True) -> Any:
        """Returns `-log p(positive | anchor)` of each tuplet `[batch]`, in float32."""
        embeddings = self.embed_rows(tuplets, training)
        anchors = self.anchors(embeddings, tuplets, classes, training)
        return self.losses_to(anchors, embeddings, tuplets)

    def losses_to(self, anchors: Any, embeddings: Any, tuplets: Any) -> Any:
        """Returns the losses `[batch]` of tuplets whose anchors' embeddings are `[batch, h]`."""
        relevance = self.relevance(anchors, embeddings)
        confidence = tf.gather(self.confidence, tuplets[:, 1:])
        inside = self.weight_inside
        return -tuplet_log_likelihood(relevance, confidence, eta=self.eta, weight_inside=inside)

    def relevance(self, anchors: Any, embeddings: Any) -> Any:
        """Returns similarities `[batch, n - 1]` of the anchors to the tuplets' other members."""
        return similarity(self.similarity_name, embeddings[:, 1:], anchors[:, None, :], self.offset)

    def batch_losses(self, data: Any) -> Any:
        return self.tuplet_losses(*share_of(self.draw(data)))
