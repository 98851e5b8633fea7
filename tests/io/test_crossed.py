"""Wide tables whose columns are not one annotator each: questions in the names, one-hot classes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from neucrowd_tf.io.column_names import crossed
from tests.io.reading import message, read


def table(header: str, rows: list[str]) -> str:
    return "\n".join([header, *(f"d{at},{row}" for at, row in enumerate(rows))]) + "\n"


BITS = [",".join(bits) for bits in itertools.product("01", repeat=4)]


@pytest.mark.parametrize("item", ["item", "id", "doc"])
def test_questions_in_the_names_of_columns_are_not_pooled(item: str, tmp_path: Path) -> None:
    text = table(f"{item},ann_rude,bob_rude,ann_toxic,bob_toxic", BITS)
    shown = message(tmp_path, text)
    assert "[which_label]" in shown
    assert (
        f"If rude, toxic are questions: --task_column={item} --label_column=ann_rude,bob_rude\n"
        in (shown)
    )
    assert f"--task_column={item} --label_column=ann_rude,ann_toxic\n" in shown
    assert "If each column is an annotator: " in shown
    named = read(tmp_path, text, task_column=item, label_column="ann_rude,bob_rude")
    assert "32 labels of 16 items by 2 annotators" in named.lines[0]
    confident = message(tmp_path, table(f"{item},ann,ann_conf,bob,bob_conf", BITS))
    assert f"Those without the ending: --task_column={item} --label_column=ann,bob\n" in confident


def test_a_question_among_two_keeps_the_items(tmp_path: Path) -> None:
    rows = [
        f"{a},{b},{'xy'[int(c)]},{'xy'[int(d)]}" for a, b, c, d in (row.split(",") for row in BITS)
    ]
    shown = message(tmp_path, table("doc,ann_tone,bob_tone,ann_topic,bob_topic", rows))
    assert "--task_column=doc --label_column=ann_tone,bob_tone" in shown


def test_names_that_join_no_two_lists() -> None:
    for names in ("Rater 1,Rater 2,Rater 3", "ann,bob", "ann_1,ann_2,bob_1", "a_x,b_x", "_a,_b"):
        assert crossed(names.split(",")) is None
    assert crossed(["x-1", "x-2", "y-1", "y-2"]) == (["x", "y"], ["-1", "-2"])


def test_one_hot_classes_are_no_annotators(tmp_path: Path) -> None:
    rows = ["1,0,0", "0,1,0", "0,0,1", "0,1,0", "1,0,0", "0,0,1"]
    for item in ("item", "doc"):
        shown = message(tmp_path, table(f"{item},joy,anger,neutral", rows))
        assert "[vote_counts]" in shown and "--votes_columns=joy,anger,neutral" in shown
    people = table("item,ann,bob,cy", [*rows, "1,1,1", "1,1,1", "1,1,1"])
    assert "3 annotators" in read(tmp_path, people).lines[0]
    shown = message(tmp_path, table("item,joy,anger,neutral", [*rows, "1,1,0"]))
    assert "have high numbers in different rows" in shown
