"""The generative module: what the classifier says of an instance, what the generator makes of that
for each annotator, and annotations drawn from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from neucrowd_tf.crowd_layers.losses import at_labels
from neucrowd_tf.crowding.counterfactual import importance_ratios
from neucrowd_tf.crowding.crowd import (
    Crowd,
    batch_positions,
    batches_of,
    fold,
    gathered,
    label_probabilities,
    mixed,
    pair_noise,
)
from neucrowd_tf.crowding.generator import Drawn, Generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS_AT_ONCE = 1024
CELLS_AT_ONCE = 1 << 17


class GenerativeModule(keras.layers.Layer):
    """First the classifier says z-hat, then the generator says what each annotator makes of it.

    Pairs are worked on in batches of instances with all their annotators. Noise is a function of a
    seed and the batch's number, so that the same pairs meet the same noise again and importance
    ratios start at one.

    Args:
        classifier: `[None, ...] -> [None, C]` probabilities; always called in inference mode.
        generator: built.
        crowd: the data.
        batch_rows: instances in a batch.
        ratio_cap, probability_floor: of the importance ratios.
        by_class: whether the generator is fed a class drawn from z-hat, for each pair anew, rather
            than z-hat itself. A label that is drawn given z-hat tells nothing of z beyond x; one
            that is drawn given a class does.

    References:
        CrowdInG, section 3.2.1 and eq. 3.
    """

    def __init__(
        self,
        classifier: keras.Model,
        generator: Generator,
        crowd: Crowd,
        *,
        batch_rows: int,
        ratio_cap: float,
        probability_floor: float,
        by_class: bool = False,
    ) -> None:
        super().__init__(name="generative_module", dtype="float32")
        self.by_class = by_class
        self.classifier, self.generator, self.crowd = classifier, generator, crowd
        self.batch_rows, self.ratio_cap, self.probability_floor = (
            batch_rows,
            ratio_cap,
            probability_floor,
        )
        self.built = True

    def classify(self, features: Any) -> Any:
        """Returns z-hat `[B, C]` of features as the classifier takes them.

        References:
            CrowdInG, section 3.2.1 (P(z | x)).
        """
        return tf.cast(self.classifier(features, training=False), tf.float32)

    @tf.function(autograph=False)
    def classify_all(self) -> Any:
        """Returns z-hat `[N, C]` of all instances."""
        features, size = self.crowd.features, self.crowd.num_instances

        def compute(index: Any) -> tuple[Any]:
            return (self.classify(features[index * _ROWS_AT_ONCE : (index + 1) * _ROWS_AT_ONCE]),)

        return gathered(batches_of(size, _ROWS_AT_ONCE), (tf.float32,), compute)[0]

    def logits(self, rows: Any, latent: Any, noise: Any) -> Any:
        """Returns the generator's logits `[B, R, C]`.

        Args:
            rows: `[B]` instance codes.
            latent: `[B, C]` z-hat of these instances, or `[B, R, C]` what each pair is given.
            noise: `[B, R, k]`.
        """
        features = tf.gather(self.crowd.flat, rows)
        return self.generator.all_pairs(features, latent, self.crowd.annotators, noise)

    def hidden(self, features: Any, noise: Any) -> Any:
        """Returns what all but z-hat adds to the generator's hidden layer, `[B, R, h]`.

        Args:
            features: `[B, d]`.
            noise: `[B, R, k]`.
        """
        return self.generator.hidden(features, self.crowd.annotators, noise)

    def logits_by_class(self, rows: Any, noise: Any) -> Any:
        """Returns the generator's logits `[B, R, C, C]` for each class; see `logits`."""
        features = tf.gather(self.crowd.flat, rows)
        return self.generator.all_pairs_by_class(features, self.crowd.annotators, noise)

    def noise(self, rows: Any, seed: Any) -> Any:
        """Returns the noise `[B, R, k]` that a batch of instances meets by a seed `[2]`."""
        columns = tf.shape(self.crowd.annotators)[0]
        return pair_noise(seed, [tf.shape(rows)[0], columns, self.generator.noise_size])

    def draw(self, rows: Any, latent: Any, seed: Any) -> Drawn:
        """Draws what each annotator says of some instances `[B]`; see `Generator.draw`."""
        features, table = tf.gather(self.crowd.flat, rows), self.crowd.annotators
        return self.generator.draw(features, latent, table, seed, by_class=self.by_class)

    def survey(self, latent: Any, seed: Any) -> tuple[Any, Any, Any]:
        """Generates for all pairs: the entropy of each distribution, a label drawn from it and,
        where the generator is fed classes, the class it was drawn for; each `[N, R]`.

        Args:
            latent: `[N, C]` z-hat of all instances.
            seed: `[2]`.
        """
        size = self.crowd.num_instances

        def compute(index: Any) -> tuple[Any, Any, Any]:
            rows = batch_positions(index, self.batch_rows, size)
            drawn = self.draw(rows, tf.gather(latent, rows), fold(seed, index))
            return drawn.entropies, drawn.labels, drawn.classes

        kinds = (tf.float32, tf.int32, tf.int32)
        entropies, labels, classes = gathered(batches_of(size, self.batch_rows), kinds, compute)
        return entropies, labels, classes

    def log_answers(self, rows: Any, latent: Any) -> Any:
        """Returns log G(y | x, e) `[B, R, C]` at the noise's mean, where classes are fed summed
        over them by z-hat.

        Args:
            rows: `[B]` instance codes.
            latent: `[B, C]` z-hat.
        """
        features = tf.gather(self.crowd.flat, rows)
        table = self.crowd.annotators
        return self.generator.log_answers(features, latent, table, by_class=self.by_class)

    def some_log_answers(self, rows: Any, codes: Any, latent: Any, noise: Any = None) -> Any:
        """Returns log G(y | x, e) `[P, C]` of chosen pairs; see `log_answers`.

        Args:
            rows, codes: `[P]` instances and annotators.
            latent: `[P, C]` z-hat.
            noise: `[P, k]`; None is its mean.
        """
        if noise is None:
            noise = tf.zeros([tf.size(rows), self.generator.noise_size])
        features, table = tf.gather(self.crowd.flat, rows), self.crowd.annotators
        if not self.by_class:
            logits = self.generator.some_pairs(features, latent, table, noise, codes)
            return tf.nn.log_softmax(logits)
        logits = self.generator.some_pairs_by_class(features, table, noise, codes)
        return mixed(latent, logits)

    def authentic_loss(self, chosen: Any, latent: Any, seed: Any) -> Any:
        """Returns the mean of -log G(y | x, e, noise, z-hat) over authentic annotations, a scalar.

        Args:
            chosen: `[P]` positions among the authentic annotations.
            latent: `[N, C]` z-hat of all instances.
            seed: `[2]`, decides the noise.

        References:
            CrowdInG, section 3.3.3 (the generator is pre-trained).
        """
        crowd = self.crowd
        rows = tf.gather(crowd.instances, chosen)
        noise = pair_noise(seed, [tf.size(chosen), self.generator.noise_size])
        log_answers = self.some_log_answers(
            rows, tf.gather(crowd.codes, chosen), tf.gather(latent, rows), noise
        )
        return -tf.reduce_mean(at_labels(log_answers, tf.gather(crowd.labels, chosen)))

    def ratios(
        self, hidden: Any, latent: Any, labels: Any, logged: Any, classes: Any = None
    ) -> Any:
        """Returns G(y) / G_0(y) `[B, R]` of logged labels under the present module (eqs. 5, 6);
        where classes were drawn, of the pairs of class and label.

        Args:
            hidden: `[B, R, h]`, see `hidden`.
            latent: `[B, C]` z-hat; gradients go through it.
            labels: `[B, R]` the labels that the logging policy drew.
            logged: `[B, R]` its probabilities of them.
            classes: `[B, R]` the classes that it drew, where the generator is fed classes.
        """
        fed = tf.one_hot(classes, tf.shape(latent)[1]) if self.by_class else latent
        current = label_probabilities(self.generator.answer(hidden, fed), labels)
        if self.by_class:
            current = current * tf.gather(latent, classes, axis=1, batch_dims=1)
        return importance_ratios(current, logged, cap=self.ratio_cap, floor=self.probability_floor)

    def expected_confusions(self) -> NDArray[np.float32]:
        """Returns `[R, C true, C observed]`: the mean of what the generator answers for each
        annotator, at the noise's mean, over the training instances weighted by the classifier's
        probability of each class.
        """
        crowd, latent = self.crowd, self.classify_all()
        flat, annotators = crowd.flat, crowd.annotators
        size, columns = int(crowd.num_instances), int(annotators.shape[0])
        total = np.zeros((columns, latent.shape[1], latent.shape[1]))
        generator, by_class = self.generator, self.by_class
        rows = max(1, CELLS_AT_ONCE // columns // (latent.shape[1] if by_class else 1))
        for first in range(0, size, rows):
            z, x = latent[first : first + rows], flat[first : first + rows]
            noise = tf.zeros([len(x), columns, generator.noise_size])
            if by_class:
                answers = tf.nn.softmax(generator.all_pairs_by_class(x, annotators, noise))
            else:
                answers = tf.nn.softmax(generator.all_pairs(x, z, annotators, noise))
            total += np.einsum(
                "nc,nrck->rck" if by_class else "nc,nrk->rck",
                np.asarray(z, np.float64),
                np.asarray(answers, np.float64),
            )
        return (total / total.sum(axis=2, keepdims=True)).astype(np.float32)
