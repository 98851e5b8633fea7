"""Files that were once read or proposed wrongly: what is read, asked, rejected or written now."""

from __future__ import annotations

import bz2
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from neucrowd_tf.cli.commands import call
from tests.io.test_shapes import LONG, NAMED, PAIRED, PEOPLE, SCORES, VOTED, message, pasted, read
from tests.io.test_shapes import rows as table

BY = ["u1", "u2", "u3"]
RECORDS = [{"id": f"r{n}", "text": f"text {n}", "labels": list("ynn"), "annotators": BY}
           for n in range(4)]  # fmt: skip
SURVEY = table(
    "Respondent ID,Collector ID,Is text 1 rude?,Is text 2 rude?",
    ",,Response,Response",
    *(f"{100 + r},9,{'yn'[r % 2]},{'yn'[r // 2 % 2]}" for r in range(6)),
)
QUESTIONS = "Is text 1 rude?,Is text 2 rude?"
FLAT = [{"id": n, "text": "t", "topics": {"choices": ["a", "b"]} if by else "a", "annotator": by,
         "annotation_id": 2 * n + by} for n in range(3) for by in range(2)]  # fmt: skip
RANKED = [{"id": n, "fields": {}, "responses": {"rank": [
    {"value": order, "user_id": f"u{by}"} for by, order in enumerate((["a", "b"], ["b", "a"]))
]}} for n in range(3)]  # fmt: skip
EMPTY = table(
    "Participant Private ID,stimulus,Response,ANSWER",
    *(f"{p},s{s},{'yn'[(p + s) % 2]}," for p in range(3) for s in range(5)),
)
FRAME = {"task": {"0": 1, "1": 1}, "annotator": {"0": "a", "1": "b"}, "label": {"0": "x", "1": "y"}}
SCORED = {"task_column": "traceId", "worker_column": "authorUserId", "label_column": "value"}
COMMENTS = "# exported\n# by a tool\ntask,annotator,label\n1,a,x\n"
COMMAS = table("Item;Rater;Score", "0;a;2,5", "0;b;1,0", "1;a;2,5", "1;b;1,0")

