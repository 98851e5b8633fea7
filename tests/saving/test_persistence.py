"""Folders of saved estimators that cannot be loaded say why, in one line."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import neucrowd_tf
from neucrowd_tf.errors import DataError
from neucrowd_tf.saving.loading import present_name
from tests.cases import cases, raises
from tests.crowds import array_of

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    crowd = neucrowd_tf.Annotations.from_dense(array_of("0 0 1; 1 1 1; 1 0 0"))
    neucrowd_tf.MajorityVote().fit(crowd).save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.update(format=0), "format 0, not 1"),
        (lambda record: record.pop("params"), "params: missing or of another type"),
        (
            lambda record: record["params"].update(removed=1),
            "unexpected keyword argument 'removed'.*CHANGELOG",
        ),
        (lambda record: record.update({"class": "neucrowd_tf.gone:Old"}), "by another version"),
        (lambda record: record.update({"class": "neucrowd_tf.errors:Old"}), "no class neucrowd"),
        (lambda record: record.update({"class": "os:system"}), "no class os:system"),
        (lambda record: record["attributes"].update(x_={"array": "gone"}), "by another version"),
    ],
)
def test_other_versions_and_damaged_files(change: Change, message: str, saved: Path) -> None:
    assert neucrowd_tf.load(saved).labels_.tolist() == [0, 1, 0]
    path = saved / "estimator.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match=message) as error:
        neucrowd_tf.load(saved)
    assert str(error.value).startswith(str(saved)) and "\n" not in str(error.value)


def test_another_folder(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        raises(DataError, r"estimator\.json is missing", neucrowd_tf.load, folder)
    (tmp_path / "mine").touch()
    with pytest.raises(FileExistsError):
        neucrowd_tf.MajorityVote().save(tmp_path)


@pytest.mark.parametrize(
    ("earlier", "present"),
    cases("""
["methods.conal:CoNAL", "methods.crowd_layers.conal:CoNAL"],
["dasc.estimator:DASC", "methods.dasc.estimator:DASC"],
["choice.auto:Auto", "methods.auto.estimator:Auto"],
["training.linear:LinearHead", "training.logistic_head:LinearHead"],
["texts:TextClassifier", "methods.texts:TextClassifier"]
"""),
)
def test_folders_of_an_earlier_version_name_classes_elsewhere(earlier, present):
    assert present_name(f"neucrowd_tf.{earlier}") == f"neucrowd_tf.{present}"
    assert present_name(f"neucrowd_tf.{present}") == f"neucrowd_tf.{present}"
    module, _, name = present.partition(":")
    assert hasattr(importlib.import_module(f"neucrowd_tf.{module}"), name)


def test_classes_of_other_modules_stay():
    for name in (
        "baselines.aggnet:AggNet",
        "neucrowd_tf.methods.rll.estimator:RLL",
        "mine:UnionNet",
    ):
        assert present_name(name) == name


@pytest.mark.parametrize("value", [{"float": "much"}, {"array": "a", "names": []}, {"odd": 1}])
def test_a_value_that_cannot_be_read_is_one_error(saved: Path, value: object) -> None:
    path = saved / "estimator.json"
    record = json.loads(path.read_text())
    record["attributes"]["x_"] = value
    path.write_text(json.dumps(record))
    raises(DataError, f"^{saved}: .* Fit and save it again", neucrowd_tf.load, saved)


@pytest.mark.parametrize("content", [None, b"not a model"])
def test_a_network_that_is_missing_or_damaged(saved: Path, content: bytes | None) -> None:
    path = saved / "estimator.json"
    record = json.loads(path.read_text())
    record["attributes"]["model_"] = {"keras": "model_.keras"}
    path.write_text(json.dumps(record))
    if content is not None:
        (saved / "model_.keras").write_bytes(content)
    with pytest.raises(DataError, match=r"model_\.keras: cannot be read .*Copy the folder again"):
        neucrowd_tf.load(saved)
