"""What crowd layers learn of annotators, and classes that a fit loses."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.crowd_layers.anno_reg import AnnoReg
from neucrowd_tf.methods.crowd_layers.common.estimator import lost_classes
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.crowd_layers.doctor_net import WeightedDoctorNet
from tests.crowds import array_of, noisy_labels

SMALL = {
    "base": {"hidden_units": (16,), "dropout": 0.0},
    "learning_rate": 3e-3,
    "epochs": 40,
    "batch_size": 50,
}


@pytest.fixture(scope="module")
def skilled():
    """Features, annotations by twelve annotators, and how often each of them is right."""
    rng = default_rng(0)
    truth = rng.integers(4, size=400)
    features = rng.normal(size=(400, 6)).astype(np.float32)
    features[np.arange(400), truth] += 4.0
    dense = noisy_labels(rng, truth, 12, np.linspace(0.3, 1.0, 12), 4)
    dense[rng.random((400, 12)) > 0.3] = -1
    dense[np.arange(400), rng.integers(12, size=400)] = truth
    shares = (dense == truth[:, None]).sum(axis=0) / (dense >= 0).sum(axis=0)
    return features, Annotations.from_dense(dense, num_classes=4), shares


def diagonals(model):
    return np.diagonal(model.confusion_matrices_, axis1=1, axis2=2).mean(axis=1)


@pytest.mark.parametrize(("kind", "rate"), [(CrowdLayer, 0.03), (AnnoReg, 0.05)])
def test_a_rate_of_their_own_lets_annotators_be_learnt(skilled, kind, rate):
    features, annotations, shares = skilled
    still, shared, custom = (
        diagonals(kind(**SMALL, annotator_learning_rate=each).fit(features, annotations))
        for each in (0.0, None, rate)
    )
    assert np.ptp(still) < 1e-6, "the control: without a rate nothing moves"
    assert np.ptp(shared) < 0.75 * np.ptp(custom) and np.ptp(custom) > 0.6 * np.ptp(shares)
    assert np.corrcoef(custom, shares)[0, 1] > 0.9


def test_start_near_the_identity(skilled):
    features, annotations, _ = skilled
    model = CrowdLayer(**{**SMALL, "epochs": 2}, initial=4, annotator_learning_rate=0)
    # softmax of (4, 0, 0, 0): e^4 / (e^4 + 3) = .948.
    assert_allclose(diagonals(model.fit(features, annotations)), 0.948, atol=1e-3)


class Forgets(CrowdLayer):
    """Predicts no instance as class 3 in its first fits."""

    forgetful = 1

    def _fit(self, data, run):
        self.fits = 0
        super()._fit(data, run)

    def _train(self, network, data, run):
        self.fits += 1
        history = super()._train(network, data, run)
        if self.fits <= self.forgetful:
            for layer in network.base.layers:
                if getattr(layer, "bias", None) is not None and layer.units == 4:
                    layer.bias.assign([0.0, 0.0, 0.0, -1e4])
        return history


def test_a_fit_that_loses_a_class_starts_again(skilled):
    features, annotations, _ = skilled
    model = Forgets(**{**SMALL, "epochs": 20})
    with model.reused():
        with warnings.catch_warnings(action="error"):
            first = model.fit(features, annotations).predict_proba(features)
        assert model.fits == 2 and (model.predict(features) == 3).any()
        again = model.fit(features, annotations).predict_proba(features)
        assert_array_equal(again, first)
        message = "hardly predicts the class 3, or mistakes it for another"
        with pytest.warns(UserWarning, match=message):
            model.set_params(restarts=0).fit(features, annotations)
        assert model.fits == 1 and not (model.predict(features) == 3).any()


@pytest.mark.filterwarnings("error")
def test_instances_with_pseudo_annotations_only_are_not_of_the_first_class(skilled):
    features, annotations, _ = skilled
    truth = annotations.vote_counts().argmax(axis=1)
    # Few instances of class 0; half of the others have no label of an annotator.
    chosen = np.flatnonzero((truth > 0) | (np.cumsum(truth == 0) <= 12))
    pseudo = (truth[chosen] > 0) & (np.arange(len(chosen)) % 2 == 0)
    dense = np.where(pseudo[:, None], -1, annotations.to_dense()[chosen])
    rows, annotators = np.nonzero(pseudo[:, None] & (np.arange(12) < 2))
    crowd = Annotations.from_dense(dense, num_classes=4)
    crowd = crowd.with_generated(rows, annotators, truth[chosen[rows]])
    model = CrowdLayer(**SMALL).fit(features[chosen], crowd)
    assert 8 < np.sum(model.predict(features[chosen]) == 0) < 0.2 * np.sum(pseudo)


def test_lost_classes_by_hand():
    agreed = np.repeat([0, 1, 2, 3], 5)
    right = agreed.copy()
    assert not lost_classes(agreed, right, 4).any()
    never = np.where(agreed == 3, [0, 1, 2, 0, 1] * 4, right)  # 3 is never predicted
    assert lost_classes(agreed, never, 4).tolist() == [False, False, False, True]
    swapped = array_of("1 0 2 3")[agreed]  # as often as they should be, but for each other
    assert lost_classes(agreed, swapped, 4).tolist() == [True, True, False, False]
    # The labels of 0 are wrong: the fit spreads them over the others, or has all of them for 1,
    # which it knows. Nothing is lost.
    spread = np.where(agreed == 0, [1, 2, 3, 1, 2] * 4, right)
    taken = np.where(agreed == 0, 1, right)
    for result in (spread, taken):
        predicted = np.concatenate([result, [0]])  # 0 once, where they agree on 1
        assert not lost_classes(np.append(agreed, 1), predicted, 4).any()


def with_pseudo(annotations):
    """Returns annotations with 300 pseudo-annotations of class 0."""
    certain = annotations.to_dense() >= 0
    instances, annotators = (piece[:300] for piece in np.nonzero(~certain))
    return annotations.with_generated(instances, annotators, np.zeros(300, int))


def test_class_weights_count_observed_labels(skilled):
    features, annotations, _ = skilled
    both = with_pseudo(annotations)
    counts = np.bincount(annotations.labels)
    model = CrowdLayer(**{**SMALL, "epochs": 1}, imbalance="reweighting")
    with model.reused():
        model.fit(features, both)
        weights = np.asarray(model.network.model._strengths)
        labels = np.asarray(model.network.model._given)[:, 1]
    assert_allclose(weights, (counts.max() / counts)[labels], rtol=1e-5)


def test_second_phase_predicts_observed_labels(skilled):
    features, annotations, _ = skilled
    model = WeightedDoctorNet(**{**SMALL, "epochs": 1}, weight_epochs=1)
    with model.reused():
        model.fit(features, with_pseudo(annotations))
        targets = np.asarray(model.network.second._targets)
    votes = annotations.vote_counts()
    assert_allclose(targets, votes / votes.sum(axis=1, keepdims=True), atol=1e-6)


def test_a_crowd_layer_starts_again_nearer_to_the_identity(skilled):
    features, annotations, _ = skilled
    still = {**SMALL, "annotator_learning_rate": 0, "epochs": 15}
    # .9 of four classes: log(9 x 3) = 3.296 on the diagonal; a sharper start stays as it is.
    for initial, expected in ((1.0, 0.9), (5.0, np.exp(5) / (np.exp(5) + 3))):
        model = Forgets(**still, initial=initial).fit(features, annotations)
        assert model.fits == 2
        assert_allclose(diagonals(model), expected, atol=1e-4)


def test_a_cosine_schedule_ends_near_zero_and_each_fit_begins_anew(crowd):
    rates: list[tuple[float, float]] = []

    class Rates(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            model = self.model
            optimizers = (model.optimizer, model.annotator_optimizer)
            rates.append(tuple(float(one.learning_rate) for one in optimizers))

    features, _, annotations = crowd
    settings = {**SMALL, "epochs": 4, "annotator_learning_rate": 0.1, "restarts": 0}
    model = AnnoReg(**settings, schedule="cosine")
    with model.reused():
        for _ in range(2):
            model.fit(features, annotations, callbacks=[Rates()])
    shares = 0.5 * (1 + np.cos(np.pi * np.arange(4) / 4))
    expected = np.outer(shares, [SMALL["learning_rate"], 0.1])
    assert_allclose(rates, [*expected, *expected], rtol=1e-6)
    with pytest.raises(UsageError, match="schedule: cosine needs an optimizer by name"):
        AnnoReg(optimizer=keras.optimizers.Adam(), schedule="cosine").fit(features, annotations)
