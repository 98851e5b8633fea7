"""Wide tables, matrices and counts of votes: which cells are no label, which columns no annotator's
and which rows no task's.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.tables.column_names import is_model, no_annotator, of_one_annotator
from neucrowd_tf.io.tables.format import TableFormat


def read(folder: Path, text: str, **flags: str) -> Annotations:
    """Reads a table whose rows are separated by spaces; nothing may be told."""
    path = folder / "a.csv"
    path.write_text("\n".join(text.split(" ")), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_annotations(path, layout=TableFormat.of(**flags))  # type: ignore[arg-type]


SENTIMENT = "task,anna,ben,carl t1,-1,-1,0 t2,1,1,0 t3,0,0,-1 t4,-1,1,1"


@pytest.mark.parametrize("flags", [{"classes": "-1,0,1"}, {"missing": ""}])
def test_minus_one_may_be_a_class_of_a_full_table(tmp_path: Path, flags: dict[str, str]) -> None:
    found = read(tmp_path, SENTIMENT, **flags)
    assert found.num_annotations == 12 and found.class_names.tolist() == [-1, 0, 1]


def test_minus_one_in_a_full_table_is_counted(tmp_path: Path) -> None:
    with pytest.raises(UserWarning, match=r"4 cells of -1 .*--missing= takes .*--missing=-1 says"):
        read(tmp_path, SENTIMENT)


@pytest.mark.parametrize(
    "text",
    ["0,9,1 1,1,0 9,0,1 1,9,1", "a,b,c 0,9,1 1,1,0 9,0,1 1,9,1", "0,-1,1 1,1,0 9,0,1 1,9.0,1",
     "0,NA,1 1,1,0 9,0,1 1,9,1", "0,,1 1,1,0 9,0,1 1,9,1"],
)  # fmt: skip
def test_missing_codes_of_a_matrix(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(text.split(" ")))
    with pytest.warns(UserWarning, match="cells without a label are left out"):
        found = read_annotations(path, layout=TableFormat.of(missing="9,NA,"))
    assert found.to_dense().tolist() == [[0, -1, 1], [1, 1, 0], [-1, 0, 1], [1, -1, 1]]


@pytest.mark.parametrize("kind", ["int64", "uint8", "int8", "float64"])
def test_missing_codes_of_an_array(tmp_path: Path, kind: str) -> None:
    matrix = np.array([[0, 99, 1], [1, 1, 0]]).astype(kind)
    if kind == "float64":
        matrix[0, 1] = np.nan
    np.save(tmp_path / "a.npy", matrix)
    with pytest.warns(UserWarning, match="1 cells without a label are left out"):
        found = read_annotations(tmp_path / "a.npy", layout=TableFormat.of(missing="99,nan"))
    assert found.to_dense().tolist() == [[0, -1, 1], [1, 1, 0]]


def test_what_is_no_code_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2, column 2: .*'NA'; --missing=NA takes it for"):
        read(tmp_path, "0,1 1,NA")
    np.save(tmp_path / "a.npy", np.array([[0, np.nan], [1, 0]]))
    with pytest.raises(DataError, match=r"row 0, column 1: .*received nan; --missing=nan takes"):
        read_annotations(tmp_path / "a.npy")


def test_missing_counts_are_zeros(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("task,votes_a,votes_b\nt1,1,NA\nt2,2,1\n")
    with pytest.warns(UserWarning, match="1 cells without a label are left out"):
        found = read_annotations(tmp_path / "a.csv", layout=TableFormat.of(missing="NA"))
    assert found.vote_counts().tolist() == [[1, 0], [2, 1]]


@pytest.mark.parametrize("header", ["task,w1,w2", "task,votes_a,votes_b"])
def test_missing_tasks_are_left_out(tmp_path: Path, header: str) -> None:
    path, layout = tmp_path / "a.csv", TableFormat.of(missing="NA")
    path.write_text(f"{header}\nNA,1,0\nt1,1,3\nt2,0,1\n")
    with pytest.warns(UserWarning, match="1 lines without a task are left out"):
        assert read_annotations(path, layout=layout).instance_names.tolist() == ["t1", "t2"]
    path.write_text(f"{header}\nNA,1,0\nt1,1,3\nt2,0,0.5\n")
    with (
        pytest.warns(UserWarning, match="without a task"),
        pytest.raises(DataError, match=r"line 4, .*'0\.5'"),
    ):
        read_annotations(path, layout=layout)


def test_a_first_line_with_minus_one_is_no_header(tmp_path: Path) -> None:
    found = read(tmp_path, "0,1,-1 1,1,0 0,0,1")
    assert found.to_dense().tolist() == [[0, 1, -1], [1, 1, 0], [0, 0, 1]]


def test_codes_beyond_every_class(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2, column 2: .*received '9{30}'"):
        read(tmp_path, "0,1 1," + "9" * 30)
    np.save(tmp_path / "a.npy", np.array([[0, 1e300], [1, 0]]))
    with pytest.raises(DataError, match=r"row 0, column 1: .*received 1e\+300"):
        read_annotations(tmp_path / "a.npy")


NO_ANNOTATOR = (
    "n n_labels num_labels count total Total Mean mean SD agreement confidence batch fold split"
    " time duration age id item_id index gt y resolved expected mode vote solution actual"
    " is_correct labelCount num_annotators vote_mean time_spent created_at mode_label kappa sum"
    " item question"
)


def test_names_of_columns_that_are_no_annotators() -> None:
    assert not [
        name for name in NO_ANNOTATOR.split() if not no_annotator(name, ["anna", "ben", name])
    ]
    assert all(map(is_model, ("pred", "prediction", "model", "y_pred", "predicted_label")))


@pytest.mark.parametrize(
    "names",
    ["anna ben max", "a b n y", "AB GT SD", "w1 w2", "annotator_1 annotator_2", "Label Label2",
     "vote vote_2", "label_a label_b", "round1_anna round2_anna", "rater_x rater_n", "worker_3",
     "time_travel_fan ann", "expert novice", "id_17 id_18", "model_a model_b",
     "rater_1 rater_2 expert_1 expert_2"],
)  # fmt: skip
def test_names_that_may_be_annotators(names: str) -> None:
    given = names.split()
    assert not any(no_annotator(name, given) for name in given)
    assert of_one_annotator(given) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,anna,ben,n_labels t1,1,1,2 t2,2,,1", "column 'n_labels': .*named as a count"),
        ("a,b,n_labels 0,1,2 1,1,2", "column 'n_labels': .*named as a count"),
        ("task,worker1,label1,worker2,label2 t1,a,yes,b,no t2,b,no,c,no", "a row a label"),
        ("task,label_anna,time_anna,label_ben t1,1,2,1 t2,2,1,1", "'label_anna' and 'time_anna'"),
        ("task,anna,anna_time,ben t1,1,2,1 t2,2,1,1", "'anna' and 'anna_time'"),
        ("task,anna_tone,anna_hate,ben_tone,ben_hate t1,1,0,1,0", "'anna_tone' and 'anna_hate'"),
        ("task,anna_q1,anna_q2,ben_q1,ben_q2 t1,1,0,1,0", "'anna_q1' and 'anna_q2'"),
        ("task,A1_is_toxic,A1_is_rude,A2_is_toxic,A2_is_rude t1,1,0,1,0", "'A1_is_toxic' and"),
        ("task,anna,anna_sure,ben,ben_sure t1,1,0,1,0", "'anna' and 'anna_sure'"),
        ("task,anna,confidence_anna,ben t1,1,5,1", "'anna' and 'confidence_anna'"),
        ("task,anna,anna.1,ben t1,x,y,x t2,y,y,y", r"line 1: .*'anna\.1'.*--exact_names"),
        ("task,votes_yes,votes_Yes t1,1,2 t2,2,1", "expected labels that differ"),
        ("task,votes_a,votes_b,votes_sum t1,1,2,3 t2,2,,2", "'votes_sum': .*sums of the others"),
        ("task,votes_a,votes_b,votes_total t1,1,2,5 t2,2,,2", "'votes_total': .*named as totals"),
        ("task,a,b,c t1,1,2,1 t2,2,2,1 Total,2,2,1 Mean,1,1,1", "line 4: .*a line of sums"),
        ("index,ann,bob 0,1,1 1,0,1 2,1,1", "'index': .*an id; .*--task_column=index says"),
        ("task,votes_a,votes_b t1,1,2 Avg,1,2", "line 3: .*as a line of sums"),
        ("task,no,yes t1,,3 t2,2,1", "named as answers"),
        ("task,a,b,c id,old,young,old t1,x,y,x t2,y,y,x t3,y,x,x", "line 2: .*second header"),
        ("task,a,b,c id,old,young,old t1,x,y,x t2,y,y,x", "line 2: .*second header"),
        ("task,a,b,c t0,old,young,old t1,x,y,x t2,y,y,x t3,y,x,x", "line 2: .*second header"),
        *((f"task,a,b,c t1,1,2,1 t2,2,2,1 {name},2,2,1", "line 4: .*a line of sums")
          for name in ("Avg", "Gesamt", "TOTALS:", "Overall", "Kappa", "Mittelwert", "n", "Sums",
                       "Average_rating", "Std.Dev.", "Row_totals", "Number_of_labels", "合计")),
        *((f"task,a,b,c {name},2,2,1 t1,1,2,1 t2,2,2,1", "line 2: .*a line of sums")
          for name in ("Total", "Summary", "Fleiss_kappa")),
        ("task,a,b t1,yes,no t2,yes,yes t3,no,no t4,yes, labels,4,3", "line 6: .*how many labels"),
        ("task,a,b votes,3,2 t1,1,0 t2,1,1 t3,0,0 t4,1,1", "line 2: .*the sums of the other rows"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def _beside_annotators(column: list[object]) -> str:
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 3, (len(column), 4)).tolist()
    rows = [",".join(map(str, [f"t{i}", *cells[i], v])) for i, v in enumerate(column)]
    return " ".join(["task,ann,bob,cid,dee,other", *rows])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([*range(20)], "different number in .nearly. each row"),
        ([2, 17, 23, 17, 23, 30, 30, 1, 17, 23, 23, 17], "most of the column"),
        ([7, 8, 7], "all of the column"),
    ],
)
def test_columns_of_other_numbers(tmp_path: Path, column: list[object], message: str) -> None:
    text = _beside_annotators(column)
    with pytest.raises(DataError, match=f"column 'other': .*{message}"):
        read(tmp_path, text)
    classes = ",".join(map(str, range(31)))
    if len(column) > 19:
        assert read(tmp_path, text, classes=classes[: classes.index(",20")]).num_annotators == 5


def test_blanks_of_counts_are_zeros(tmp_path: Path) -> None:
    rows = [(1, 4), (2, 3), (5, ""), ("", 5), (3, 2)] * 2
    text = " ".join(["task,left,right", *(f"t{i},{a},{b}" for i, (a, b) in enumerate(rows))])
    with pytest.raises(DataError, match="sum to 5 in every row"):
        read(tmp_path, text)


def test_counts_of_different_totals(tmp_path: Path) -> None:
    """Cells that are alone in their row hold 4 and 5, others 1 to 3."""
    rows = [(1, 3), (2, 1), (5, ""), ("", 4), (3, 2), (4, ""), ("", 5)] * 4
    text = " ".join(["task,left,right", *(f"t{i},{a},{b}" for i, (a, b) in enumerate(rows))])
    with pytest.raises(DataError, match=r"smaller the more cells .*votes_left,votes_right, if"):
        read(tmp_path, text)


def test_few_counts_of_different_totals_are_told(tmp_path: Path) -> None:
    rows = [(1, 4), (2, 1), (5, ""), ("", 3), (3, 2), (4, ""), ("", 5), (3, 1), (2, ""), ("", 4)]
    text = " ".join(["task,left,right", *(f"t{i},{a},{b}" for i, (a, b) in enumerate(rows))])
    with pytest.raises(UserWarning, match=r"may be counts of votes, .*votes_<class>"):
        read(tmp_path, text)


def test_no_zero_stands_for_none_where_another_class_is_one_alone(tmp_path: Path) -> None:
    text = " ".join(["task,a,b", *(f"t{i},{i % 2},{1 - i % 2}" for i in range(20))])
    with pytest.raises(DataError, match=r"\.\.\. names the classes$"):
        read(tmp_path, text)


def test_a_column_of_what_the_others_say_is_told(tmp_path: Path) -> None:
    """Three annotators who are right in 3 of 4 rows, and never two of them wrong in one."""
    rows = [(["x", "y"][i % 2], i % 4) for i in range(80)]
    flip = {"x": "y", "y": "x"}
    cells = [[flip[t] if who == wrong else t for who in range(3)] for t, wrong in rows]
    lines = [
        ",".join([f"t{i}", *c, t]) for i, (c, (t, _)) in enumerate(zip(cells, rows, strict=True))
    ]
    message = r"column 'dee': .*what most of the others say .*taken for an annotator"
    with pytest.raises(UserWarning, match=message):
        read(tmp_path, " ".join(["task,ann,bob,cid,dee", *lines]))
    lines = [",".join([f"t{i}", *c]) for i, c in enumerate(cells)]
    assert read(tmp_path, " ".join(["task,ann,bob,cid", *lines])).num_annotators == 3


def test_a_column_that_alone_has_all_rows_is_told(tmp_path: Path) -> None:
    lone = [["xy"[i % 2] if j == i % 4 else "" for j in range(4)] for i in range(12)]
    rows = [",".join([f"t{i}", *cells, "xyy"[i % 3]]) for i, cells in enumerate(lone)]
    with pytest.raises(UserWarning, match=r"column 'e': .*labels of 100% .*25% or less"):
        read(tmp_path, " ".join(["task,a,b,c,d,e", *rows]))


def test_one_column_is_an_annotators_under_any_name(tmp_path: Path) -> None:
    assert read(tmp_path, "task,score t1,1 t2,0").num_annotators == 1


def test_sparse_annotators_stay_annotators(tmp_path: Path) -> None:
    """Many classes, few labels each: values that are one annotator's alone are no sign then."""
    rng = np.random.default_rng(5)
    labels = np.where(rng.random((60, 12)) < 0.7, np.arange(60)[:, None] % 40, 7)
    cells = np.where(rng.random((60, 12)) < 0.25, labels, -1)
    cells[:, 3] = -1
    cells[::6, 3] = range(10)  # all different, as 10 of 40 classes may well be
    rows = [
        f"t{i}," + ",".join(str(c) if c >= 0 else "" for c in row) for i, row in enumerate(cells)
    ]
    header = "task," + ",".join(f"w{j}" for j in range(12))
    assert read(tmp_path, " ".join([header, *rows])).num_annotators == 12


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u2009", "\u3000"])
def test_votes_for_a_class_and_the_same_behind_a_space_are_refused(
    tmp_path: Path, space: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"task,votes_yes,votes_{space}yes,votes_no\nt1,1,2,0\nt2,0,1,3\n")
    with pytest.raises(DataError, match=r"line 1: expected one column a class, .*'votes_yes'"):
        read_annotations(path)


