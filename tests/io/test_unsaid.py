"""Files of which labels were once lost, taken or pooled without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.io.reading import message, pasted, read
from tests.io.reading import rows as table


def of_teams(column: str, classes: str, *, several: bool = False) -> str:
    """Ten items with two annotators for each of two values of a column."""
    cells = []
    for n in range(10):
        for team, value in enumerate("st"):
            for at in (0, 1):
                by = f"{'x' if several and n == 9 else value}{at}"
                cells.append(
                    f"i{n},{by},{value},{classes[(2 * team + (n + at) % 2) % len(classes)]}"
                )
    return table(f"item,annotator,{column},label", *cells)


@pytest.mark.parametrize(
    "column", ["aspect", "criterion", "metric", "task_name", "kind", "Dimension"]
)
def test_questions_of_teams_are_never_pooled(column: str, tmp_path: Path) -> None:
    for several in (False, True):
        content = of_teams(column, "yn", several=several)
        shown = message(tmp_path, content)
        assert f"10 of 10 items have several values of {column}" in shown
        assert f"--task_column=item,{column}" in shown
        assert "20 labels of 10 items" in read(tmp_path, content, **pasted(shown)).lines[0]
    all_rows = read(tmp_path, content, duplicates="last").lines[0]
    assert "40 labels of 10 items" in all_rows


def test_questions_with_classes_of_their_own_are_seen_by_them(tmp_path: Path) -> None:
    shown = message(tmp_path, of_teams("group", "ynrb"))
    assert pasted(shown) == {"question": "group=s"}
    assert "40 labels of 10 items" in read(tmp_path, of_teams("group", "yn")).lines[0]
