"""The notebooks of docs/notebooks run from their first to their last cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "docs" / "notebooks"


@pytest.mark.parametrize(
    "name", ["labels_only", "people_and_models", "compare_on_your_data", "compare_on_music"]
)
def test_notebook(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "compare_on_music":  # skips with a reason if the data is absent
        monkeypatch.setenv("NEUCROWD_DATA", str(request.getfixturevalue("data_dir")))
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    space: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), space)
