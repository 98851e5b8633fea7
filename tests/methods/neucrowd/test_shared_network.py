"""Fits of one shape that share what is compiled, whatever their data and seeds are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.neucrowd import NeuCrowd
from neucrowd_tf.methods.neucrowd.joint_learning import NeuCrowdModel
from neucrowd_tf.training.reuse import NetworkCache
from tests.crowds import noisy_labels

OPTIONS: dict[str, Any] = {"epochs": 2, "steps_per_epoch": 2, "batch_size": 16}
OPTIONS |= {"encoder": {"hidden_units": (4,)}, "sampler_warmup": 0}


def data(seed: int) -> tuple[np.ndarray, Annotations]:
    """Returns features of 40 instances, and annotations of other classes for each seed."""
    rng = default_rng(seed)
    truth = rng.permutation(40) % 2
    labels = noisy_labels(rng, truth, 3, 0.8)
    return rng.normal(truth[:, None], size=(40, 3)), Annotations.from_dense(labels)


def test_a_second_fit_traces_no_step_and_has_its_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    step = NeuCrowdModel.train_step

    def counted(self: NeuCrowdModel, batch: Any) -> Any:
        traced.append(self)
        return step(self, batch)

    monkeypatch.setattr(NeuCrowdModel, "train_step", counted)
    features, crowd = data(0)
    alone = NeuCrowd(**OPTIONS, seed=0).fit(features, crowd)
    cache = NetworkCache()
    fits = []
    for seed in (5, 0):
        estimator = NeuCrowd(**OPTIONS, seed=seed)
        with estimator.reused(cache):
            fits.append(estimator.fit(*data(seed)))
    assert len(traced) == 2, "the fit alone, and the first one of the cache"
    probabilities = [x.predict_proba(features).tobytes() for x in (alone, fits[1])]
    assert probabilities[0] == probabilities[1]
    assert fits[1].history_ == alone.history_
    with estimator.reused(cache):  # other arguments need other steps
        estimator.set_params(eta=2.0).fit(features, crowd)
    assert len(traced) == 3
