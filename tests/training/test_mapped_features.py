"""Features of a file give what features in memory give, and are never copied as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from neucrowd_tf import DASC, RLL, CrowdLayer, NeuCrowd
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.two_stage import SoftProb, TwoStageClassifier
from neucrowd_tf.methods.two_stage.deep_labels import DeepLabels
from neucrowd_tf.training import logistic_blocks
from neucrowd_tf.training.features import ArrayFeatures
from neucrowd_tf.training.logistic_blocks import BlockwiseLogistic, StandardisedRows
from tests.cases import raises
from tests.crowds import blobs, corners

NETWORK = {"base": {"hidden_units": (), "dropout": 0.1}, "epochs": 8, "batch_size": 16}
NETWORK |= {"learning_rate": 0.05}
TUPLETS = {"epochs": 2, "steps_per_epoch": 3, "batch_size": 8}


@pytest.fixture
def crowd(tmp_path):
    """Features in memory and in a file of doubles, of which one column needs them, and labels."""
    x, dense, _ = blobs(90, 3, apart=4.0, annotators=4)
    x = x.astype(np.float64)
    x[:, 0] += 1e9
    mapped = np.memmap(tmp_path / "features", np.float64, "w+", shape=x.shape)
    mapped[:] = x
    return x, mapped, dense


@pytest.mark.parametrize(
    "make",
    [
        lambda: CrowdLayer(**NETWORK),
        lambda: DeepLabels(**NETWORK),
        lambda: NeuCrowd(**TUPLETS),
        lambda: RLL(**TUPLETS),
        lambda: TwoStageClassifier(Cs=(0.1, 1.0), labels="soft"),
        lambda: SoftProb(Cs=(0.1, 1.0)),
    ],
    ids=["crowd_layer", "mv_dl", "neucrowd", "rll", "mv_lr", "softprob"],
)
def test_a_file_gives_what_memory_gives(crowd, make):
    x, mapped, dense = crowd
    dense = dense.copy()
    dense[4] = -1
    with pytest.warns(UserWarning, match="1 instances have no annotations"):
        expected = make().fit(x, dense).predict_proba(x)
    with pytest.warns(UserWarning, match="1 instances have no annotations"):
        fitted = make().fit(mapped, dense)
    assert_allclose(fitted.predict_proba(mapped), expected, atol=1e-4)
    x[:, 0] -= 1e9
    index = default_rng(1).permutation(90)
    dataset = tf.data.Dataset.from_tensor_slices((x[index].astype(np.float32), index)).batch(7)
    with pytest.warns(UserWarning, match="1 instances have no annotations"):
        assert make().fit(dataset, dense).score(dataset, dense) > 0.6


def test_other_methods_refuse_in_a_line(crowd):
    _, mapped, dense = crowd
    raises(UsageError, "DASC needs all features in memory", DASC().fit, mapped, dense)
    mapped[3, 1] = np.nan
    raises(DataError, "row 3, column 1", CrowdLayer().fit, mapped, dense)


@pytest.mark.parametrize("classes", [2, 3])
def test_blocks_give_scikit_learns_regression(classes, monkeypatch):
    monkeypatch.setattr(logistic_blocks, "_BLOCK", 40)
    rng = default_rng(0)
    codes = rng.integers(classes, size=90)
    x = corners(rng, codes, 3, 1)
    mean, scale, weight = x.mean(axis=0), x.std(axis=0), rng.random(90)
    rows = StandardisedRows(ArrayFeatures(x), mean, scale)
    model = BlockwiseLogistic(1000)
    for strength in (0.1, 3.0):
        model.set_params(C=strength)
        model.fit(rows[np.arange(80)], codes[:80], weight[:80])
        plain = LogisticRegression(C=strength, max_iter=1000, tol=1e-8)
        plain.fit(((x - mean) / scale)[:80], codes[:80], sample_weight=weight[:80])
        assert_allclose(model.coef_, plain.coef_, atol=2e-3)
        assert_allclose(model.intercept_, plain.intercept_, atol=2e-3)
    assert_allclose(rows @ model.coef_.T, (x - mean) / scale @ model.coef_.T, atol=1e-9)
