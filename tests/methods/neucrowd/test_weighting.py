"""How much an example's assurance lets it pull in each form of the loss; and what is selected."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.methods.neucrowd import NeuCrowd, safety
from neucrowd_tf.methods.neucrowd.assurance import label_assurance
from neucrowd_tf.methods.neucrowd.safety import (
    compared_instances,
    mislabel_detection,
    safe_examples,
)
from neucrowd_tf.nn.tuplet_loss import tuplet_log_likelihood
from reproduction.controls.neucrowd import ReleasedNeuCrowd
from tests.crowds import array_of, blobs
from tests.methods.neucrowd.test_estimator import TINY
from tests.methods.neucrowd.test_objective import new


def pull(assurance: float, scores: list[float], inside: bool = True) -> float:
    """The gradient on the positive's similarity."""
    values = tf.Variable(scores)
    with tf.GradientTape() as tape:
        confidence = tf.constant([assurance, 1.0, 1.0])
        loss = -tuplet_log_likelihood(values, confidence, eta=5.0, weight_inside=inside)
    return float(-tape.gradient(loss, values)[0])


def test_before_it_is_near_a_less_assured_positive_pulls_less() -> None:
    pulls = [pull(a, [1.0, 1.0, 1.0]) for a in (0.1, 1 / 7, 0.3, 0.5, 1.0)]
    assert pulls == sorted(pulls)


def test_inside_the_pull_is_assurance_times_what_the_posterior_lacks() -> None:
    # As printed it is eta A (1 - p): at one posterior A times as hard. But p falls with A. Where
    # the positive is near (2 and 0, C = 2) a sure one's p is e^10 / (e^10 + 2), a doubtful one's
    # e^(10/7) / (e^(10/7) + 2) = .676: its pull is 5/7 * .324 = .231, the sure one's .0005.
    near = [2.0, 0.0, 0.0]
    doubtful, sure = (pull(a, near) for a in (1 / 7, 1.0))
    lacks = 2 / (np.exp(10 / 7) + 2)
    assert doubtful == pytest.approx(5 / 7 * lacks, rel=1e-5)
    assert sure == pytest.approx(5 * 2 / (np.exp(10) + 2), rel=1e-2)
    assert doubtful == pytest.approx(0.2315, abs=1e-4) and sure < doubtful / 100


def test_outside_the_exponent_a_less_assured_positive_pulls_more() -> None:
    # Near convergence 1 - p is about B / (A exp(eta R)): a seventh of the assurance, seven times
    # the pull. With the released code's share of votes, at least 4 / 7, it is at most 7 / 4 times.
    far = [1.0, -1.0, -1.0]
    ratio = pull(1 / 7, far, inside=False) / pull(1.0, far, inside=False)
    assert ratio == pytest.approx(7.0, rel=0.01)
    ratio = pull(4 / 7, far, inside=False) / pull(1.0, far, inside=False)
    assert ratio == pytest.approx(7 / 4, rel=0.01)


def test_share_of_votes() -> None:
    votes = array_of("0 7; 3 4; 2 2")
    assert_allclose(label_assurance(votes), [1.0, 1 / 7, 0.0], rtol=1e-6)
    assert_allclose(label_assurance(votes, "share"), [1.0, 4 / 7, 0.5], rtol=1e-6)


def test_mislabels_among_unsafe_rows() -> None:
    # Five known rows, of which 1, 3 and 4 are unsafe and 1, 2 and 3 wrong: two of three each way.
    safe = np.array([True, False, True, False, False, True])
    labels, truth = array_of("0 0 0 1 1 1"), array_of("0 1 1 0 1 -1")
    result = mislabel_detection(safe, labels, truth)
    assert result == {"mislabelled": 0.6, "unsafe_precision": 2 / 3, "unsafe_recall": 2 / 3}


def test_evaluation_looks_at_the_rows_trained_on() -> None:
    # Six annotated rows of seven, of which 1, 3 and 5 were trained on; the middle one is unsafe,
    # and its label is the only wrong one: precision and recall are 1.
    model = NeuCrowd()
    model.rows_, model.kept_ = array_of("0 1 2 4 5 6"), array_of("1 3 5")
    model.train_labels_ = array_of("0 1 0 0 1 1")
    model.safe_ = np.array([True, False, True])
    model.history_ = {"safe_share": [0.5, 2 / 3], "hardness_correlation": [float("nan")]}
    truth = array_of("1 1 1 1 1 0 1")
    model.classes_ = np.arange(3)
    figures = model.evaluation(SimpleNamespace(truth=truth))
    assert np.isnan(figures.pop("hardness_correlation"))
    assert figures == {
        "unsafe_precision": 1.0,
        "unsafe_recall": 1.0,
        "mislabelled": 1 / 3,
        "safe_share": 2 / 3,
    }


