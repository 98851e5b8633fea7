"""The controls of NeuCrowd: the weighted loss, ways of selecting, anchors in input space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.neucrowd.assurance import label_assurance
from neucrowd_tf.training.representation import EmbeddingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import consensus_labels
from reproduction.controls.neucrowd import ControlledNeuCrowd
from tests.crowds import blobs

TINY: dict[str, Any] = {
    "epochs": 1,
    "steps_per_epoch": 2,
    "batch_size": 16,
    "encoder": {"hidden_units": (8, 4)},
}


def crowd() -> tuple[np.ndarray, Annotations]:
    x, votes, _ = blobs(60, 2, apart=1.5, right=0.75)
    return x, Annotations.from_dense(votes, num_classes=2)


def untrained(**options: Any) -> tuple[Any, Any, Any]:
    """A model that has not been trained, its tuplets and their classes."""
    x, annotations = crowd()
    method = ControlledNeuCrowd(
        **{**TINY, "encoder": {**TINY["encoder"], "dropout": 0.0}}, n=4, seed=1, **options
    )
    data = method._check(x, annotations, None, Run())
    labels = consensus_labels(data.annotations, method.seed)
    prepared = EmbeddingData(x, labels, data.annotations, x, labels, data, labels)
    method.assurance_ = label_assurance(data.annotations.vote_counts())
    model, batches = method._network(prepared)
    return (model, *model.draw(next(iter(batches(0)))))


def test_in_a_weighted_loss_the_assurance_multiplies_the_plain_loss() -> None:
    model, tuplets, classes = untrained(weight_loss=True, anchor="none")
    losses = model.tuplet_losses(tuplets, classes, training=False).numpy()
    embedded, assurance = model.embed_instances(), model.confidence.numpy()
    for loss, members in zip(losses, tuplets.numpy(), strict=True):
        distances = np.linalg.norm(embedded[members[1:]] - embedded[members[0]], axis=1)
        terms = np.exp(-5.0 * distances)
        expected = -assurance[members[1]] * np.log(terms[0] / terms.sum())
        assert loss == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_selections() -> None:
    first, pool, which = untrained(selection="random")
    drawn, _ = first.select(first.sampler, pool, which, tf.constant(99, tf.int64))
    np.testing.assert_array_equal(drawn, pool.numpy()[: len(drawn)])
    model, pool, which = untrained(selection="oracle")
    losses = model.tuplet_losses(pool, which, training=False).numpy()
    hardest, _ = model.select(model.sampler, pool, which, tf.constant(99, tf.int64))
    order = np.argsort(-losses, kind="stable")[: len(hardest)]
    np.testing.assert_array_equal(hardest, pool.numpy()[order])
