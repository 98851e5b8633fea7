"""Columns that could pass for annotators: features, further codings, counts; and newer answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.reading import message, pasted, read, rows

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(2, size=60)
CODERS = [np.where(RNG.random(60) < 0.9, TRUTH, 1 - TRUTH) for _ in range(4)]
FEATURE = RNG.permutation(60) % 2


def wide(header: str, *columns: Any) -> str:
    lines = np.transpose([[f"i{n}" for n in range(60)], *columns])
    return rows(header, *map(",".join, lines))


# The table, what is said of it, and the annotators of the command that is proposed.
DOUBTED = {
    "a feature among names": (
        wide("item,ann,bob,long,cy", *CODERS[:2], FEATURE, CODERS[2]),
        "long may be about the items, and of no annotator",
        "ann,bob,cy",
    ),
    "a feature beside numbered columns": (
        wide("item,rater_1,rater_2,checked", *CODERS[:3]),
        "checked may be about the items",
        "rater_1,rater_2",
    ),
    "a second coding": (
        wide("item,Rater1,Rater1_second,Rater2", *CODERS[:3]),
        "Rater1_second may be further codings",
        "Rater1,Rater2",
    ),
    "a retest": (
        wide("text,ann,bob,ann (retest)", *CODERS[:3]),
        "ann (retest) may be further codings",
        "ann,bob",
    ),
    "a coding with a number": (
        wide("id,ann,bob,ann_2", *CODERS[:3]),
        "ann_2 may be further codings",
        "ann,bob",
    ),
}


@pytest.mark.parametrize("case", DOUBTED)
def test_columns_that_may_be_no_annotators_are_asked_about(case: str, tmp_path: Path) -> None:
    table, words, annotators = DOUBTED[case]
    shown = message(tmp_path, table)
    assert words in shown and "If each column is an annotator: " in shown
    flags = pasted(shown)
    assert flags["label_column"] == annotators
    assert read(tmp_path, table, **flags).annotations.annotator_names.tolist() == (
        annotators.split(",")
    )


def test_annotators_with_numbers_or_of_little_skill_are_read(tmp_path: Path) -> None:
    for header in ("item,ann,ann_2,ann_3,ann_4", "item,ann,bob,gpt-4,gpt-4o"):
        assert read(tmp_path, wide(header, *CODERS)).annotations.num_annotators == 4
    people = wide("item,human_1,human_2,gpt-4", *CODERS[:3])
    assert read(tmp_path, people).annotations.num_annotators == 3
    guesser = (TRUTH + (RNG.random(60) < 0.2)) % 2
    table = wide("item,ann,bob,cy", *CODERS[:2], guesser)
    assert read(tmp_path, table).annotations.num_annotators == 3


def test_further_codings_in_rows_are_said_or_asked_about(tmp_path: Path) -> None:
    names = ("ann", "bob", "ann_second")
    cells = [f"{n},{by},{TRUTH[n]}" for n in range(9) for by in names]
    lines = read(tmp_path, rows("item,annotator,label", *cells)).lines
    assert "Annotators who may be further codings by others: ann_second." in lines[1]


def test_sums_of_ratings_are_no_votes(tmp_path: Path) -> None:
    named = wide("essay,rater1,rater2,score", *CODERS[:2], CODERS[0] + CODERS[1])
    assert pasted(message(tmp_path, named))["label_column"] == "rater1,rater2"
    other = wide("essay,ann,bob,score", *CODERS[:2], CODERS[0] + CODERS[1])
    shown = message(tmp_path, other)
    assert "[which_label]" in shown and "\n  neucrowd" not in shown
    assert "If they are counts of votes: --votes_columns=ann,bob" in shown


@pytest.mark.parametrize("votes", [5, 0])
def test_counts_under_other_names_are_no_annotators(votes: int, tmp_path: Path) -> None:
    sizes = np.full(60, votes) if votes else 3 + np.arange(60) % 3
    shares = np.where(TRUTH[:, None] == np.arange(3), 0.8, 0.1)
    counts = RNG.multinomial(sizes, shares)
    table = wide("item,joy,anger,neutral", *np.transpose(counts))
    shown = message(tmp_path, table)
    assert "[vote_counts]" in shown
    assert pasted(shown)["votes_columns"] == "joy,anger,neutral"


def test_the_newest_of_an_annotators_answers_is_used(tmp_path: Path) -> None:
    table = rows(
        "item,annotator,label,created_at,updated_at",
        "1,a,x,2024-01-01,2024-01-05",
        "1,a,y,2024-01-02,2024-01-02",
        "1,b,y,2024-01-01,2024-01-01",
        *(f"{n},a,y,2024-01-01,2024-01-01" for n in range(2, 13)),
    )
    newest = read(tmp_path, table)
    assert newest.annotations.to_frame()["label"][0] == "x"
    assert "pairs: 1, the newest by updated_at used (--duplicates)." in newest.lines[1]
    assert read(tmp_path, table, duplicates="first").annotations.to_frame()["label"][0] == "x"
    plain = table.replace("2024-01-05", "2024-01-01")
    assert "pairs: 1, last used" in read(tmp_path, plain).lines[1]
    undated = table.replace("2024-01-05", "").replace("2024-01-02,2024-01-02", ",")
    assert read(tmp_path, undated).annotations.to_frame()["label"][0] == "y"


def test_the_newest_submission_of_an_export_is_used(tmp_path: Path) -> None:
    def annotation(label: str, day: int) -> dict[str, Any]:
        result = [{"from_name": "q", "type": "choices", "value": {"choices": [label]}}]
        return {"completed_by": 1, "updated_at": f"2024-01-0{day}T10:00:00Z", "result": result}

    tasks = [{"id": 1, "data": {}, "annotations": [annotation("new", 2), annotation("old", 1)]}]
    reading = read(tmp_path, json.loads(json.dumps(tasks)), "a.json")
    assert reading.annotations.to_frame()["label"].tolist() == ["new"]
    assert "pairs: 1, the newest by their times used" in reading.lines[1]
