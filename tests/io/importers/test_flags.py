"""Flags that say how a table is written, with an annotation tool's export."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from neucrowd_tf.aggregate import main as aggregate
from neucrowd_tf.annotations import read_annotations
from neucrowd_tf.convert import main as convert
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.importers import read_export
from neucrowd_tf.io.tables.format import TableFormat
from tests.io.importers.exports import EXPORTS, IDS, label_studio, mturk, toloka

Writer = Callable[[Path], Path]


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_missing_names_labels_that_are_left_out(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path)
    label = read_export(path).labels[0]
    expected = sum(other != label for other in read_export(path).labels)
    with pytest.warns(UserWarning, match=f"{12 - expected} without a label \\(--missing\\)"):
        crowd = read_annotations(path, layout=TableFormat.of(missing=label))
    assert crowd.num_annotations == expected and label not in map(str, crowd.class_names)


def test_missing_follows_the_way_out_that_the_error_names(tmp_path: Path) -> None:
    path = label_studio(tmp_path)
    tasks = json.loads(path.read_text())
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["N/A"]
    path.write_text(json.dumps(tasks))
    with pytest.raises(DataError, match="--missing=N/A leaves these out"):
        read_annotations(path)
    with pytest.warns(UserWarning, match="1 without a label"):
        assert read_annotations(path, layout=TableFormat.of(missing="N/A")).num_annotations == 11
    with pytest.raises(DataError, match="labels beside --missing"):
        read_annotations(path, layout=TableFormat.of(missing="N/A,pos,neg"))


def test_columns_that_the_user_names(tmp_path: Path) -> None:
    named = {"task": "Input.text", "worker": "AssignmentId", "label": "AssignmentStatus"}
    export = read_export(mturk(tmp_path), layout=TableFormat(**named))
    assert {export.tasks[0], export.workers[0], export.labels[0]} == {
        "A joy.",
        "3A1ann",
        "Approved",
    }
    named = {"task": "INPUT:text", "worker": "ASSIGNMENT:assignment_id", "label": "OUTPUT:result"}
    export = read_export(toloka(tmp_path), layout=TableFormat(**named))
    assert (export.tasks[0], export.workers[0], export.labels[0]) == ("A joy.", "a-ann", "pos")
    assert export.gold == {"Never again!": "neg"}
    with pytest.raises(DataError, match=r"expected a column 'Input.txt'.*'Input.text' comes close"):
        read_export(mturk(tmp_path), layout=TableFormat(task="Input.txt"))


def test_an_export_without_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = label_studio(tmp_path)
    for flag in ("--task_column=image", "--worker_column=x", "--label_column=x", "--separator=;"):
        assert convert([f"--input={path}", flag]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"error: {flag.partition('=')[0]}: expected --from=table with it")
    assert convert([f"--input={mturk(tmp_path)}", "--text_column=Input.text"]) == 2
    assert "--text_column: expected --from=table" in capsys.readouterr().err
    # The commands have other files that the flags may be meant for.
    assert aggregate([f"--annotations={path}", "--task_column=image"]) == 0
    assert "--task_column=image is without effect" in capsys.readouterr().err


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize(("write", "before"), [(mturk, '","'), (toloka, "\t")])
@pytest.mark.parametrize("sign", [";", ",", "\t"])
def test_separators_and_line_ends(
    write: Writer, before: str, sign: str, line_end: str, tmp_path: Path
) -> None:
    path = write(tmp_path)
    quoted = before.replace(",", sign) if before == '","' else f'"{sign}"'
    text = path.read_bytes().decode().replace("\r\n", "\n").replace(before, quoted)
    if write is toloka:
        text = "\n".join(f'"{line}"' for line in text.rstrip("\n").split("\n"))
    path.write_bytes(text.replace("\n", line_end).encode())
    layout = TableFormat(separator=sign if sign == ";" else None)
    assert read_export(path, layout=layout).labels == read_export(write(tmp_path)).labels


def test_the_line_in_which_excel_has_the_separator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sep=;\ntask;worker;label\n1;a;yes\n2;b;no\n")
    flags = ["--from=table", *(f"--{name}_column={name}" for name in ("task", "worker", "label"))]
    assert convert([f"--input={path}", f"--output={tmp_path / 'b.csv'}", *flags]) == 0
    assert (tmp_path / "b.csv").read_text() == "task,worker,label\n1,a,yes\n2,b,no\n"
    path.write_text(path.read_text()[6:])
    assert convert([f"--input={path}", *flags]) == 2
    assert "received semicolons (--separator says which)" in capsys.readouterr().err
    path.write_text(path.read_text().replace(";", "\t"))
    assert convert([f"--input={path}", f"--output={tmp_path / 'c.csv'}", *flags]) == 0
    batch = mturk(tmp_path)
    labels = read_export(batch).labels
    batch.write_text("sep=,\n" + batch.read_text())
    assert read_export(batch).labels == labels
