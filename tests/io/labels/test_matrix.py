"""Matrices and `answers.json`: what holds counts, sums, row numbers or a frame's columns."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import layouts
from neucrowd_tf.io.labels.checks.like_counts import like_counts, tell_zeros
from neucrowd_tf.io.labels.layouts import read_labels
from neucrowd_tf.io.tables.format import PLAIN, TableFormat


def crowd(seed: int = 0, classes: int = 3, rows: int = 30, width: int = 5) -> NDArray[np.int64]:
    """Returns codes of annotators who are right in seven of ten."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    wrong = rng.integers(0, classes, (rows, width))
    return np.where(rng.random((rows, width)) < 0.7, truth[:, None], wrong)


def counts(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.array([np.bincount(row, minlength=codes.max() + 1) for row in codes])


def read(path: Path, array: NDArray[Any], **flags: str) -> Annotations:
    """Reads what was written as NPY, or as CSV; nothing may be told."""
    np.save(path, array) if path.suffix == ".npy" else np.savetxt(path, array, delimiter=",")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_annotations(path, layout=TableFormat.of(**flags))  # type: ignore[arg-type]


CODES = crowd()
REFUSED = {
    "numbers that sum to 5 in every row": counts(CODES),
    "numbers that sum to 1 in every row": np.eye(3, dtype=int)[CODES[:, 0]],
    "the sums of the other columns": np.c_[CODES, CODES.sum(1)],
    "the sums of the other rows": np.r_[CODES, CODES.sum(0)[None]],
    "the rows' numbers": np.c_[np.arange(8), crowd(1, 2, 8, 3)],
}


@pytest.mark.parametrize("ending", ["npy", "csv"])
@pytest.mark.parametrize("what", REFUSED)
def test_a_matrix_of_something_else(tmp_path: Path, what: str, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    with pytest.raises(DataError, match=f"received {what}.*--classes=... (takes|names)"):
        read(path, REFUSED[what])
    names = ",".join(map(str, range(REFUSED[what].max() + 1)))
    assert read(path, REFUSED[what], classes=names).num_annotations == REFUSED[what].size


@pytest.mark.parametrize("kind", ["<U3", "datetime64[D]", "object", "complex64"])
def test_an_array_of_something_else(tmp_path: Path, kind: str) -> None:
    np.save(tmp_path / "a.npy", np.array([["2001-01-01"] * 2] * 12).astype("datetime64[D]")
            if kind.startswith("date") else np.full((12, 2), 1).astype(kind))  # fmt: skip
    with pytest.raises(DataError, match=r"a\.npy"):
        read_annotations(tmp_path / "a.npy")


@pytest.mark.parametrize("ending", ["npy", "csv"])
@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_of_codes(tmp_path: Path, ending: str, seed: int) -> None:
    for classes, rows, width in ((2, 5, 3), (2, 40, 3), (4, 40, 9), (10, 12, 4)):
        codes = crowd(seed, classes, rows, width)
        found = read(tmp_path / f"a.{ending}", codes.astype(np.float16))
        shown = found.class_names.astype(int)[found.to_dense()]
        np.testing.assert_array_equal(shown, codes)


def test_blanks_and_nan_are_no_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1.0,,0.0\n0.0,1.0,nan\n1.0,1.0,1.0\n")
    assert read_annotations(tmp_path / "a.csv").to_dense().tolist() == [
        [1, -1, 0],
        [0, 1, -1],
        [1, 1, 1],
    ]


def test_columns_agree_less_than_by_chance() -> None:
    # By hand: of columns 0, 1, 0, 1 ... and 1, 0, 1, 0 ... no row has two equal numbers, by chance
    # half of them would. Of random ones a difference within the error tells nothing.
    against = np.array([[0, 1, 2], [1, 0, 0]] * 10)
    none = np.zeros(against.shape, dtype=bool)
    assert like_counts(against, none, []) == "numbers whose columns agree less than by chance"
    random = [crowd(seed, 2, 60, 3)[np.random.default_rng(seed).permutation(60)] for seed in (0, 1)]
    for codes in random:
        assert like_counts(codes, np.zeros(codes.shape, dtype=bool), []) == ""


def written(path: Path, answers: object) -> Path:
    path.write_text(json.dumps(answers), encoding="utf-8")
    return path


WORDS = np.array(["yes", "no", "maybe"])[CODES]
ROWS = {f"t{i}": dict(zip("abcde", row, strict=True)) for i, row in enumerate(WORDS.tolist())}
FRAMES = {
    "the task 'task'": {"task": {"0": "t0", "1": "t1"}, "anna": {"0": "yes", "1": "no"}},
    "the worker 'id'": {"0": {"id": "t0", "anna": "yes"}, "1": {"id": "t1", "anna": "no"}},
    "in columns that are named as answers": {"t0": {"yes": 2, "no": 1}, "t1": {"no": 3}},
    "numbers in columns that are named": {"t0": {"yes": True, "no": False}, "t1": {"no": True}},
    "numbers that sum to 5": {
        f"t{i}": Counter(f"class {code}" for code in row) for i, row in enumerate(CODES.tolist())
    },
}


@pytest.mark.parametrize("what", FRAMES)
def test_answers_of_something_else(tmp_path: Path, what: str) -> None:
    with pytest.raises(DataError, match=f"received .*{what}"):
        Annotations.from_answers_json(written(tmp_path / "a.json", FRAMES[what]))


def test_answers_of_a_crowd(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Annotations.from_answers_json(written(tmp_path / "a.json", ROWS))
        numbers = {f"t{i}": dict(enumerate(row)) for i, row in enumerate(CODES.tolist())}
        codes = Annotations.from_answers_json(written(tmp_path / "b.json", numbers))
    assert (found.num_annotations, found.num_annotators) == (150, 5)
    assert (codes.num_annotations, codes.num_classes) == (150, 3)


def test_workers_that_hold_tasks_are_told(tmp_path: Path) -> None:
    turned = {a: {f"t{i}": row[j] for i, row in enumerate(WORDS)} for j, a in enumerate("abcde")}
    with pytest.warns(
        UserWarning, match="read as 5 tasks and 30 annotators; {task: {worker: label}} is"
    ):
        Annotations.from_answers_json(written(tmp_path / "a.json", turned))


def _from_one(kind: str, folder: Path, noise: float = 0.3) -> Path:
    """Returns a file of labels from 1 to 3, 0 for none, of 60 tasks by 3 of 8 annotators each."""
    rng = np.random.default_rng(4)
    truth = rng.integers(1, 4, size=60)
    noisy = rng.random((60, 8)) < noise
    matrix = np.where(noisy, rng.integers(1, 4, size=(60, 8)), truth[:, None])
    matrix *= np.argsort(rng.random((60, 8)), axis=1) < 3
    if kind == "npy":
        np.save(folder / "a.npy", matrix)
        return folder / "a.npy"
    rows = [",".join(map(str, row)) for row in matrix]
    if kind == "wide":
        rows = ["task,a,b,c,d,e,f,g,h", *(f"t{i},{row}" for i, row in enumerate(rows))]
    (folder / "a.csv").write_text("\n".join(rows))
    return folder / "a.csv"


@pytest.mark.parametrize("kind", ["npy", "csv", "wide"])
def test_zeros_in_most_cells_are_told(tmp_path: Path, kind: str) -> None:
    path = _from_one(kind, tmp_path)
    with pytest.warns(UserWarning, match="300 of 480 cells are 0.*--missing=0 says"):
        read_annotations(path)
    with pytest.warns(UserWarning, match="300 cells without a label"):
        found = read_annotations(path, layout=TableFormat.of(missing="0"))
    assert found.num_annotations == 180
    with pytest.raises(DataError, match=r"less than by chance.*, --missing=0 says that 0 is no"):
        read_annotations(_from_one(kind, tmp_path, noise=0.9))


@pytest.mark.parametrize("as_class", [True, False])
def test_zeros_that_annotators_agree_on_are_a_class(as_class: bool) -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice(3, p=[0.7, 0.2, 0.1], size=200)
    codes = np.where(rng.random((200, 5)) < 0.2, rng.integers(0, 3, size=(200, 5)), truth[:, None])
    if not as_class:
        codes = rng.permuted(codes, axis=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tell_zeros(codes, codes < 0, Path("a.npy"))
    assert [" cells are 0" in str(one.message) for one in told] == [True] * (not as_class)


def test_stars_from_one_in_answers_are_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    stars = {
        f"t{i}": {f"w{j}": int(rng.integers(1, 6)) for j in range(rng.integers(2, 5))}
        for i in range(30)
    }
    (tmp_path / "a.json").write_text(json.dumps(stars))
    found = read_annotations(tmp_path / "a.json")
    assert found.num_annotations == sum(map(len, stars.values()))
    assert found.class_names.tolist() == [1, 2, 3, 4, 5]
    stars["t0"]["w0"] = 10**40  # a number that no array holds is no count
    (tmp_path / "a.json").write_text(json.dumps(stars))
    assert read_annotations(tmp_path / "a.json").num_annotations == found.num_annotations


@pytest.mark.parametrize("ending", ["npy", "csv"])
@pytest.mark.parametrize("further", [[1], [2, 30], [1, 5, 9]])
@pytest.mark.parametrize("kind", [int, float])
def test_triples_with_further_numbers(
    tmp_path: Path, ending: str, further: list[int], kind: type
) -> None:
    tasks, workers = (axis.ravel() for axis in np.indices((12, 3)))
    more = np.random.default_rng(0).choice(further, (len(tasks), len(further)))
    rows = np.c_[tasks, workers, crowd(3, 2, 36, 1), more].astype(kind)
    mixed = np.random.default_rng(1).permutation(rows)
    for found in (rows, mixed, rows[:, [1, 0, 2, 3]]):
        with pytest.raises(DataError, match="whose first two are never the same, as tasks and"):
            read(tmp_path / f"a.{ending}", found)


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_few_rows_of_many_columns_are_told(tmp_path: Path, ending: str) -> None:
    path, codes = tmp_path / f"a.{ending}", crowd(0, 3, 20, 4)
    with pytest.warns(
        UserWarning, match="read as 4 tasks and 20 annotators; a row a task is expected"
    ):
        assert len(read_annotations(_saved(path, codes.T)).instance_names) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where the features have as many rows nothing is doubtful
        read_annotations(path, tasks=np.array(list("abcd"), dtype=object))


def _saved(path: Path, array: NDArray[Any]) -> Path:
    np.save(path, array) if path.suffix == ".npy" else np.savetxt(path, array, "%d", ",")
    return path


@pytest.mark.parametrize("name", ["rater", "Coder", "observer_id", "judge"])
def test_a_row_an_annotator(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{name},i1,i2,i3,i4\n1,1,2,,1\n2,1,2,3,\n3,,2,3,1\n")
    with pytest.raises(DataError, match=f"'{name}'.* what looks like a row an annotator"):
        read_annotations(path)
    assert read_annotations(path, layout=TableFormat.of(classes="1,2,3")).num_annotators == 5
    path.write_text(f"{name},model\n0,1\n1,1\n1,0\n")
    with pytest.warns(UserWarning, match="'model'"):
        assert read_annotations(path).num_annotators == 2


def votes(low: int, high: int, rows: int = 40) -> NDArray[np.int64]:
    """Returns counts of between `low` and `high` votes for three classes."""
    rng = np.random.default_rng(5)
    found = np.zeros((rows, 3), dtype=np.int64)
    for row in found:
        truth = int(rng.integers(0, 3))
        for _ in range(rng.integers(low, high)):
            row[truth if rng.random() < 0.65 else rng.integers(0, 3)] += 1
    found[0] = 1, 2, 1  # of numbers that others have: a first line is no header
    return found


@pytest.mark.parametrize("form", ["npy", "csv", "wide", "json"])
@pytest.mark.parametrize(("low", "high", "refused"), [(4, 8, True), (4, 60, False)])
def test_counts_of_differing_totals(
    tmp_path: Path, form: str, low: int, high: int, refused: bool
) -> None:
    found = votes(low, high)
    path = _form(tmp_path, form, found)
    if refused:
        with pytest.raises(DataError, match=r"received numbers .*, as counts of votes do"):
            read_annotations(path)
    else:
        with pytest.warns(UserWarning, match="do not agree as labels of annotators do"):
            read_annotations(path)


def _form(folder: Path, form: str, array: NDArray[Any]) -> Path:
    names = ["cat", "dog", "bird", "cow", "pig", "hen", "fox", "owl"][: array.shape[1]]
    if form == "json":
        rows = [dict(zip(names, row, strict=True)) for row in array.tolist()]
        return written(folder / "a.json", {f"t{i}": row for i, row in enumerate(rows)})
    if form != "wide":
        return _saved(folder / f"a.{form}", array)
    lines = [",".join(["task", *names])]
    lines += [",".join([f"t{i}", *map(str, row)]) for i, row in enumerate(array.tolist())]
    (folder / "a.csv").write_text("\n".join(lines) + "\n")
    return folder / "a.csv"


@pytest.mark.parametrize("form", ["npy", "csv", "wide", "json"])
@pytest.mark.parametrize("seed", range(3))
def test_a_class_0_in_most_cells(tmp_path: Path, form: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rare = np.where(rng.random(60) < 0.8, 0, rng.integers(0, 3, 60))
    wrong = rng.integers(0, 3, (60, 5))
    codes = np.where(rng.random((60, 5)) < 0.8, rare[:, None], wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_annotations(_form(tmp_path, form, codes))


def test_an_annotator_who_is_named_as_none(tmp_path: Path) -> None:
    """The ways out that the error names, and an empty last column, as spreadsheets write."""
    path = tmp_path / "a.csv"
    path.write_text("NA,ben,cat,\n" + "".join(f"{a},{b},{c},\n" for a, b, c, *_ in CODES))
    with pytest.raises(DataError, match=r"received 'NA' .*; --missing=NA leaves these out, --mis"):
        read_annotations(path)
    assert read_annotations(path, layout=TableFormat.of(missing="")).num_annotators == 3
    for flags in ({}, {"exact_names": True}):
        with pytest.warns(UserWarning, match="1 columns without a name are left out"):
            found = read_annotations(path, layout=TableFormat.of(missing="NA", **flags))
        assert found.annotator_names.tolist() == ["ben", "cat"]


FEW_IDS = [[15, 0, 0, 2], [11, 1, 2, 1], [10, 2, 2, 0], [12, 2, 1, 1], [13, 0, 0, 0], [14, 2, 2, 2]]


@pytest.mark.parametrize("kind", ["csv", "npy", "last"])
def test_ids_in_a_matrix_of_few_rows(kind: str, tmp_path: Path) -> None:
    """In sequence refused, else told; classes that few rows have once are neither."""
    matrix = np.array(FEW_IDS)
    if kind == "last":
        matrix = np.roll(matrix, -1, axis=1)

    def read(matrix: np.ndarray, layout: TableFormat = PLAIN) -> Any:
        path = tmp_path / ("a.npy" if kind == "npy" else "a.csv")
        if kind == "npy":
            np.save(path, matrix)
        else:
            np.savetxt(path, matrix, "%d", delimiter=",")
        return read_labels(path, None, layout)

    with pytest.raises(DataError, match="a different number in each row, 6 of which"):
        read(matrix)
    with pytest.warns(UserWarning, match="a different number in each row, 6 of which"):
        read(np.where(matrix > 9, 3 * matrix, matrix))
    classes = tuple(map(str, range(16)))
    assert read(matrix, TableFormat(classes=classes)).matrix is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(np.array([[0, 0, 0], [1, 1, 2], [2, 2, 2], [3, 0, 3], [4, 4, 4]]))


def test_a_matrix_of_few_rows_with_its_index(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    frame = pd.DataFrame([[0, 1, 1], [1, 1, 0], [0, -1, 0], [2, 2, 2]])
    for begin in (0, 1):
        frame.columns = pd.RangeIndex(begin, begin + 3)
        frame.to_csv(path)
        with pytest.raises(DataError, match="saved with its index"):
            read_labels(path)
    path.write_text(",0,1\n0,0,1\n0,0,1\n1,0,1\n1,1,1\n")  # the first task has no first label
    assert read_labels(path).matrix is not None


def test_a_code_far_above_the_others_is_refused(tmp_path: Path) -> None:
    """A class is made of each number up to it, and of a confusion matrix a cell of two of them."""
    matrix = np.tile([[0, 0], [1, 1], [1, 0]], (8, 1))
    matrix[5, 1] = 39595
    np.save(tmp_path / "a.npy", matrix)
    with pytest.raises(DataError, match="row 5, column 1: expected codes of classes from 0 on"):
        read_labels(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("17 4 29 11 35", "a different number in each row"),
        ("2 0 2 1 3", "the sums of the other columns"),
        ("3 2 1 2 3", "how many labels each row has"),
    ],
)
def test_a_numbers_column_of_a_small_wide_table(column: str, said: str, tmp_path: Path) -> None:
    rows = ["a,1,1,0", "b,0,0,", "c,2,,", "d,0,,1", "e,1,1,1"]
    cells = column.split()
    text = "\n".join(f"{row},{cell}" for row, cell in zip(rows, cells, strict=True))
    path = tmp_path / "a.csv"
    path.write_text(f"task,ann,ben,cem,x\n{text}\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            read_labels(path)
            found = " ".join(str(each.message) for each in told)
        except DataError as error:
            found = str(error)
    assert said in found or "nobody else gives" in found


def test_triples_without_a_header_of_few_rows_are_told(tmp_path: Path) -> None:
    triples = [[1, 0, 0], [1, 1, 2], [2, 1, 3], [3, 2, 0], [2, 2, 3], [3, 0, 1], [1, 2, 1]]
    np.save(tmp_path / "a.npy", triples)
    with pytest.warns(UserWarning, match="two of which are never the same in two rows"):
        read_labels(tmp_path / "a.npy")


def test_floats_that_are_whole_are_codes_as_integers_are(tmp_path: Path) -> None:
    codes = crowd(rows=40)
    codes[::7, 1] = 99
    said = []
    for kind in (np.int64, np.float32, np.float64):
        np.save(tmp_path / "a.npy", codes.astype(kind))
        with pytest.raises(DataError) as error:
            read_annotations(tmp_path / "a.npy")
        said.append(str(error.value))
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("total", [1, 100])
@pytest.mark.parametrize("spelt", ["%d", "%.1f", "%.6e"])
def test_shares_that_are_all_or_nothing_in_few_rows(total: int, spelt: str, tmp_path: Path) -> None:
    shares = [(total * (i % 3 > 0), total * (i % 3 == 0)) for i in range(7)]
    rows = [f"t{i},{spelt % one},{spelt % other}" for i, (one, other) in enumerate(shares)]
    path = tmp_path / "a.csv"
    path.write_text("task,c0,c1\n" + "\n".join(rows))
    with pytest.raises(DataError, match=f"sum to {total} in every row"):
        read_labels(path)


def test_a_first_column_of_the_rows_numbers_beside_as_many_classes(tmp_path: Path) -> None:
    matrix = np.repeat([[4], [0], [3], [1], [0]], 4, axis=1)
    np.save(tmp_path / "a.npy", np.hstack([np.arange(5)[:, None], matrix]))
    with pytest.warns(UserWarning, match="column 0: .* a different number in each row, 1 of which"):
        read_labels(tmp_path / "a.npy")
    with warnings.catch_warnings():  # tasks in the order of their classes
        warnings.simplefilter("error")
        np.save(tmp_path / "a.npy", np.repeat(np.arange(5)[:, None], 5, axis=1))
        read_labels(tmp_path / "a.npy")


@pytest.mark.parametrize("down", [False, True])
def test_rows_numbers_in_a_small_wide_table(down: bool, tmp_path: Path) -> None:
    labels = [0, 2, 1, 1, 0, 2, 2]
    numbers = [*range(7, 0, -1)] if down else [*range(7)]
    rows = [
        f"t{i},{number},{label},{label},{label}"
        for i, (number, label) in enumerate(zip(numbers, labels, strict=True))
    ]
    path = tmp_path / "a.csv"
    path.write_text("task,doc,ann,ben,cem\n" + "\n".join(rows))
    with pytest.warns(UserWarning, match="column 'doc': .* a different number in each row"):
        read_labels(path)


def test_a_header_from_one_whose_numbers_are_labels_too_is_told(tmp_path: Path) -> None:
    (path := tmp_path / "a.csv").write_text("1,2,3\n1,1,1\n2,2,3\n3,3,3\n0,0,0\n")
    with pytest.warns(UserWarning, match="line 1: 1,2,3 is taken for labels; take it out"):
        read_labels(path)


@pytest.mark.parametrize(
    "labels",
    [
        ("0.9/0.1", "0.1/0.9"),
        ("[0.9 0.1]", "[0.2 0.8]"),
        ("p=0.3", "p=0.7"),
        ("no:0.9 yes:0.1", "no:0.2 yes:0.8"),
        ("~0.3", "~0.8"),
        ("3 of 5", "2 of 5"),
        ("4:1", "1:4"),
        ("\u0660\u066b\u0669", "\u0660\u066b\u0661"),
        ("0\u00b79", "0\u00b71"),
        ("'0.9'", "'0.1'"),
        ("np.float64(0.2)", "np.float64(0.7)"),
    ],
)
def test_probabilities_and_votes_in_words(labels: tuple[str, str], tmp_path: Path) -> None:
    rows = [f't{i},{w},"{labels[i % 2]}"' for i in range(8) for w in "ab"]
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n" + "\n".join(rows), encoding="utf-8")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            read_labels(path)
            found = " ".join(str(each.message) for each in told)
        except DataError as error:
            found = str(error)
    assert "probabilities" in found or "votes" in found


@pytest.mark.parametrize(
    "labels", [("v1.0", "v2.0"), ("1.5 mg", "2.5 mg"), ("1/2", "other"), ("0.5 l", "two")]
)
def test_numbers_in_names_of_classes_are_not_told(labels: tuple[str, str], tmp_path: Path) -> None:
    rows = [f"t{i},{w},{labels[i % 2]}" for i in range(8) for w in "ab"]
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n" + "\n".join(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_labels(path)


def test_a_matrix_of_more_cells_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "MOST_CELLS", 100)
    np.save(tmp_path / "a.npy", np.zeros((50, 3), np.int8))
    with pytest.raises(DataError, match="received 150 numbers, more than 100"):
        read_labels(tmp_path / "a.npy")


@pytest.mark.parametrize("cell", ["9" * 5000, "inf", "1e400"])
def test_a_first_line_with_an_endless_number_is_no_header(cell: str, tmp_path: Path) -> None:
    (path := tmp_path / "a.csv").write_text(f"0,1,{cell}\n1,0,1\n0,0,1\n1,1,1\n")
    with pytest.raises(DataError, match="line 1, column 3: expected a class code"):
        read_labels(path)


def test_answers_that_workers_hold_are_told_with_labels_missing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = [f"c{rng.integers(2)}" for _ in range(30)]
    answers = {
        f"w{i}": {f"t{j}": truth[j] for j in range(30) if rng.random() < 0.8} for i in range(4)
    }
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    with pytest.warns(UserWarning, match="read as 4 tasks and 30 annotators"):
        read_labels(tmp_path / "answers.json")
