"""What further columns of a table with a row a label say of it."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
import pytest
from neucrowd_tf.io.features.texts import read_texts

from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.importers import from_table
from neucrowd_tf.io.tables.format import TableFormat

ROWS = ("1,a,yes", "1,b,no", "2,a,no", "2,c,yes", "3,b,yes", "3,c,no")


def read(folder: Path, header: str, rows: list[str], **flags: str) -> Annotations:
    """Reads a table; nothing may be told."""
    path = folder / "a.csv"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_annotations(path, layout=TableFormat.of(**flags))  # type: ignore[arg-type]


def beside(cells: str) -> list[str]:
    return [f"{row},{cell}" for row, cell in zip(ROWS, cells.split(","), strict=True)]


@pytest.mark.parametrize(
    ("name", "cells", "said"),
    [
        ("status", "approved,rejected,approved,approved,rejected,approved", "'rejected' (2 times)"),
        ("AssignmentStatus", "Approved,Submitted,Approved,Approved,Approved,Approved", "Submitted"),
        ("status", "rejected,rejected,rejected,rejected,rejected,rejected", "'rejected' (6 times)"),
        ("was_cancelled", "False,False,True,False,False,False", "'True' (1 times)"),
        ("deleted", "0,0,1,0,0,0", "'1' (1 times)"),
        ("deleted_at", ",,2024-01-02,,,", "'2024-01-02' (1 times)"),
        ("_tainted", "false,true,false,false,false,false", "'true' (1 times)"),
        ("valid", "1,1,0,1,1,1", "'0' (1 times)"),
        ("Reject", ",x,,,,", "'x' (1 times)"),
        ("state", "done,done,cancelled,done,done,done", "'cancelled' (1 times)"),
        ("_golden", "false,true,false,false,false,false", "'true' (1 times)"),
        ("is_attn_check", "0,0,0,1,1,0", "of the labels, as of test questions;"),
        ("weight", "1,0.5,1,1,1,1", "a number other than 1 in 1 of 6 rows"),
        ("n", "1,3,1,2,1,1", "a number other than 1 in 2 of 6 rows"),
        ("new_label", ",yes,,,,", "=new_label takes the other once its empty cells are filled"),
        ("label_corrected", "yes,yes,no,yes,yes,no", "--label_column=label_corrected"),
    ],
)
def test_labels_that_may_not_count_are_told(
    tmp_path: Path, name: str, cells: str, said: str
) -> None:
    with pytest.raises(UserWarning, match=f"a.csv: column '{name}' ") as told:
        read(tmp_path, f"task,worker,label,{name}", beside(cells))
    assert said in str(told.value)
    frame = pd.read_csv(tmp_path / "a.csv")
    with pytest.warns(UserWarning, match=f"frame: column '{name}' "):
        Annotations.from_frame(frame)
    with pytest.warns(UserWarning, match=f"table: column '{name}' "):
        from_table(frame, task="task", worker="worker", label="label")


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("status", "done,done,done,done,done,done"),
        ("state", "NY,CA,NY,TX,NY,CA"),
        ("was_cancelled", "False,False,False,False,False,False"),
        ("deleted_at", ",,,,,"),
        ("valid", "1,1,1,1,1,1"),
        ("_golden", "FALSE,FALSE,FALSE,FALSE,FALSE,FALSE"),
        ("_gold_label", "yes,,,,,no"),
        ("approved", ",,,,,"),
        ("weight", "1,1,1,1,1,1"),
        ("n", "a,b,a,b,a,b"),
        ("new_label", ",,,,,"),
        ("seconds", "1,2,3,4,5,6"),
        ("truth", "yes,yes,no,no,yes,yes"),
        ("id", "1,2,3,4,5,6"),
        ("image", "x,x,y,y,z,z"),
        ("confidence_score", "0.5,1,0.7,1,1,1"),
        ("rating", "1,2,3,3,3,1"),
    ],
)
def test_other_columns_are_told_nothing_of(tmp_path: Path, name: str, cells: str) -> None:
    assert read(tmp_path, f"task,worker,label,{name}", beside(cells)).num_annotations == 6


ASKED = ["1,big?,a,yes", "1,big?,b,yes", "2,big?,c,no", "2,big?,d,no", "3,red?,a,yes",
         "3,red?,c,no"]  # fmt: skip


@pytest.mark.parametrize("name", ["id", "image", "item_id", "file_name"])
def test_one_question_of_several_items(tmp_path: Path, name: str) -> None:
    header = f"{name},question,worker,answer"
    with pytest.raises(UserWarning, match=f"1 tasks .*'question' have several '{name}'.*'big\\?'"):
        read(tmp_path, header, ASKED)
    assert read(tmp_path, header, ASKED, task_column=name).num_instances == 3
    assert read(tmp_path, header, ASKED, task_column="question").num_instances == 2


def test_what_is_rated_is_no_label(tmp_path: Path) -> None:
    rows = [
        "1,It is,a,5",
        "1,It is,b,4",
        "2,No idea,a,1",
        "2,No idea,b,2",
        "3,Yes,a,5",
        "3,Yes,b,5",
    ]
    header = "id,response,annotator,rating"
    with pytest.raises(DataError, match=r"'response': .*beside 'rating'.*--label_column=rating"):
        read(tmp_path, header, rows)
    assert read(tmp_path, header, rows, label_column="rating").num_classes == 4
    assert read(tmp_path, header, rows, label_column="response").num_classes == 3
    sound = [row.replace("It is", "Yes") for row in rows]
    assert read(tmp_path, header, sound).num_classes == 2


@pytest.mark.parametrize(
    "header",
    [
        "task,worker,label,worker2,label2",
        "task,annotator,label,annotator_2,label_2",
        "task,worker,answer,second_worker,second_answer",
        "task,worker,label,worker_b,label_b",
        "task,worker,label,worker.1,label.1",
    ],
)
def test_a_second_annotator_is_refused(tmp_path: Path, header: str) -> None:
    rows = ["1,a,yes,b,no", "2,a,no,c,no", "3,b,yes,c,yes"]
    way_out = "; write a row a label, or --worker_column=.* --label_column=.* takes these alone"
    with pytest.raises(DataError, match=way_out):
        read(tmp_path, header, rows)
    _, worker, label, *_ = header.split(",")
    found = read(tmp_path, header, rows, worker_column=worker, label_column=label)
    assert found.num_annotations == 3
    frame = pd.read_csv(tmp_path / "a.csv")
    with pytest.raises(DataError, match=way_out):
        Annotations.from_frame(frame)


def test_a_second_label_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserWarning, match="'label' and 'label_b' are both named as a label's"):
        read(tmp_path, "task,worker,label,label_b", beside("no,no,no,yes,yes,yes"))


def test_ids_beside_questions_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,question,text\n1,How?,nice place\n2,Fine?,bad hole\n")
    with pytest.warns(UserWarning, match="'question' and 'id' are both .*--task_column says"):
        assert read_texts(tmp_path / "t.csv")[0].tolist() == ["How?", "Fine?"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_texts(tmp_path / "t.csv", TableFormat.of(task_column="id"))
    assert found[0].tolist() == ["1", "2"]
