"""The commands that draw items for gold labels and that merge new labels."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import simulation
from neucrowd_tf.cli.commands import call

CrowdFile = tuple[Path, np.ndarray]

Printed = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("inferred_once")

COLUMNS = ["task", "true_label", "consensus", "probability", "drawn"]
LABELS = "task,worker,label\na,u,x\na,v,x\nb,u,y\nb,v,x\nc,u,y\n"


@pytest.fixture
def crowd_csv(tmp_path: Path) -> CrowdFile:
    truth = default_rng(0).integers(3, size=200)
    matrices = simulation.confusion_annotators(15, 3, 0, accuracy=0.7)
    path = tmp_path / "annotations.csv"
    simulation.simulate(truth, matrices, 0, rates=0.2).to_frame().to_csv(path, index=False)
    return path, truth


def drawn(path: Path, *flags: str, tmp_path: Path) -> pd.DataFrame:
    output = tmp_path / "gold.csv"
    assert call("gold", [f"--annotations={path}", f"--output={output}", *flags]) == 0
    return pd.read_csv(output)


def test_random_items_by_seed(crowd_csv: CrowdFile, tmp_path: Path) -> None:
    path, _ = crowd_csv
    first, again, other = (
        drawn(path, "--size=30", f"--seed={seed}", tmp_path=tmp_path) for seed in (0, 0, 1)
    )
    assert list(first.columns) == COLUMNS
    assert len(set(first["task"])) == 30 and first["true_label"].isna().all()
    assert first.equals(again) and set(first["task"]) != set(other["task"])


@pytest.mark.parametrize(
    "content",
    [
        "task,true_label\nt1,x|y\nt9,x\n",
        "task,true_label\nt1 [x],yes\nt1 [y],yes\nt1 [z],no\n",
        "task,class,label\nt1,x,yes\nt1,y,yes\nt1,z,no\nt2,x,\n",
        "task,class\nt1,x|y\n",
    ],
)
def test_gold_labels_of_several_classes(content: str, tmp_path: Path, cli) -> None:
    labels, gold = tmp_path / "a.csv", tmp_path / "g.csv"
    labels.write_text("task,worker,label\nt1,a,x\nt1,b,x\nt2,a,y\nt2,b,x|z\n")
    gold.write_text(content)
    flags = [f"--annotations={labels}", "--multi_label=|", f"--gold={gold}"]
    printed = cli("aggregate", flags)
    assert printed.out.splitlines()[1:4] == ["t1,x,yes,1,2,1", "t1,y,yes,1,2,1", "t1,z,no,1,2,1"]
    assert "in 2 of 3 items" in printed.err
    gold.write_text("task,label\nt1,x|q\n")
    assert "label 'q' is not one of the classes x, y, z" in cli("aggregate", flags, 2).err


def test_doubtful_items_come_first_and_gold_ones_not_at_all(
    crowd_csv: CrowdFile, tmp_path: Path, capsys: Printed
) -> None:
    path, _ = crowd_csv
    doubtful = drawn(path, "--by=doubt", "--size=20", tmp_path=tmp_path)
    assert doubtful["probability"].is_monotonic_increasing
    assert "use --by=random" in capsys.readouterr().err
    labels = tmp_path / "labels.csv"
    assert call("aggregate", [f"--annotations={path}", f"--output={labels}"]) == 0
    frame = pd.read_csv(labels).set_index("task")
    assert doubtful["probability"].max() == pytest.approx(
        frame["probability"].sort_values().iloc[19]
    )
    assert doubtful["consensus"].tolist() == frame["label"][doubtful["task"]].tolist()
    certain = tmp_path / "known.csv"
    doubtful.assign(true_label=doubtful["consensus"]).to_csv(certain, index=False)
    rest = drawn(path, "--by=doubt", "--size=500", f"--gold={certain}", tmp_path=tmp_path)
    assert len(rest) == 180 and not set(rest["task"]) & set(doubtful["task"])


def test_filled_in_they_are_gold_labels(
    crowd_csv: CrowdFile, tmp_path: Path, capsys: Printed
) -> None:
    path, truth = crowd_csv
    frame = drawn(path, "--size=50", tmp_path=tmp_path)
    frame["true_label"] = truth[frame["task"]].astype(float)  # as pandas writes beside blanks
    frame.loc[0, "true_label"] = (truth[frame["task"][0]] + 1) % 3  # never contradicted
    filled, labels = tmp_path / "filled.csv", tmp_path / "labels.csv"
    frame.to_csv(filled, index=False)
    flags = [f"--annotations={path}", f"--gold={filled}", f"--output={labels}"]
    assert call("aggregate", flags) == 0
    result = pd.read_csv(labels).set_index("task").loc[frame["task"]]
    assert result["label"].tolist() == frame["true_label"].tolist()
    assert (result["probability"] == 1).all()
    message = capsys.readouterr().err
    assert "of 50 items:" in message and "if the gold items were drawn at random" in message
    assert "Class shares: 0 0." in message


@pytest.fixture
def merge(tmp_path: Path, cli):
    """Merges a table with the labels above; returns the rows of the result and what is said."""

    def merged(labels: str, new: str, *flags: str) -> tuple[list[str], str]:
        old, more, output = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
        old.write_text(labels)
        more.write_text(new)
        files = [f"--annotations={old}", f"--labels={more}", f"--output={output}"]
        message = cli("merge", [*files, *flags]).err
        return output.read_text().splitlines()[1:], message

    return merged


def test_merged_by_hand(merge) -> None:
    new = "a,u,1,.1,r,y\nb,u,2,.1,r,y\nc,v,3,.1,r,\nc,w,4,.1,r,y\n"
    rows, message = merge(LABELS, f"task,worker,priority,gain,reason,label\n{new}")
    assert " ".join(rows) == "a,u,y a,v,x b,u,y b,v,x c,u,y c,w,y"
    assert "5 labels and 3 new ones: 1 added, 1 replaced, 1 equal to earlier ones; 6" in message
    assert "1 annotator is new: 'w'. Check its spelling." in message


BESIDE = [
    ("t,w,1.0", "t,v,skip", "t,w,1.0 t,v,skip", ""),  # numbers stay as they are beside a text
    ("t,w,2.0", "t,v,3.0", "t,w,2 t,v,3", ""),
    ("@t,-w,x", "'@t,'-w,y", "@t,-w,y", ""),  # as the commands write names
    ("t,w,1\nu,w,10", "u,v,3", "t,w,1 to 5.5 u,w,5.5 to 10 u,v,1 to 5.5", "--bins=2"),
    ("t,w,x|y", "u,v,x", "t,x,w,yes t,y,w,yes u,x,v,yes u,y,v,no", "--multi_label=|"),
    ("t,w,x|y", "t [y],v,no", "t,x,w,yes t,y,w,yes t,y,v,no", "--multi_label=|"),
    ("t,w,x\nt,w,y", "u,w,x", "t,w,x t,w,y u,w,x", "--duplicates=all"),
]


@pytest.mark.parametrize(("labels", "new", "merged", "flag"), BESIDE)
def test_two_files_are_read_as_one(merge, labels: str, new: str, merged: str, flag: str) -> None:
    head = "task,worker,label\n"
    rows, _ = merge(f"{head}{labels}\n", f"{head}{new}\n", *filter(None, [flag]))
    assert " ".join(rows) == merged


def test_a_second_file_has_a_layout_of_its_own(merge) -> None:
    """Neither the first one's question nor its want of a header is asked of it."""
    roles = ["--task_column=1", "--worker_column=2", "--label_column=3", "--header=none"]
    first = "".join(LABELS.splitlines(keepends=True)[1:])
    assert merge(first, "a,w,y\nb,w,y\n", *roles)[0][-1] == "b,w,y"
    assert merge(first, "task,worker,label\na,w,y\n", *roles)[0][-1] == "a,w,y"
    asked = LABELS.replace("\n", ",q\n").replace("label,q", "label,on")
    assert merge(asked, "task,worker,label\na,w,y\n", "--question=on=q")[0][-1] == "a,w,y"


