"""Flags: what they give, and one clear line for what cannot be."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness.flags import parse_value

GIVEN = ["--dataset=hotel", "--method=mv_lr"]
TABLE = [
    "--dataset=table",
    "--method=mv_lr",
    *(f"--{n}={__file__}" for n in ("features", "annotations")),
]


def test_values(parse: Any, tmp_path: Path) -> None:
    options = parse(
        [
            "--dataset=a,b,a",
            "--method=x, y",
            f"--output_dir={tmp_path}",
            "--hparam",
            "n=3",
            "--hparam=x.eta=0.5",
            "--seed=7",
            "--resume",
        ]
    )
    assert options.dataset == ("a", "b") and options.method == ("x", "y")
    assert (
        options.hparam == (("n", 3), ("x.eta", 0.5))
        and options.seed == 7
        and options.resume
        and not options.export
    )
    assert options.threads == 1 and options.jobs == 1 and options.data_seed is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 1e-3),
        (".5", 0.5),
        ("true", True),
        ("True", True),
        ("null", None),
        ("None", None),
        ("[64, 32]", [64, 32]),
        ("(64, 32)", (64, 32)),
        ("mean", "mean"),
        ('"3"', "3"),
        ("__import__('os')", "__import__('os')"),
        ("b'x'", "b'x'"),
        ("{1}", "{1}"),
    ],
)
def test_hyper_parameter_values(text: str, value: object) -> None:
    assert parse_value(text) == value and type(parse_value(text)) is type(value)


def test_what_auto_is_told_are_hyper_parameters(parse: Any, tmp_path: Path) -> None:
    path = tmp_path / "gold.csv"
    path.write_text("task,label\n")
    options = parse([*GIVEN, f"--gold={path}", "--target=balanced"])
    assert options.hparam == (("target", "balanced"), ("gold", str(path)))
    with pytest.raises(UsageError, match="--gold: expected a CSV file, received"):
        parse([*GIVEN, f"--gold={tmp_path / 'none.csv'}"])


def test_weights_are_a_hyper_parameter_of_their_own_flag(parse: Any, tmp_path: Path) -> None:
    path = tmp_path / "1e3"  # a name that would read as a number
    path.write_bytes(b"")
    options = parse([*GIVEN, f"--weights={path}", "--hparam=n=3"])
    assert options.hparam == (("n", 3), ("weights", str(path)))
    for arguments, message in (
        (
            [*GIVEN, f"--weights={tmp_path / 'none.keras'}"],
            "--weights: expected a file of Keras weights, received",
        ),
        (["--suite=smoke", f"--weights={path}"], "--weights: expected without --suite"),
    ):
        with pytest.raises(UsageError, match=message):
            parse(arguments)


def test_flagfile(parse: Any, tmp_path: Path) -> None:
    (tmp_path / "flags.txt").write_text("--dataset=hotel\n--method=mv_lr\n--num_runs=3\n")
    options = parse([f"--flagfile={tmp_path / 'flags.txt'}", "--num_runs=2"])
    assert options.dataset == ("hotel",) and options.num_runs == 2 and options.seeds == range(2)
    (tmp_path / "marked.txt").write_text("--dataset=hotel\n", encoding="utf-8-sig")
    with pytest.raises(UsageError, match=r"^--flagfile: expected text without a byte order mark"):
        parse([f"--flagfile={tmp_path / 'marked.txt'}"])


def test_options_survive_the_way_to_a_worker(parse: Any, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("task,a\n")
    table = [f"--{name}={tmp_path / 'f.csv'}" for name in ("features", "annotations", "truth")]
    options = parse(
        [
            "--dataset=table",
            "--method=mv_lr",
            *table,
            "--hparam=Cs=[1, 2]",
            "--data_seed=4",
            "--keep_annotations=0.5",
        ]
    )
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "--dataset: expected at least one name"),
        (["--dataset=hotel"], "--method: expected at least one name"),
        (
            [*GIVEN, "--sed=3"],
            "--sed: expected a flag of this command, received an unknown one; did you mean --seed?",
        ),
        ([*GIVEN, "--seed=-1"], "--seed: expected"),
        ([*GIVEN, "--seed=one"], "--seed: expected a whole number, received 'one'"),
        ([*GIVEN, "--seed"], "--seed"),
        ([*GIVEN, "--resume=maybe"], "--resume: expected true or false, received 'maybe'"),
        ([*GIVEN, "--evaluation=thrice"], "--evaluation: expected"),
        ([*GIVEN, "--num_runs=0"], "--num_runs: expected"),
        (
            [*GIVEN, "--seed=2147483647", "--num_runs=2"],
            "--num_runs: expected seeds up to 2147483647",
        ),
        ([*GIVEN, "--hparam=n"], "--hparam: expected name=value, received 'n'"),
        ([*GIVEN, r'--hparam=n="\ud800"'], "--hparam: expected text in UTF-8, rece"),
        ([*GIVEN, r'--hparam=n=[{"\ud800": 1}]'], "--hparam: expected text in UTF-8, rece"),
        ([*GIVEN, "--hparam=n=\udcff"], "--hparam: expected text in UTF-8, rece"),
        (
            [*GIVEN, "--distribute=multi_worker", "--jobs=2"],
            "--jobs: expected without --distribute=multi_worker",
        ),
        ([*GIVEN, "--distribute=all"], "--distribute: expected"),
        ([*GIVEN, "--device=tpu"], "--device: expected auto, cpu, gpu"),
        ([*GIVEN, "--keep_annotations=0"], "--keep_annotations: expected a share above 0"),
        ([*GIVEN, "--keep_annotations=nan"], "--keep_annotations: expected a share above 0"),
        ([*GIVEN, "--folds=1"], "--folds: expected"),
        ([*GIVEN, "--repeats=2"], "--repeats: expected together with --evaluation=cv"),
        ([*GIVEN, "--folds=3"], "--folds: expected together with --evaluation=cv"),
        ([*GIVEN, "--tune_by=crowd"], "--tune_by: expected together with --tune, received crowd"),
        (
            [*TABLE, "--data_dir=."],
            "--data_dir: expected without --dataset=table, whose files have flags",
        ),
        ([*GIVEN, "--keep_one"], "--keep_one: expected together with --keep_annotations"),
        (["--suite=smoke", "--dataset=hotel"], "--dataset: expected without --suite"),
        (
            ["--suite=smoke", "--keep_annotations=0.5"],
            "--keep_annotations: expected without --suite",
        ),
        (["--suite=smoke", "--hparam=epochs=1"], "--hparam: expected without --suite"),
        (["--suite=smoke", "--evaluation=cv"], "--evaluation: expected without --suite"),
        (["--suite=smoke", "--classes=a,b"], "--classes: expected without --suite"),
        ([*GIVEN, "--jobs=0"], "--jobs: expected"),
        ([*GIVEN, "--threads=0"], "--threads: expected"),
        ([*GIVEN, "--tune=-1"], "--tune: expected"),
        ([*GIVEN, "--checkpoint_seconds=-1"], "--checkpoint_seconds: expected"),
        (
            [*GIVEN, "--checkpoint_seconds=inf"],
            "--checkpoint_seconds: expected a number of seconds",
        ),
        (
            [*GIVEN, "--data_dir=/nowhere/at/all"],
            "--data_dir: expected a folder, received /nowhere/at/all, which does not exist",
        ),
        ([*GIVEN, "--output_dir="], "--output_dir: expected a path"),
        ([*GIVEN, "--output_dir", "--resume"], "--output_dir: expected a path, received '--res"),
        ([*GIVEN, "--output_dir=a\0b"], "--output_dir: expected a path, received one with a NUL"),
        ([*GIVEN, "--noreport=x"], "--noreport: expected no value, received 'x'"),
        ([*GIVEN, "--truth=x.csv"], "--truth: expected together with --dataset=table only"),
        ([*GIVEN, "--classes=a,b"], "--classes: expected together with --dataset=table only"),
        (["--dataset=table", "--method=mv_lr"], "--features: expected with --dataset=table"),
        (
            ["--dataset=table", "--method=mv_lr", "--features=/no.csv", "--annotations=/no.csv"],
            "--features: expected a CSV file, received /no.csv",
        ),
        (
            ["--flagfile=/no/such/file"],
            "--flagfile: expected a file of flags that can be read, received",
        ),
        (["--flagfile=/"], "--flagfile: expected a file of flags that can be read, received '/'"),
        ([*GIVEN, "--seed=" + "9" * 5000], "--seed: expected a whole number, received one of"),
        (["--dataset=digits", "--method=a\nb"], "--method: expected names separated by commas"),
        ([*GIVEN, "more"], "expected flags only, received 'more'"),
    ],
)
def test_bad_flags_are_one_line(parse: Any, items: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(items)
    assert message in str(caught.value) and "\n" not in str(caught.value)
