"""RLL end to end on a small crowd, and its objective against eq. (3) written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.rll import RLL
from reproduction.controls.rll import PrintedRLL, ReleasedRLL
from tests.cases import raises
from tests.crowds import QUICK_EMBEDDING, Crowd, array_of, blobs

QUICK = {**QUICK_EMBEDDING, "batch_size": 32}


def crowd_data(classes: int) -> Crowd:
    x, dense, truth = blobs(90, classes, width=6)
    return x, Annotations.from_dense(dense, num_classes=classes), truth


@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "classes"),
    [("rll_bayesian", 3), ("rll", 2), pytest.param("rll_mle", 2, marks=pytest.mark.slow)],
)
def test_learns(name: str, classes: int) -> None:
    x, crowd, truth = crowd_data(classes)
    fitted = registry.method(name).make(seed=0, **{**QUICK, "epochs": 8}).fit(x, crowd)
    assert fitted.score(x, truth) > 0.85
    assert fitted.transform(x).shape == (90, 4)
    assert fitted.confidence_.shape == (72,)
    assert (fitted.confidence_ > 0).all()
    assert (fitted.confidence_ <= 1).all()
    assert (fitted.confidence_ == 1).all() == (name == "rll")
    figures = fitted.evaluation(SimpleNamespace(truth=truth))
    right = fitted.train_labels_[fitted.kept_] == truth[fitted.rows_[fitted.kept_]]
    assert figures["confidence"] == pytest.approx(fitted.confidence_.mean())
    assert figures["confidence_right"] == pytest.approx(fitted.confidence_[right].mean())
    blind = fitted.evaluation(SimpleNamespace(truth=None))
    assert blind["confidence"] == figures["confidence"]
    assert set(blind) == {"confidence", "by_class"}


def test_d_annotators_an_instance_and_votes_alone() -> None:
    x, crowd, truth = crowd_data(2)
    full = RLL("mle", seed=0, **QUICK).fit(x, crowd)
    one = RLL("mle", annotators_per_instance=1, seed=0, **QUICK).fit(x, crowd)
    assert np.mean(one.train_labels_ == truth) < np.mean(full.train_labels_ == truth)
    assert (one.confidence_ == 1).all()  # a single vote agrees with itself
    votes = Annotations.from_votes(crowd.vote_counts())
    RLL(annotators_per_instance=3, seed=0, **QUICK).fit(x, votes)
    assert_array_equal(
        RLL("mle", seed=0, **QUICK).fit(x, votes).predict_proba(x), full.predict_proba(x)
    )


def test_wrong_arguments() -> None:
    x, crowd, _ = crowd_data(2)
    raises(UsageError, "alpha, beta: expected both", RLL(**QUICK, alpha=1.0).fit, x, crowd)
    few = Annotations.from_dense(array_of("0; 1; 1; 1; 1; 1"))
    with pytest.raises(DataError, match="instances of other classes"):
        RLL(k=3, **QUICK).fit(x[:6], few, (x[:6], array_of("0 1 1 0 1 1")))


def test_the_released_code_by_hand() -> None:
    # Its prior Beta(3, 2) is that of every label: with v of d votes for it (3 + v) / (5 + d).
    model = ReleasedRLL()
    votes, labels = array_of("0 5; 4 1"), np.array([1, 0])
    assert_allclose(model._confidence(votes, labels), array_of("8/10 7/10"), rtol=1e-6)
    # Forty-five positives make 1,980 pairs, 61 batches of 32 in each of ten passes.
    data = SimpleNamespace(labels=np.arange(90) % 2)
    assert ReleasedRLL(batch_size=32)._steps(data) == 610
    assert ReleasedRLL(steps_per_epoch=7)._steps(data) == 7


def test_the_released_code_keeps_the_epoch_with_the_lowest_validation_loss() -> None:
    x, crowd, _ = crowd_data(2)
    model = ReleasedRLL(**{**QUICK, "epochs": 4}, seed=1).fit(x, crowd)
    losses = model.history_["val_loss"]
    assert len(losses) == 4 and model.best_epoch_ == int(np.argmin(losses))
    again = ReleasedRLL(**{**QUICK, "epochs": 4}, seed=1).fit(x, crowd)
    assert np.array_equal(model.predict_proba(x), again.predict_proba(x))


def test_two_towers_embed_anchors_and_members() -> None:
    x = default_rng(0).normal(size=(12, 6)).astype(np.float32)
    labels = np.arange(12) % 2
    model = ReleasedRLL(encoder={"hidden_units": (4, 3), "dropout": 0.5}, standardise=False)
    model.classes_ = array_of("0 1")
    network = model._model(model._make_encoder((6,), 0), x, labels, np.ones(12, np.float32))
    rows = tf.constant([[0, 2, 1], [2, 0, 3]])
    embedded = network.embed_rows(rows, training=False)
    first, others = network.query(x), network.encoder(x)
    assert_allclose(embedded[:, 0], tf.gather(first, rows[:, 0]), rtol=1e-5)
    assert_allclose(embedded[:, 1:], tf.gather(others, rows[:, 1:]), rtol=1e-5)
    # Each place has a dropout mask of its own: equal rows, unequal embeddings.
    masked = network.embed_slots(network.encoder, tf.zeros((64, 1), tf.int32))
    assert len(np.unique(masked.numpy(), axis=0)) > 1
    weights = (*network.encoder.losses, *network.query.losses)
    assert float(network.penalty(network.encoder)) == pytest.approx(float(sum(weights)))


def test_equations_1_and_2_as_printed_by_hand() -> None:
    # Shares of positive votes, whichever label the example has; sure negatives weigh nothing.
    votes, labels = array_of("0 5; 5 0; 2 3; 4 1"), array_of("1 0 1 0")
    mle = PrintedRLL(confidence="mle")._confidence(votes, labels)
    assert_allclose(mle, [1.0, 0.0, 0.6, 0.2], rtol=1e-6)
    # The prior has a vote in all, of which the share of positive labels, a half, is positive.
    bayesian = PrintedRLL(confidence="bayesian")._confidence(votes, labels)
    assert_allclose(bayesian, array_of("5.5/6 0.5/6 3.5/6 1.5/6"), rtol=1e-6)