def test_names_and_questions_that_do_not_go_together(tmp_path: Path, cli) -> None:
    old = tmp_path / "a.csv"
    new = tmp_path / "b.csv"
    flags = [f"--annotations={old}", f"--labels={new}"]
    old.write_text("task,worker,label\na,u,Yes\nb,w,no\n")
    for row in ("a,v,yes", "a,U,no"):
        new.write_text(f"task,worker,label\n{row}\n")
        assert "differ only in case" in cli("merge", flags, 2).err
    old.write_text("task,worker,label\na,u,x|y\n")
    new.write_text("task,worker,label\nc [x],u,yes\n")
    shown = cli("merge", [*flags, "--multi_label=|"], 2).err
    assert "item 'c [x]' is not one of the 2 items of the labels. Write it as a [x]" in shown


def test_labels_that_are_not_filled_in_are_not_merged(tmp_path: Path, cli) -> None:
    (tmp_path / "a.csv").write_text(LABELS)
    new = tmp_path / "relabel.csv"
    new.write_text("task,annotator,priority,gain,reason,label\na,u,1,.1,r,\na,v,2,.2,r,\n")
    flags = [f"--annotations={tmp_path}/a.csv", f"--labels={new}"]
    assert "would overwrite --labels" in cli("merge", [*flags, f"--output={new}"], 2).err
    message = cli("merge", flags, 2).err
    assert f"{new}: there are no labels; fill in the column 'label', it is empty" in message