def test_an_example_may_be_its_own_neighbour() -> None:
    # Two of one class and one of another on a line; of row 1's two nearest, itself among them, one
    # is its own, and the sums are equal: safe with itself, unsafe among others alone.
    x, labels = array_of("0.0; 1.0; 1.4"), array_of("0 0 1")
    ones = np.ones(3)
    assert ReleasedNeuCrowd()._safe_examples(x, labels, ones)[1]
    assert not safe_examples(x, labels, ones, k=1)[1]


def crowd() -> tuple[np.ndarray, Annotations]:
    x, votes, _ = blobs(60, 2, apart=1.5, right=0.75)
    return x, Annotations.from_dense(votes, num_classes=2)


READINGS = (
    *("_head", "_assurance", "_safe_examples", "_before_epoch", "_make_encoder"),
    "_model_class",
)


def released_in(*readings: str) -> NeuCrowd:
    """Returns an estimator with some of the released code's readings alone."""
    others = {name: getattr(NeuCrowd, name) for name in READINGS if name not in readings}
    arguments = {**TINY, "unsafe_weight": 0.02, "sampler_warmup": 0, "seed": 1}
    return type("One", (ReleasedNeuCrowd,), others)(**arguments, anchor="mean", monitor="auc")


@pytest.mark.parametrize("reading", READINGS)
def test_each_released_reading_changes_the_fit(reading: str) -> None:
    x, annotations = crowd()
    plain = released_in().fit(x, annotations).predict_proba(x)
    other = released_in(reading).fit(x, annotations).predict_proba(x)
    assert np.isfinite(other).all() and not np.array_equal(plain, other)


def test_the_released_sampling_network_predicts_probabilities() -> None:
    x, annotations = crowd()
    model = ReleasedNeuCrowd(**TINY, seed=1).fit(x, annotations)
    assert -1.0 < model.history_["predicted_hardness"][-1] < 0.0
    shares = annotations.vote_counts().max(axis=1) / 5
    assert_allclose(model.assurance_, shares[model.kept_], rtol=1e-6)


def test_the_released_code_keeps_the_least_probable_positives() -> None:
    model, (pool, which), method, _ = new(pool_factor=3, sampler_warmup=0, kind=ReleasedNeuCrowd)
    probabilities = -model.hardness(model.sampler, pool, training=False).numpy()
    selected, _ = model.select(model.sampler, pool, which, tf.constant(0, tf.int64))
    hardest = np.argsort(probabilities, kind="stable")[: method.batch_size]
    assert_array_equal(selected, pool.numpy()[hardest])


def test_named_presets() -> None:
    # src/trainRLL.py: batch 256, penalty 2 on half the squares over a summed loss, gamma 2, 50
    # epochs; src/model.py: groupSize 6e4. Section 4.3 and definition 4: the published words.
    released = registry.method("neucrowd_released").make().get_params()
    assert released["encoder"]["l2"] * 2 * 256 == 2.0
    assert (released["eta"], released["epochs"], released["steps_per_epoch"]) == (2.0, 50, 234)
    printed = registry.method("neucrowd_printed").make().get_params()
    assert printed["optimizer"]["config"] == {"learning_rate": 1e-3, "rho": 0.95, "epsilon": 1e-8}
    assert printed["encoder"]["initializer"] == "normal"
    assert printed["anchor"] == "sum"
    assert printed["unsafe_weight"] == 0 and printed["standardise"] is False


def test_epochs_compare_a_bounded_number_of_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compared_instances(50, seed=1, epoch=3).tolist() == list(range(50))
    monkeypatch.setattr(safety, "MOST_COMPARED", 20)
    first, second = (
        [compared_instances(50, seed=1, epoch=epoch) for epoch in epochs]
        for epochs in ((0, 1, 2), (3, 4, 5))
    )
    for parts in (first, second):
        assert sorted(np.concatenate(parts).tolist()) == list(range(50)), "each once per pass"
        assert max(map(len, parts)) <= 20
    assert first[0].tolist() != second[0].tolist()


def test_safety_of_many_instances_is_kept_between_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    x, annotations = crowd()
    sizes = []
    monkeypatch.setattr(safety, "MOST_COMPARED", 20)
    compare = NeuCrowd._safe_examples

    def noted(self: NeuCrowd, embeddings: np.ndarray, *further: np.ndarray) -> np.ndarray:
        sizes.append(len(embeddings))
        return np.zeros_like(compare(self, embeddings, *further))

    monkeypatch.setattr(NeuCrowd, "_safe_examples", noted)
    model = NeuCrowd(**{**TINY, "epochs": 2}, seed=1).fit(x, annotations)
    assert sizes and max(sizes) <= 20
    assert model.safe_ is not None and (~model.safe_).sum() == sum(sizes[-2:])
