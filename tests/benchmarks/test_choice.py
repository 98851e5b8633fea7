"""The study of `auto`: its tables, and regret by hand."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from benchmarks import choice
from neucrowd_tf.choice import Auto
from neucrowd_tf.io.files.arrays import save_arrays


def probabilities(classes: np.ndarray) -> np.ndarray:
    """Nine to one for these classes of two."""
    return np.where(np.eye(2)[classes] > 0, 0.9, 0.1)


def collected(folder: Path) -> Path:
    """Forty instances, five annotators who are always right; ten test instances, of which mv_lr has
    all right and ds_lr nine.
    """
    truth, test = np.arange(40) % 2, np.arange(10) % 2
    table = {
        "truth": truth,
        "test_labels": test,
        "consensus": truth,
        "instances": np.repeat(np.arange(40), 5),
        "annotators": np.tile(np.arange(5), 40),
        "labels": np.repeat(truth, 5),
        "fold": np.arange(40) % 3,
        "shape": np.array([40, 5, 2]),
        "tried": np.array(["mv_lr", "ds_lr"]),
    }
    path = folder / "digits-1"
    save_arrays(path / "table.npz", table)
    for name, wrong, wrong_test in (("mv_lr", 20, 0), ("ds_lr", 2, 1)):
        held = np.where(np.arange(40) < wrong, 1 - truth, truth)
        tested = np.where(np.arange(10) < wrong_test, 1 - test, test)
        save_arrays(
            path / f"{name}.npz", {"held_out": probabilities(held), "test": probabilities(tested)}
        )
    return path


def test_regret_by_hand(tmp_path: Path) -> None:
    regrets = choice.regrets(collected(tmp_path))
    assert regrets["best"] == 1.0
    # Every criterion prefers ds_lr, which has nine of ten right.
    assert regrets["consensus"] == pytest.approx(0.1)
    assert regrets["determinant"] == pytest.approx(0.1)
    # mv_lr is far below it in agreement: what is averaged is ds_lr alone.
    assert regrets["auto"] == pytest.approx(0.1)
    page = choice.report({"digits-1": regrets})
    assert ["digits-1", "100.0", "10.0"] in [line.split()[:3] for line in page.splitlines()]


def test_a_collected_table_of_real_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "Auto", lambda: Auto(budget=3.0))
    options = argparse.Namespace(output=tmp_path, data_dir=None, datasets="breast_cancer", draws=1)
    choice.collect(options)
    regrets = choice.regrets(tmp_path / "breast_cancer-1")
    assert 0.5 < regrets["best"] <= 1.0
    assert all(regrets[rule] >= 0 for rule in ("consensus", "determinant"))  # best is of all
