"""Files of which labels were once lost, taken or pooled without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.io.reading import message, pasted, read
from tests.io.reading import rows as table


def timed(name: str, old: str, new: str, others: str) -> str:
    """A table in which a pair repeats, the newer row, whose label is new, first."""
    rest = [f"{item},{by},no,{others}" for item in "bcde" for by in "xyz"]
    return table(f"item,annotator,label,{name}", f"a,x,new,{new}", *rest, f"a,x,old,{old}")


# By form: the column's name, an older time, a newer one, and that of other rows.
TIMES = {
    "the day first": ("submitted", "9/02/2026 09:00", "10/02/2026 08:00", "14/01/2026 09:00"),
    "the month first": ("Timestamp", "2/9/2026 9:00:00", "2/10/2026 8:00:00", "1/14/2026 9:00:00"),
    "half days": ("when", "1/14/2026 9:00 AM", "1/14/2026 1:00 PM", "1/13/2026 10:00 AM"),
    "slashes": ("time", "2026/02/09 09:00", "2026/02/10 08:00", "2026/01/14 09:00"),
    "dots": ("Zeit", "9.02.2026 09:00", "10.02.2026 08:00", "04.01.2026 09:00"),
    "Mechanical Turk's": (
        "SubmitTime",
        "Tue Feb 03 09:30:00 MST 2026",  # half an hour before
        "Tue Feb 03 09:00:00 PST 2026",
        "Wed Jan 14 09:00:00 PST 2026",
    ),
    "ISO under another name": ("Zeit", "2026-02-03T09:00", "2026-02-03T10:00", "2026-01-14T09:00"),
}


@pytest.mark.parametrize("case", TIMES)
def test_the_newer_label_is_used(case: str, tmp_path: Path) -> None:
    name, old, new, others = TIMES[case]
    lines = read(tmp_path, timed(name, old, new, others), duplicates="last").lines
    assert f"1, the newest by {name} used" in lines[1]
    assert "new (1)" in lines[1]


@pytest.mark.parametrize(
    ("name", "other", "problem"),
    [
        ("when", "1/2/2026", "Times of when were not used: '4/2/2026' may begin with the day or"),
        ("Timestamp", "46030.5", "Times of Timestamp were not used: '4/2/2026' is not read as"),
    ],
)
def test_times_that_are_not_used_are_named(
    name: str, other: str, problem: str, tmp_path: Path
) -> None:
    content = timed(name, "3/2/2026", "4/2/2026", other)
    assert problem in read(tmp_path, content, duplicates="last").lines[1]
    assert "Times of" not in read(tmp_path, content.replace("a,x,old", "a,y,old")).lines[1]


@pytest.mark.parametrize(
    "answers",
    [
        "likes,dislikes",
        "thumbs_up,thumbs_down",
        "for,against",
        "upvotes,downvotes",
        "n_yes,n_no,n_skip",
    ],
)
def test_counts_of_opposed_answers_are_no_annotators(answers: str, tmp_path: Path) -> None:
    skipped = ",0" * answers.count("skip")
    cells = [f"c{n},{(n * 3) % 5},{(n + 1) % 4}{skipped}" for n in range(10)]
    shown = message(tmp_path, table(f"post_id,{answers}", *cells))
    assert pasted(shown) == {"task_column": "post_id", "votes_columns": answers}


def of_teams(column: str, classes: str, *, several: bool = False) -> str:
    """Ten items with two annotators for each of two values of a column."""
    cells = []
    for n in range(10):
        for team, value in enumerate("st"):
            for at in (0, 1):
                by = f"{'x' if several and n == 9 else value}{at}"
                cells.append(
                    f"i{n},{by},{value},{classes[(2 * team + (n + at) % 2) % len(classes)]}"
                )
    return table(f"item,annotator,{column},label", *cells)


@pytest.mark.parametrize(
    "column", ["aspect", "criterion", "metric", "task_name", "kind", "Dimension"]
)
def test_questions_of_teams_are_never_pooled(column: str, tmp_path: Path) -> None:
    for several in (False, True):
        content = of_teams(column, "yn", several=several)
        shown = message(tmp_path, content)
        assert f"10 of 10 items have several values of {column}" in shown
        assert f"--task_column=item,{column}" in shown
        assert "20 labels of 10 items" in read(tmp_path, content, **pasted(shown)).lines[0]
    all_rows = read(tmp_path, content, duplicates="last").lines[0]
    assert "40 labels of 10 items" in all_rows


def test_questions_with_classes_of_their_own_are_seen_by_them(tmp_path: Path) -> None:
    shown = message(tmp_path, of_teams("group", "ynrb"))
    assert pasted(shown) == {"question": "group=s"}
    assert "40 labels of 10 items" in read(tmp_path, of_teams("group", "yn")).lines[0]


def test_objects_of_annotators_or_of_counts_are_asked_about(tmp_path: Path) -> None:
    labels = {f"t{n}": "yn"[n % 2] for n in range(8)}
    swapped = message(tmp_path, {"a1": labels, "a2": labels}, "a.json")
    flags = {"task_column": "key within", "worker_column": "key"}
    assert pasted(swapped) == flags
    assert "--task_column=key --worker_column='key within'" in swapped
    lines = read(tmp_path, {"a1": labels, "a2": labels}, "a.json", **flags).lines
    assert "16 labels of 8 items by 2 annotators" in lines[0] and "Annotators: a1, a2." in lines
    named = read(tmp_path, {"rater1": labels, "rater2": labels}, "a.json").lines
    assert "16 labels of 8 items by 2 annotators" in named[0]
    counts = {f"t{n}": {"pos": n % 4, "neg": (n + 1) % 3} for n in range(8)}
    asked = message(tmp_path, counts, "a.json")
    assert pasted(asked) == {"votes_columns": "pos,neg"}
    assert (
        "21 votes on 8 items" in read(tmp_path, counts, "a.json", votes_columns="pos,neg").lines[0]
    )
    codes = {item: {f"rater{at}": at for at in range(3)} for item in labels}
    assert "24 labels of 8 items by 3 annotators" in read(tmp_path, codes, "a.json").lines[0]


def test_other_options_for_one_text_are_another_question(tmp_path: Path) -> None:
    def line(text: int, options: str, session: int) -> str:
        fields: dict[str, Any] = {"text": f"T{text}", "_input_hash": text, "answer": "accept"}
        fields |= {"options": [{"id": name} for name in options], "accept": [options[text % 2]]}
        return json.dumps({**fields, "_session_id": f"s{session}"})

    lines = [line(n, options, s) for n in range(4) for options in ("yn", "rb") for s in range(2)]
    shown = message(tmp_path, "\n".join(lines) + "\n", "a.jsonl")
    assert "n/y (2 values, 8 answers), b/r (2 values, 8 answers)" in shown
    chosen = read(tmp_path, "\n".join(lines) + "\n", "a.jsonl", question="n/y").lines
    assert "8 labels of 4 items by 2 annotators" in chosen[0]
    own = [line(n, ("yn", "rb")[n % 2], s) for n in range(4) for s in range(2)]
    one = read(tmp_path, "\n".join(own) + "\n", "a.jsonl").lines
    assert "8 labels of 4 items by 2 annotators" in one[0]
