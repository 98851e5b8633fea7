"""Features as CSV, Parquet and NPY; texts."""

from __future__ import annotations

import gzip
import time
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.features import FeatureTable, read_features, read_texts
from neucrowd_tf.io.schema import TableOptions
from tests.cases import raises
from tests.crowds import array_of

FRAME = pd.DataFrame(
    {"task": ["a", "b", "007"], "x": [1.5, -2.0, 0.25], "n": [1, 2, 3], "new": [True, False, True]}
)


def read(folder: Path, text: str, ignore: tuple[str, ...] = (), **flags) -> FeatureTable:
    (folder / "f.csv").write_text(text, encoding="utf-8")
    return read_features(folder / "f.csv", TableOptions.of(**flags), ignore)


def test_csv_and_parquet_are_read_alike(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    FRAME.to_csv(tmp_path / "f.csv", index=False)
    FRAME.to_csv(tmp_path / "tabs.tsv", index=False, sep="\t")
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress((tmp_path / "f.csv").read_bytes()))
    FRAME.to_parquet(tmp_path / "f.parquet")
    FRAME.set_index("task").to_parquet(tmp_path / "indexed.parquet")
    FRAME.astype({"n": "Int64", "new": "boolean"}).to_parquet(tmp_path / "nullable.parquet")
    for path in tmp_path.iterdir():
        table = read_features(path)
        assert table.items.tolist() == ["a", "b", "007"] and table.names == ["x", "n", "new"]
        assert table.rows.dtype == np.float32
        assert table.rows.tolist() == [[1.5, 1, 1], [-2, 2, 0], [0.25, 3, 1]], path


CASES = tomllib.loads((Path(__file__).parent / "cases.toml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES["read"])
def test_tables_that_are_read(case: dict[str, Any], tmp_path: Path) -> None:
    table = read(tmp_path, case["table"], **case.get("flags", {}))
    assert (table.items.tolist(), table.names) == (case["items"], case["names"])


@pytest.mark.parametrize("case", CASES["rejected"], ids=lambda case: case["message"])
def test_tables_that_are_rejected(case: dict[str, str], tmp_path: Path) -> None:
    raises(DataError, case["message"], read, tmp_path, case["table"])


def test_the_index_of_a_frame_is_not_read(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="column 1 has no name and is not read"):
        assert read(tmp_path, ",task,x\n0,a,1\n1,b,2\n").names == ["x"]


def test_columns_to_ignore(tmp_path: Path) -> None:
    table = read(tmp_path, "task,x,label,note\na,1,2,good\n", ("label", "note"))
    assert table.names == ["x"] and table.rows.tolist() == [[1.0]]
    for name in ("y", "task"):
        with pytest.raises(UsageError, match=f"no column of features '{name}'"):
            read(tmp_path, "task,x\na,1\n", (name,))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.assign(x=[1.0, np.nan, 2.0]), r"row 2: column 'x': '' is not a finite number"),
        (FRAME.assign(x=["1", "two", "3"]), r"row 2: column 'x': 'two'"),
        (FRAME.assign(task=["a", None, "c"]), r"row 2: the item has no id"),
        (FRAME.assign(new=pd.array([True, None, False])), r"row 2: column 'new'"),
        (FRAME.assign(x=[[1.0], [2.0], [3.0]]), r"row 1: column 'x': '\[1.0\]' is not a finite"),
        (FRAME.assign(x=[[date(2020, 1, 1)]] * 3), r"row 1: column 'x': '\[\"2020-01-01\"\]'"),
        (FRAME.iloc[:0], "the file has no rows"),
    ],
)
def test_parquet_that_is_rejected(tmp_path: Path, frame: pd.DataFrame, message: str) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    frame.to_parquet(tmp_path / "f.parquet")
    raises(DataError, message, read_features, tmp_path / "f.parquet")
    (tmp_path / "g.parquet").write_bytes(b"no parquet")
    raises(DataError, "not a Parquet file", read_features, tmp_path / "g.parquet")


def test_whole_ids_in_parquet_that_were_floats(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    FRAME.assign(task=[3.0, 1.0, 2.0]).to_parquet(tmp_path / "f.parquet")
    assert read_features(tmp_path / "f.parquet").items.tolist() == ["3", "1", "2"]


def test_npy_has_a_row_per_item(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.arange(12).reshape(3, 4))
    table = read_features(tmp_path / "f.npy")
    assert table.items.tolist() == ["0", "1", "2"] and table.names == ["0", "1", "2", "3"]
    np.save(tmp_path / "images.npy", np.zeros((2, 4, 4, 3), dtype=bool))
    assert read_features(tmp_path / "images.npy").rows.shape == (2, 4, 4, 3)
    for array, message in (
        (np.zeros(3), "numbers with a row per item"),
        (np.array([["a"]]), "numbers with a row per item"),
        (array_of("0.0 1.0; 2.0 nan"), "row 1: column 1: 'nan' is not"),
        (np.array([[{}]], dtype=object), "NumPy array"),
    ):
        np.save(tmp_path / "f.npy", array, allow_pickle=True)
        raises(DataError, message, read_features, tmp_path / "f.npy")


def test_large_tables_are_read_by_pandas(tmp_path: Path) -> None:
    """The reader of rows, which reads columns of numbers and words, gives the same numbers."""
    rows = default_rng(0).normal(size=(2_000, 50)).round(6)
    frame = pd.DataFrame(rows, columns=[f"x{i}" for i in range(50)])
    frame.insert(0, "task", np.arange(len(frame)))
    frame.to_csv(tmp_path / "f.csv", index=False)
    began = time.monotonic()
    fast = read_features(tmp_path / "f.csv")
    assert time.monotonic() - began < 5
    (tmp_path / "f.csv").write_text((tmp_path / "f.csv").read_text() + "last," + "1," * 49 + "true")
    slow = read_features(tmp_path / "f.csv")
    assert_array_equal(fast.rows, np.float32(rows))
    assert_array_equal(slow.rows, [*fast.rows, np.ones(50)])


def test_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('Task,note,Sentence\na,x,"one, two"\nb,y,\n')
    items, texts = read_texts(path)
    assert items.tolist() == ["a", "b"] and texts.tolist() == ["one, two", ""]
    for text, message in (
        ("task,words\na,b\n", r"no text column.*\[missing_role\]"),
        ("task,text\na,b\na,c\n", "line 3: item 'a' occurs twice"),
        ("task,text\na,\nb, \n", "all texts in column 'text' are empty"),
    ):
        path.write_text(text)
        raises(DataError, message, read_texts, path)
