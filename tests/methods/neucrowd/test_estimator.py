"""NeuCrowd end to end: ablations, C classes, options, devices, and real reviews."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.neucrowd import NeuCrowd
from neucrowd_tf.methods.neucrowd.estimator import FIGURES
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.trained import beats_one_step
from tests.crowds import Crowd

TINY: dict[str, Any] = {
    "epochs": 2,
    "steps_per_epoch": 2,
    "batch_size": 16,
    "encoder": {"hidden_units": (8, 4)},
}


def crowd() -> Crowd:
    x, y = make_blobs(90, 6, centers=2, cluster_std=2.0, random_state=0)
    rng = default_rng(0)
    labels = np.where(rng.uniform(size=(90, 5)) < 0.85, y[:, None], rng.integers(0, 2, (90, 5)))
    return x.astype(np.float32), Annotations.from_dense(labels), y


def fitted(options: dict[str, Any]) -> NeuCrowd:
    """A fit with these options that is long enough to bring the loss down."""
    x, annotations, _ = crowd()
    longer = {
        **TINY,
        "epochs": 3,
        "steps_per_epoch": 8,
        "learning_rate": 0.02,
        "encoder": {**TINY["encoder"], "dropout": 0.0},
        "sampler_warmup": 1,
    }
    return NeuCrowd(**{**longer, **options}).fit(x, annotations)


def test_a_fit_leaves_diagnostics_under_their_own_names() -> None:
    model = fitted({})
    figures = model.evaluation(SimpleNamespace(truth=None))
    assert set(figures) == {"safe_share", *FIGURES}
    assert figures["anchor_spread"] == model.history_["anchor_spread"][-1]
    validation = {name for name in model.history_ if name.startswith("val_")}
    assert validation == {"val_accuracy", "val_auc", "val_log_loss"}


def test_a_network_that_hardly_moves_did_not_train() -> None:
    model = fitted({"learning_rate": 1e-9})
    best = model.history_["val_auc"][model.best_epoch_ or 0]
    assert best == pytest.approx(model.one_step_["auc"], abs=1e-6) and model.trained_ is False
    # A standard error of .6 on 96 instances is .05.
    assert beats_one_step(0.651, 0.6, 96) and not beats_one_step(0.649, 0.6, 96)
    assert beats_one_step(math.nan, math.nan, 96) is None  # validation data of one class


@pytest.fixture(scope="module")
def plain() -> list[float]:
    """The losses of a fit with the defaults."""
    return list(fitted({}).history_["loss"])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"safety_aware": False}, marks=pytest.mark.ci),
        *(
            pytest.param(change, marks=pytest.mark.slow)
            for change in (
                {"sampling_network": False},
                {"anchor": "sum"},
                {"weight_inside": False},
                {"encoder": {**TINY["encoder"], "initializer": "normal"}},
                {"similarity": "cosine"},
                {"pool_factor": 3},
                {"unsafe_weight": 0.0},
            )
        ),
    ],
)
def test_each_option_trains_and_makes_a_difference(
    change: dict[str, Any], plain: list[float]
) -> None:
    """The seed is the same, so an option that is not used would give the same numbers as before."""
    x, _, y = crowd()
    model = fitted(change)
    losses = model.history_["loss"]
    assert not np.allclose(losses, plain, rtol=1e-3), "the option does nothing"
    assert len(losses) == 3 and min(losses[1:]) < losses[0], "the loss does not come down"
    assert model.score(x, y) >= 0.9
    assert ("sampler_loss" in model.history_) == change.get("sampling_network", True)
    assert ("safe_share" in model.history_) == change.get("safety_aware", True)


def test_who_is_safe_is_the_same_after_a_resumed_training(tmp_path: Path) -> None:
    features, annotations, _ = crowd()
    run = Run(checkpoints=tmp_path, checkpoint_seconds=0)
    first, resumed = (NeuCrowd(**TINY).fit(features, annotations, run=run) for _ in range(2))
    assert_array_equal(first.safe_, resumed.safe_)
    assert first.safe_.mean() == first.history_["safe_share"][first.best_epoch_]
