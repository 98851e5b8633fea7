"""Annotation tools' exports as --annotations of a run: auto on each, and what is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from neucrowd_tf.cli.runs import process, run_command
from neucrowd_tf.io.labels import read_annotations
from tests.io.importers.exports import EXPORTS, IDS, label_studio, label_studio_result

Printed = pytest.CaptureFixture[str]

Command = Callable[..., int]

Writer = Callable[[Path], Path]


@pytest.fixture
def auto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs --method=auto, whose budget leaves three regressions, on texts of an export's tasks."""
    monkeypatch.setattr(process, "start", lambda options: None)  # other tests computed before
    monkeypatch.setattr(process, "start_without_tensorflow", lambda options: None)

    def run(path: Path, tasks: Sequence[str], classes: Sequence[str], *more: str) -> int:
        texts, new = tmp_path / "texts.csv", tmp_path / "new.csv"
        lines = [f"{task},{'a joy' if i % 2 else 'never'} {i}" for i, task in enumerate(tasks)]
        texts.write_text("\n".join(["task,text", *lines]) + "\n")
        new.write_text("task,text\nnew-0,a joy\nnew-1,never\n")
        truth = tmp_path / "truth.csv"
        truth.write_text(f"task,label\nnew-0,{classes[0]}\nnew-1,{classes[-1]}\n")
        passed = ["--dataset=table", "--method=auto", f"--annotations={path}", f"--texts={texts}"]
        passed += [f"--test_texts={new}", f"--test_truth={truth}", f"--output_dir={tmp_path}"]
        return run_command.main([*passed, "--hparam=budget=3", "--noreport", *more])

    return run


def test_auto(auto: Command, tmp_path: Path) -> None:
    path = EXPORTS[0][1](tmp_path)
    crowd = read_annotations(path).annotations
    tasks = list(map(str, crowd.instance_names.tolist()))
    assert auto(path, tasks, list(map(str, crowd.class_names.tolist()))) == 0
    folder = tmp_path / "table" / "auto" / "seed-0"
    labels = pd.read_csv(folder / "labels.csv", dtype=str)
    # Two tasks each of both classes, as the crowd said.
    assert labels["task"].tolist() == tasks and labels["label"].nunique() == 2
    assert labels["label"].tolist() == [labels["label"][i % 2] for i in range(4)]
    tried = json.loads((folder / "metrics.json").read_text())["recommendation"]["methods"]
    scored = {row["method"] for row in tried if row["score"] is not None}
    assert scored == {"mv_lr", "ds_lr", "softprob", "average"}


def test_one_question_of_several(auto: Command, tmp_path: Path, capsys: Printed) -> None:
    path = label_studio(tmp_path)
    tasks = json.loads(path.read_text())
    for task in tasks:
        task["annotations"][0]["result"] += label_studio_result("warm", "tone")
        task["annotations"][1]["result"] += label_studio_result("cold", "tone")
    path.write_text(json.dumps(tasks))
    flags = (["1", "2", "3", "4"], ["neg", "pos"])
    assert auto(path, *flags) == 2
    assert "[several_questions]" in capsys.readouterr().err
    assert auto(path, *flags, "--question=sentiment") == 0


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_truncated(write: Writer, auto: Command, tmp_path: Path, capsys: Printed) -> None:
    path = write(tmp_path)
    piece = next(path.rglob("*.json")) if path.is_dir() else path
    piece.write_bytes(piece.read_bytes()[: int(piece.stat().st_size * 0.75)])
    assert auto(path, ["1"], ["neg", "pos"]) == 2
    message = capsys.readouterr().err
    assert "error: " in message and str(path) in message


def test_gold_is_written_as_the_labels(auto: Command, tmp_path: Path, capsys: Printed) -> None:
    rows = [f"t{i};w{w};{['no', 'yes'][i % 2]}" for i in range(12) for w in range(3)]
    path, gold = tmp_path / "a.csv", tmp_path / "gold.csv"
    path.write_text("\n".join(["img;who;rating", *rows]) + "\n")
    gold.write_text("img;rating\nt0;no\nt1;NA\nt99;yes\n")
    flags = ["--separator=;", "--task_column=img", "--worker_column=who", "--label_column=rating"]
    flags += [f"--gold={gold}", "--missing=NA"]
    assert auto(path, [f"t{i}" for i in range(12)], ["no", "yes"], *flags) == 0
    message = capsys.readouterr().err
    assert "1 true labels are missing and 1 items without labels" in message
