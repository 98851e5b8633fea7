"""Private names of Keras and TensorFlow stand in one file, which looks for each of them."""

from __future__ import annotations

import ast
from pathlib import Path

import keras
import pytest

from neucrowd_tf.nn import keras_private
from tests.processes import python


def private_names(path: Path) -> set[str]:
    """Returns the attributes with private names that a file reads of anything but `self`."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    return {node.attr for node in attributes if node.attr.startswith("_")}


def test_other_files_name_none_of_them(repository: Path) -> None:
    place = Path(keras_private.__file__)
    names = private_names(place)
    assert len(names) > 10
    for package in ("neucrowd_tf", "baselines", "reproduction"):
        for path in (repository / package).rglob("*.py"):
            assert path == place or not names & private_names(path), path


def test_a_version_without_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keras_private._missing() == []
    owner = next(kind for kind in keras.optimizers.Adam.__mro__ if "_clip_gradients" in vars(kind))
    monkeypatch.delattr(owner, "_clip_gradients")
    assert keras_private._missing() == ["_clip_gradients"]


def test_threads_can_be_set_after_the_import(repository: Path) -> None:
    program = """
import tensorflow as tf, neucrowd_tf.nn.keras_private
tf.config.threading.set_intra_op_parallelism_threads(1)
"""
    python(repository, "-c", program, check=True)
