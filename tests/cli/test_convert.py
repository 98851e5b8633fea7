"""The command that converts exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from neucrowd_tf.io.labels import read_annotations
from tests.cases import cases
from tests.io.importers.exports import EXPORTS, IDS, TEXTS, label_studio

Writer = Callable[[Path], Path]


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_converted_is_what_the_export_says(write: Writer, tmp_path: Path, cli) -> None:
    path, output = write(tmp_path), tmp_path / "annotations.csv"
    captured = cli("convert", [f"--input={path}", f"--output={output}"])
    assert captured.out == ""
    assert "labels of 4 items by 3 annotators" in captured.err
    assert read_annotations(output).annotations == read_annotations(path).annotations


def test_tasks_and_gold(tmp_path: Path, cli) -> None:
    tasks, gold = tmp_path / "tasks.csv", tmp_path / "gold.csv"
    path = label_studio(tmp_path)
    captured = cli("convert", [f"--input={path}", f"--tasks={tasks}", f"--gold={gold}"])
    assert captured.out.splitlines()[:2] == ["task,annotator,label", "1,ann,pos"]
    assert pd.read_csv(tasks)["text"].tolist() == list(TEXTS.values())
    assert gold.read_text() == "task,true_label\n1,pos\n"


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    cases(r"""
["[{\"a\": [1]}]", [], "[unknown_layout]"],
["[{\"a\": ", [], "[broken_file]"],
["task,worker,label\nt,a,x\n", ["--tasks={}/t.csv"], "does not contain the texts"],
["task,worker,label\nt,a,x\n", ["--gold={}/g.csv"], "does not contain true labels"],
["task,votes_x,votes_y\nt,1,0\n", [], "vote counts do not name annotators"]
"""),
)
def test_what_cannot_be_converted(
    content: str | None, flags: list[str], message: str, tmp_path: Path, cli
) -> None:
    path = tmp_path / "a.json"
    label_studio(tmp_path).rename(path)
    if content is not None:
        path.write_text(content)
    output = tmp_path / "out" / "annotations.csv"
    flags = [flag.format(tmp_path) for flag in flags]
    assert message in cli("convert", [f"--input={path}", f"--output={output}", *flags], 2).err
    assert not output.exists()


def test_a_table_with_names_of_columns(tmp_path: Path, cli) -> None:
    flags = ["--task_column=id", "--worker_column=who", "--label_column=says"]
    path = tmp_path / "a.tsv"
    path.write_text("id\twho\tsays\ttext\n007\tann\tx\tgood\n008\tann\t\tbad\n")
    captured = cli("convert", [f"--input={path}", *flags])
    assert captured.out == "task,annotator,label\n007,ann,x\n"
    assert "1 labels are missing" in captured.err
