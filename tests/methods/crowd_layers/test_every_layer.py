"""Each crowd layer learns, and finds who cannot be trusted."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from numpy.random import default_rng

from baselines.ds_mixup import DawidSkeneMixup
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.crowd_layers.annot_mix import AnnotMix
from neucrowd_tf.methods.crowd_layers.ccc import CCC
from neucrowd_tf.methods.crowd_layers.coinnet import COINNet
from neucrowd_tf.methods.crowd_layers.conal import CoNAL
from neucrowd_tf.methods.crowd_layers.crowdar import CrowdAR
from neucrowd_tf.methods.crowd_layers.geocrowdnet import GeoCrowdNet
from neucrowd_tf.methods.crowd_layers.madl import MaDL
from neucrowd_tf.methods.crowd_layers.trace_reg import TraceRegularised
from neucrowd_tf.methods.crowd_layers.unionnet import UnionNet
from tests.crowds import corners, noisy_labels

METHODS = (
    functools.partial(GeoCrowdNet, volume="F"),
    UnionNet,
    functools.partial(UnionNet, variant="A"),
    TraceRegularised,
    CoNAL,
    CrowdAR,
    AnnotMix,
    MaDL,
    COINNet,
    CCC,
    DawidSkeneMixup,
)


@pytest.fixture(scope="module")
def spammed():
    """Three fair annotators and one who answers at random."""
    rng = default_rng(1)
    truth = rng.integers(3, size=240)
    features = corners(rng, truth, 4, 3)
    fair = noisy_labels(rng, truth, 3, 0.85, 3)
    dense = np.concatenate([fair, rng.integers(3, size=(240, 1))], axis=1)
    dense[rng.random((240, 4)) < 0.2] = -1
    return features, Annotations.from_dense(dense, num_classes=3), truth


@pytest.mark.parametrize(
    "kind", [METHODS[0], *(pytest.param(kind, marks=pytest.mark.slow) for kind in METHODS[1:])]
)
def test_who_answers_at_random_is_found(kind, spammed):
    features, crowd, truth = spammed
    model = kind(
        base={"hidden_units": (16,), "dropout": 0.0}, epochs=25, batch_size=48, learning_rate=0.01
    )
    model.fit(features, crowd)
    assert model.score(features, truth) > 0.85
    if kind in (AnnotMix, MaDL):  # who is at random is in what they say of instances, later
        return
    skills = np.diagonal(model.confusion_matrices_, axis1=1, axis2=2).mean(axis=1)
    assert skills[:3].min() > skills[3] + 0.05
    np.testing.assert_allclose(model.confusion_matrices_.sum(axis=2), 1.0, atol=1e-4)
