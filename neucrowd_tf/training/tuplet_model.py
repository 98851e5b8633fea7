"""The Keras models that train an embedding network: on rows drawn by index, and on tuplets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from neucrowd_tf.nn.similarity import similarity
from neucrowd_tf.nn.steps import replicas, take_step
from neucrowd_tf.nn.tuplet_loss import tuplet_log_likelihood
from neucrowd_tf.training.standardise import in_blocks
from neucrowd_tf.training.tuplets import TupletIndex


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

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.loss_tracker]

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

    def embed_rows(self, rows: Any, training: bool) -> Any:
        """Returns float32 embeddings `[..., h]` of instances `[...]`.

        Each distinct instance is embedded once.
        """
        if self.slot_dropout and training:
            return self.embed_slots(self.encoder, rows)
        features, places = self.distinct(rows)
        return tf.cast(tf.gather(self.encoder(features, training=training), places), tf.float32)

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

        Their mean is minimised.
        """
        raise NotImplementedError

    def global_mean(self, values: Any) -> Any:
        """Returns this replica's share of the mean over the batch of all replicas.

        Replicas' gradients are summed.
        """
        return tf.reduce_mean(values) / replicas()

    def penalty(self, network: keras.Model) -> Any:
        """Returns the network's weight penalties, this replica's share of them."""
        return tf.add_n(network.losses) / replicas() if network.losses else 0.0

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            losses = self.batch_losses(data)
            loss = self.global_mean(losses) + self.penalty(self.encoder)
        variables = self.trainable_variables
        take_step(self.optimizer, tape.gradient(loss, variables), variables)
        self.loss_tracker.update_state(losses)
        return {"loss": self.loss_tracker.result()}

    def embed_instances(self) -> NDArray[np.float32]:
        """Returns the embeddings `[N, h]` of the training instances, with dropout off."""
        return self.embed(np.asarray(self.instances))

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
        anchors = self.anchors(embeddings, tuplets, classes) if as_trained else embeddings[:, 0]
        return tf.reduce_mean(self.losses_to(anchors, embeddings, tuplets))

    def anchors(self, embeddings: Any, tuplets: Any, classes: Any) -> Any:
        """Returns the anchors' embeddings `[batch, h]`; a subclass may replace them."""
        return embeddings[:, 0]

    def tuplet_losses(self, tuplets: Any, classes: Any, training: bool = True) -> Any:
        """Returns `-log p(positive | anchor)` of each tuplet `[batch]`, in float32."""
        embeddings = self.embed_rows(tuplets, training)
        return self.losses_to(self.anchors(embeddings, tuplets, classes), embeddings, tuplets)

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
        return self.tuplet_losses(*self.draw(data))


class TwoTowerModel(TupletModel):
    """A tuplet model in which a second network, the query tower, embeds the anchors.

    Anchors are positive examples alone, so predictions take `encoder`, which learns from both.
    """

    def __init__(
        self, *arguments: Any, make_tower: Callable[[tuple[int, ...]], keras.Model], **options: Any
    ) -> None:
        """Sets up training.

        Args:
            arguments: of `TupletModel`.
            make_tower: returns the second network for a shape of features.
            options: of `TupletModel`.
        """
        super().__init__(*arguments, **options)
        self.query = make_tower(tuple(self.instances.shape[1:]))

    def embed_rows(self, rows: Any, training: bool) -> Any:
        """Returns embeddings `[batch, n, h]` of tuplets `[batch, n]`, whose anchors come first."""
        embeddings = []
        for network, block in ((self.query, rows[:, :1]), (self.encoder, rows[:, 1:])):
            if training:
                embeddings.append(self.embed_slots(network, block))
            else:
                features, places = self.distinct(block)
                embedded = tf.cast(network(features, training=False), tf.float32)
                embeddings.append(tf.gather(embedded, places))
        return tf.concat(embeddings, axis=1)

    def penalty(self, network: keras.Model) -> Any:
        """Returns the penalty on the weights of both networks."""
        return super().penalty(network) + super().penalty(self.query)
