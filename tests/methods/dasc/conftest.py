"""A small, imbalanced crowd, and a cheap model of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.base import BaseEstimator

from neucrowd_tf.annotations import Annotations
from tests.crowds import noisy_labels, softmax


@pytest.fixture(scope="session")
def crowd():
    """Features `[90, 4]`, truth and annotations by 8 annotators: classes 0, 1, 2 with 60, 20 and 10
    instances.
    """
    rng = default_rng(0)
    truth = np.repeat([0, 1, 2], [60, 20, 10])
    features = rng.normal(size=(90, 4)).astype(np.float32)
    features[np.arange(90), truth] += 4.0
    dense = noisy_labels(rng, truth, 8, 0.85, 3)
    dense[rng.random((90, 8)) > 0.3] = -1
    dense[np.arange(90), rng.integers(8, size=90)] = truth
    return features, truth, Annotations.from_dense(dense, num_classes=3)


class Centroids(BaseEstimator):
    """A crowd model without TensorFlow: distances to majority-vote class means; every annotator
    answers alike but for his noise.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, features, annotations, validation=None, *, run=None):
        votes = annotations.vote_counts()
        self.labels_ = votes.argmax(axis=1)
        members = [features[self.labels_ == c] for c in range(votes.shape[1])]
        self.centres_ = np.stack(
            [block.mean(axis=0) if len(block) else 0 * features[0] for block in members]
        )
        self.noise_ = np.linspace(0.0, 0.3, annotations.num_annotators)
        self.fits_ = annotations.num_annotations
        return self

    def predict_proba(self, features):
        scores = -self.scale * np.square(features[:, None] - self.centres_).sum(axis=2)
        return softmax(scores)

    def predict_annotators(self, features):
        p = self.predict_proba(features)[:, None, :]
        return (1 - self.noise_[None, :, None]) * p + self.noise_[None, :, None] / p.shape[2]


@pytest.fixture
def centroids():
    return Centroids()