# What is asked: the content, its ending, flags, words of the message, and the flags it proposes.
ASKED: dict[str, tuple[Any, str, dict[str, str], str, dict[str, str] | None]] = {
    "demographics": (PEOPLE, "csv", {}, "no annotator and label", {"worker_column": "user_id"}),
    "demographics by flags": (
        PEOPLE, "csv", {"label_column": "work,school"}, "the table is not wide", None
    ),
    "judge_scores": (
        SCORES, "csv", {}, "model tells their rows apart", {"task_column": "question,model"}
    ),
    "pairwise": (
        PAIRED, "csv", {"label_column": "winner"}, "have several labels",
        {"task_column": "question_id,model_a,model_b,turn", "label_column": "winner"},
    ),
    "scores_by_name": (
        NAMED, "csv", {}, "name",
        {"task_column": "traceId", "worker_column": "authorUserId", "question": "name=correct"},
    ),
    "scores_by_name by flags": (
        NAMED, "csv", SCORED, "name tells their rows apart", {**SCORED, "question": "name=correct"}
    ),
    "user_column": (
        VOTED, "csv", {}, "no annotator", {"worker_column": "user", "label_column": "mood:::*"}
    ),
    "two_headers": (SURVEY, "csv", {}, "Respondent ID 6", {"worker_column": "Respondent ID"}),
    "ls_min": (FLAT, "json", {"label_column": "topics"}, "with --multi_label=list.", None),
    "ranking": (RANKED, "json", {}, "an order of all of a, b (a ranking)", None),
    "ranking by flags": (
        RANKED, "json", {"multi_label": "list"}, "an order of all of a, b (a ranking)", None
    ),
    "empty_alias": (
        EMPTY, "csv", {}, "no item and annotator column",
        {"task_column": "stimulus", "worker_column": "Participant Private ID"},
    ),
    "comments": (COMMENTS, "csv", {}, "lines 1 to 2: these are comments", None),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_what_is_asked(case: str, tmp_path: Path) -> None:
    content, end, flags, words, proposal = ASKED[case]
    shown = message(tmp_path, content, f"a.{end}", **flags)
    assert words in shown
    assert proposal is None or pasted(shown) == proposal
    assert proposal is not None or "\n  neucrowd" not in shown


READ: dict[str, tuple[Any, str, dict[str, str], str]] = {
    "ls_min of lists": (
        FLAT, "json", {"label_column": "topics", "multi_label": "list"}, "6 labels of 3 items"
    ),
    "two_headers by flags": (SURVEY, "csv", {"label_column": QUESTIONS}, "12 labels of 6 items"),
    "frame": (FRAME, "json", {}, "2 labels of 1 item by 2 annotators"),
    "packed": (bz2.compress(LONG), "csv.bz2", {}, "4 labels of 2 items by 2 annotators"),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_what_is_read(case: str, tmp_path: Path) -> None:
    content, end, flags, words = READ[case]
    assert words in read(tmp_path, content, f"a.{end}", **flags).lines[0]


@pytest.mark.parametrize("flags", [{}, {"task_column": "id"}])
def test_lists_in_parquet_are_read_as_in_json(flags: dict[str, str], tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    from neucrowd_tf.io.labels import read_annotations
    from neucrowd_tf.io.schema import TableOptions

    pq.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "a.parquet")
    lines: list[str] = []
    crowd = read_annotations(tmp_path / "a.parquet", TableOptions.of(**flags), report=lines.append)
    assert crowd.annotations.annotator_names.tolist() == BY
    assert "12 labels of 4 items by 3 annotators" in lines[0]


def run(folder: Path, content: str, name: str, *flags: str) -> int:
    (folder / name).write_text(content)
    output = () if any(flag.startswith("--output") for flag in flags) else ("--output=out.csv",)
    return call("aggregate", [f"--annotations={folder / name}", *flags, *output])


TIE = table("task,annotator,label", *(f"t,a{n},{'xy'[n % 2]}" for n in range(10)))


@pytest.mark.parametrize("flags", [(), ("--seed=3",), ("--method=dawid_skene",)])
def test_a_tie_is_said(flags: tuple[str, ...], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for content in (TIE, TIE.replace(",x", ",z").replace(",y", ",x").replace(",z", ",y")):
        assert run(tmp_path, content, "tie.csv", *flags) == 0
        labels = pd.read_csv("out.csv")
        assert labels[["probability", "num_labels", "num_tied"]].to_numpy().tolist() == [
            [0.5, 10, 2]
        ]


def test_commas_are_decimal_for_a_scale_of_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(COMMAS)
    output = tmp_path / "x.html"
    flags = [f"--annotations={tmp_path / 'a.csv'}", "--scale=interval", f"--output={output}"]
    assert call("report", flags) == 0 and output.exists()


def test_ids_with_apostrophes_stay_different(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    ids = {"=x": "no", "'=x": "yes", "y": "no"}
    content = table(
        "task,annotator,label", *(f"{i},a{n},{x}" for i, x in ids.items() for n in "ab")
    )
    assert run(tmp_path, content, "a.csv", "--method=majority_vote") == 0
    assert pd.read_csv("out.csv")["task"].tolist() == ["'=x", "''=x", "y"]


def test_many_classes_are_stated_before_the_work(
    tmp_path: Path, monkeypatch: Any, cli: Any
) -> None:
    monkeypatch.setattr("neucrowd_tf.cli.commands.reading.MOST_CELLS", 10_000)
    cells = [f"t{n},a{by},c{n // 2}" for n in range(120) for by in range(3)]
    path = tmp_path / "many.csv"
    path.write_text(table("task,annotator,label", *cells))
    shown = cli("aggregate", [f"--annotations={path}"], 2).err
    assert "60 classes x 60 x 3 annotators: confusion matrices of 10,800 cells" in shown


def test_a_link_stays_and_the_systems_own_files_are_refused(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "tie.csv").write_text(TIE)
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    flags = [f"--annotations={tmp_path / 'tie.csv'}", "--method=majority_vote"]
    assert call("aggregate", [*flags, f"--output={tmp_path / 'link.csv'}"]) == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("task,label")


def test_outputs_that_are_the_systems_are_refused() -> None:
    from neucrowd_tf.io.files.atomic import resolved

    for path in ("/dev/stdout", "/proc/self/fd/1", "/dev/null"):
        with pytest.raises(OSError, match="this is the system's"):
            resolved(path)
