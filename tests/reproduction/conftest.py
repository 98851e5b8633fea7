"""The harness's fixtures: a small dataset, methods that end in every way, commands."""

from __future__ import annotations

from tests.cli.runs.conftest import command, registered, tiny, without_tensorflow

__all__ = ["command", "registered", "tiny", "without_tensorflow"]
