"""What is asked about tables of other shapes, and what the proposed command reads when pasted."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import pytest

from neucrowd_tf.io.column_names import is_gold, is_id, is_model
from neucrowd_tf.io.roles import RUNNING
from tests.io.reading import message, pasted, read, rows

YES = ("yes", "no")


def table(header: str, *columns, rows: int = 12) -> str:
    """A table; a text with {} has the row's number, a tuple of values and a period cycles."""
    lines = [header]
    for row in range(rows):
        cells = [
            column.format(row)
            if isinstance(column, str)
            else column[0][row // column[1] % len(column[0])]
            for column in columns
        ]
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


A, B, C, GOLD = (YES, 1), (YES, 2), (YES, 3), (YES, 4)
PIVOT = "\n".join(
    f"{i},{q},{v[i % 2]},{v[i // 2 % 2]}"
    for i in range(6)
    for q, v in (("tox", "tn"), ("mood", "+-"))
)


PASTED = tomllib.loads((Path(__file__).parent / "cases" / "proposed.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", PASTED)
def test_a_proposed_command_reads_the_table(name: str, tmp_path: Path) -> None:
    case = PASTED[name]
    table = PASTED[case.get("table_of", name)]["table"]
    file = case.get("file", "a.csv")
    shown = message(tmp_path, table, file, **case.get("given", {}))
    assert all(words in shown for words in case.get("words", ()))
    if "flags" not in case:
        assert "\n  neucrowd" not in shown
        return
    flags = dict(word[2:].split("=", 1) for word in shlex.split(case["flags"]))
    assert pasted(shown) == flags
    assert any(case["line"] in line for line in read(tmp_path, table, file, **flags).lines)


# Tables of judges, and their annotators and the models among them.
JUDGED = {
    "a person and a judge": (table("id,human,judge", "{}", A, B), "human, judge", "judge"),
    "with true labels": (table("id,human,judge,gold", "{}", A, B, C), "human, judge", "judge"),
    "a label and a judge": (
        table("id,label,llm_judge", "{}", A, B),
        "label, llm_judge",
        "llm_judge",
    ),
    "verdicts": (table("qid,verdict,gpt-4o", "{}", A, B), "verdict, gpt-4o", "gpt-4o"),
    "times": (table("id,timestamp,expert,claude", "{}", "{}", A, B), "expert, claude", "claude"),
}


@pytest.mark.parametrize("case", JUDGED)
def test_tables_of_judges_are_wide(case: str, tmp_path: Path) -> None:
    text, annotators, models = JUDGED[case]
    first, second = read(tmp_path, text).lines
    assert "wide table, 24 labels of 12 items by 2 annotators" in first
    assert f"Annotators: {annotators}." in second
    said = f"{models}. They count as people without --model_annotator={models}."
    assert said in second
    token = RUNNING.set(("aggregate", f"--model_annotator={models}"))
    assert said not in read(tmp_path, text).lines[1]
    RUNNING.reset(token)


@pytest.mark.parametrize(
    ("header", "item", "judge"),
    [
        ("id,response,claude_judge", "id", "claude_judge"),
        ("item,prompt,judge", "item", "judge"),
        ("id,question,gpt-4-judge", "id", "gpt-4-judge"),
    ],
)
def test_a_judge_beside_texts_is_one_annotator(
    header: str, item: str, judge: str, tmp_path: Path
) -> None:
    first, second = read(tmp_path, table(header, "q{}", "r{}", A)).lines
    assert f"wide table, 12 labels of 12 items by 1 annotator; item {item}" in first
    assert f"Annotators: {judge}." in second
    names = table(header, "q{}", "r{}", (("gpt-4", "claude"), 1))
    numbers = table("id,score,claude_judge", "q{}", "{}", A)
    models = table("id,response,model", "q{}", "r{}", A)
    for text in (names, numbers, models):
        assert "by 1 annotator" not in message(tmp_path, text)


def test_what_looks_like_a_table_of_judges_is_asked_about(tmp_path: Path) -> None:
    codes = table("id,annotator,answer_x", "{}", ((0, 1, 2), 1), ((0, 1), 2))
    assert "[missing_role]" in message(tmp_path, codes)
    answers = table("item,total,yes,no", "i{}", ((3, 2), 1), ((1, 2), 1), ((2, 0), 1))
    assert "--votes_columns=yes,no\n" in message(tmp_path, answers) + "\n"
    votes = table("id,total,good,bad", "{}", ((3, 2), 1), ((1, 2), 1), ((2, 0), 1))
    assert "[vote_counts]" in message(tmp_path, votes)


def test_questions_are_never_pooled(tmp_path: Path) -> None:
    text = f"item,question,ann,bob\n{PIVOT}\n"
    named = {"task_column": "item", "label_column": "ann,bob"}
    assert "[several_questions]" in message(tmp_path, text, **named)
    two = table("Timestamp,Username,T,U,V,W", "9:{}", "u{}", A, B, (("a", "b"), 1), (("a", "b"), 2))
    shown = message(tmp_path, two, worker_column="Username")
    assert "Groups: T,U; V,W. [which_label]" in shown
    assert "--worker_column=Username --label_column=T,U" in shown
    chosen = read(tmp_path, two, worker_column="Username", label_column="V,W")
    assert "24 labels of 2 items by 12 annotators" in chosen.lines[0]


def test_names_that_are_no_ids_and_no_models() -> None:
    assert not any(map(is_id, ("david", "Khalid", "ids2", "note", "A 1")))
    assert all(map(is_id, ("id", "page_id", "docID", "Ticket No", "column 1", "Unnamed: 0")))
    assert not any(map(is_model, ("A2AI9K", "Claudette", "remodel", "ann", "maid", "jai")))
    assert all(map(is_model, ("gpt-4o", "gpt4", "model sentiment-v2", "llm_judge", "judge1", "AI")))
    assert not any(map(is_gold, ("marigold", "truthful", "expert", "expert 2")))
    assert all(map(is_gold, ("ground_truth_label", "x-expert", "Gold Standard", "majority_vote")))


def test_no_candidate_is_hidden(tmp_path: Path) -> None:
    names = [f"f{at}" for at in range(40)]
    shown = message(tmp_path, table(",".join(names), *["v{}"] * 39, A))
    assert all(f" {name} " in shown for name in names)


def test_a_text_that_is_judged_is_no_label_and_a_comment_no_item(tmp_path: Path) -> None:
    pairs = [(i, who, "ab"[(i + j) % 2]) for i in range(8) for j, who in enumerate(("gpt", "ann"))]
    for text in ("id,response,judge,verdict\n", "id,response,judge,rating\n"):
        text += "".join(f"q{i},r{i},{who},{label}\n" for i, who, label in pairs)
        assert "16 labels of 8 items by 2 annotators" in read(tmp_path, text).lines[0]
        assert "classes: a (8), b (8)." in read(tmp_path, text).lines[1]
    text = "essay,comment,rater,score\n"
    text += "".join(f"e{i},{'good' if i % 3 else ''},{who},{label}\n" for i, who, label in pairs)
    assert "--task_column=essay --label_column=score" in message(tmp_path, text)
    means = table("id,ann,bob,Final score", "{}", (X := (1, 2), 1), (X, 2), ((1, 1, 2, 2), 1))
    assert "24 labels of 12 items by 2 annotators" in read(tmp_path, means).lines[0]


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
    return rows(f"item,annotator,{column},label", *cells)


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
    assert "40 labels of 10 items" in read(tmp_path, content, duplicates="last").lines[0]


def test_questions_with_classes_of_their_own_are_seen_by_them(tmp_path: Path) -> None:
    assert pasted(message(tmp_path, of_teams("group", "ynrb"))) == {"question": "group=s"}
    assert "40 labels of 10 items" in read(tmp_path, of_teams("group", "yn")).lines[0]
