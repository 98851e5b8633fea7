"""Whole commands in this process: what they write, what they reject, and how they end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from neucrowd_tf.declare import registration, registry
from tests.cases import cases

Printed = pytest.CaptureFixture[str]

Command = Callable[..., int]

RESULTS = ("predictions.csv", "annotators.csv", "evaluation.json")


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Command:
    """Runs the method `mean` on `tiny` in the folder `tmp_path`, unless flags say otherwise."""
    return lambda *items: command(
        "--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", *items
    )


def files(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def json_of(path: Path):
    return json.loads(path.read_text())


def _revision(repository: Path) -> str:
    """Returns the commit of a checkout, "unknown" without git."""
    command = ["git", "-C", str(repository), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def test_tree_and_columns(whole_command: Command, repository: Path, tmp_path: Path) -> None:
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}")
    assert whole_command(*flags, "--num_runs=2") == 0
    folder = tmp_path / "tiny" / "mean" / "seed-1"
    tree = {*RESULTS, "config.json", "metrics.json", "report.html", "tensorboard"}
    assert {item.name for item in folder.iterdir()} == tree
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(rows["seed"]) == [0, 1] and list(rows["status"]) == ["ok", "ok"]
    predictions = pd.read_csv(folder / "predictions.csv")
    assert list(predictions) == ["task", "true_label", "predicted", "p_no", "p_-yes"]
    assert predictions["task"][0] == "'=1+1" and len(predictions) == 10
    metrics, config = json_of(folder / "metrics.json"), json_of(folder / "config.json")
    right = (predictions["true_label"] == predictions["predicted"]).mean()
    assert rows["accuracy"][1] == pytest.approx(right) == metrics["test"]["accuracy"]
    assert metrics["validation"]["size"] == 10
    assert set(metrics["test"]["per_class"]) == {"no", "-yes"}
    assert config["parameters"] == {"fail": "", "seed": 1, "shift": 0.5}
    assert config["threads"]["blas"] == 1 and config["versions"]["tensorflow"]
    assert config["card"]["statistics"]["train_size"] == 40
    assert (config["git_revision"] or "unknown").startswith(_revision(repository))
    annotators = pd.read_csv(folder / "annotators.csv")
    assert list(annotators["annotator"]) == ["'@a", "b", "c", "idle"]
    assert list(annotators["num_labels"]) == [40, 40, 40, 0]

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    assert "test/accuracy" in events.Tags()["tensors"]


# --------------------------------------------------------------------- resuming


def test_a_finished_run_is_untouched(run: Command, tmp_path: Path, capsys: Printed) -> None:
    assert run() == 0
    before = files(tmp_path)
    for items, message in cases("""