def test_names_that_end_in_point_zero_stay(tmp_path: Path) -> None:
    found = read(tmp_path, "task,a,b,c t1,BY_3.0,BY_3.0,MIT t2,BY_4.0,,BY_4.0 t3,MIT,MIT,")
    assert found.class_names.tolist() == ["BY_3.0", "BY_4.0", "MIT"]
    found = read(tmp_path, "task,a,b t1,3.0,3.0 t2,MIT,3.0 t3,4.0,4.0 t4,MIT,")
    assert found.class_names.tolist() == ["3.0", "4.0", "MIT"]
    versions = "task,a,b t1,1.0,1.0 t2,1.1,2.0 t3,2.0, t4,1.1,1.1"
    with pytest.raises(DataError, match=r"'1\.1', a fraction .*--classes=1\.1,\.\.\. names all"):
        read(tmp_path, versions)
    found = read(tmp_path, versions, classes="1.0,1.1,2.0")
    assert found.class_names.tolist() == ["1.0", "1.1", "2.0"]


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("task,a,b t1,1.0,2 t2,2.0,1 t3,,2", [1, 2]),
        ("task,a,b t1,1.0,2.0 t2,2.0,1.0", [1, 2]),
        ("task,a,b t1,1.0,unsure t2,2.0,1 t3,,2 t4,1.0,unsure", ["1", "2", "unsure"]),
    ],
)
def test_whole_numbers_lose_what_nan_adds(
    tmp_path: Path, text: str, classes: list[int | str]
) -> None:
    (tmp_path / "a.csv").write_text("\n".join(text.split(" ")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_annotations(tmp_path / "a.csv")
    assert found.class_names.tolist() == classes


@pytest.mark.parametrize("column", ["text", "url", "majority_label", "n"])
def test_counts_of_votes_beside_another_column(tmp_path: Path, column: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"task,{column},votes_no,votes_yes\n1,x,1,2\n2,x,3,0\n")
    with pytest.raises(DataError, match=f"column '{column}': expected counts of votes beside"):
        read_annotations(path)
