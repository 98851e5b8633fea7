"""Thirty public files of annotations, read as a new user would: what comes at the first try, and
after pasting what the message proposes.
"""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import Reading, read_annotations
from neucrowd_tf.io.schema import TableOptions

# What a user adds who looks at the columns: the message lists them, but cannot know which is meant.
CHOSEN = {
    "amt_tweets.csv": {"question": "Answer.positive_label"},
    "cf_json.json": {"question": "sentiment"},
    "german_hs.csv": {"label_column": "HatespeechOrNot (Expert *)"},
    "newsgroups.csv.zip": {"label_column": "category"},
    "odre_amt.csv": {"question": "Answer.Q1"},
}
# The id of the first message; "" if the file is read at once.
FIRST = dict(
    line.split()
    for line in """
trec_rf10.txt missing_role
duchenne.txt no_header
barzan.txt no_header
hitspam.txt no_header
german_hs.csv missing_role
amt_tweets.csv several_questions
cf_json.json several_questions
ct_multi.csv multi_label
odre_amt.csv several_questions
newsgroups.csv.zip missing_role
emotion_num.csv ratings
politeness.csv ratings
davidson.csv vote_counts
convabuse.csv missing_role
paraphrase_utf16.tsv missing_role
ls_leoka.json multi_label
zoo_wildcam.csv nothing_to_aggregate
toloka_vldb.csv free_text
prodigy_cats.jsonl nothing_to_aggregate
doccano_spans.jsonl nothing_to_aggregate
""".strip().splitlines()
)


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    if not (data_dir / "real_files" / "expected.csv").exists():
        pytest.skip("real_files is not in the data folder")
    return data_dir / "real_files"


def expected(folder: Path) -> list[dict[str, str]]:
    with (folder / "expected.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def read(path: Path, flags: dict[str, Any]) -> tuple[Reading | None, str]:
    """Returns what was read, or None and the message."""
    try:
        return read_annotations(path, TableOptions.of(**flags)), ""
    except DataError as error:
        return None, str(error)


def proposed(message: str) -> dict[str, str]:
    """Returns the flags of the command that a message ends with, without those to fill in."""
    line = next((line for line in message.split("\n") if line.startswith("  neucrowd ")), "")
    flags = dict(word[2:].split("=", 1) for word in shlex.split(line) if word.startswith("--"))
    flags.pop("annotations", None)
    return {name: value for name, value in flags.items() if not value.isupper()}


def check_counts(reading: Reading, row: dict[str, str]) -> None:
    crowd, name = reading.annotations, row["file"]
    summary = reading.lines[0].replace(",", "")
    counts = [int(number) for number in re.findall(r"(\d+) (?:label|vote|item|annotator)", summary)]
    if row["outcome"] == "votes":
        assert counts[:2] == [int(row["labels"]), int(row["tasks"])], name
    else:
        assert counts[:3] == [int(row[key]) for key in ("labels", "tasks", "annotators")], name
    if row["outcome"] in ("read", "special") and name != "ls_leoka.json":
        assert crowd.num_annotations == int(row["pairs"]), name
        assert crowd.num_classes == int(row["classes"]), name


def test_first_messages(folder: Path) -> None:
    first = 0
    for row in expected(folder):
        reading, message = read(folder / row["file"], {})
        check = FIRST.get(row["file"], "")
        if check:
            assert reading is None, row["file"]
            assert f"[{check}]" in message.split("\n")[0], (row["file"], message)
        else:
            assert reading is not None, (row["file"], message)
            check_counts(reading, row)
            first += 1
    assert first >= 10


def test_after_what_the_message_proposes(folder: Path) -> None:
    for row in expected(folder):
        name, path = row["file"], folder / row["file"]
        if name not in FIRST or row["outcome"] in ("none", "numeric"):
            continue
        _, message = read(path, {})
        flags = {**proposed(message), **CHOSEN.get(name, {})}
        if name in CHOSEN:
            flags.pop("task_column", None)
        if row["outcome"] == "multi" or name == "ls_leoka.json":
            _, message = read(path, flags)
            sign = re.search(r"--multi_label=('\|'|\w+)", message)
            assert sign is not None, (name, message)
            flags["multi_label"] = sign[1].strip("'")
        reading, message = read(path, flags)
        assert reading is not None, (name, flags, message)
        check_counts(reading, row)
        assert (reading.pairs is not None) == ("multi_label" in flags)


def test_ratings_become_classes(folder: Path) -> None:
    reading, _ = read(folder / "emotion_num.csv", {"bins": "5"})
    assert reading.annotations.num_classes == 5
    _, message = read(folder / "politeness.csv", {"classes": "all"})
    assert "24 cells, but the header has 14" in message
