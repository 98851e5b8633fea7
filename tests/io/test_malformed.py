"""Malformed inputs: a file for each check of the catalogue, and names of any letters.

Each is rejected in one line with the file and the check's id, and nothing is written.
"""

from __future__ import annotations

import csv
import gzip
import io
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neucrowd_tf.cli.commands import call
from neucrowd_tf.io.checks import catalogue

Printed = pytest.CaptureFixture[str]

LONG = "task,worker,label\n"
ROWS = "t1,ann,yes\nt1,bob,no\nt2,ann,no\nt2,bob,no\n"


def packed(**files: str) -> bytes:
    """Returns a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.csv", text)
    return stream.getvalue()


# By check: a file's name and content, and further flags of aggregate.
TEXTS = tomllib.loads((Path(__file__).parent / "cases" / "rejected.toml").read_text("utf-8"))
CASES = [(check, case) for check, cases in TEXTS.items() for case in cases]
# Bytes that are no text: the check, the file's name and its content.
BYTES = [
    ("unreadable", "a.zip", packed(a=LONG + ROWS, b=LONG + ROWS)),
    ("unreadable", "a.zip", packed()),
    ("unreadable", "a.csv.gz", gzip.compress(b"task,worker,label\n" * 99, mtime=0)[:-9]),
    ("encoding", "a.csv", (LONG + ROWS + "é,ann,yes\n").encode("latin-1")),
    ("broken_file", "a.parquet", b"PAR1 and something else"),
]
# Checks of features, in tables beside good labels: the check, the features' content.
FEATURES: list[tuple[str, str]] = [
    ("bad_feature", "task,x\nt1,1.5\nt2,inf\n"),
    ("unmatched_item", "task,x\nt1,1.5\nt9,2\n"),
    ("leak", "task,x,worker\nt1,1.5,2\nt2,2,3\n"),
]


def rejected(command: str, check: str, flags: list[str], folder: Path, capsys) -> None:
    assert call(command, [*flags, f"--output={folder}/out"]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and f"[{check}]" in errors[0] and str(folder) in errors[0]
    assert not (folder / "out").exists()


@pytest.mark.parametrize(("check", "case"), CASES)
def test_labels_are_rejected_with_the_id(
    check: str, case: dict[str, Any], tmp_path: Path, capsys: Printed
) -> None:
    path = tmp_path / case.get("file", "a.csv")
    path.write_text(case["content"], encoding="utf-8")
    flags = [f"--annotations={path}", *case.get("flags", [])]
    rejected("aggregate", check, flags, tmp_path, capsys)


@pytest.mark.parametrize(("check", "name", "content"), BYTES)
def test_bytes_are_rejected_with_the_id(
    check: str, name: str, content: bytes, tmp_path: Path, capsys: Printed
) -> None:
    (tmp_path / name).write_bytes(content)
    rejected("aggregate", check, [f"--annotations={tmp_path / name}"], tmp_path, capsys)


@pytest.mark.parametrize(("check", "content"), FEATURES)
def test_features_are_rejected_with_the_id(
    check: str, content: str, tmp_path: Path, capsys: Printed
) -> None:
    (tmp_path / "a.csv").write_text(LONG + ROWS)
    (tmp_path / "f.csv").write_text(content)
    flags = [f"--annotations={tmp_path}/a.csv", f"--features={tmp_path}/f.csv"]
    rejected("report", check, flags, tmp_path, capsys)


def test_every_check_has_a_case() -> None:
    assert {case[0] for case in (*CASES, *BYTES, *FEATURES)} == set(catalogue())


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(labels=st.lists(NAMES, min_size=2, max_size=4, unique=True))
def test_any_class_names_end_in_labels_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str]
) -> None:
    folder: Path = tmp_path_factory.mktemp("names")
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        rows = [[f"t{i}", f"w{j}", label] for i, label in enumerate(labels) for j in range(2)]
        csv.writer(stream).writerows([["task", "worker", "label"], *rows])
    flags = [f"--annotations={folder}/a.csv", "--method=majority_vote", f"--output={folder}/o.csv"]
    assert call("aggregate", flags) == (0 if (folder / "o.csv").exists() else 2)
