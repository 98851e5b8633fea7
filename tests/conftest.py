"""Shared fixtures: where the real data lies, and quiet TensorFlow."""

from __future__ import annotations

import os
import pathlib

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> pathlib.Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
    """The folder with the published datasets; tests that need it skip where it is absent."""
    folder = pathlib.Path(os.environ.get("NEUCROWD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set NEUCROWD_DATA")
    return folder
