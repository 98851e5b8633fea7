"""What the command prints beside its results, and what it does once all runs are finished."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from neucrowd_tf.cli.runs import process, run_command
from neucrowd_tf.declare import dataset_registration, registry

Command = Callable[..., int]


def test_a_terminal_gets_no_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    """Ids come from a user's files; here one would turn the terminal red, another clear it."""
    with warnings.catch_warnings():
        process.plain_warnings()
        warnings.warn("task a\x1b[31mb has\nno label", stacklevel=1)
    run_command._print("failed: \x1b[2J\u202e\n  second line")
    assert (
        capsys.readouterr().err
        == "warning: task a\ufffd[31mb has no label\nfailed: \ufffd[2J\ufffd\n  second line\n"
    )


def test_the_installed_command_lists_what_it_has(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a checkout there are no further baselines, no benchmark data and no suites."""
    monkeypatch.setattr(dataset_registration, "SUITES", {})
    monkeypatch.setattr(registry, "_INDEXED", {"neucrowd_tf.declare": None})
    assert command("--list") == 0
    listed = capsys.readouterr().out
    assert "Datasets:" in listed
    assert "Suites:" not in listed
