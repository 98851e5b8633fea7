"""NeuCrowd's joint iteration against sections 3.3.2 to 3.4 written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.neucrowd import NeuCrowd
from neucrowd_tf.methods.neucrowd.assurance import label_assurance
from neucrowd_tf.training.representation import EmbeddingData
from neucrowd_tf.training.validation import consensus_labels
from tests.crowds import blobs


def new(
    classes: int = 2, kind: type[NeuCrowd] = NeuCrowd, **options: Any
) -> tuple[Any, Any, NeuCrowd, np.ndarray]:
    """A model that has not been trained, one batch of its tuplets with their classes, and the
    labels it was made with.
    """
    x, dense, _ = blobs(60, classes, apart=2.0, right=0.7)
    sizes: dict[str, Any] = {
        "n": 4,
        "batch_size": 12,
        "steps_per_epoch": 3,
        "encoder": {"hidden_units": (8, 4), "dropout": 0.0, "l2": 0.0},
    }
    method = kind(**{**sizes, "eta": 3.0, "seed": 1, **options})
    data = method._check(x, Annotations.from_dense(dense, num_classes=classes), None)
    labels = consensus_labels(data.annotations, method.seed)
    prepared = EmbeddingData(x, labels, data.annotations, x, labels)
    method.assurance_ = label_assurance(data.annotations.vote_counts())
    model, make = method._model_and_batches(prepared)
    return model, model.draw(next(iter(make(0)))), method, labels


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("anchor", ["mean", "sum", "embedding_sum", "none"])
@pytest.mark.parametrize("weight_inside", [True, False])
def test_loss_is_the_negative_log_posterior_of_the_positive(
    classes: int, anchor: str, weight_inside: bool
) -> None:
    model, (tuplets, which), method, labels = new(
        classes, anchor=anchor, weight_inside=weight_inside, offset=0.5, sampling_network=False
    )
    losses = model.tuplet_losses(tuplets, which, training=False).numpy()
    embedded, assurance = model.embed(np.asarray(model.instances)), method.assurance_
    rows = tuplets.numpy()
    first, others = rows[:, 0], rows[:, 1:]
    assert all(len(set(members)) == 4 for members in rows.tolist())
    assert ((labels[others] == labels[first, None]) == [True, False, False]).all()
    shares = (labels[first] == labels[first, None]) * assurance[first]
    centres = shares @ embedded[first]
    if anchor == "sum":  # definition 4 forms an example, which is then embedded
        centres = np.asarray(model.embed(shares @ np.asarray(model.instances)[first]))
    elif anchor == "mean":
        centres = centres / shares.sum(axis=1, keepdims=True)
    elif anchor == "none":
        centres = embedded[first]
    relevance = 0.5 - np.linalg.norm(embedded[others] - centres[:, None], axis=2)
    weights = assurance[others]
    inside = np.exp(3.0 * weights * relevance)
    terms = inside if weight_inside else weights * np.exp(3.0 * relevance)
    expected = -np.log(terms[:, 0] / terms.sum(axis=1))
    assert losses == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_the_anchor_in_the_sum_is_one_more_term() -> None:
    # Its similarity to itself is C, as its distance to itself is 0.
    options: dict[str, Any] = {"anchor": "none", "offset": 0.5, "sampling_network": False}
    model, (tuplets, which), method, _ = new(anchor_in_sum=True, **options)
    losses = model.tuplet_losses(tuplets, which, training=False).numpy()
    embedded, assurance = model.embed(np.asarray(model.instances)), method.assurance_
    for loss, members in zip(losses, tuplets.numpy(), strict=True):
        own = members[0]
        relevance = [0.5 - np.linalg.norm(embedded[member] - embedded[own]) for member in members]
        terms = np.exp(3.0 * assurance[members] * np.array(relevance))
        assert terms[0] == pytest.approx(np.exp(3.0 * assurance[own] * 0.5))
        assert loss == pytest.approx(-np.log(terms[1] / terms.sum()), rel=1e-3, abs=1e-4)


def test_figures_of_the_sampling_network_by_hand() -> None:
    model, _, method, _ = new(pool_factor=2)
    batch = method.batch_size
    size = 1024 // batch * batch
    uniforms = tf.random.stateless_uniform([size, 4], seed=[1, size], dtype=tf.float64)
    tuplets, which = model.index.draw(uniforms, tf.constant(model.index.cumulative(None)))
    parts = [(tuplets[i : i + batch], which[i : i + batch]) for i in range(0, size, batch)]
    losses = np.concatenate([model.tuplet_losses(*part, training=False) for part in parts])
    scores = model.hardness(model.sampler, tuplets, training=False).numpy()
    kept = losses[np.argsort(-scores, kind="stable")[: size // 2]].mean()
    most = np.sort(losses)[size // 2 :].mean()
    figures = model.figures(batch)
    assert figures["hardness_correlation"] == pytest.approx(np.corrcoef(scores, losses)[0, 1], 1e-3)
    assert figures["selected_loss_ratio"] == pytest.approx(kept / losses.mean(), rel=1e-4)
    share = (kept - losses.mean()) / (most - losses.mean())
    assert figures["selected_oracle_share"] == pytest.approx(share, rel=1e-3)
    assert 0 < figures["anchor_spread"] < 1


def test_the_hardest_of_the_pool_are_selected_after_the_warm_up() -> None:
    model, (pool, which), method, _ = new(pool_factor=3, sampler_warmup=2)
    assert pool.shape[0] == 3 * method.batch_size
    scores = model.hardness(model.sampler, pool, training=False).numpy()
    selected, classes = model.select(model.sampler, pool, which, tf.constant(6, tf.int64))
    hardest = np.argsort(-scores, kind="stable")[: method.batch_size]
    assert_array_equal(selected, pool.numpy()[hardest])
    assert_array_equal(classes, which.numpy()[hardest])
    as_drawn, _ = model.select(model.sampler, pool, which, tf.constant(5, tf.int64))
    assert_array_equal(as_drawn, pool.numpy()[: method.batch_size])


def test_the_sampling_network_learns_the_loss_and_leaves_the_embedding_alone() -> None:
    # Its square error has the gradient 2 * mean(predicted - loss) at the bias.
    model, (tuplets, _), _, _ = new()
    model.compile(optimizer="sgd")
    hardness = tf.constant(np.linspace(0.0, 3.0, len(tuplets)), tf.float32)
    predicted = model.hardness(model.sampler, tuplets, training=False).numpy()
    variables, gradients = model.sampler_step(model.sampler, tuplets, hardness)
    bias = next(g for v, g in zip(variables, gradients, strict=True) if v is model.sampler.bias)
    assert float(bias) == pytest.approx(2 * np.mean(predicted - hardness.numpy()), rel=1e-4)
    assert not {id(v) for v in variables} & {id(v) for v in model.encoder.variables}
