"""SavedModels: whole or not there, and served by a process that has TensorFlow and not this
package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from neucrowd_tf.saving.saved_model import NAMES, export_saved_model
from tests.cases import raises

# The serving example of the README: TensorFlow alone, any batch size.
SERVE = """
import sys
import numpy as np
import tensorflow as tf

serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
features = np.load(sys.argv[2])
outputs = [serve(features=tf.constant(features[:size])) for size in (1, 1000)]
assert not [name for name in sys.modules if name.startswith(("neucrowd_tf", "baselines"))]
assert {key: value.dtype.name for key, value in outputs[0].items()} == {name: "float32" for name in sys.argv[4].split(",")}
np.savez(sys.argv[3], one=outputs[0]["probabilities"], many=outputs[1]["probabilities"])
"""  # noqa: E501


@pytest.fixture(scope="module")
def fitted() -> TwoStageClassifier:
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    x = (rng.normal(size=(60, 2, 4)) * 100 + 300 * truth[:, None, None]).astype(np.float32)
    return TwoStageClassifier().fit(x, Annotations.from_dense(np.repeat(truth[:, None], 3, axis=1)))


def test_another_process_gets_the_same_numbers(fitted: TwoStageClassifier, tmp_path: Path) -> None:
    path = export_saved_model(fitted, tmp_path / "deep" / "saved_model")
    new = (np.random.default_rng(1).normal(size=(1000, 2, 4)) * 300).astype(np.float32)
    np.save(tmp_path / "x.npy", new)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [
        sys.executable,
        "-c",
        SERVE,
        str(path),
        str(tmp_path / "x.npy"),
        str(tmp_path / "y.npz"),
        "probabilities",
    ]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
    served = np.load(tmp_path / "y.npz")
    assert_allclose(served["many"], fitted.predict_proba(new), atol=1e-6)
    assert_allclose(served["one"], fitted.predict_proba(new[:1]), atol=1e-6)


def test_one_input_of_the_features_shape(fitted: TwoStageClassifier, tmp_path: Path) -> None:
    import tensorflow as tf

    columns = pd.Index(["a", "b"])
    folder = export_saved_model(fitted, tmp_path / "saved_model", columns)
    assert json.loads((folder / NAMES).read_text("utf-8"))["features"] == ["a", "b"]
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    (), inputs = serve.structured_input_signature
    assert inputs == {"features": tf.TensorSpec((None, 2, 4), tf.float32, name="features")}


def test_replaces_a_saved_model_and_nothing_else(
    fitted: TwoStageClassifier, tmp_path: Path
) -> None:
    path = export_saved_model(fitted, tmp_path / "saved_model")
    before = (path / "saved_model.pb").stat().st_mtime_ns
    assert (export_saved_model(fitted, path) / "saved_model.pb").stat().st_mtime_ns > before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    raises(DataError, "not a SavedModel", export_saved_model, fitted, tmp_path / "mine")
    assert {item.name for item in tmp_path.iterdir()} == {"saved_model", "mine"}


def test_a_failing_export_leaves_nothing(
    fitted: TwoStageClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source, target) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    raises(OSError, "No space", export_saved_model, fitted, tmp_path / "saved_model")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_os_error(
    fitted: TwoStageClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    def full(*_, **__) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "saved_model.pb; No space left")

    monkeypatch.setattr(tf.saved_model, "save", full)
    with pytest.raises(OSError, match=r"No space left on device; free some and start again: '.*l'"):
        export_saved_model(fitted, tmp_path / "saved_model")
