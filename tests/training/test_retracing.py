"""TensorFlow's warnings of retracing: kept back around fits, and for nobody else."""

from __future__ import annotations

import logging

import numpy as np
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.neucrowd import NeuCrowd
from neucrowd_tf.training.estimator import retracing_expected


def test_many_fits_and_predictions_say_nothing(caplog):
    rng = default_rng(0)
    for seed in range(6):
        size = 20 + seed
        labels = np.tile(np.arange(size)[:, None] % 2, (1, 3))
        model = NeuCrowd(epochs=1, steps_per_epoch=1, encoder={"hidden_units": (4,)}, seed=seed)
        model.fit(rng.normal(size=(size, 3)), Annotations.from_dense(labels))
        model.predict_proba(rng.normal(size=(size, 3)))
    assert "retracing" not in caplog.text


def test_others_are_warned_as_before(caplog):
    logger = logging.getLogger("tensorflow")
    note = "5 out of the last 5 calls to f triggered tf.function retracing."
    with retracing_expected(), retracing_expected():
        logger.warning(note)
        logger.warning("something else")
    assert caplog.messages == ["something else"]
    logger.warning(note)
    assert caplog.messages[1:] == [note]
