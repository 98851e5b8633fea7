"""A second id among the features."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.features.table import read_features
from neucrowd_tf.io.tables.format import TableFormat

SIZE = 120
NAMES = ["itemid", "rowid", "pk", "key", "ID2", "case", "record", "serial", "number", "#", "code"]
NAMES += ["subject", "participant", "sample", "nummer", "file"]
RNG = np.random.default_rng(0)
IDS = {
    "scattered": 100000 + 7919 * np.arange(SIZE) % 99991,
    "rising": 1000 + np.cumsum(RNG.integers(1, 5, SIZE)),
    "shuffled": RNG.permutation(3 * SIZE)[:SIZE],
    "as floats": RNG.integers(1 << 31, 1 << 33, SIZE).astype(float),
}
NUMBERS = {
    "gauss": RNG.normal(size=SIZE),
    "counts": RNG.poisson(1000, SIZE),
    "pixels": RNG.integers(0, 256, SIZE),
    "signed": RNG.integers(-32768, 32768, SIZE),
    "lengths": np.round(np.exp(RNG.normal(6, 0.6, SIZE))),
    "ages": RNG.integers(18, 90, SIZE),
    "years": RNG.integers(1950, 2024, SIZE),
    "timestamp": 1700000000 + np.cumsum(RNG.integers(3, 999, SIZE)),
    "width_in_pixels": RNG.permutation(2000)[:SIZE],
}


def read(tmp_path: Path, **columns: np.ndarray) -> None:
    path = tmp_path / "f.csv"
    frame = pd.DataFrame({"task": [f"t{i}" for i in range(SIZE)], "x": NUMBERS["gauss"], **columns})
    frame.to_csv(path, index=False)
    read_features(path)


def told(tmp_path: Path, **columns: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read(tmp_path, **columns)
    return [str(w.message) for w in said if "single precision" not in str(w.message)]


@pytest.mark.parametrize("kind", IDS)
def test_whole_numbers_that_never_repeat_are_told(tmp_path: Path, kind: str) -> None:
    (line,) = told(tmp_path, v=IDS[kind], w=IDS[kind])
    assert "2 columns are of whole numbers that all differ, as ids are (the first: 'v')" in line
    assert "--ignore_columns=v leaves it out" in line


@pytest.mark.parametrize("name", NAMES)
def test_names_of_ids_whose_numbers_never_repeat(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=f"column '{name}': expected a feature.*--ignore_columns"):
        read(tmp_path, **{name: IDS["scattered"]})
    layout = TableFormat(ignored=(name,))
    assert read_features(tmp_path / "f.csv", layout)[2] == ["x"]


def test_measurements_and_counts_are_no_ids(tmp_path: Path) -> None:
    for name, column in NUMBERS.items():
        assert not told(tmp_path, **{name: column})
    for name in ("key", "number", "code", "sample"):  # of music, of rooms, in groups
        assert not told(tmp_path, **{name: RNG.integers(0, 12, SIZE)})


def test_a_table_of_whole_numbers_that_never_repeat_is_told_nothing(tmp_path: Path) -> None:
    """As embeddings of whole numbers are."""
    wide = {f"e{k}": RNG.permutation(100_000)[:SIZE] for k in range(40)}
    assert not told(tmp_path, **wide)


def test_an_array_has_no_flag_to_leave_a_column_out(tmp_path: Path) -> None:
    path = tmp_path / "f.npy"
    np.save(path, np.stack([RNG.integers(0, 9, SIZE), IDS["scattered"]], axis=1))
    with pytest.warns(UserWarning, match=r"\(the first: '1'\), and are taken.*take them out if"):
        read_features(path)
