"""The numbers that the examples work out by hand are those that their formulas print."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import re

import pytest

EXPECTED = re.compile(r"print\(.*# (-?[\d.]+)$")


@pytest.mark.parametrize("paper", ["neucrowd", "rll", "crowding", "dasc", "iced"])
def test_worked_numbers(paper: str) -> None:
    module = importlib.import_module(f"examples.{paper}")
    text = inspect.getsource(module)
    blocks = [node for node in ast.parse(text).body if isinstance(node, ast.If)]
    assert len(blocks) > 1
    for block in blocks[:-1]:  # the last one runs the method
        lines = text.splitlines()[block.lineno - 1 : block.end_lineno]
        expected = [match[1] for line in lines if (match := EXPECTED.search(line))]
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec("\n".join(lines), {**vars(module), "__name__": "__main__"})
        assert expected == [line.split()[-1] for line in shown.getvalue().splitlines()] != []
