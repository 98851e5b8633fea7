"""Frames as they are: read as what they say, matched by name, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf.annotations import Annotations, as_annotations
from neucrowd_tf.annotations.tables import split_names
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.training.inputs import Inputs
from tests.cases import raises
from tests.crowds import array_of

LONG = pd.DataFrame(
    {"task": [2, 0, 1, 0], "worker": [0, 0, 1, 1], "label": [1, 0, 1, 1]}, index=[7, 7, 8, 9]
)
NAMED = LONG.assign(task=["c", "a", "b", "a"])


class Hub:
    """Stands for a Hugging Face dataset: nothing but `to_pandas` is asked of it."""

    def to_pandas(self) -> pd.DataFrame:
        return NAMED


@pytest.mark.parametrize(
    "columns", [("task", "worker", "label"), ("taskId", "performer", "answer")]
)
def test_integer_codes_are_no_matrix(columns: tuple[str, ...]) -> None:
    """Four labels of three tasks, where a matrix would have twelve cells of four instances."""
    crowd = as_annotations(LONG.set_axis(list(columns), axis=1))
    assert crowd.num_annotations == 4 and crowd.instance_names.tolist() == [2, 0, 1]
    assert as_annotations(Hub()) == Annotations.from_frame(NAMED)


def test_column_names_can_be_given() -> None:
    frame = NAMED.set_axis(["item", "who", "said"], axis=1)
    with pytest.raises(DataError, match=r"no column is a worker among .*said") as raised:
        as_annotations(frame)
    assert "from_frame(annotations, task='item', worker='WORKER'," in str(raised.value)
    assert Annotations.from_frame(frame, worker="who", label="said") == as_annotations(NAMED)
    with pytest.raises(DataError, match=r"expected a column 'whom', .*'who' comes close"):
        Annotations.from_frame(frame, worker="whom", label="said")
    twice = NAMED.assign(item=NAMED["task"])
    with pytest.raises(
        DataError, match=r"expected a column 'task', received 2 among .*task=\.\.\."
    ):
        Annotations.from_frame(twice)
    assert Annotations.from_frame(twice, task="item") == as_annotations(NAMED)


def test_values_keep_their_types() -> None:
    """Categories, nullable integers and texts like NA are ids; a missing one is an error."""
    expected = Annotations.from_frame(NAMED)
    assert Annotations.from_frame(NAMED.astype("category")) == expected
    assert Annotations.from_frame(NAMED.assign(label=NAMED["label"].astype("Int64"))) == expected
    crowd = Annotations.from_frame(NAMED.assign(label=["NA", "None", "-", "-"]))
    assert crowd.class_names.tolist() == ["-", "NA", "None"]
    with pytest.raises(DataError, match="row 1, column 'worker': expected a value"):
        Annotations.from_frame(NAMED.assign(worker=["a", None, "b", "b"]))
    floats = pd.DataFrame({"w": [1.0, np.nan], "v": [0.0, 1.0]})
    assert Annotations.from_wide_frame(floats).class_names.tolist() == [0, 1]
    assert Annotations.from_wide_frame(floats / 2).class_names.tolist() == [0.0, 0.5]


WITH_GAPS = {
    "float64": pd.Series([0, 1, None, 0, None]),
    "Int64": pd.Series([0, 1, None, 0, None], dtype="Int64"),
    "object": pd.Series([0, 1.0, None, np.float32(0), pd.NA], dtype=object),
    "category": pd.Series([0, 1, None, 0, None]).astype("category"),
    "ordered": pd.Series([0, 1, None, 0, None]).astype(pd.CategoricalDtype([0.0, 1.0], True)),
}


@pytest.mark.parametrize("kind", WITH_GAPS)
def test_ints_beside_missing_values_are_ints(kind: str, tmp_path: Path) -> None:
    """Memory and file agree, also on ids that are missing in rows without a label."""
    columns = {"task": [1, 1, None, 2, 3], "worker": [5, 6, None, 5, 5], "label": WITH_GAPS[kind]}
    frame = pd.DataFrame(columns)
    with pytest.warns(UserWarning, match=r"2 of 5 .* row 2\)\. Instances without a label: 1"):
        crowd = Annotations.from_frame(frame)
    kinds = {names.dtype for names in (crowd.class_names, crowd.instance_names)}
    assert kinds == {np.dtype(np.int64)}
    lines, path = [], tmp_path / "a.csv"
    frame.dropna(subset="task").astype({"task": int, "worker": int}).to_csv(path, index=False)
    assert read_annotations(path, report=lines.append).annotations == crowd
    assert lines[1].endswith("1 labels are missing (''). Items without a label: 1.")
    with pytest.warns(UserWarning, match=r"row 2\)$"):
        every = Annotations.from_frame(frame, instance_names=[1, 2, 3])
    assert every.annotated.tolist() == [True, True, False]
    wide = pd.DataFrame({"a": WITH_GAPS[kind], "b": WITH_GAPS[kind]})
    assert Annotations.from_wide_frame(wide).class_names.dtype == np.int64


def test_large_ids_beside_missing_ones_stay_exact() -> None:
    ids = pd.Series([2**60 + 1, 2**60, None], dtype=object)
    frame = pd.DataFrame({"task": ids, "worker": [1, 1, 1], "label": ["a", "b", None]})
    with pytest.warns(UserWarning, match="1 of 3 labels"):
        crowd = Annotations.from_frame(frame)
    assert sorted(crowd.instance_names.tolist()) == [2**60, 2**60 + 1]


def test_labels_of_frames_are_those_of_files() -> None:
    """No class 0 that nobody chose, numbers in texts in their order, blank texts missing."""
    frame = pd.DataFrame({"ann": [1, 3, 1], "bob": [1, 3, 3]})
    assert as_annotations(frame).class_names.tolist() == [1, 3]
    assert as_annotations(frame, 5).num_classes == 5
    frame.loc[0, "ann"] = -1
    assert as_annotations(frame).class_names.tolist() == [0, 1, 2, 3]
    for texts in (["1.5", "2", "10"], ["a", "b2", "b10"]):
        names = Annotations.from_arrays([1, 2, 3], ["w"] * 3, texts[::-1]).class_names.tolist()
        assert names == texts
    wide = pd.DataFrame({"ann": ["x", "", "y"], "bob": ["x", "y", " "]})
    assert as_annotations(wide).vote_counts().tolist() == [[2, 0], [0, 1], [0, 1]]
    long = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "b"], "label": ["x", " ", "y"]})
    with pytest.warns(UserWarning, match="1 of 3 labels are missing"):
        assert Annotations.from_frame(long).class_names.tolist() == ["x", "y"]
    with pytest.raises(DataError, match="'worker': expected a value, received a missing one"):
        Annotations.from_frame(long.replace("a", ""))


def test_wide_frames_keep_their_names() -> None:
    wide = pd.DataFrame({"w": [0, -1], "v": [1, 1]}, index=["a", "b"])
    crowd = as_annotations(wide)
    assert crowd.to_dense().tolist() == [[0, 1], [-1, 1]]
    assert crowd.instance_names.tolist() == ["a", "b"] and crowd.annotator_names[1] == "v"
    assert as_annotations(wide.where(wide >= 0)).to_dense().tolist() == [[0, 1], [-1, 1]]
    with pytest.raises(DataError, match=r"from_frame.*received columns 'x' of (str|object)"):
        as_annotations(pd.DataFrame({"x": ["a"], "y": ["b"]}))


def features(index: list[Any] | None) -> pd.DataFrame:
    return pd.DataFrame({"x": [0.0, 1.0, 2.0]}, index=index)


@pytest.mark.parametrize("annotations", [NAMED, Annotations.from_frame(NAMED)])
def test_features_are_matched_by_name(annotations: Any) -> None:
    result = Inputs.of(features(["b", "c", "a"]), annotations).annotations
    assert result.instance_names.tolist() == ["b", "c", "a"]
    assert result.to_dense().tolist() == [[-1, 1], [1, -1], [0, 1]]
    four = pd.DataFrame({"x": range(4)}, index=["d", "a", "b", "c"])
    assert Inputs.of(four, annotations).annotations.annotated.tolist() == [False, True, True, True]
    with pytest.raises(
        DataError, match=r"instance names: expected one of 'a', 'b', 'x', received 'c'"
    ):
        Inputs.of(features(["a", "b", "x"]), annotations)
    raises(DataError, "the index has 'a' twice", Inputs.of, features(["a", "b", "a"]), annotations)


def test_rows_without_names() -> None:
    """Tasks that are numbers of rows are found by them; others are refused rather than taken in the
    order in which a frame happens to name them.
    """
    for rows in (np.zeros((3, 1)), features(None)):
        assert Inputs.of(rows, LONG).annotations.to_dense().tolist() == [[0, 1], [-1, 1], [1, -1]]
        raises(DataError, r"the rows have no names, and the task 'c'", Inputs.of, rows, NAMED)
        built = Annotations.from_frame(NAMED)
        assert Inputs.of(rows, built).annotations is built  # it says its order


def test_a_matrix_goes_by_rows_unless_an_index_shuffles_them() -> None:
    matrix = array_of("0 1; -1 1; 1 -1")
    for index in (None, [0, 1, 2], ["c", "a", "b"], [5, 3, 8]):
        assert np.array_equal(Inputs.of(features(index), matrix).annotations.to_dense(), matrix)
    with pytest.raises(DataError, match=r"features\.to_numpy\(\) if row i is instance i"):
        Inputs.of(features([2, 0, 1]), matrix)


def test_align_replace_and_select_are_those_of_the_matrix() -> None:
    crowd = Annotations.from_frame(NAMED)
    moved = crowd.align(["a", "d", "b", "c"], [1, 0, 2])
    assert moved.num_classes == 3
    assert moved.to_dense().tolist() == [[1, 0], [-1, -1], [-1, 0], [0, -1]]
    assert moved.annotated.tolist() == [True, False, True, True]
    assert sorted(map(tuple, moved.to_frame().astype(str).to_numpy().tolist())) == sorted(
        map(tuple, crowd.to_frame().astype(str).to_numpy().tolist())
    )
    votes = Annotations.from_votes(crowd.vote_counts(), instance_names=crowd.instance_names)
    assert np.array_equal(
        votes.align(["a", "d", "b", "c"]).vote_counts()[:, :2], moved.vote_counts()[:, [1, 0]]
    )
    raises(DataError, "instance names: expected one of 'a', received 'c'", crowd.align, ["a"])
    assert crowd.replace(class_names=["n", "y"]).to_frame()["label"].tolist() == list("ynyy")
    with pytest.raises(DataError, match="annotator_names: expected 2 names, received 1"):
        crowd.replace(annotator_names=["w"])


def test_measured_values_are_no_ids() -> None:
    """A column such as `unit` has ids, or measures of a feature."""
    frame = pd.DataFrame({"unit": [0.5, 1.25, 2.0], "width": [1.0, 2.0, 3.0]})
    features, names = split_names(frame, "features")
    assert list(features.columns) == ["unit", "width"] and names is None
    features, names = split_names(frame.assign(unit=["a", "b", "c"]), "features")
    assert list(features.columns) == ["width"] and names.tolist() == ["a", "b", "c"]
