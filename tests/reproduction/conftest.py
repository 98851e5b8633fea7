"""The harness's fixtures: a small dataset, methods that end in every way, commands."""

from __future__ import annotations

from tests.harness.conftest import command, parse, registered, tiny, without_tensorflow

__all__ = ["command", "parse", "registered", "tiny", "without_tensorflow"]
