"""Flags of all commands: what they give, their help, and one line for what cannot be used."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Annotated

import pytest

from neucrowd_tf.cli.commands import LABEL_COMMANDS, call, flags_of
from neucrowd_tf.cli.runs.options import NAMES, Options, parse
from neucrowd_tf.declare import flag_parsing as flags
from neucrowd_tf.declare.declarations import declared
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.schema import TableOptions
from tests.cases import cases, raises

GIVEN = ["--dataset=hotel", "--method=mv_lr"]
SUITE = ["--suite=smoke"]
TABLE = ["--dataset=table", "--method=mv_lr"]
TABLE += [f"--{name}={__file__}" for name in ("features", "annotations")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *cases(r"""
["3", 3], ["1e-3", 1e-3], [".5", 0.5], ["true", true], ["True", true], ["null", null],
["None", null], ["[64, 32]", [64, 32]], ["mean", "mean"], ["\"3\"", "3"], ["b'x'", "b'x'"],
["__import__('os')", "__import__('os')"], ["{1}", "{1}"]
"""),
        ("(64, 32)", (64, 32)),
        ("[" * 10_000, "[" * 10_000),
    ],
)
def test_hyper_parameter_values(text: str, value) -> None:
    assert flags.parse_value(text) == value and type(flags.parse_value(text)) is type(value)


def test_values(tmp_path: Path) -> None:
    options = parse(
        [
            *("--dataset=a,b,a", "--method=x, y", f"--output_dir={tmp_path}"),
            *("--hparam", "n=3", "--hparam=x.eta=0.5", "--seed=7", "--resume", "--noreport"),
            *("--label_column=Answer.*", "--separator=tab"),
        ]
    )
    assert options.dataset == ("a", "b") and options.method == ("x", "y")
    assert options.hparam == (("n", 3), ("x.eta", 0.5)) and options.output_dir == tmp_path
    assert (options.seed, options.resume, options.export, options.report) == (7, True, False, False)
    assert (options.threads, options.jobs) == (1, 1)
    assert options.layout == {"label_column": ("Answer.*",), "separator": "\t"}
    assert pickle.loads(pickle.dumps(options)) == options


def test_flagfile(tmp_path: Path) -> None:
    path = tmp_path / "flags.txt"
    path.write_text("# a comment\n--dataset=hotel\n\n--method=mv_lr\n--num_runs=3\n")
    options = parse([f"--flagfile={path}", "--num_runs=2"])
    assert options.dataset == ("hotel",) and options.seeds == range(2)
    path.write_bytes(b"\xff\xfe\xff")
    raises(UsageError, r"--flagfile: .*Name a text file in UTF-8\.", parse, [f"--flagfile={path}"])


# Flags and a part of the line that rejects them. GIVEN, SUITE and TABLE stand for flags above.
BAD_FLAGS = """
=> --dataset is missing: name at least one
--dataset=hotel => --method is missing
GIVEN --sed=3 => Unknown command line flag 'sed'. Did you mean: seed
GIVEN --zzz => Unknown command line flag 'zzz'
GIVEN --seed=-1 => --seed=-1: must be a whole number from 0 to 2147483647
GIVEN --seed=one => --seed=one: must be a whole number
GIVEN --seed => Missing value for flag --seed
GIVEN --seed=DIGITS => : must be a whole number
GIVEN --resume=maybe => --resume=maybe: must be true or false
GIVEN --noreport=x => --noreport=x does not take an argument
GIVEN --evaluation=thrice => --evaluation=thrice: value should be one of <split|cv>
GIVEN --num_runs=0 => --num_runs=0: must be a whole number from 1
GIVEN --seed=2147483647 --num_runs=2 => --num_runs: seeds go up to 2147483647
GIVEN --hparam=n => --hparam=n: must be name=value
GIVEN --rows=a => --rows: only with --suite.
GIVEN --space=epochs=[1] => --space: only with --tune.
GIVEN --distribute=multi_worker --jobs=2 => --jobs: not with --distribute=
GIVEN --distribute=all => value should be one of <none|mirrored|multi_worker>
GIVEN --device=tpu => --device=tpu: must be auto, cpu, gpu
GIVEN --keep_annotations=0 => --keep_annotations=0: must be a number above 0
GIVEN --keep_annotations=nan => --keep_annotations=nan: must be a number
GIVEN --checkpoint_seconds=-1 => must be a number from 0
GIVEN --checkpoint_seconds=inf => --checkpoint_seconds=inf: must be a number
GIVEN --data_dir=/nowhere/at/all => --data_dir=/nowhere/at/all: no such folder
GIVEN --data_dir=FILE => not a folder
GIVEN --output_dir= => --output_dir=: must be a path
GIVEN --missing --resume => --missing=--resume: must be a value, not a flag
GIVEN --multi_label --resume => --multi_label=--resume: must be a value
GIVEN --separator --resume => --separator=--resume: must be a value
GIVEN --output_dir --resume => --output_dir=--resume: must be a value, not a flag
GIVEN --truth=x.csv => --truth: only with --dataset=table.
GIVEN --separator=ab => --separator=ab: expected one ASCII sign
GIVEN --scheduler=tcp://h:1 --jobs=2 => --jobs: not with --scheduler
GIVEN --gold=/no.csv => --gold=/no.csv: no such file
GIVEN more => 'more' is not a flag
--dataset=table --method=mv_lr => --dataset=table needs exactly one
TABLE --texts=FILE => --dataset=table needs exactly one
--dataset=table --method=mv_lr --features=FILE => --annotations is missing
TABLE --truth=/no.csv => --truth=/no.csv: no such file
SUITE --dataset=hotel => --dataset: not with --suite
SUITE --hparam=epochs=1 => --hparam: not with --suite
SUITE --classes=a,b => --classes: not with --suite
--flagfile=/no/such/file => --flagfile: Unable to open flagfile: [Errno 2] No such
--flagfile=/ => Unable to open flagfile: [Errno 21] Is a directory
"""
UNUSED_FLAGS = """
TABLE --data_dir=.
GIVEN --folds=3 --keep_one --tune_by=crowd
GIVEN --task_column=id --image_size=3
SUITE --data_dir=. --num_runs=2
"""


def words(line: str) -> list[str]:
    """The flags of a line above."""
    named = {"GIVEN": GIVEN, "SUITE": SUITE, "TABLE": TABLE}
    text = line.replace("FILE", __file__).replace("DIGITS", "9" * 5000)
    return [flag for word in text.split() for flag in named.get(word, [word])]


@pytest.mark.parametrize("line", BAD_FLAGS.strip().splitlines())
def test_bad_flags_are_one_line(line: str) -> None:
    flags, _, message = line.partition("=> ")
    with pytest.raises(UsageError) as caught:
        parse(words(flags))
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("line", UNUSED_FLAGS.strip().splitlines())
def test_unused_flags_are_accepted(line: str) -> None:
    parse(words(line))


@pytest.mark.parametrize("kind", [Options, *map(flags_of, LABEL_COMMANDS)])
def test_table_flags_are_the_same_everywhere(kind) -> None:
    assert issubclass(kind, TableOptions)
    meanings = {flag.name: flag.meaning for flag in declared(kind)}
    assert all(meanings[flag.name] == flag.meaning for flag in declared(TableOptions))
    text = flags.help_text(kind, "neucrowd x")
    assert all(f"--{name}:" in text or f"--[no]{name}:" in text for name in NAMES)
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("command", LABEL_COMMANDS)
def test_help_lists_flags_with_defaults(
    command: str, capsys: pytest.CaptureFixture[str], cli
) -> None:
    out = cli(command, ["--output=x", "--help"]).out
    assert out.startswith("usage: neucrowd ") and "--flagfile: " in out
    assert command == "report" or "Required." in out
    assert not capsys.readouterr().err


def test_a_required_flag_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("relabel", ["--annotations=x"]) == 2
    line = "error: --budget is missing: Number of labels; with --cost, the sum of their"
    assert capsys.readouterr().err.startswith(line)


def test_help_without_docstrings() -> None:
    """With PYTHONOPTIMIZE=2 a dataclass has its signature for a docstring."""
    kind = dataclasses.make_dataclass("Kind", [("n", Annotated[int, "A number."], 1)])
    shown = flags.help_text(kind, "neucrowd x")
    assert "Kind(" not in shown and "--n" in shown
