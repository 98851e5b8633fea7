"""The notebooks of docs/notebooks run from their first to their last cell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_pages import script

MARKS = {
    "labels_only": "ci",
    "people_and_models": "ci",
    "compare_on_your_data": "ci",
    "compare_on_music": "slow",
}


def printed(notebook: dict[str, Any]) -> list[str]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return ["".join(output.get("text", ())) for output in outputs]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=getattr(pytest.mark, mark)) for name, mark in MARKS.items()]
)
def test_notebook(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "compare_on_music":  # skips with a reason if the data is absent
        monkeypatch.setenv("NEUCROWD_DATA", str(request.getfixturevalue("data_dir")))
    module = script("notebooks")
    stored = module.stored(name)
    executed = module.executed(name, module.sources(stored))
    if MARKS[name] == "ci":  # the others train networks
        assert printed(executed) == printed(stored)
