"""Every command takes labels with the same flags."""

from __future__ import annotations

import argparse

import pytest

from neucrowd_tf import aggregate, relabel
from neucrowd_tf.datasets.table import OPTIONS
from neucrowd_tf.harness.options import LAYOUT_FLAGS, NAMES
from neucrowd_tf.io.tables.flags import SWITCHES, TABLE_OPTIONS, layout_of
from neucrowd_tf.report import __main__ as report

INPUT = {"annotations", "model_annotator", *TABLE_OPTIONS}
COMMANDS = {"aggregate": aggregate, "relabel": relabel, "report": report}


@pytest.mark.parametrize("name", COMMANDS)
def test_flags_are_alike(name: str) -> None:
    parser: argparse.ArgumentParser = COMMANDS[name]._parser()  # type: ignore[attr-defined]
    known = {
        option.removeprefix("--"): a.help for a in parser._actions for option in a.option_strings
    }
    assert known.keys() >= INPUT
    assert {known[option] for option in TABLE_OPTIONS} == set(TABLE_OPTIONS.values())


def test_those_of_a_run_are_the_same() -> None:
    assert set(NAMES) >= INPUT and set(LAYOUT_FLAGS) >= set(TABLE_OPTIONS) <= set(OPTIONS)


def test_each_is_handed_on() -> None:
    given = {name: name in SWITCHES or name[0] for name in TABLE_OPTIONS}
    given |= dict.fromkeys(("separator", "missing", "classes", "question"), "a")
    layout = layout_of(argparse.Namespace(**given))
    assert (layout.separator, layout.task, layout.worker, layout.label) == ("a", "t", "w", "l")
    assert (layout.missing, layout.classes, layout.question) == (("a",), ("a",), "a")
    assert layout.exact_names and layout.first
