"""The notebooks of docs/notebooks run from their first to their last cell."""

from __future__ import annotations

import importlib.util
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


@pytest.mark.parametrize("paper", ["neucrowd", "rll", "crowding", "dasc", "iced"])
def test_a_papers_notebook_is_its_file_with_output(paper: str, repository: Path) -> None:
    spec = importlib.util.spec_from_file_location("made", repository / "docs" / "notebooks.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    sources = made.cells((repository / "examples" / f"{paper}.py").read_text(encoding="utf-8"))
    assert made.sources(made.stored(paper)) == sources, "run python docs/notebooks.py"
    cells = json.loads((NOTEBOOKS / f"{paper}.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    assert any("test accuracy" in "".join(output.get("text", ())) for output in outputs)
    assert any("image/png" in output.get("data", ()) for output in outputs)
