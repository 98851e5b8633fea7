"""The average of fitted classifiers: by hand, against a loop, and as one exported model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.declare import registry
from neucrowd_tf.methods.auto.average import LEAST, Average, mean_logits
from neucrowd_tf.saving.loading import load
from tests.crowds import array_of, corners


def _table(size: int = 60) -> tuple[np.ndarray, Annotations]:
    rng = default_rng([61, 0])
    truth = rng.integers(0, 3, size)
    features = corners(rng, truth, 3, 2)
    matrices = simulation.from_skills(np.full((4, 3), 0.8))
    return features, simulation.simulate(truth, matrices, 0, class_names=["a", "b", "c"])


def test_the_geometric_mean_by_hand() -> None:
    """(.9, .1) and (.5, .5): sqrt(.45) and sqrt(.05), a ratio of 3, so (.75, .25)."""
    result = np.exp(mean_logits([array_of("0.9 0.1;"), array_of("0.5 0.5;")]))
    assert_allclose(result, [[0.75, 0.25]])
    # A member that excludes a class does not exclude it for all.
    sure = np.exp(mean_logits([array_of("1.0 0.0;"), array_of("0.1 0.9;")]))
    ratio = np.sqrt(LEAST * 0.9 / 0.1)
    # Weights of 3 to 1: (.9 / .1)^(3/4) = 5.196.
    most = np.exp(mean_logits([array_of("0.9 0.1;"), array_of("0.5 0.5;")], [3.0, 1.0]))
    assert_allclose(most[0, 0] / most[0, 1], 9**0.75)
    assert_allclose(sure[0, 1], ratio / (1 + ratio), rtol=1e-6)


@pytest.mark.parametrize("same", [pytest.param(False, marks=pytest.mark.ci), True])
def test_members_export_as_one_model_and_are_saved(tmp_path: Path, same: bool) -> None:
    features, crowd = _table()
    names = ("crowd_layer", "crowd_layer") if same else ("mv_lr", "crowd_layer")
    hparams = [{"epochs": 2} if name == "crowd_layer" else {"Cs": [0.1]} for name in names]
    members = [
        registry.method(name).make(seed=seed, **more).fit(features, crowd)
        for seed, (name, more) in enumerate(zip(names, hparams, strict=True))
    ]
    shift = array_of("0.0 0.5 -0.5")
    average = Average.of(members, 1.7, shift, [3.0, 1.0])
    naive = np.ones((len(features), 3))
    for member, weight in zip(members, (0.75, 0.25), strict=True):
        naive *= np.maximum(member.predict_proba(features), LEAST) ** weight
    naive = (naive / naive.sum(axis=1, keepdims=True)) ** (1 / 1.7) * np.exp(shift)
    naive /= naive.sum(axis=1, keepdims=True)
    assert_allclose(average.predict_proba(features), naive, rtol=1e-6)
    served = np.asarray(average.inference_model()(features)["probabilities"])
    assert_allclose(served, naive, atol=1e-5)
    average.save(tmp_path / "average")
    assert_allclose(load(tmp_path / "average").predict_proba(features), naive, atol=1e-6)
