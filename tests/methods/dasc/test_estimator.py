"""Algorithm 1 as an estimator, over a crowd layer and over a model of another kind."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.declare import registry
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.crowd_layers.anno_reg import AnnoReg
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.crowding import CrowdInG
from neucrowd_tf.methods.dasc import DASC
from neucrowd_tf.methods.dasc.estimator import latest_good
from neucrowd_tf.methods.dasc.over_layers import SELECTIONS
from tests.cases import raises
from tests.crowds import SMALL_LAYER

SMALL = SMALL_LAYER | {"epochs": 12, "batch_size": 45}


@pytest.fixture(scope="module")
def fitted(crowd):
    features, truth, annotations = crowd
    model = DASC(CrowdLayer(**SMALL), quota=60, rounds=3, seed=3)
    return model.fit(features, annotations, (features[::3], truth[::3]))


def test_rounds(fitted, crowd):
    features, truth, annotations = crowd
    assert fitted.history_["round"] == [0, 1, 2, 3]
    assert fitted.history_["annotations"] == [
        annotations.num_annotations + 60 * t for t in range(4)
    ]
    assert [len(s) for s in fitted.selections_] == [60, 60, 60]
    assert len(fitted.round_accuracy_) == 4
    cells = np.concatenate(fitted.selections_)[:, :2]
    assert len(np.unique(cells, axis=0)) == 180, "without replacement"
    shares = [np.bincount(chosen[:, 1]) / 60 for chosen in fitted.selections_]
    expected = [*((share**2).sum() for share in shares), 0.0]
    assert fitted.history_["concentration"] == pytest.approx(expected)
    observed = set(
        zip(annotations.instances.tolist(), annotations.annotators.tolist(), strict=True)
    )
    assert not observed & {tuple(cell) for cell in cells.tolist()}
    assert (fitted.predict(features) == truth).mean() > 0.9


def test_rounds_are_what_separate_fits_give(fitted, crowd):
    features, _, annotations = crowd
    first, second = [
        p for _, p in zip(range(2), fitted.staged_predict_proba(features), strict=False)
    ]
    assert_array_equal(
        first, CrowdLayer(**SMALL, seed=3).fit(features, annotations).predict_proba(features)
    )
    more = annotations.with_generated(*fitted.selections_[0].T)
    assert_array_equal(
        second, CrowdLayer(**SMALL, seed=3 + 7919).fit(features, more).predict_proba(features)
    )


def test_staged_agree_with_picked_and_last(fitted, crowd):
    features, _, _ = crowd
    staged = list(fitted.staged_predict_proba(features))
    assert_allclose(staged[fitted.best_round_], fitted.predict_proba(features), atol=1e-6)
    assert_allclose(staged[-1], fitted.last_estimator_.predict_proba(features), atol=1e-6)


@pytest.mark.parametrize("selection", ["dasc", "confidence", "random", "equal"])
def test_any_model_that_predicts_annotators(crowd, centroids, selection):
    features, truth, annotations = crowd
    model = DASC(centroids, selection=selection, quota=100, rounds=2, pick="last").fit(
        features, annotations
    )
    assert (model.predict(features) == truth).mean() > 0.9
    assert model.best_round_ == 2 and model.estimator_.fits_ == annotations.num_annotations + 200
    assert [p.shape for p in model.staged_predict_proba(features)] == [(90, 3)] * 3


def test_exhaustion(crowd, centroids):
    features, _, annotations = crowd
    model = DASC(centroids, quota=10_000, rounds=5, pick="last").fit(features, annotations)
    assert model.history_["round"] == [0, 1] and model.history_["annotations"][1] == 90 * 8
    assert model.history_["exhausted"] == [[0, 1, 2], []]
    fewer = DASC(centroids, quota=200, rounds=3, hand_on=False, pick="last")
    history = fewer.fit(features, annotations).history_
    # An exhausted class hands nothing on, so a round takes fewer than the 200 that it wants.
    assert history["selected"][0] < 200 and 2 in history["exhausted"][0]
    whole = annotations.with_generated(*model.selections_[0].T).to_dense()
    full = DASC(centroids, rounds=5, pick="last").fit(features, whole)
    assert full.selections_ == [] and full.history_["round"] == [0]
    # A first pass over held-out instances that used up its cells says how many rounds the second
    # one has.
    for fixed, selected in ((annotations, [90 * 8 - annotations.num_annotations, 0]), (whole, [0])):
        twice = DASC(centroids, quota=10_000, rounds=5).fit(features, fixed)
        assert twice.history_["selected"] == selected


def test_round_is_chosen_on_held_out_instances(crowd, centroids):
    features, _, annotations = crowd
    model = DASC(centroids, quota=50, rounds=2).fit(features, annotations)
    assert len(model.round_accuracy_) == 3 and "val_accuracy" not in model.history_
    assert model.estimator_.fits_ == annotations.num_annotations + 50 * model.best_round_


def test_picked_round_by_hand():
    scores = [0.70, 0.80, 0.77, 0.75]
    # The standard error of .8 over 100 instances is .04: round 2 is within one, round 3 is not.
    # Over 25 instances it is .08.
    assert [latest_good(scores, size) for size in (100, 25)] == [2, 3]
    assert latest_good(scores, 10_000) == 1, "the error shrinks to .004"


def test_a_model_without_annotators_is_an_error(crowd):
    features, _, annotations = crowd
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(
        UsageError, match="an estimator with predict_annotators, received LogisticRegression"
    ):
        DASC(LogisticRegression()).fit(features, annotations)


def test_a_model_that_leaves_out_generated_labels_is_an_error(crowd):
    features, _, annotations = crowd
    with pytest.raises(UsageError, match="CrowdInG leaves out labels that a method made up"):
        DASC(CrowdInG(), rounds=1).fit(features, annotations)


def test_registered_names_and_parameters():
    names = {m.name for m in registry.methods()}
    layers = ("crowd_layer", "anno_reg", "wdn")
    assert {f"{selection}_{base}" for selection in SELECTIONS for base in layers} <= names
    new = registry.method("dasc_anno_reg").make(dataset="labelme", seed=4, trace_weight=0.1)
    assert (new.quota, new.selection, new.seed) == (20_000, "dasc", 4)
    assert new.estimator.trace_weight == 0.1 and new.estimator.epochs == 25
    assert type(pickle.loads(pickle.dumps(new))) is type(new)
    assert registry.method("focal_self_wdn").make().estimator.imbalance == "focal"
    raises(TypeError, "unexpected keyword argument 'tau'", registry.method("dasc_wdn").make, tau=1)
    for fixed in DASC.fixed:
        with pytest.raises(UsageError, match=f"{fixed}: dasc_wdn does not take it"):
            registry.method("dasc_wdn").make(**{fixed: 1})
    conal = registry.method("dasc_wdn").make(estimator="conal", embedding_size=3).estimator
    assert conal.embedding_size == 3
    assert registry.method("dasc_wdn").make(dataset="labelme", estimator=AnnoReg()).quota == 1_000


def test_a_lost_class_still_has_a_quota(crowd, centroids):
    class NeverTwo(type(centroids)):
        """A model that has lost class 2."""

        def predict_proba(self, features):
            p = super().predict_proba(features)
            p[:, :2] += 1e-6
            p[:, 2] = 0.0
            return p / p.sum(axis=1, keepdims=True)

    features, _, annotations = crowd
    model = DASC(NeverTwo(), quota=20, rounds=2, pick="last").fit(features, annotations)
    assert all(quota[2] > 0 for quota in model.history_["quota"][:-1])
    assert model.history_["lost"] == [[2], [2], []]
    alone = DASC(NeverTwo(), selection="confidence", quota=20, rounds=2, pick="last")
    assert all(quota[2] == 0 for quota in alone.fit(features, annotations).history_["quota"])