[["--method=needs_ids,mean"], "contains a finished run. Choose another folder"],
[["--hparam=shift=0.1", "--resume"], "the run began with hparams: {}, now it is"],
[["--keep_annotations=0.5", "--resume"], "keep_annotations: None, now it is 0.5"]
"""):
        assert run(*items) == 2 and files(tmp_path) == before
        assert message in capsys.readouterr().err.splitlines()[-1]


def test_resume_skips_finished_runs_and_adds_the_others(run: Command, tiny, tmp_path: Path) -> None:
    assert run("--resume") == 0 and tiny.calls == 1
    before = files(tmp_path / "tiny")
    (tmp_path / "results.csv").unlink()  # a killed command may not have written it
    (tmp_path / "summary.csv").unlink()
    assert run("--num_runs=3", "--resume") == 0 and tiny.calls == 3
    after = files(tmp_path / "tiny")
    assert {name: after[name] for name in before} == before
    assert list(pd.read_csv(tmp_path / "results.csv")["seed"]) == [0, 1, 2]
    assert (tmp_path / "summary.csv").exists()


def test_runs_of_earlier_versions_are_resumed(
    run: Command, tmp_path: Path, capsys: Printed
) -> None:
    """They lack flags, and have null for others that have other defaults now."""
    assert run("--resume") == 0
    folder = tmp_path / "tiny" / "mean" / "seed-0"
    config = json_of(folder / "config.json")
    del config["settings"]["keep_annotations"]
    config["settings"] |= {"classes": None, "image_size": None, "model_annotator": []}
    (folder / "config.json").write_text(json.dumps(config))
    before = {name: (folder / name).read_bytes() for name in RESULTS}
    assert run("--resume") == 0
    assert {name: (folder / name).read_bytes() for name in RESULTS} == before
    (folder / "config.json").unlink()
    assert run("--resume") == 2
    assert f"{folder / 'config.json'}: no such file" in capsys.readouterr().err


def test_what_summary_csv_would_mix(run: Command, tmp_path: Path, capsys: Printed) -> None:
    """Folds of other numbers or settings, and methods on other training data."""
    folds = ("--evaluation=cv", "--folds=2", "--resume")
    assert run() == 0 == run(*folds)
    for items, name in (
        ((*folds, "--seed=1", "--hparam=shift=0.1"), "mean/seed-0/fold-0 has a run with other hpa"),
        (("--evaluation=cv", "--folds=3", "--seed=1"), "fold-0 has a run with other folds"),
        (("--method=oracle", "--flip_labels=0.3"), "mean/seed-0 has a run with other flip_labels"),
    ):
        assert run(*items) == 2
        assert name in capsys.readouterr().err
    assert run(*folds, "--seed=1", "--method=mean,oracle", "--hparam=oracle.shift=0.1") == 0


def test_a_moved_input_file_is_the_same_and_a_changed_one_is_not(
    run: Command, tmp_path: Path, capsys: Printed
) -> None:
    def table(folder: str, label: str = "x") -> list[str]:
        place = tmp_path / folder
        place.mkdir()
        labels = [f"{i},{w},{'xy'[i % 2]}\n" for i in range(8) for w in "ab"]
        labels[0] = f"0,a,{label}\n"
        (place / "a.csv").write_text("task,worker,label\n" + "".join(labels))
        (place / "f.csv").write_text("task,v\n" + "".join(f"{i},{i % 2}\n" for i in range(8)))
        files = [f"--annotations={place / 'a.csv'}", f"--features={place / 'f.csv'}"]
        return ["--dataset=table", "--resume", "--classes=x,y", *files]

    assert run(*table("one")) == 0 == run(*table("two"))
    assert run(*table("three", "y")) == 2
    assert "--annotations: the file has changed since the run" in capsys.readouterr().err


def test_half_written_runs(run: Command, tmp_path: Path) -> None:
    assert run() == 0
    folder = tmp_path / "tiny" / "mean" / "seed-0"
    whole = files(folder)
    (folder / "metrics.json").unlink()  # killed just before the end
    (folder / ".metrics.json.abc.part.json").write_text("{")
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "stale").write_text("x")
    assert run() == 0  # without --resume: from the beginning
    assert files(folder).keys() == whole.keys()
    assert all(files(folder)[name] == whole[name] for name in whole if name.endswith(".csv"))


# --------------------------------------------------------------------- runs that end otherwise


def test_a_method_that_cannot_run_is_skipped_among_several(
    run: Command, tmp_path: Path, capsys: Printed
) -> None:
    assert run("--dataset=tiny_votes", "--method=needs_ids,at_most_one,oracle,mean") == 0
    rows = pd.read_csv(tmp_path / "results.csv").set_index("method")
    skipped = dict.fromkeys(("needs_ids", "at_most_one", "oracle"), "skipped")
    assert dict(rows["status"]) == {**skipped, "mean": "ok"}
    assert rows.loc["needs_ids", "accuracy":"peak_memory_mb"].isna().all()
    assert "no identities" in capsys.readouterr().err
    folder = tmp_path / "tiny_votes"
    status = json_of(folder / "oracle" / "seed-0" / "status.json")
    assert status["status"] == "skipped" and "true labels" in status["reason"]
    assert not (folder / "needs_ids" / "seed-0" / "metrics.json").exists()


WRONG_FLAGS = """
--dataset=tiny_votes --method=needs_ids => no identities
--dataset=tiny_votes --method=at_most_one => at most 1 classes
--dataset=tiny_votes --method=oracle => true labels
--hparam=fail=usage => error: --hparam: fail: expected something else
--hparam=fail=value => error: --hparam: fail: expected nothing, received 'value'
--method=men => --method: no method is named 'men'. Did you mean mean
--dataset=tiny_vote => Did you mean tiny_votes or tiny?
--method=at_mozt => Did you mean at_most_one
--method=idz => Did you mean needs_ids?
--method=zzzzz => 'zzzzz'. --list shows all names.
--hparam=zzzzz=1 => These exist for mean: ensemble, fail, shift.
--hparam=shif=1 => These exist for mean: ensemble, fail, shift.
--hparam=seed=1 => use --seed
--hparam=oracle.shift=1 => oracle is not among --method
--dataset_option=rate=1 => --dataset_option=rate: not an option of tiny
"""


@pytest.mark.parametrize("line", WRONG_FLAGS.strip().splitlines())
def test_flags_that_cannot_be_used_leave_no_results(
    command: Command, tmp_path: Path, capsys: Printed, line: str
) -> None:
    items, message = line.split(" => ")
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path / 'out'}")
    assert command(*flags, *items.split()) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not {"results.csv", "metrics.json"} & {path.name for path in tmp_path.rglob("*")}


def test_a_failing_run_does_not_stop_the_others_and_is_tried_again(
    run: Command, tiny, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--method=broken,mean", "--num_runs=2") == 1
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(rows["status"]) == ["failed", "failed", "ok", "ok"]
    assert rows["accuracy"].isna().tolist() == [True, True, False, False]
    assert "failed: RuntimeError: it broke badly" in capsys.readouterr().err
    status = tmp_path / "tiny" / "broken" / "seed-0" / "status.json"
    assert "it broke" in "".join(json_of(status)["traceback"])
    monkeypatch.setitem(registration.METHODS, "broken", registry.Method("broken", tiny, "fixed"))
    assert run("--method=broken,mean", "--resume") == 0 and not status.exists()
    assert list(pd.read_csv(tmp_path / "results.csv")["status"]) == ["ok", "failed", "ok", "ok"]


def test_an_output_folder_that_is_a_file(run: Command, tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "file").write_text("mine")
    assert run(f"--output_dir={tmp_path / 'file' / 'out'}") == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / 'file'}" in error and error.count("\n") == 1


# --------------------------------------------------------------------- flags that change the data


def test_hyper_parameters_reach_the_methods_that_have_them(run: Command, tmp_path: Path) -> None:
    assert run("--method=mean,oracle", "--hparam=shift=0.7", "--hparam=oracle.shift=0.2") == 0
    folders = [tmp_path / "tiny" / method / "seed-0" for method in ("mean", "oracle")]
    parameters = [json_of(folder / "config.json")["parameters"] for folder in folders]
    assert [values["shift"] for values in parameters] == [0.7, 0.2]


def test_a_share_of_the_annotations_is_kept(run: Command, tmp_path: Path) -> None:
    # Three annotators label all of the 40 training instances, the fourth none of them.
    def labels(name: str, *items: str) -> list[int]:
        assert run(*items, f"--output_dir={tmp_path / name}") == 0
        path = tmp_path / name / "tiny" / "mean" / "seed-0" / "annotators.csv"
        return list(pd.read_csv(path)["num_labels"])

    assert labels("all") == [40, 40, 40, 0]
    half = labels("half", "--keep_annotations=0.5")
    assert sum(half) == 60 and max(half) < 40
    assert sum(labels("one", "--keep_annotations=0.1", "--keep_one")) == 40
    assert sum(labels("few", "--keep_annotations=0.1")) == 12


def test_cross_validation(run: Command, tmp_path: Path) -> None:
    flags = ("--evaluation=cv", "--folds=2", "--repeats=2")
    assert run(*flags) == 0
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(zip(rows["repeat"], rows["fold"], strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    folders = [tmp_path / "tiny" / "mean" / "seed-0" / f"fold-{k}" for k in range(4)]
    a, b, c, d = (set(pd.read_csv(folder / "predictions.csv")["task"]) for folder in folders)
    assert not a & b and a | b == c | d and len(a | b) == 40
    before = files(tmp_path / "tiny")
    assert run(*flags, "--resume") == 0 and files(tmp_path / "tiny") == before


def test_the_time_left_is_that_of_each_method(tmp_path: Path) -> None:
    from neucrowd_tf.cli.runs.execute import OK, Outcome
    from neucrowd_tf.cli.runs.options import Options
    from neucrowd_tf.cli.runs.runner import Pace
    from neucrowd_tf.cli.runs.work import RunKey, Work

    def work(method: str, seed: int) -> Work:
        return Work(RunKey("tiny", method, seed), {}, Options(output_dir=tmp_path))

    works = [work("mean", 0), work("oracle", 0), work("mean", 1), work("oracle", 1)]
    pace = Pace(works[:2], 2)
    pace.ended(works[0], Outcome(OK, {"timings": {"fit_seconds": 6.0}}))
    assert pace.left() == "time left not known yet"
    pace = Pace(works, 2)
    pace.ended(works[0], Outcome(OK, {"timings": {"fit_seconds": 6.0}}))
    assert pace.left() == "about 0 min left and 2 runs of other methods"
    pace.ended(works[1], Outcome(OK, {"timings": {"fit_seconds": 600.0, "tune_seconds": 600.0}}))
    assert pace.left() == "about 10 min left"  # two runs at a time
    pace.ended(works[3], Outcome("failed"))
    assert pace.left() == "about 0 min left"