def test_one_judges_column_is_merged(merge) -> None:
    assert merge(LABELS, "task,judge\na,x\nb,y\n")[0][-2:] == ["a,judge,x", "b,judge,y"]


def test_columns_of_the_first_file_need_not_be_those_of_the_second(merge) -> None:
    old = LABELS.replace("task,worker,label", "doc;who;what").replace(",", ";")
    columns = ["--task_column=doc", "--worker_column=who", "--label_column=what", "--separator=;"]
    assert merge(old, "task,worker,label\na,u,y\n", *columns)[0][0] == "a,u,y"


def test_gold_items_that_are_not_a_random_draw_are_said(tmp_path: Path, capsys: Printed) -> None:
    path, gold = tmp_path / "a.csv", tmp_path / "gold.csv"
    path.write_text(LABELS)
    words = "gold.csv: items were drawn by doubt, not at random: accuracy and class shares are"
    for by in ("random", "doubt"):
        gold.write_text(f"task,true_label,drawn\na,x,{by}\n")
        call("aggregate", [f"--annotations={path}", f"--gold={gold}", "--method=majority_vote"])
        assert (words in capsys.readouterr().err) == (by == "doubt")


def test_vote_counts_cannot_be_merged(tmp_path: Path, cli) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("task,votes_x,votes_y\na,2,1\nb,0,3\n")
    shown = cli("merge", [f"--annotations={votes}", f"--labels={votes}"], 2).err
    assert "vote counts do not name annotators" in shown
    assert "--annotations is missing" in cli("gold", [], 2).err


# The judge's labels are a column beside people's, one label per item.
JUDGED = "photo,rater,verdict,gpt_judge\n" + "".join(
    f"p{item},r{rater},{'yn'[(item + (rater == item % 3)) % 2]},{'yn'[item % 2]}\n"
    for item in range(12)
    for rater in range(3)
)
ROLES = ["--task_column=photo", "--worker_column=rater", "--label_column=verdict"]


def pasted(error: str) -> list[list[str]]:
    """Returns the commands of an error, as a shell would split them, without `neucrowd`."""
    return [shlex.split(line)[1:] for line in error.splitlines() if line.startswith("  neucrowd ")]


def test_a_models_column_becomes_an_annotator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli
) -> None:
    """The error of a command has the commands that work."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(JUDGED)
    flags = ["--annotations=a.csv", *ROLES]
    for pattern in ("gpt_judge", "gpt-*", "llm"):
        named = [*flags, "--output=labels.csv", f"--model_annotator={pattern}"]
        commands = pasted(cli("aggregate", named, 2).err)
        assert [command for command, *_ in commands] == ["merge", "aggregate"]
    for command, *rest in commands:
        assert call(command, rest) == 0
    merged = pd.read_csv("a.merged.csv")
    judge = merged[merged["annotator"] == "gpt_judge"].set_index("task")["label"]
    assert len(merged) == 48 and judge.to_dict() == {f"p{i}": "yn"[i % 2] for i in range(12)}
    shown = cli("aggregate", ["--annotations=a.merged.csv", "--model_annotator=gpt-*"], 2).err
    assert "'gpt-*'. Did you mean gpt_judge?" in shown


def test_merge_asks_about_a_column_of_classes_if_no_label_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(JUDGED)
    flags = ["--annotations=a.csv", *ROLES, "--output=all.csv"]
    ((command, *rest),) = pasted(cli("merge", [*flags, "--labels=a.csv"], 2).err)
    assert call(command, rest) == 0
    notes = cli("merge", [*flags, "--annotator_columns=gpt_*"]).err
    assert "48 labels in all" in notes and "spelling" not in notes
    assert "--labels: required" in cli("merge", flags, 2).err
    two = "item 'p0' has another label by annotator 'verdict'"
    assert two in cli("merge", [*flags, "--annotator_columns=verdict"], 2).err
    Path("a.csv").write_text(JUDGED.replace("gpt_judge", "gold"))
    assert "0 added" in cli("merge", [*flags, "--labels=a.csv"]).err


def test_a_judge_is_no_second_column_of_annotators(tmp_path: Path, cli) -> None:
    path = tmp_path / "a.csv"
    path.write_text(JUDGED.replace("gpt_judge", "judge").replace("photo", "item"))
    (command,) = pasted(cli("aggregate", [f"--annotations={path}"], 2).err)
    assert command[-1] == "--worker_column=rater"
