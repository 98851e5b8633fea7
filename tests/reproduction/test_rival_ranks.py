"""The rivals' ranks, from the predictions of finished runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.json import write_json
from reproduction.rivals import interval_of, ranked
from reproduction.suite import Case, Suite


def created(root: Path, method: str, seed: int, right: str) -> None:
    """A finished run, right where `right` has a 1."""
    folder = root / "runs" / "default" / "d" / method / f"seed-{seed}"
    folder.mkdir(parents=True)
    write_json(folder / "metrics.json", {"test": {}})
    rows = [f"t{place},1,{hit}" for place, hit in enumerate(right)]
    write_text(folder / "predictions.csv", "task,label,predicted\n" + "\n".join(rows) + "\n")


def test_ranks_by_hand(tmp_path: Path) -> None:
    suite = Suite("s", "S", (Case(("d",), ("a", "b", "lucky"), seeds=2, first_seed=7),))
    created(tmp_path, "a", 7, "1110")
    created(tmp_path, "a", 8, "1100")
    created(tmp_path, "b", 7, "0100")
    created(tmp_path, "b", 8, "1100")
    created(tmp_path, "lucky", 7, "1111")
    rows = ranked(suite, tmp_path)
    # lucky has one seed: it stands first, but the others are measured against a.
    assert [row[1:4] for row in rows] == [
        ["1", "lucky", "1"],
        ["2", "a", "0.625"],
        ["3", "b", "0.375"],
    ]
    assert [row[6] for row in rows] == ["-0.25", "0", "0.25"]
    assert [row[-1] for row in rows] == ["1", "2", "2"]
    low, high = map(float, rows[2][7:9])
    assert low < 0.25 < high


def test_other_test_splits_have_intervals_over_runs() -> None:
    import pandas as pd

    one, other = pd.Series([1.0, 0.0], ["a", "b"]), pd.Series([1.0, 1.0], ["c", "d"])
    result = interval_of([one, other])
    assert result.estimate == pytest.approx(0.75)
    # Student's with one degree of freedom: 12.706 * .3536 / sqrt(2).
    assert result.high - result.estimate == pytest.approx(12.706 * 0.25, rel=1e-3)
