"""Features as CSV, Parquet, NPY and images."""

from __future__ import annotations

import builtins
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf import registry
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.features.images import read_images
from neucrowd_tf.io.features.table import read_feature_table, read_features
from neucrowd_tf.io.features.texts import read_texts
from neucrowd_tf.io.tables.format import TableFormat

FRAME = pd.DataFrame({"task": ["a", "b", "007"], "x": [1.5, -2.0, 0.25], "n": [1, 2, 3]})


def test_parquet_and_csv_are_read_alike(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    FRAME.to_csv(tmp_path / "f.csv", index=False)
    FRAME.to_parquet(tmp_path / "f.parquet")
    FRAME.set_index("task").to_parquet(tmp_path / "indexed.parquet")
    wanted = read_features(tmp_path / "f.csv")
    for name in ("f.parquet", "indexed.parquet"):
        ids, rows, columns = read_features(tmp_path / name)
        assert ids.tolist() == wanted[0].tolist() == ["a", "b", "007"]
        assert columns == wanted[2] == ["x", "n"]
        assert rows.dtype == np.float32 and rows.tolist() == wanted[1].tolist()


def test_true_and_false_are_one_and_zero(tmp_path: Path) -> None:
    dummies = pd.get_dummies(FRAME.assign(kind=["new", "old", "new"]), columns=["kind"])
    dummies.to_csv(tmp_path / "f.csv", index=False)
    _, rows, names = read_features(tmp_path / "f.csv")
    assert names == ["x", "n", "kind_new", "kind_old"]
    assert rows[:, 2:].tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("header", ["task,x,x", "task,x, x ", "task,x,x.1,x"])
def test_a_column_that_is_there_twice(tmp_path: Path, header: str) -> None:
    (tmp_path / "f.csv").write_text(f"{header}\na{',1' * header.count(',')}\n")
    with pytest.raises(
        DataError, match=r"f\.csv: columns \d and \d: expected each column once, received 'x' again"
    ):
        read_features(tmp_path / "f.csv")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="task"), "expected a column 'task'"),
        (FRAME.assign(x=[1.0, np.nan, 2.0]), "row 1, column 'x': expected a finite number"),
        (
            FRAME.assign(x=["1", "two", "3"]),
            "row 1, column 'x': expected a finite number, received 'two'",
        ),
        (FRAME.assign(task=["a", None, "c"]), "row 1, column 'task': expected a task id"),
        (FRAME.assign(task=["a", "b", "a"]), "row 2, column 'task': expected each task once"),
        (FRAME.iloc[:0], "expected at least one row"),
    ],
)
def test_parquet_errors(tmp_path: Path, frame: pd.DataFrame, message: str) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    frame.to_parquet(tmp_path / "f.parquet")
    with pytest.raises(DataError, match=message):
        read_features(tmp_path / "f.parquet")
    (tmp_path / "g.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="expected a Parquet file"):
        read_features(tmp_path / "g.parquet")
    with pytest.raises(DataError, match="no such file"):
        read_features(tmp_path / "h.parquet")


def test_npy_has_a_row_a_task(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.arange(12).reshape(3, 4))
    ids, rows, columns = read_features(tmp_path / "f.npy")
    assert (
        ids.tolist() == ["0", "1", "2"] and rows.shape == (3, 4) and columns == ["0", "1", "2", "3"]
    )
    np.save(tmp_path / "images.npy", np.zeros((2, 4, 4, 3)))
    assert read_features(tmp_path / "images.npy")[1].shape == (2, 4, 4, 3)


def test_npy_errors(tmp_path: Path) -> None:
    cases: dict[str, tuple[Any, str]] = {
        "flat": (np.zeros(3), "with a row an instance, received float64 of shape"),
        "text": (np.array([["a"]]), "expected an array of numbers"),
        "nan": (np.array([[0.0, 1.0], [2.0, np.nan]]), "row 1, column 1: expected a finite number"),
        "objects": (np.array([[{}]], dtype=object), "expected a NumPy array, received .*objects"),
    }
    for name, (array, message) in cases.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
        with pytest.raises(DataError, match=message):
            read_features(tmp_path / f"{name}.npy")
    with pytest.raises(DataError, match="no such file"):
        read_features(tmp_path / "none.npy")


def test_numbers_that_single_precision_loses(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("task,x\na,1e-300\nb,3e-300\n")
    with pytest.raises(DataError, match=r"column 'x': .* received none above 3e-300"):
        read_features(tmp_path / "f.csv")
    np.save(tmp_path / "f.npy", np.array([[1.7e9, 0.5], [1.7e9 + 40, 0.25]]))
    with pytest.warns(UserWarning, match=r"1 columns vary less .*the first: 0"):
        read_features(tmp_path / "f.npy")
    np.save(tmp_path / "n.npy", np.column_stack([np.arange(12.0), np.ones(12)]))
    with pytest.warns(UserWarning, match="column '0' numbers the rows"):
        read_features(tmp_path / "n.npy")


def _images(folder: Path, sizes: dict[str, tuple[int, int]]) -> None:
    image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    folder.mkdir()
    for i, (name, size) in enumerate(sizes.items()):
        image.new("RGB", size, (51 * i, 0, 255)).save(folder / name)


def test_images_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Red is 51 * i of 255: .2 for the image written second, which comes first by name."""
    _images(tmp_path / "i", {"b.png": (4, 3), "a.png": (4, 3)})
    (tmp_path / "i" / "notes.txt").write_text("passed over")
    with pytest.warns(UserWarning, match=r"1 files or folders .*the first: notes.txt"):
        ids, rows = read_images(tmp_path / "i")
    assert ids.tolist() == ["a", "b"] and rows.shape == (2, 3, 4, 3) and rows.dtype == np.float32
    np.testing.assert_allclose(rows[:, 0, 0], [[0.2, 0, 1], [0, 0, 1]], atol=1e-6)
    (tmp_path / "i" / "notes.txt").unlink()
    assert read_images(tmp_path / "i", 8)[1].shape == (2, 8, 8, 3)


def test_images_as_they_are_shown(tmp_path: Path) -> None:
    """A photograph that lies on its side, a picture that is transparent, several frames."""
    image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    for name in "abc":
        (tmp_path / name).mkdir()
    photo, turned = image.new("RGB", (4, 2), "white"), image.Exif()
    turned[0x0112] = 6  # orientation: by a quarter
    photo.save(tmp_path / "a" / "x.jpg", exif=turned)
    assert read_images(tmp_path / "a")[1].shape == (1, 4, 2, 3)
    image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(tmp_path / "b" / "x.png")
    with pytest.warns(UserWarning, match="b: 1 images are transparent"):
        assert (read_images(tmp_path / "b")[1] == 1.0).all()
    frames = [image.new("P", (2, 2), colour) for colour in (0, 1)]
    frames[0].putpalette([9, 9, 9, 200, 200, 200])
    frames[1].putpalette([9, 9, 9, 200, 200, 200])
    frames[0].save(tmp_path / "c" / "x.gif", save_all=True, append_images=frames[1:])
    with pytest.warns(UserWarning, match="c: 1 images have several frames"):
        read_images(tmp_path / "c")


def test_image_errors(tmp_path: Path) -> None:
    _images(tmp_path / "sizes", {"a.png": (4, 3), "b.png": (5, 3)})
    _images(tmp_path / "twice", {"a.png": (4, 3), "a.bmp": (4, 3)})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"no image")
    (tmp_path / "empty").mkdir()
    wrong = {
        "sizes": "b.png: expected an image of 3x4 pixels",
        "twice": "two images named 'a'",
        "broken": "an image",
        "empty": "received none",
    }
    for name, message in {**wrong, "absent": "no such folder"}.items():
        with pytest.raises(DataError, match=message):
            read_images(tmp_path / name)


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] in ("PIL", "pyarrow", "fastparquet"):
            raise ImportError(name)
        return original(name, *arguments, **options)

    (tmp_path / "f.parquet").write_bytes(b"")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"neucrowd-tf\[images\]"):
        read_images(tmp_path)


def test_images_as_a_dataset(tmp_path: Path) -> None:
    import neucrowd_tf.datasets.table  # noqa: F401

    _images(tmp_path / "i", {f"t{i}.png": (4, 4) for i in range(6)})
    rows = [f"t{i},w{j},{i % 2}" for i in range(6) for j in range(2)]
    (tmp_path / "a.csv").write_text("\n".join(["task,worker,label", *rows]) + "\n")
    loaded = registry.dataset("table").load(
        None, 0, images=tmp_path / "i", annotations=tmp_path / "a.csv", image_size=2
    )
    assert loaded.features.shape[1:] == (2, 2, 3) and loaded.feature_names is None
    with pytest.raises(UsageError, match="--images: expected alone"):
        registry.dataset("table").load(
            None,
            0,
            images=tmp_path / "i",
            features=tmp_path / "f.csv",
            annotations=tmp_path / "a.csv",
        )


def test_parquet_ids_that_nobody_marked_as_text(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    path = tmp_path / "f.parquet"
    pd.DataFrame({"task": ["é".encode(), b"b"], "x": [1.0, 2.0]}).to_parquet(path)
    assert read_features(path)[0].tolist() == ["é", "b"]
    pd.DataFrame({"task": [b"\xff", b"b"], "x": [1.0, 2.0]}).to_parquet(path)
    with pytest.raises(DataError, match="column 'task': expected task ids of text"):
        read_features(path)


def test_texts_whose_header_is_capital(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Task,Text\na,one\nb,two\n")
    assert read_texts(tmp_path / "t.csv")[1].tolist() == ["one", "two"]


@pytest.mark.parametrize(
    "name",
    ["votes_yes", "label_encoded", "Label_Code", "truth_label", "gt", "is_gold", "true_class"],
)
def test_labels_under_other_names_are_no_features(tmp_path: Path, name: str) -> None:
    (tmp_path / "f.csv").write_text(f"task,x,{name}\na,0.5,1\nb,1.5,0\n")
    with pytest.raises(DataError, match=f"column '{name}': expected a feature.*--ignore_columns"):
        read_features(tmp_path / "f.csv")
    assert read_features(tmp_path / "f.csv", TableFormat(ignored=(name,)))[2] == ["x"]


def test_names_that_features_have(tmp_path: Path) -> None:
    names = [
        "p_yes",
        "weight",
        "votes",
        "gtx",
        "gold_price",
        "is_goldfish",
        "label_length",
        "outcome",
    ]
    (tmp_path / "f.csv").write_text(f"task,{','.join(names)}\na{',1' * 8}\nb{',2' * 8}\n")
    assert read_features(tmp_path / "f.csv")[2] == names


@pytest.mark.parametrize(("scale", "lost"), [(1e-12, True), (1e-8, True), (1e-6, False), (1e25, 0)])
def test_units_that_standardising_takes_for_rounding(
    tmp_path: Path, scale: float, lost: bool
) -> None:
    path = tmp_path / "features.csv"
    rows = "".join(f"t{i},{i % 3},{i * scale / 7!r},5\n" for i in range(12))
    path.write_text(f"task,a,b,same\n{rows}")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read_features(path)
    said = [str(w.message) for w in told if "take for rounding" in str(w.message)]
    assert len(said) == lost and all("(the first: 'b')" in text for text in said)


def test_names_of_outcomes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    for name in ("outcome", "diagnosis", "pred", "prediction", "p_yes", "model", "expected"):
        path.write_text(f"task,x,{name}\na,1,0\nb,2,1\n")
        with pytest.warns(UserWarning, match=rf"'{name}'.*--ignore_columns={name} leaves it out"):
            assert read_features(path)[2] == ["x", name]
    path.write_text("task,x0,y\na,1,0\nb,2,1\n")
    with pytest.warns(UserWarning, match="'y'.*--ignore_columns=y leaves it out"):
        read_features(path)
    for name in ("uid", "UUID", "row_uid"):
        path.write_text(f"task,x,{name}\na,1,100007\nb,2,100003\n")
        with pytest.raises(DataError, match=f"'{name}': expected a feature"):
            read_features(path)
    path.write_text("task,x,y,price\na,1,0,1\nb,2,1,1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_features(path)


def test_npy_of_truth_values(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.array([[True, False], [False, True]]))
    assert read_features(tmp_path / "f.npy")[1].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("kind", ["boolean", "UInt8", "Int64", "Float64"])
def test_a_missing_cell_of_a_nullable_column(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    path = tmp_path / "f.parquet"
    FRAME.assign(seen=pd.array([1, 0, 1], dtype=kind)).to_parquet(path)
    assert read_features(path)[1][:, 2].tolist() == [1, 0, 1]
    FRAME.assign(seen=pd.array([1, None, 0], dtype=kind)).to_parquet(path)
    with pytest.raises(DataError, match="row 1, column 'seen': expected a finite number, received"):
        read_features(path)


def test_points_between_thousands_are_told(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"

    def read(*cells: str) -> list[str]:
        path.write_text("task,x,price\n" + "".join(f"t{i},1.5,{c}\n" for i, c in enumerate(cells)))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            read_features(path)
        return [str(item.message) for item in told if "thousands" in str(item.message)]

    (line,) = read("1.250", "980", "12.400", "-3.001")
    assert "column 'price': 3 cells have a point and three digits (the first: 1.250)" in line
    for sound in (
        ["1.25", "980", "12.4"],
        ["1.250", "980.000", "12.400"],
        ["1.251", "980", "12.403"],
        ["0.250", "980", "12.400"],
        ["1.250", "98", "12.400"],
        ["1.250", "1980", "12.400"],
    ):
        assert read(*sound) == []


@pytest.mark.parametrize("text", ["1_000", "１２"])
def test_very_many_columns_are_read_as_few_are(tmp_path: Path, text: str) -> None:
    for width in (10, 2_100):
        names = [f"x{i}" for i in range(width)]
        rows = [
            ["1.5", "True", "TRUE", *["0"] * (width - 3)],
            ["2.5", "False", "false", *["1"] * (width - 3)],
        ]
        lines = [",".join(["task", *names])] + [",".join(["ab"[i], *r]) for i, r in enumerate(rows)]
        (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
        assert read_features(tmp_path / "f.csv")[1][:, :4].tolist() == [
            [1.5, 1, 1, 0],
            [2.5, 0, 0, 1],
        ]
        (tmp_path / "f.csv").write_text("\n".join([*lines[:-1], lines[-1] + text]) + "\n", "utf-8")
        with pytest.raises(DataError, match=f"line 3, column 'x{width - 1}': expected a finite"):
            read_features(tmp_path / "f.csv")


@pytest.mark.parametrize("as_index", [False, True])
def test_tasks_in_parquet_that_were_floats(tmp_path: Path, as_index: bool) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    path = tmp_path / "f.parquet"
    for tasks, wanted in (
        ([1.0, 2.0, 30.0], ["1", "2", "30"]),
        ([1.5, 2.0, 3.0], ["1.5", "2.0", "3.0"]),
    ):
        frame = FRAME.assign(task=tasks)
        (frame.set_index("task") if as_index else frame).to_parquet(path)
        assert read_features(path)[0].tolist() == wanted
    FRAME.assign(task=[1.0, np.nan, 2.0]).to_parquet(path)
    with pytest.raises(DataError, match="row 1, column 'task': expected a task id, received an"):
        read_features(path)


def test_an_index_of_tasks_comes_before_other_names(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    path = tmp_path / "f.parquet"
    FRAME.set_index("task").assign(item=[5, 6, 7]).to_parquet(path)
    with pytest.raises(DataError, match=r"column 'item': .* --ignore_columns=item leaves it out"):
        read_features(path)
    assert read_features(path, TableFormat(ignored=("item",)))[0].tolist() == ["a", "b", "007"]
    assert read_features(path, TableFormat(task="item"))[0].tolist() == ["5", "6", "7"]


def test_texts_beside_longer_ones_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "\n1,lovely nice place,no remark\n2,awful bad hole,see above\n"
    path.write_text(f"id,review,comment{rows}")
    with pytest.warns(UserWarning, match="'comment' is taken .* those of 'review' are longer"):
        assert read_texts(path)[1].tolist() == ["no remark", "see above"]
    for header in ("id,comment,review", "id,review,text", "id,text,comment"):
        path.write_text(f"{header}{rows}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message=".*are longer")
            read_texts(path)


def test_endings_in_capitals(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.eye(3))
    (tmp_path / "f.npy").rename(tmp_path / "F.NPY")
    assert read_features(tmp_path / "F.NPY")[1].tolist() == np.eye(3).tolist()
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    FRAME.to_parquet(tmp_path / "F.PARQUET")
    assert read_features(tmp_path / "F.PARQUET")[2] == ["x", "n"]


@pytest.mark.parametrize("columns", [1998, 1999, 2000, 2001])
def test_ids_stay_text_whatever_the_number_of_columns(tmp_path: Path, columns: int) -> None:
    header = ",".join(["task", *(f"x{place}" for place in range(columns))])
    rows = [
        ",".join([f"0{row}", *(str(row + place) for place in range(columns))]) for row in (1, 2)
    ]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    table = read_feature_table(path)
    assert table.tasks.tolist() == ["01", "02"] and table.rows.shape == (2, columns)


def test_a_way_out_of_empty_cells_and_words(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    for cell, way in (
        ("", "fill it in, or --ignore_columns=y"),
        ("chat", "write it as numbers, or"),
    ):
        path.write_text(f"task,x,y\na,1,2\nb,2,{cell}\n")
        with pytest.raises(DataError, match=f"line 3, column 'y': .*; {way}"):
            read_feature_table(path)


def test_a_parquet_cell_of_several_numbers(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    FRAME.assign(x=[[1.0, 2.0]] * len(FRAME)).to_parquet(tmp_path / "f.parquet")
    with pytest.raises(DataError, match=r"row 0, column 'x': expected a finite .* \[1\. 2\.\]"):
        read_features(tmp_path / "f.parquet")
