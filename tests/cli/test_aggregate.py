"""The command that infers labels from labels alone."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from benchmarks.timing import simulated
from neucrowd_tf.aggregation import Consensus, DawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Calibration
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.cli.commands import aggregate, call
from neucrowd_tf.cli.commands.aggregate import annotators_csv
from neucrowd_tf.io.labels import read_annotations
from tests.io.importers.exports import label_studio

pytestmark = pytest.mark.usefixtures("inferred_once")

CSV = "task,worker,label\n" + "".join(
    f"{task},{worker},{label}\n"
    for task, row in {"a": "xxy", "b": "yyy", "c": "xyx", "007": "yy-"}.items()
    for worker, label in zip("uvw", row, strict=True)
    if label != "-"
)


@pytest.fixture
def labels_csv(tmp_path: Path) -> Path:
    path = tmp_path / "annotations.csv"
    path.write_text(CSV)
    return path


def test_labels_are_the_methods(labels_csv: Path, tmp_path: Path) -> None:
    output = tmp_path / "labels.csv"
    flags = [f"--annotations={labels_csv}", f"--output={output}"]
    crowd = read_annotations(labels_csv).annotations
    for more, model in (([], Consensus()), (["--method=dawid_skene"], DawidSkene())):
        assert call("aggregate", [*flags, *more]) == 0
        frame = pd.read_csv(output, dtype={"task": str})
        assert list(frame.columns) == ["task", "label", "probability", "num_labels", "num_tied"]
        assert frame["task"].tolist() == ["a", "b", "c", "007"]
        assert frame["label"].tolist() == crowd.class_names[model.fit(crowd).labels_].tolist()
        assert frame["num_labels"].tolist() == [3, 3, 3, 2]
        assert frame["probability"].between(0.5, 1).all()


def test_probabilities_by_hand(labels_csv: Path, cli) -> None:
    table = cli("aggregate", [f"--annotations={labels_csv}", "--method=majority_vote"]).out
    rows = [line.split(",") for line in table.splitlines()[1:]]
    # a: two of three x; b: all y; c: two of three x; 007: both y.
    assert [" ".join([*row[:2], row[3]]) for row in rows] == ["a x 3", "b y 3", "c x 3", "007 y 2"]
    # Of a: the posterior is 2/3, the smoothed vote share (2 + 1/2) / (3 + 1). Krippendorff's alpha
    # is 1 - (4 / 11) / (56 / 110), which is enough: nothing is lacking. 11 labels are of 4 items.
    weights = Calibration.learned("majority_vote").weights
    right = expit(weights @ [1, logit(2 / 3), logit(2.5 / 4), 0, np.log(11 / 4), 0])
    assert float(rows[0][2]) == pytest.approx(right)


def test_what_is_printed(labels_csv: Path, cli) -> None:
    lines = cli("aggregate", [f"--annotations={labels_csv}"]).err.splitlines()
    assert "method: consensus" in lines
    text = " ".join(lines)
    assert "expected accuracy of the labels: 0." in text and "4 items with labels" in text
    assert "cannot be seen without gold labels" in text


def test_annotators(labels_csv: Path) -> None:
    crowd = read_annotations(labels_csv).annotations
    inference = infer(crowd, "majority_vote")
    frame = pd.read_csv(io.StringIO(annotators_csv(inference))).set_index("annotator")
    # Majority: a x, b y, c x, 007 y. u gave x y x y (4 of 4), v x y y y (3 of 4), w y y x (2 of 3).
    assert frame["num_labels"].tolist() == [4, 4, 3]
    assert frame["skill"]["u"] > frame["skill"]["v"] > frame["skill"]["w"]
    assert (frame["skill_low"] <= frame["skill"]).all()
    assert (frame["skill"] <= frame["skill_high"]).all()
    assert set(frame["kind"]) == {"person"} and set(frame["note"]) == {"few labels"}
    # v gave x to a, y to the others: c_x_x is the share of a in the probability of x.
    chances = inference.probas[:, 0]
    assert frame["c_x_x"]["v"] == pytest.approx(chances[0] / chances.sum())
    assert_allclose(frame.filter(like="c_").to_numpy().reshape(3, 2, 2).sum(axis=2), 1.0)


def test_pairs_of_classes_with_one_header_have_a_column_each() -> None:
    names = ["a", "a_b", "c", "b_c"]
    crowd = Annotations.from_arrays(list("pqrs"), ["u"] * 4, names)
    lines = annotators_csv(infer(crowd, "majority_vote")).splitlines()
    assert [len(line.split(",")) for line in lines] == [7 + 16] * 2
    assert lines[0].split(",").count("c_a_b_c") == 2


def test_models(tmp_path: Path, cli) -> None:
    rng = default_rng(0)
    truth = rng.integers(2, size=120)
    right = rng.random((120, 6)) < [0.8, 0.8, 0.8, 0.8, 0.9, 0.9]
    right[:15, 4:] = False  # the models share mistakes
    dense = np.where(right, truth[:, None], 1 - truth[:, None])
    dense[60:, 5] = -1
    names = ["ann", "bob", "cy", "dan", "gpt", "llama"]
    crowd = Annotations.from_dense(dense, annotator_names=names)
    path, table = tmp_path / "a.csv", tmp_path / "r.csv"
    crowd.to_frame().to_csv(path, index=False)
    flags = [f"--annotations={path}", f"--output={tmp_path / 'l.csv'}", f"--annotators={table}"]
    printed = cli("aggregate", [*flags, "--model_annotator=gpt,llama"]).err
    frame = pd.read_csv(table).set_index("annotator")
    assert frame["kind"].tolist() == ["person"] * 4 + ["model"] * 2
    assert frame["winning_rate"].notna().tolist() == [False] * 4 + [True] * 2
    assert "model 'gpt': " in printed and "may replace human annotators" in printed
    assert "labels of a human annotator. It surely pays if" in printed
    shared = printed.partition("unlike the people's, in ")[2]
    assert int(shared.split()[0]) > float(shared.partition("items; ")[2].split()[0])
    crowd[:10].to_frame().to_csv(path, index=False)
    cli("aggregate", [*flags, "--model_annotator=gpt"])
    note = pd.read_csv(table).set_index("annotator")["note"]["gpt"]
    assert "no human annotator has 30 items" in note


def test_gold_labels_teach(labels_csv: Path, tmp_path: Path, cli, error) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\na,y\n")
    flags = [f"--annotations={labels_csv}", f"--gold={gold}"]
    assert cli("aggregate", flags).out.splitlines()[1].startswith("a,y,1,")
    for content, message in {
        "task,label\nz,y\n": "line 2: item 'z' is not one of the",
        "task,label\nz,\na,z\n": "line 3: label 'z' is not one of the classes",
        "name,label\na,y\n": "gold.csv: no item column",
        'task,label\na,y\n"b,x\n': "[broken_file]",
    }.items():
        gold.write_text(content)
        assert error(flags).count(message) == 1


@pytest.fixture
def error(cli) -> Callable[[list[str]], str]:
    """Returns the only line of a command that fails."""

    def printed(flags: list[str]) -> str:
        text: str = cli("aggregate", flags, 2).err
        assert text.count("error: ") == 1
        return text

    return printed


def test_one_line_and_exit_code_2(labels_csv: Path, tmp_path: Path, error) -> None:
    votes, broken = tmp_path / "votes.csv", label_studio(tmp_path)
    votes.write_text("task,votes_x,votes_y\na,2,1\nb,0,3\n")
    broken.write_text(broken.read_text()[:2000])
    of_votes = f"--annotations={votes} --method=majority_vote"
    for flags, message in {
        "": "--annotations",
        f"--annotations={labels_csv} --method=emm": "received 'emm'",
        f"--annotations={tmp_path}/none.csv": "no such file",
        f"--annotations={votes} --method=dawid_skene": f"{votes}: DawidSkene needs",
        f"{of_votes} --annotators={tmp_path}/a.csv": f"{votes}: --annotators",
        f"{of_votes} --annotators=-": "--annotators=-: --output writes to the same",
        f"--annotations={labels_csv} --engine=local --output=x --gold={votes}": "--gold: not avail",
        f"--annotations={labels_csv} --workers=2": "--workers: only with --engine",
        f"--annotations={labels_csv} --resume": "--resume: only with --engine",
        f"{of_votes} --bins=2": f"--bins: {votes} has vote counts",
        f"{of_votes} --multi_label=list": f"--multi_label: {votes} has vote counts",
        f"{of_votes} --model_annotator=a": f"{votes}: vote counts do not name annotators",
        f"--annotations={labels_csv} --multi_label=list --bins=2": "--bins: not with --multi_label",
        f"--annotations={tmp_path} --engine=local --output={tmp_path}/out": "would overwrite --an",
        f"--annotations={broken}": "ends early",
    }.items():
        assert message in error(flags.split())


def test_a_quick_start(labels_csv: Path, repository: Path, cli) -> None:
    # What takes a second and more to load is not there; skills' intervals alone need SciPy's.
    code = (
        "import sys; from neucrowd_tf.__main__ import main; main(sys.argv[1:]);"
        " heavy = ('tensorflow', 'keras', 'matplotlib', 'sklearn', 'scipy.stats');"
        " sys.exit(', '.join(name for name in heavy if name in sys.modules) or 0)"
    )
    flags = [f"--annotations={labels_csv}"]
    command = [sys.executable, "-c", code, "aggregate", *flags]
    done = subprocess.run(command, capture_output=True, cwd=repository, timeout=60, check=True)
    assert done.stdout == cli("aggregate", flags).out.encode()


TIE = "task,worker,label\nt1,a,cat\nt1,b,dog\nt2,a,cat\nt2,b,cat\nt3,a,dog\nt3,b,cat\n"


@pytest.mark.parametrize("method", ["majority_vote", "consensus", "glad", "dawid_skene"])
def test_three_way_ties(tmp_path: Path, method: str, cli) -> None:
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\nt,u,x\nt,v,y\nt,w,z\n")
    printed = cli("aggregate", [f"--annotations={path}", f"--method={method}"])
    *_, probability, labels, tied = printed.out.splitlines()[1].split(",")
    assert float(probability) <= 1 / 3 + 1e-9 and (labels, tied) == ("3", "3")
    assert "ties of equally probable classes: 1 of 1 labels" in printed.err


def test_ties(tmp_path: Path, cli) -> None:
    path, gold = tmp_path / "a.csv", tmp_path / "g.csv"
    path.write_text(TIE)
    flags = [f"--annotations={path}", "--method=majority_vote"]

    def labels(*more: str) -> list[list[str]]:
        return [line.split(",") for line in cli("aggregate", [*flags, *more]).out.splitlines()[1:]]

    first, second = labels("--seed=0"), labels("--seed=2")
    assert [row[4] for row in first] == ["2", "1", "2"]
    assert [first[0][2], first[2][2]] == ["0.5", "0.5"] and float(first[1][2]) > 0.5
    assert {first[0][1], second[0][1]} == {"cat", "dog"}
    for rule in ("first", "prior"):  # cat is the first class and has most votes
        assert [row[1] for row in labels(f"--ties={rule}")] == ["cat"] * 3
    assert labels("--ties=first", "--classes=dog,cat")[0][1] == "dog"
    assert labels("--ties=prior", "--classes=dog,cat")[0][1] == "cat"
    gold.write_text("task,label\nt1,dog\n")  # a gold label is no tie
    rows = labels("--ties=first", f"--gold={gold}")
    assert rows[0][1:3] + rows[0][4:] == ["dog", "1", "1"] and rows[2][4] == "2"
    parts = [*flags, "--ties=first", "--engine=local", f"--output={tmp_path / 'o'}"]
    assert "--ties: not available" in cli("aggregate", parts, 2).err


def test_ties_of_votes_alone_are_marked(tmp_path: Path, cli) -> None:
    path = tmp_path / "v.csv"
    path.write_text("item,votes_x,votes_y,votes_z\na,2,2,0\nb,1,1,1\nc,3,0,0\nd,2,1,1\n")
    table = cli("aggregate", [f"--annotations={path}", "--method=majority_vote"]).out
    frame = pd.read_csv(io.StringIO(table))
    assert frame["num_tied"].tolist() == [2, 3, 1, 1]
    assert (frame["probability"][:2] <= [1 / 2, 1 / 3]).all()


def test_tables_and_folders_by_parts_have_the_labels_of_one_file(tmp_path: Path, cli) -> None:
    crowd = simulated(60, 2, 4, classes=3)[2]
    frame, parts = crowd.to_frame(), tmp_path / "parts"
    parts.mkdir()
    frame.to_csv(tmp_path / "labels.csv", index=False)
    frame[:100].to_csv(parts / "1.csv", index=False)
    frame[100:].to_parquet(parts / "2.parquet", index=False)
    files = (tmp_path / "labels.csv", parts)
    whole, folder = (
        cli("aggregate", [f"--annotations={path}", "--method=dawid_skene"]).out for path in files
    )
    assert whole == folder
    flags = [f"--annotations={parts}", "--method=dawid_skene", "--engine=local"]
    by_parts = tmp_path / "engine.csv"
    cli("aggregate", [*flags, f"--output={by_parts}"])
    assert not by_parts.with_name("engine.csv.parts").exists()
    one = pd.read_csv(io.StringIO(whole), index_col="task").sort_index()
    other = pd.read_csv(by_parts, index_col="task").sort_index()
    pd.testing.assert_frame_equal(one, other, rtol=1e-6)
    cli("aggregate", [*flags[:2], f"--output={tmp_path / 'folder'}"])
    table = pd.read_parquet(tmp_path / "folder" / "labels").astype({"task": int})
    probabilities = table.set_index("task").sort_index()["probability"]
    assert_allclose(probabilities, one["probability"], rtol=1e-6)


def test_many_labels_are_read_by_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "MOST_ROWS", 3)
    table = tmp_path / "labels.csv"
    rows = [f"item-{item},{who},{'xy'[item % 2]}" for item in range(9) for who in "abc"]
    table.write_text("\n".join(["task,worker,label", *rows]) + "\n")
    fits = []
    monkeypatch.setattr(aggregate, "_fit", lambda flags, output: fits.append(output))
    monkeypatch.setattr(aggregate, "_csv_of_parts", lambda folder: ["task,label\n"])
    output = tmp_path / "out.csv"
    (tmp_path / "out.csv.parts").mkdir()
    flags = [f"--annotations={table}", f"--output={output}"]
    assert call("aggregate", flags) == 0
    assert fits == [tmp_path / "out.csv.parts"]
    assert call("aggregate", [*flags, f"--annotators={tmp_path / 'a.csv'}"]) == 0
    assert len(fits) == 1, "skills need all labels in memory"


def test_ids_with_apostrophes_stay_different(tmp_path: Path, cli) -> None:
    path = tmp_path / "a.csv"
    path.write_text("task,annotator,label\n=x,a,no\n=x,b,no\n'=x,a,yes\n'=x,b,yes\ny,a,no\n")
    shown = cli("aggregate", [f"--annotations={path}", "--method=majority_vote"]).out
    assert [row.split(",")[0] for row in shown.splitlines()[1:]] == ["'=x", "''=x", "y"]


def test_many_classes_are_stated_before_the_work(tmp_path: Path, cli, monkeypatch) -> None:
    monkeypatch.setattr("neucrowd_tf.cli.commands.reading.MOST_CELLS", 10_000)
    path = tmp_path / "many.csv"
    cells = [f"t{n},a{by},c{n // 2}" for n in range(120) for by in range(3)]
    path.write_text("\n".join(["task,annotator,label", *cells]) + "\n")
    shown = cli("aggregate", [f"--annotations={path}"], 2).err
    assert "60 classes x 60 x 3 annotators: confusion matrices of 10,800 cells" in shown


def test_labels_of_one_class_show_no_skill(tmp_path: Path, cli) -> None:
    path, annotators = tmp_path / "a.csv", tmp_path / "s.csv"
    path.write_text("task,worker,label\n" + "".join(f"t{i // 2},u{i % 2},x\n" for i in range(40)))
    cli("aggregate", [f"--annotations={path}", f"--annotators={annotators}"])
    assert annotators.read_text().splitlines()[1:] == [
        f"u{i},20,,0,1,one class only,person,1" for i in range(2)
    ]
