"""The command that converts exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.convert import main
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.importers import read_export
from neucrowd_tf.io.reader import read_annotations
from tests.io.importers.exports import EXPORTS, IDS, TEXTS, label_studio, prodigy

Writer = Callable[[Path], Path]


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_converted_is_what_the_export_says(
    write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = write(tmp_path), tmp_path / "annotations.csv"
    assert main([f"--input={path}", f"--output={output}"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and "12 labels of 4 tasks by 3 annotators" in captured.err
    export = read_export(path)
    assert read_annotations(output).annotations == Annotations.from_frame(export.frame())


def test_tasks_and_gold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks, gold = tmp_path / "tasks.csv", tmp_path / "gold.csv"
    path = label_studio(tmp_path)
    assert main([f"--input={path}", f"--tasks={tasks}", f"--gold={gold}"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:2] == ["task,worker,label", "1,ann,pos"]
    assert "left out: 1 skipped by the annotator, 1 ground truth, kept as gold" in captured.err
    assert pd.read_csv(tasks)["text"].tolist() == list(TEXTS.values())
    assert gold.read_text() == "task,label\n1,pos\n"


@pytest.mark.parametrize(
    ("name", "content", "flags", "message"),
    [
        ("a.json", "task,worker,label\n1,2,3\n", [], "looks like none of them"),
        ("a.json", None, ["--from=toloka"], "received what looks like Label Studio's JSON"),
        ("a.json", None, ["--from=excel"], "expected a tool of auto"),
        ("a.json", None, ["--question=mood"], "expected the question 'mood'"),
        ("a.json", None, ["--gold="], ""),
        ("b.json", None, [], "no such file"),
    ],
)
def test_one_line_and_exit_code_2(
    name: str,
    content: str | None,
    flags: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "a.json"
    label_studio(tmp_path).rename(path)
    if content is not None:
        path.write_text(content)
    output = tmp_path / "out" / "annotations.csv"
    assert main([f"--input={tmp_path / name}", f"--output={output}", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and message in captured.err


def test_a_table_with_names_of_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--from=table", "--task_column=id", "--worker_column=who", "--label_column=says"]
    path = tmp_path / "a.tsv"
    path.write_text("id\twho\tsays\n007\tann\tx\n008\tann\t\n")
    assert main([f"--input={path}", *flags]) == 0
    captured = capsys.readouterr()
    assert captured.out == "task,worker,label\n007,ann,x\n"
    assert captured.err == (
        "table: 1 labels of 1 tasks by 1 annotators; left out: 1 without a choice\n"
    )
    frame = pd.read_csv(path, sep="\t", dtype=str)
    parquet, lines = tmp_path / "a.parquet", tmp_path / "a.jsonl"
    frame.to_parquet(parquet)
    frame.to_json(lines, orient="records", lines=True)
    for other in (parquet, lines):
        assert main([f"--input={other}", *flags]) == 0
        assert capsys.readouterr().out == captured.out
    assert main([f"--input={path}", "--from=table"]) == 2
    assert "expected the task in a column 'task', received 'id'" in capsys.readouterr().err


def test_output_is_whole_or_absent(tmp_path: Path) -> None:
    path = prodigy(tmp_path)
    path.write_text(path.read_text() + "{")
    output = tmp_path / "annotations.csv"
    assert main([f"--input={path}", f"--output={output}"]) == 2
    assert not output.exists()


@pytest.mark.parametrize("name", ["a.json", "A.JSON", "a.jsonl"])
def test_records_are_a_table(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [{"task": 1, "worker": "a", "label": "x"}, {"task": 1, "worker": "b", "label": "y"}]
    lines = name.endswith("l")
    text = "\n".join(map(json.dumps, found)) if lines else json.dumps(found)
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match="convert --from=table"):
        read_annotations(tmp_path / name)
    assert main([f"--input={tmp_path / name}", "--from=table"]) == 0
    assert capsys.readouterr().out == "task,worker,label\n1,a,x\n1,b,y\n"
