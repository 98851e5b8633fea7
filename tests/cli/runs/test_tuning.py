"""--tune: the draws, the score, what is recorded, and that test rows play no part."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from neucrowd_tf.cli.runs.tuning import Search, candidates, score
from neucrowd_tf.declare import registration, registry
from tests.cases import raises
from tests.crowds import array_of

pytestmark = pytest.mark.usefixtures("without_tensorflow")
SPACE = {"a": (1, 2, 3), "b": ("x", "y")}


def test_candidates_are_different_seeded_and_begin_with_the_defaults() -> None:
    result = candidates(SPACE, {}, 4, seed=1)
    assert result[0] == {} and len(result) == 4 and len({str(item) for item in result}) == 4
    assert result == candidates(SPACE, {}, 4, seed=1) != candidates(SPACE, {}, 4, seed=2)
    assert len(candidates(SPACE, {}, 100, seed=1)) == 1 + 6
    assert all(set(item) <= {"b"} for item in candidates(SPACE, {"a": 5}, 100, seed=1))
    assert candidates({}, {}, 5, seed=0) == [{}]
    wide = {str(i): tuple(range(10)) for i in range(9)}
    assert len(candidates(wide, {}, 20, seed=0)) == 20


def test_score_is_auc_or_minus_log_loss() -> None:
    p = array_of("0.2 0.6 0.4 0.9")
    codes = array_of("0 0 1 1")
    assert score(codes, np.stack([1 - p, p], axis=1)) == ("auc", roc_auc_score(codes, p))
    # One class only: minus the mean of -ln .8 and -ln .4.
    name, value = score(codes[:2], np.stack([1 - p, p], axis=1)[:2])
    assert name == "minus_log_loss" and value == pytest.approx((np.log(0.8) + np.log(0.4)) / 2)


def tuned(tiny, path: Path, by: str = "validation", **changes) -> dict[str, Any]:
    dataset = dataclasses.replace(registry.dataset("tiny").load(None, 0), **changes)
    method = registry.method("mean")

    def fit(setting: dict[str, Any], features, crowd, pair):
        return method.make(seed=0, **setting).fit(features, crowd, pair)

    search = Search(fit, dataset, dataset.annotations, seed=0, by=by)
    return search.best(candidates(method.space, {}, 4, 0), path / "tuning.csv")


def test_trials_are_recorded(tiny, tmp_path: Path) -> None:
    best = tuned(tiny, tmp_path)
    rows = pd.read_csv(tmp_path / "tuning.csv")
    assert list(rows) == ["trial", "metric", "score", "status", "parameters"]
    assert len(rows) == 4
    assert set(rows["status"]) == {"ok"}
    assert str(best) == rows["parameters"][rows["score"].idxmax()].replace('"', "'")


def test_test_rows_play_no_part(tiny, tmp_path: Path) -> None:
    dataset = registry.dataset("tiny").load(None, 0)
    swapped = dataclasses.replace(
        dataset.test, labels=1 - dataset.test.labels, features=-dataset.test.features
    )
    for name, changes in (("a", {}), ("b", {"test": swapped, "truth": None})):
        tuned(tiny, tmp_path / name, **changes)
    assert (tmp_path / "a" / "tuning.csv").read_bytes() == (
        tmp_path / "b" / "tuning.csv"
    ).read_bytes()


def test_without_validation_data_the_folds_are_scored_against_the_crowd(
    tiny, tmp_path: Path
) -> None:
    tuned(tiny, tmp_path, validation=None)
    assert tiny.calls == 4 * 3
    assert pd.read_csv(tmp_path / "tuning.csv")["score"].between(0.5, 1).all()


def test_by_crowd_the_validation_split_plays_no_part(tiny, tmp_path: Path) -> None:
    tuned(tiny, tmp_path / "kept", by="crowd")
    tuned(tiny, tmp_path / "none", validation=None)
    remaining, none = (tmp_path / name / "tuning.csv" for name in ("kept", "none"))
    assert remaining.read_bytes() == none.read_bytes()


def test_a_failing_trial_is_recorded(tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = registry.Method("mean", tiny, "", space={"fail": ("error",), "shift": (0.2,)})
    monkeypatch.setitem(registration.METHODS, "mean", method)
    assert tuned(tiny, tmp_path) == {}
    rows = pd.read_csv(tmp_path / "tuning.csv")
    assert rows["status"].tolist() == ["ok", "failed: it broke badly"]
    monkeypatch.setitem(
        registration.METHODS, "mean", dataclasses.replace(method, defaults={"fail": "error"})
    )
    raises(RuntimeError, "it broke", tuned, tiny, tmp_path / "all")


def test_flag(command: Callable[..., int], tmp_path: Path) -> None:
    assert command("--dataset=tiny", "--method=mean", "--tune=3", f"--output_dir={tmp_path}") == 0
    assert len(pd.read_csv(tmp_path / "tiny" / "mean" / "seed-0" / "tuning.csv")) == 3
