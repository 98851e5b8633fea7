"""Exports as they are, through the report and as a dataset of one's own; broken ones, one line."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from neucrowd_tf.aggregate import main as aggregate
from neucrowd_tf.datasets import table
from neucrowd_tf.io.importers import read_export
from neucrowd_tf.relabel import main as relabel
from neucrowd_tf.report.__main__ import main as report
from tests.io.importers.exports import EXPORTS, IDS, label_studio, label_studio_result

Writer = Callable[[Path], Path]


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_report(write: Writer, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the counts of what is left out
        assert report([f"--annotations={write(tmp_path)}", f"--output={output}"]) == 0
    assert "12" in output.read_text()


@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_dataset(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path)
    export = read_export(path)
    tasks = sorted(set(export.tasks))
    features, truth = tmp_path / "features.csv", tmp_path / "truth.csv"
    features.write_text("task,x\n" + "".join(f"{task},{i}\n" for i, task in enumerate(tasks)))
    truth.write_text("task,label\n" + "".join(f"{task},{export.labels[0]}\n" for task in tasks))
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        dataset = table.load(
            features=features, annotations=path, test_features=features, test_truth=truth
        )
    assert dataset.annotations.num_annotations == 12 and dataset.annotations.num_annotators == 3
    said = [str(warning.message) for warning in raised if "left out" in str(warning.message)]
    assert len(said) == bool(export.left_out)


COMMANDS = {
    "report": (report, ["--output={}"]),
    "aggregate": (aggregate, ["--output={}"]),
    "relabel": (relabel, ["--budget=3", "--output={}"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("write", [row[1] for row in EXPORTS], ids=IDS)
def test_a_truncated_one_is_one_line(
    command: str, write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = write(tmp_path), tmp_path / "output"
    part = next(path.rglob("*.json")) if path.is_dir() else path
    part.write_bytes(part.read_bytes()[: int(part.stat().st_size * 0.75)])
    main, flags = COMMANDS[command]
    assert main([f"--annotations={path}", *(flag.format(output) for flag in flags)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("error: ") and str(path) in said
    assert not output.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_mixed_questions_and_several_choices(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main, flags = COMMANDS[command]
    flags = [flag.format(tmp_path / "output") for flag in flags]
    mixed, several = tmp_path / "mixed.json", tmp_path / "several.json"
    tasks = json.loads(label_studio(tmp_path).read_text())
    answer = tasks[0]["annotations"][0]
    answer["result"] += label_studio_result("warm", "tone")
    mixed.write_text(json.dumps(tasks))
    answer["result"] = answer["result"][:1]
    answer["result"][0]["value"]["choices"] = ["pos", "neg"]
    several.write_text(json.dumps(tasks))
    for path, message, way_out in (
        (mixed, "'sentiment', 'tone'; --question names one", "--question=sentiment"),
        (several, "one choice an answer (--first takes the first), received 2", "--first"),
    ):
        assert main([f"--annotations={path}", *flags]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and message in said
        assert main([f"--annotations={path}", *flags, way_out]) == 0
        capsys.readouterr()
    plain = tmp_path / "plain.csv"
    plain.write_text("task,worker,label\na,u,x\na,v,y\n")
    assert main([f"--annotations={plain}", *flags, "--question=tone"]) == 2
    assert "--question: expected an annotation tool's export with it" in capsys.readouterr().err
