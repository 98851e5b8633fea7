"""Files beside the labels (gold labels, truth, probabilities, names) are read as the labels are,
and as this project writes them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.aggregate import main as aggregate
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.convert import main as convert
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.tables.format import TableFormat
from neucrowd_tf.io.tables.tasks import read_truth
from neucrowd_tf.labelling.source import read_gold, read_names, read_probabilities
from neucrowd_tf.relabel import main as relabel

FORMULAS = Annotations.from_arrays(
    ["-a1", "-a1", "@b", "@b", "c", "c"],
    ["@anna", "Smith, A.", "@anna", "Smith, A.", "@anna", "Smith, A."],
    ["+", "-", "+", "+", "-", "-"],
)


@pytest.fixture
def crowd() -> Annotations:
    return Annotations.from_arrays([1, 1, 2, 3], ["a", "b", "a", "b"], ["yes", "no", "no", "yes"])


def write(folder: Path, text: str, name: str = "gold.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"separator": ";"}, "task;label\n1;yes\n"),
        ({"separator": ";"}, "task,label\n1,yes\n"),
        ({"separator": ";"}, '"task","label"\n"1","yes"\n'),
        ({"task_column": "img"}, "img,label\n1,yes\n"),
        ({"task_column": "img", "label_column": "rating"}, "task,label\n1,yes\n"),
        ({"label_column": "rating"}, "label,task,rating\nx,1,yes\n"),
        ({"separator": ";", "task_column": "img", "label_column": "r"}, "img;r\n1;yes\n"),
    ],
)
def test_gold_is_written_as_the_labels_or_plainly(
    flags: dict[str, str], text: str, crowd: Annotations, tmp_path: Path
) -> None:
    assert read_gold(write(tmp_path, text), crowd, TableFormat.of(**flags)) == {1: "yes"}


def test_gold_through_the_commands(tmp_path: Path) -> None:
    rows = [(1, "a", "yes"), (1, "b", "no"), (2, "a", "no"), (2, "b", "no")]
    text = "".join(f"{task};{worker};{label}\n" for task, worker, label in rows)
    labels = write(tmp_path, f"img;worker;rating\n{text}", "labels.csv")
    gold = write(tmp_path, "img;rating\n1;yes\n2;NA\n")
    flags = ["--separator=;", "--task_column=img", "--label_column=rating", "--missing=NA"]
    flags += [f"--annotations={labels}", f"--gold={gold}"]
    assert aggregate([*flags, f"--output={tmp_path / 'out.csv'}"]) == 0
    assert "\n1,yes,1," in (tmp_path / "out.csv").read_text()
    assert relabel([*flags, "--budget=1", f"--output={tmp_path / 'ask.csv'}"]) == 0


def test_gold_of_tasks_without_labels_is_left_out_and_counted(
    crowd: Annotations, tmp_path: Path
) -> None:
    path = write(tmp_path, "task,label\n7,maybe\n1,yes\n8,no\n")
    with pytest.warns(UserWarning, match="line 2: .* received '7'; 2 such lines are left out"):
        assert read_gold(path, crowd) == {1: "yes"}
    with pytest.raises(DataError, match="line 2: expected a task that has labels, received '7'"):
        read_gold(write(tmp_path, "task,label\n7,yes\n8,no\n"), crowd)


def test_gold_that_convert_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def annotation(by: int, label: str, truth: bool = False) -> dict[str, object]:
        part = {"from_name": "s", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": by, "ground_truth": truth, "result": [part]}

    tasks = [
        {"id": 1, "data": {}, "annotations": [annotation(1, "yes"), annotation(2, "no")]},
        {"id": 2, "data": {}, "annotations": [annotation(3, "no", True)]},
        {"id": 3, "data": {}, "annotations": [annotation(1, "no"), annotation(3, "no", True)]},
    ]
    path, gold = write(tmp_path, json.dumps(tasks), "ls.json"), tmp_path / "gold.csv"
    assert convert([f"--input={path}", f"--output={tmp_path / 'a.csv'}", f"--gold={gold}"]) == 0
    flags = [f"--annotations={path}", f"--gold={gold}", f"--output={tmp_path / 'out.csv'}"]
    assert aggregate(flags) == 0
    assert "1 such lines are left out" in capsys.readouterr().err


def test_a_true_label_that_stands_for_none(crowd: Annotations, tmp_path: Path) -> None:
    path = write(tmp_path, "task,label\n1,yes\n2,NA\n")
    tasks, way_out = np.array(["1", "2", "3"], dtype=object), "--missing=NA leaves out tasks"
    with pytest.raises(DataError, match=f"received 'NA'; {way_out}"):
        read_truth(path, tasks, crowd.class_names)
    with pytest.raises(DataError, match=f"received 'NA'; {way_out}"):
        read_gold(path, crowd)
    layout = TableFormat.of(missing="NA")
    with pytest.warns(UserWarning, match="1 tasks without a label are left out"):
        assert read_gold(path, crowd, layout) == {1: "yes"}
    with pytest.warns(UserWarning, match="1 tasks without a label are left out"):
        truth = read_truth(path, tasks, crowd.class_names, layout=layout)
    assert truth.tolist() == [1, -1, -1]


def test_what_a_command_wrote_is_read_by_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, found = tmp_path / "crowd.csv", tmp_path / "labels.csv"
    FORMULAS.to_frame().to_csv(labels, index=False)
    people = tmp_path / "annotators.csv"
    flags = [f"--annotations={labels}", "--missing="]
    assert aggregate([*flags, f"--output={found}", f"--annotators={people}"]) == 0
    assert "'-a1" in found.read_text() and "'@anna" in people.read_text()
    gold = read_gold(found, FORMULAS)
    assert list(gold) == ["-a1", "@b", "c"] and set(gold.values()) <= {"+", "-"}
    tasks = np.array(["-a1", "@b", "c"], dtype=object)
    assert (read_truth(found, tasks, FORMULAS.class_names) >= 0).all()
    assert read_names(people, ["@anna", "Smith, A."]) == ["@anna", "Smith, A."]
    capsys.readouterr()
    assert relabel([*flags, f"--ask={people}", "--budget=2"]) == 0
    assert "without labels yet" not in capsys.readouterr().err


def test_names_in_a_file(tmp_path: Path) -> None:
    known = ["Smith, A.", "bob"]
    assert read_names(write(tmp_path, "Smith, A.\nbob\n\nnew\n"), known) == [*known, "new"]
    assert read_names(write(tmp_path, 'worker,n\n"Smith, A.",3\nbob,2\n'), known) == known
    assert read_names(write(tmp_path, "worker\tn\nSmith, A.\t3\n"), known) == known[:1]
    with pytest.raises(DataError, match="line 2: expected an annotator's name"):
        read_names(write(tmp_path, 'bob\n"cut off\n'), known)


def test_probabilities_of_tasks_like_formulas(tmp_path: Path) -> None:
    text = "task,predicted,p_+,p_-\n'-a1,'+,.9,.1\n'@b,'-,.2,.8\nc,'-,.5,.5\n"
    path = write(tmp_path, text)
    found, told = read_probabilities(path, FORMULAS)
    assert not told and found[:, 0].round(1).tolist() == [0.9, 0.2, 0.5]
    layout = TableFormat.of(separator=";")
    path.write_text(path.read_text().replace(",", ";"))
    assert read_probabilities(path, FORMULAS, layout)[0].tolist() == found.tolist()
