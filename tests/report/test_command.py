"""python -m neucrowd_tf.report: what it reads, and one line for whatever is wrong."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.report.__main__ import main


def test_a_csv_becomes_a_page(
    tmp_path: Path, crowd: tuple[Annotations, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    crowd[0].to_frame().to_csv(tmp_path / "a.csv", index=False)
    output = tmp_path / "page.html"
    assert main([f"--annotations={tmp_path / 'a.csv'}", f"--output={output}"]) == 0
    assert "Annotator reliability" in output.read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() == str(output)


def test_a_page_whose_name_is_not_utf8_is_said(
    tmp_path: Path, crowd: tuple[Annotations, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd[0].to_frame().to_csv(tmp_path / "a.csv", index=False)
    output = tmp_path / "r\udce9.html"
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    monkeypatch.setattr(sys, "stdout", shown)
    assert main([f"--annotations={tmp_path / 'a.csv'}", f"--output={output}"]) == 0
    assert output.exists() and shown.buffer.getvalue().endswith(b"r\\udce9.html\n")  # type: ignore[attr-defined]


def test_names_and_signs_of_the_users_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        f"{task};{who};{'xy'[(task + (who == 'gpt')) % 2]}" for task in range(8) for who in "uv"
    ]
    rows += [f"{task};gpt;{'xy'[task % 2]}" for task in range(8)]
    (tmp_path / "a.csv").write_text("\n".join(["text id;who;said", *rows]) + "\n")
    (tmp_path / "t.csv").write_text("text id;said\n0;x\n1;y\n")
    output = tmp_path / "page.html"
    flags = [f"--annotations={tmp_path / 'a.csv'}", f"--gold={tmp_path / 't.csv'}"]
    flags += [
        "--separator=;",
        "--task_column=text id",
        "--worker_column=who",
        "--label_column=said",
    ]
    assert main([*flags, "--model_annotator=gpt", f"--output={output}"]) == 0
    page = output.read_text(encoding="utf-8")
    assert "is a model and is left out" in page and "Model &#39;gpt&#39;: " in page
    capsys.readouterr()
    assert main([*flags, "--model_annotator=gpt", "--output=-"]) == 0
    assert capsys.readouterr().out == output.read_text(encoding="utf-8")
    assert main([*flags, "--model_annotator=claude", f"--output={output}"]) == 2
    assert "--model_annotator: no annotator is named" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"task,worker,label\nt1,w1,a\xff\n", b"task,worker\nt,w\n", b""]
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert main([f"--annotations={path}", f"--output={tmp_path / 'page.html'}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and str(path) in error and "Traceback" not in error
    assert not (tmp_path / "page.html").exists()


def test_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "--anotations=x": "flag 'anotations'. Did you mean: annotations",
        "--annotations=/none.csv": "no such file",
        "--gold=t.csv": "--annotations is missing",
    }
    for flags, message in (([flag], message) for flag, message in wrong.items()):
        assert main(flags) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    assert main([f"--annotations={tmp_path}/a.csv", f"--output={tmp_path}"]) == 2
