"""The catalogue of checks."""

from __future__ import annotations

import re
from pathlib import Path

from neucrowd_tf.io.checks import catalogue, error


def test_every_check_is_used_and_has_all_its_entries(repository: Path) -> None:
    assert len(catalogue()) <= 30
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("io", "datasets", "aggregation")
        for path in (repository / "neucrowd_tf" / folder).rglob("*.py")
    )
    for name, check in catalogue().items():
        assert f'"{name}"' in sources
        assert all((check.title, check.problem, check.fix, check.cause, check.example))
        words = set(re.findall(r"{(\w+)", check.problem + check.fix))
        numbers = dict.fromkeys(("count", "labels", "low", "high", "columns", "cells"), 2)
        message = str(
            error(name, "a.csv", "line 2", **{word: numbers.get(word, "x") for word in words})
        )
        assert message.startswith("a.csv: line 2: ")
        assert message.split("\n")[0].endswith(f"[{name}]")


def test_further_lines_follow_the_id() -> None:
    shown = str(
        error("missing_role", "a.csv", roles="item", columns="Columns: a 1", advice="\n  b")
    )
    assert shown == "a.csv: no item column. Columns: a 1. [missing_role]\n  b"
