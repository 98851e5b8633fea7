"""The benchmark of tuplets times what NeuCrowd trains on."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.tuplets import timed_epochs


@pytest.mark.ci
def test_epochs_of_hotel_are_timed(data_dir: Path) -> None:
    settings = argparse.Namespace(
        data_dir=data_dir, tuplets=256, batch=64, n=5, pool_factor=2, repeats=1
    )
    result = timed_epochs(settings)
    assert result["trained_tuplets"] == 256 and result["epoch_seconds"] > 0
