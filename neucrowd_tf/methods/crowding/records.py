"""What CrowdInG's game is played with: the crowd's data, and annotations that turns learn from."""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats32, Mask, Tensor


class Purpose(enum.IntEnum):
    """Purposes of random numbers; `Crowd.draw` has 16 of them in each epoch."""

    SURVEY, SELECT, PAIRS, SURE, GENERATOR, UNSURE, CLASSIFIER = range(7)
    ORDER = 8
    NOISE = 9


@dataclasses.dataclass(frozen=True, eq=False)
class Crowd:
    """The data of a fit.

    Attributes:
        features: `[N, d]` standardised.
        identities: `[R, R]` one-hot vectors e_r.
        instances, annotators, labels: `[A]` the authentic annotations.
        observed: `[N, R]` bool, True if there is an authentic annotation.
        seed: every draw is derived from it.
    """

    features: Tensor
    identities: Tensor
    instances: Tensor
    annotators: Tensor
    labels: Tensor
    observed: Mask
    seed: int

    @classmethod
    def of(cls, features: Floats32, annotations: Annotations, seed: int) -> Crowd:
        """Returns the data as tensors; generated annotations are left out.

        Args:
            features: `[N, ...]`.
            annotations: of N instances.
            seed: every draw is derived from it.

        References:
            CrowdInG, section 3.2 (e_r).
        """
        authentic = annotations.observed()
        return cls(
            features=tf.constant(features.reshape(len(features), -1), tf.float32),
            identities=tf.eye(authentic.num_annotators),
            instances=tf.constant(authentic.instances),
            annotators=tf.constant(authentic.annotators),
            labels=tf.constant(authentic.labels),
            observed=authentic.cells(),
            seed=seed % 2**31,
        )

    @property
    def inputs(self) -> tuple[Tensor, Tensor]:
        """The features of instances and annotators, which compiled functions get."""
        return self.features, self.identities

    @property
    def authentic(self) -> tuple[Tensor, Tensor, Tensor]:
        """Instances, annotators and labels of the authentic annotations, `[A]` codes each."""
        return self.instances, self.annotators, self.labels

    def with_generated(
        self, instances: Tensor, annotators: Tensor, drawn: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns all authentic annotations, and after them some generated ones.

        Args:
            instances, annotators: codes of the generated ones.
            drawn: `[N, R]` labels of all pairs.

        Returns:
            Instances, annotators, class codes, and whether each annotation is authentic, `[P]`.
        """
        labels = tf.gather_nd(drawn, tf.stack([instances, annotators], axis=1))
        columns = zip(self.authentic, (instances, annotators, labels), strict=True)
        instances, annotators, labels = (tf.concat(column, axis=0) for column in columns)
        return instances, annotators, labels, tf.range(tf.size(labels)) < len(self.labels)

    def draw(self, epoch: Tensor, purpose: int) -> Tensor:
        """Returns a seed `[2]` for one purpose in one epoch."""
        number = tf.cast(epoch, tf.int32) * 16 + int(purpose)
        return tf.stack([tf.constant(self.seed), number])


class Pairs(NamedTuple):
    """Annotations that the discriminative module learns from.

    Attributes:
        instances, annotators, labels: `[P]` codes.
        authentic: `[P]` bool, False for generated annotations.
        latent: `[P, C]` z-hat of the generator's input.
    """

    instances: Tensor
    annotators: Tensor
    labels: Tensor
    authentic: Tensor
    latent: Tensor


class Logged(NamedTuple):
    """Annotations of instances by all annotators, drawn by the logging policy.

    Attributes:
        instances: `[n]` codes.
        latent: `[n, C]` z-hat of the instances.
        labels: `[n, R]` class codes.
        probabilities: `[n, R]` G_0(y) of the labels.
        authenticity: `[n, R]` L_G of the labels.
        delta: `[n, R]` delta of the labels.
    """

    instances: Tensor
    latent: Tensor
    labels: Tensor
    probabilities: Tensor
    authenticity: Tensor
    delta: Tensor
