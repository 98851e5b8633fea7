"""Whole commands in this process: what they write, what they refuse, and how they end."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from neucrowd_tf import registry
from neucrowd_tf.harness import cli
from neucrowd_tf.harness.run_folder import RunFolder

Command = Callable[..., int]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_tree_and_columns(whole_command: Command, tmp_path: Path) -> None:
    assert (
        whole_command("--dataset=tiny", "--method=mean", "--num_runs=2", f"--output_dir={tmp_path}")
        == 0
    )
    run = tmp_path / "tiny" / "mean" / "seed-1"
    files = {
        "config.json",
        "metrics.json",
        "evaluation.json",
        "predictions.csv",
        "annotators.csv",
        "report.html",
        "tensorboard",
    }
    assert {item.name for item in run.iterdir()} == files
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(rows["seed"]) == [0, 1] and list(rows["status"]) == ["ok", "ok"]
    predictions = pd.read_csv(run / "predictions.csv")
    assert (
        list(predictions) == ["task", "label", "predicted", "p_no", "p_-yes"]
        and predictions["task"][0] == "'=1+1"
        and len(predictions) == 10
    )
    metrics = json.loads((run / "metrics.json").read_text())
    assert rows["accuracy"][1] == pytest.approx(
        (predictions["label"] == predictions["predicted"]).mean()
    )
    assert (
        rows["accuracy"][1] == pytest.approx(metrics["test"]["accuracy"])
        and metrics["validation"]["size"] == 10
    )
    assert set(metrics["test"]["per_class"]) == {"no", "-yes"}
    config = json.loads((run / "config.json").read_text())
    assert (
        config["parameters"] == {"fail": "", "seed": 1, "shift": 0.5}
        and config["threads"]["blas"] == 1
    )
    assert config["card"]["statistics"]["train_size"] == 40 and config["versions"]["tensorflow"]
    annotators = pd.read_csv(run / "annotators.csv")
    assert list(annotators["annotator"]) == ["'@a", "b", "c", "idle"] and list(
        annotators["num_labels"]
    ) == [40, 40, 40, 0]
    assert list((run / "tensorboard").iterdir())


def test_the_table_and_the_places_are_printed(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}")
    out = capsys.readouterr().out
    assert (
        "accuracy" in out
        and f"tensorboard --logdir {tmp_path}" in out
        and str(tmp_path / "summary.csv") in out
    )


def test_tensorboard_has_test_figures_and_hyper_parameters(
    whole_command: Command, tmp_path: Path
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2

    whole_command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}")
    events = EventAccumulator(str(tmp_path / "tiny" / "mean" / "seed-0" / "tensorboard"))
    events.Reload()
    assert "test/accuracy" in events.Tags()["tensors"]
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    found = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    assert found["shift"].number_value == 0.5


def test_same_seed_same_bytes(command: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        command("--dataset=tiny", "--method=mean,oracle", f"--output_dir={tmp_path / name}")
    for method in ("mean", "oracle"):
        first, second = (tmp_path / name / "tiny" / method / "seed-0" for name in ("a", "b"))
        for name in ("predictions.csv", "annotators.csv"):
            assert (first / name).read_bytes() == (second / name).read_bytes()
        one, two = (json.loads((folder / "metrics.json").read_text()) for folder in (first, second))
        assert one.pop("timings") and two.pop("timings") and one == two


def test_a_finished_run_is_refused_and_untouched(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}") == 0
    before = files(tmp_path)
    assert command("--dataset=tiny", "--method=needs_ids,mean", f"--output_dir={tmp_path}") == 2
    assert files(tmp_path) == before
    assert "holds a finished run" in capsys.readouterr().err


def test_resume_skips_finished_runs_and_adds_the_others(
    command: Command, tiny: Any, tmp_path: Path
) -> None:
    assert (
        command("--dataset=tiny", "--method=mean", "--resume", f"--output_dir={tmp_path}") == 0
    )  # on nothing: afresh
    before = files(tmp_path / "tiny")
    assert tiny.calls == 1
    assert (
        command(
            "--dataset=tiny",
            "--method=mean",
            "--num_runs=3",
            "--resume",
            f"--output_dir={tmp_path}",
        )
        == 0
    )
    assert tiny.calls == 3
    after = files(tmp_path / "tiny")
    assert {name: after[name] for name in before} == before
    assert list(pd.read_csv(tmp_path / "results.csv")["seed"]) == [0, 1, 2]


def test_resume_with_other_settings_is_refused(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}") == 0
    assert (
        command(
            "--dataset=tiny",
            "--method=mean",
            "--hparam=shift=0.1",
            "--resume",
            f"--output_dir={tmp_path}",
        )
        == 2
    )
    error = capsys.readouterr().err
    assert "hparams: {}" in error and "or remove this folder" in error


def test_what_is_read_is_not_written(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "out" / "table" / "mv_lr" / "seed-0"
    (run / "checkpoints").mkdir(parents=True)
    (tmp_path / "a.csv").write_text("task,worker,label\n1,a,x\n")
    for name in (
        "summary.csv",
        "table/mv_lr/seed-0/annotators.csv",
        "table/mv_lr/seed-0/checkpoints/a",
    ):
        file = tmp_path / "out" / name
        file.write_text("task,x\n1,2\n")
        flags = [f"--features={file}", f"--annotations={tmp_path / 'a.csv'}"]
        assert (
            command("--dataset=table", "--method=mv_lr", *flags, f"--output_dir={tmp_path / 'out'}")
            == 2
        )
        error = capsys.readouterr().err
        assert error.startswith("error: --output_dir: ") and "--features" in error
        assert file.read_text() == "task,x\n1,2\n"
        file.unlink()
    flags = [f"--images={tmp_path}", f"--annotations={tmp_path / 'a.csv'}"]
    assert (
        command("--dataset=table", "--method=mv_lr", *flags, f"--output_dir={tmp_path / 'out'}")
        == 2
    )
    assert "outside of --images's folder" in capsys.readouterr().err


def test_a_run_from_before_a_flag_was_there_goes_on_with_it_off(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", "--resume")
    assert command(*flags) == 0
    path = tmp_path / "tiny" / "mean" / "seed-0" / "config.json"
    config = json.loads(path.read_text())
    del config["settings"]["keep_annotations"]
    path.write_text(json.dumps(config))
    assert command(*flags) == 0
    assert command(*flags, "--keep_annotations=0.5") == 2
    assert "keep_annotations: None" in capsys.readouterr().err
    path.unlink()  # nobody knows then what the metrics are of
    assert command(*flags) == 2
    assert f"{path}: no such file" in capsys.readouterr().err


RESULTS = ("predictions.csv", "annotators.csv", "evaluation.json")


def test_damaged_results_are_made_again(command: Command, tmp_path: Path) -> None:
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", "--resume")
    assert command(*flags) == 0
    run = tmp_path / "tiny" / "mean" / "seed-0"
    whole = {name: (run / name).read_bytes() for name in RESULTS}
    for name, before in whole.items():
        half, line = before[: len(before) // 2 + 1], b"".join(before.splitlines(True)[:-1])
        for damaged in (half, line, b"", b"name,price\n", b"[]", b"\xff\xfe\0"):
            (run / name).write_bytes(damaged)
            assert command(*flags) == 0 and (run / name).read_bytes() == before
        (run / name).unlink()
        assert command(*flags) == 0 and (run / name).read_bytes() == before
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["predictions_digest"] = metrics.pop("digests")["predictions.csv"]
    (run / "metrics.json").write_text(json.dumps(metrics))  # as earlier versions wrote them
    for name in RESULTS[:2]:
        (run / name).write_bytes(b"\xff\xfe\0")
        assert command(*flags) == 0 and (run / name).read_bytes() == whole[name]


def test_another_report_is_made_again(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", "--resume")
    assert command(*flags, "--report", "--seed=1") == 0 == command(*flags, "--report")
    run = tmp_path / "tiny" / "mean" / "seed-0"
    path, whole = run / "report.html", files(run)
    others = (run.parent / "seed-1" / "report.html").read_bytes()
    before = path.read_bytes()
    for content in (others, before[:-99], b"mine", b""):
        path.write_bytes(content)
        assert command(*flags) == 0 and path.read_bytes() == content  # --noreport
        capsys.readouterr()
        assert command(*flags, "--report") == 0 and path.read_bytes() == before
        assert f"{path}: expected this run's report" in capsys.readouterr().err
        assert command(*flags, "--report") == 0
        assert "expected this run's report" not in capsys.readouterr().err and files(run) == whole
    path.unlink()
    path.mkdir()
    assert command(*flags, "--report") == 0
    assert "no report.html was written" in capsys.readouterr().err


def test_results_that_come_out_otherwise_are_told(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", "--resume")
    assert command(*flags) == 0
    path = tmp_path / "tiny" / "mean" / "seed-0" / "metrics.json"
    metrics = json.loads(path.read_text())
    metrics["digests"]["annotators.csv"] = "0" * 64
    path.write_text(json.dumps(metrics))
    assert command(*flags) == 0
    assert "annotators.csv: expected, made again, what the run wrote" in capsys.readouterr().err
    path.unlink()
    assert command(*flags) == 0 and json.loads(path.read_text())["digests"] != metrics["digests"]


@pytest.mark.parametrize("name", ["metrics.json", "config.json"])
def test_damaged_files_of_a_run_say_what_to_do(
    command: Command, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", "--resume")
    assert command(*flags) == 0
    path = tmp_path / "tiny" / "mean" / "seed-0" / name
    before = path.read_bytes()
    remedy = {"metrics.json": "remove it to make the run again", "config.json": "remove the folder"}
    damages = (before[:50], b"", b"[]", b"a,b\n1,2\n", b'{"digests": {"../x": ""}}', b"\xff\xfe\0")
    for content in damages:
        path.write_bytes(content)
        capsys.readouterr()
        assert command(*flags) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: {path}: expected ") and error.count("\n") == 1
        assert remedy[name] in error
    path.unlink()
    os.mkfifo(path)
    assert command(*flags) == 2
    error = capsys.readouterr().err
    assert f"{path}, received a pipe or a device; remove it" in error and error.count("\n") == 1


def test_another_page_called_summary_is_refused(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", "--resume")
    for content in ("name,price\n1,2\n", ""):
        (tmp_path / "summary.csv").write_text(content)
        assert command(*flags) == 2
        assert "summary.csv: expected the columns dataset,method" in capsys.readouterr().err
        assert (tmp_path / "summary.csv").read_text() == content
    assert [*tmp_path.iterdir()] == [tmp_path / "summary.csv"]
    (tmp_path / "summary.csv").unlink()
    assert command(*flags) == 0 == command(*flags)


def test_results_that_were_lost_come_back_on_resume(command: Command, tmp_path: Path) -> None:
    command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}")
    before = (tmp_path / "results.csv").read_bytes()
    (tmp_path / "results.csv").unlink()
    (tmp_path / "summary.csv").unlink()
    assert command("--dataset=tiny", "--method=mean", "--resume", f"--output_dir={tmp_path}") == 0
    assert (tmp_path / "results.csv").read_bytes() == before and (tmp_path / "summary.csv").exists()


def test_half_written_runs(command: Command, tmp_path: Path) -> None:
    command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}")
    run = tmp_path / "tiny" / "mean" / "seed-0"
    whole = files(run)
    (run / "metrics.json").unlink()  # killed just before the end
    (run / ".metrics.json.abc.part.json").write_text("{")
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "stale").write_text("x")
    assert not RunFolder(run).finished
    assert (
        command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}") == 0
    )  # without --resume: afresh, not from what is there
    assert not (run / "checkpoints").exists()
    assert {name: data for name, data in files(run).items() if name.endswith(".csv")} == {
        n: d for n, d in whole.items() if n.endswith(".csv")
    }
    assert not [item for item in run.iterdir() if item.name.startswith(".")]


def test_a_method_that_cannot_run_is_skipped_among_several(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        command(
            "--dataset=tiny_votes",
            "--method=needs_ids,at_most_one,oracle,mean",
            f"--output_dir={tmp_path}",
        )
        == 0
    )
    rows = pd.read_csv(tmp_path / "results.csv").set_index("method")
    assert dict(rows["status"]) == {
        "needs_ids": "skipped",
        "at_most_one": "skipped",
        "oracle": "skipped",
        "mean": "ok",
    }
    assert rows.loc["needs_ids", "accuracy":"peak_memory_mb"].isna().all()  # type: ignore[misc]
    assert "no identities" in capsys.readouterr().err
    reason = json.loads((tmp_path / "tiny_votes" / "oracle" / "seed-0" / "status.json").read_text())
    assert reason["status"] == "skipped" and "true labels" in reason["reason"]
    assert not (tmp_path / "tiny_votes" / "needs_ids" / "seed-0" / "metrics.json").exists()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("needs_ids", "no identities"),
        ("at_most_one", "at most 1 classes"),
        ("oracle", "true labels"),
    ],
)
def test_alone_it_is_an_error(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, message: str
) -> None:
    assert (
        command("--dataset=tiny_votes", f"--method={method}", f"--output_dir={tmp_path / 'out'}")
        == 2
    )
    err = capsys.readouterr().err
    assert message in err and len(err.strip().splitlines()) == 1
    assert files(tmp_path) == {}


def test_a_failing_run_does_not_stop_the_others(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        command(
            "--dataset=tiny", "--method=broken,mean", "--num_runs=2", f"--output_dir={tmp_path}"
        )
        == 1
    )
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(rows["status"]) == ["failed", "failed", "ok", "ok"] and rows[
        "accuracy"
    ].isna().tolist() == [True, True, False, False]
    assert "failed: RuntimeError: it broke badly" in capsys.readouterr().err
    run = tmp_path / "tiny" / "broken" / "seed-0"
    assert not RunFolder(run).finished and "it broke" in "".join(
        json.loads((run / "status.json").read_text())["traceback"]
    )


def test_a_failed_run_is_tried_again(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Any
) -> None:
    assert command("--dataset=tiny", "--method=broken,mean", f"--output_dir={tmp_path}") == 1
    monkeypatch.setitem(registry._METHODS, "broken", registry.Method("broken", tiny, "mended"))
    assert (
        command("--dataset=tiny", "--method=broken,mean", "--resume", f"--output_dir={tmp_path}")
        == 0
    )
    assert set(pd.read_csv(tmp_path / "results.csv")["status"]) == {"ok"}
    assert not (tmp_path / "tiny" / "broken" / "seed-0" / "status.json").exists()


def test_arguments_that_cannot_be_used(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        command(
            "--dataset=tiny",
            "--method=mean",
            "--hparam=fail=usage",
            f"--output_dir={tmp_path / 'out'}",
        )
        == 2
    )
    assert (
        capsys.readouterr().err
        == "error: --hparam: fail: expected something else, received 'usage'\n"
    )
    assert files(tmp_path) == {}
    assert (
        command(
            "--dataset=tiny",
            "--method=mean",
            "--hparam=fail=value",
            f"--output_dir={tmp_path / 'out'}",
        )
        == 2
    )
    assert "error: --hparam: fail: expected nothing, received 'value'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (
            ["--method=men"],
            "expected the name of a method (--list shows all), received 'men'; did you mean 'mean'",
        ),
        (
            ["--method=mean", "--dataset=tiny_vote"],
            "(--list shows all), received 'tiny_vote'; did you mean 'tiny_votes' or 'tiny'?",
        ),
        (["--method=at_mozt"], "received 'at_mozt'; did you mean 'at_most_one'"),
        (
            ["--method=idz"],
            (
                "expected the name of a method (--list shows all), received 'idz'; did you mean"
                " 'needs_ids'?"
            ),
        ),
        (
            ["--method=zzzzz"],
            "expected the name of a method (--list shows all), received 'zzzzz'\n",
        ),
        (
            ["--method=mean", "--hparam=zzzzz=1"],
            "of mean, received 'zzzzz' (mean takes ensemble, fail, shift)",
        ),
        (["--method=mean", "--hparam=shif=1"], "received 'shif'; did you mean 'shift'?"),
        (["--method=mean", "--hparam=seed=1"], "expected --seed"),
        (
            ["--method=mean", "--hparam=oracle.shift=1"],
            "expected one of --method's names before the dot",
        ),
    ],
)
def test_names_that_do_not_exist(
    command: Command,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    items: list[str],
    message: str,
) -> None:
    assert command("--dataset=tiny", f"--output_dir={tmp_path / 'out'}", *items) == 2
    err = capsys.readouterr().err
    assert message in err and len(err.splitlines()) == 1 and not (tmp_path / "out").exists()


def test_an_output_folder_that_is_a_file(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    assert (
        command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path / 'file' / 'out'}") == 2
    )
    assert "--output_dir: expected a folder that can be written" in capsys.readouterr().err


def test_a_full_disk_ends_the_command_with_one_line(
    command: Command,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if str(target).endswith("annotators.csv"):
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert command("--dataset=tiny", "--method=mean,oracle", f"--output_dir={tmp_path}") == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert (
        len(err) == 1
        and err[0].startswith("error: No space left on device")
        and "annotators.csv" in err[0]
    )
    run = RunFolder(tmp_path / "tiny" / "mean" / "seed-0")
    assert not run.finished and not [
        item for item in run.path.iterdir() if item.name.startswith(".")
    ]
    monkeypatch.undo()


def test_hyper_parameters_reach_those_that_have_them(command: Command, tmp_path: Path) -> None:
    assert (
        command(
            "--dataset=tiny",
            "--method=mean,oracle",
            "--hparam=shift=0.7",
            "--hparam=oracle.shift=0.2",
            f"--output_dir={tmp_path}",
        )
        == 0
    )
    found = [
        json.loads((tmp_path / "tiny" / m / "seed-0" / "config.json").read_text())["parameters"][
            "shift"
        ]
        for m in ("mean", "oracle")
    ]
    assert found == [0.7, 0.2]


def test_data_seed_pins_the_draw(command: Command, tmp_path: Path) -> None:
    command(
        "--dataset=tiny",
        "--method=mean",
        "--num_runs=2",
        "--data_seed=3",
        f"--output_dir={tmp_path / 'pinned'}",
    )
    command("--dataset=tiny", "--method=mean", "--num_runs=2", f"--output_dir={tmp_path / 'free'}")

    def tests(name: str) -> list[bytes]:
        return [
            (tmp_path / name / "tiny" / "mean" / f"seed-{s}" / "predictions.csv").read_bytes()
            for s in (0, 1)
        ]

    assert tests("pinned")[0] == tests("pinned")[1] and tests("free")[0] != tests("free")[1]


def test_a_share_of_the_annotations_is_kept(command: Command, tmp_path: Path) -> None:
    # Three annotators label all of the 40 training instances, the fourth none of them.
    def labels(name: str, *items: str) -> list[int]:
        assert (
            command("--dataset=tiny", "--method=mean", *items, f"--output_dir={tmp_path / name}")
            == 0
        )
        return list(
            pd.read_csv(tmp_path / name / "tiny" / "mean" / "seed-0" / "annotators.csv")[
                "num_labels"
            ]
        )

    assert labels("all") == [40, 40, 40, 0]
    half = labels("half", "--keep_annotations=0.5")
    assert sum(half) == 60 and max(half) < 40
    assert (
        sum(labels("one", "--keep_annotations=0.1", "--keep_one")) == 40
        and sum(labels("few", "--keep_annotations=0.1")) == 12
    )


def test_cross_validation(command: Command, tmp_path: Path) -> None:
    flags = (
        "--dataset=tiny",
        "--method=mean",
        "--evaluation=cv",
        "--folds=2",
        "--repeats=2",
        f"--output_dir={tmp_path}",
    )
    assert command(*flags) == 0
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(zip(rows["repeat"], rows["fold"], strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    folders = [tmp_path / "tiny" / "mean" / "seed-0" / f"fold-{k}" for k in range(4)]
    tests = [set(pd.read_csv(folder / "predictions.csv")["task"]) for folder in folders]
    assert (
        not tests[0] & tests[1]
        and tests[0] | tests[1] == tests[2] | tests[3]
        and len(tests[0] | tests[1]) == 40
    )
    before = files(tmp_path / "tiny")
    assert command(*flags, "--resume") == 0 and files(tmp_path / "tiny") == before


def test_list(command: Command, parse: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--list") == 0
    out = capsys.readouterr().out
    assert "Methods:" in out and "Datasets:" in out and "  neucrowd " in out


def test_more_places_than_are_listed_are_counted(tmp_path: Path) -> None:
    folders = [tmp_path / str(seed) for seed in range(cli.MOST_PLACES + 2)]
    for folder in folders:
        folder.mkdir()
        (folder / "report.html").touch()
    listed = [line for line in cli._places(tmp_path, folders) if line.startswith("Report")]
    assert len(listed) == cli.MOST_PLACES + 1 and listed[-1].endswith("and 2 more")


def test_a_lost_sigterm_stops_before_the_next_run(
    command: Command, tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is raised while an object is released is told and dropped by Python."""

    class Released:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    def fit(self: Any, *_: Any) -> None:
        fitted(self, *_)
        sys.unraisablehook, before = lambda *_: None, sys.unraisablehook
        Released()
        sys.unraisablehook = before

    fitted = tiny._fit
    monkeypatch.setattr(tiny, "_fit", fit)
    arguments = ("--dataset=tiny", "--method=mean", "--num_runs=3", f"--output_dir={tmp_path}")
    assert command(*arguments) == 143
    assert tiny.calls == 1 and len(pd.read_csv(tmp_path / "results.csv")) == 1
    monkeypatch.setattr(tiny, "_fit", fitted)
    assert command(*arguments, "--resume") == 0
    assert tiny.calls == 3
