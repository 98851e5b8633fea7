"""What is exported runs elsewhere: TFLite, and ONNX where tf2onnx and onnxruntime are installed;
one method a family.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.datasets.bundled import load_cancer
from neucrowd_tf.declare import registry
from neucrowd_tf.saving.saved_model import export_saved_model

FAMILIES = {
    "auto": {"methods": ["ds_lr"]},
    "mv_lr": {},
    "crowd_layer": {"epochs": 2},
    "rll": {"epochs": 1},
    "neucrowd": {"epochs": 1},
    "iced": {},
    "dasc_crowd_layer": {},
    "crowding": {},
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset() -> CrowdDataset:
    return load_cancer(seed=0)


@pytest.fixture(scope="module", params=FAMILIES)
def exported(
    request: pytest.FixtureRequest, dataset: CrowdDataset, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Path]:
    fitted = registry.method(request.param).make(seed=0, **FAMILIES[request.param])
    fitted.fit(dataset.features, dataset.annotations, dataset.validation_pair())
    folder = tmp_path_factory.mktemp(request.param) / "saved_model"
    return fitted, export_saved_model(fitted, folder)


def _compare(result: dict[str, Any], fitted, features: np.ndarray) -> None:
    expected = fitted.predict_proba(features)
    assert_allclose(result["probabilities"], expected, atol=1e-5)
    if "embedding" in result:
        assert_allclose(result["embedding"], fitted.transform(features), atol=1e-4)


def test_tflite(exported: tuple[Any, Path], dataset: CrowdDataset) -> None:
    import tensorflow as tf

    fitted, folder = exported
    content = tf.lite.TFLiteConverter.from_saved_model(str(folder)).convert()
    run = tf.lite.Interpreter(model_content=content).get_signature_runner("serving_default")
    result = run(features=dataset.test.features)
    assert {value.dtype for value in result.values()} == {np.dtype(np.float32)}
    _compare(result, fitted, dataset.test.features)


def test_onnx(exported: tuple[Any, Path], dataset: CrowdDataset) -> None:
    pytest.importorskip("tf2onnx")
    runtime = pytest.importorskip("onnxruntime")
    fitted, folder = exported
    target = folder.parent / "model.onnx"
    command = [sys.executable, "-m", "tf2onnx.convert", "--saved-model", str(folder)]
    command += ["--signature_def", "serving_default", "--output", str(target)]
    subprocess.run(command, check=True, timeout=600, capture_output=True)
    session = runtime.InferenceSession(str(target))
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, {"features": dataset.test.features})
    _compare(dict(zip(names, values, strict=True)), fitted, dataset.test.features)
