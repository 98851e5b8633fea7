"""Writes docs/notebooks/<paper>.ipynb from examples/<paper>.py, executed on its small data.

A notebook keeps its output where the code is the same. Its picture is also written to docs/figures.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import linecache
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAPERS = ("neucrowd", "rll", "crowding", "dasc", "iced")


def cells(text: str) -> list[tuple[str, str]]:
    """Returns ("markdown" or "code", source) of a file's text blocks and what is between them."""
    lines = text.splitlines()
    blocks = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            blocks.append((node.lineno - 1, node.end_lineno, str(node.value.value)))
    result = []
    start = 0
    for first, end, markdown in [*blocks, (len(lines), len(lines), "")]:
        result.append(("code", "\n".join(lines[start:first]).strip("\n")))
        result.append(("markdown", markdown.strip("\n")))
        start = end
    return [cell for cell in result if cell[1]]


def stored(paper: str) -> dict[str, Any]:
    """Returns a paper's notebook as it is, or one without cells."""
    path = ROOT / "docs" / "notebooks" / f"{paper}.ipynb"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"cells": []}


def sources(notebook: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the kinds and sources of a notebook's cells."""
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def with_texts(notebook: dict[str, Any], wanted: list[tuple[str, str]]) -> bool:
    """Gives a notebook the texts of its file; returns False where other cells or code differ."""
    if len(wanted) != len(notebook["cells"]):
        return False
    for (old_kind, old), (kind, source) in zip(sources(notebook), wanted, strict=True):
        if old_kind != kind or (kind == "code" and old != source):
            return False
    for cell, (_, source) in zip(notebook["cells"], wanted, strict=True):
        cell["source"] = source.splitlines(keepends=True)
    return True


def executed(name: str, wanted: list[tuple[str, str]]) -> dict[str, Any]:
    """Returns a notebook of these cells with what they print and draw."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    space = {"__name__": "__main__"}
    made = []
    for number, (kind, source) in enumerate(wanted):
        lines = source.splitlines(keepends=True)
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
        if kind == "code":
            file = f"<{name} {number}>"
            printed = io.StringIO()
            linecache.cache[file] = (len(source), None, lines, file)  # TensorFlow reads it
            with contextlib.redirect_stdout(printed):
                exec(compile(source, file, "exec"), space)
            cell["execution_count"] = sum(other["cell_type"] == "code" for other in made) + 1
            cell["outputs"] = []
            if printed.getvalue():
                text = printed.getvalue().splitlines(keepends=True)
                cell["outputs"] += [{"output_type": "stream", "name": "stdout", "text": text}]
            for figure in map(pyplot.figure, pyplot.get_fignums()):
                image = io.BytesIO()
                figure.savefig(image, format="png", metadata={"Software": None})
                data = {"image/png": base64.b64encode(image.getvalue()).decode()}
                cell["outputs"] += [{"output_type": "display_data", "data": data, "metadata": {}}]
            pyplot.close("all")
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    meta = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": meta, "nbformat": 4, "nbformat_minor": 5}


def picture(notebook: dict[str, Any]) -> bytes:
    """Returns the PNG of a notebook's last picture."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    images = [output["data"]["image/png"] for output in outputs if "data" in output]
    return base64.b64decode(images[-1])


def main() -> None:
    """Writes the notebooks, and runs those whose code has changed."""
    sys.argv = sys.argv[:1]
    for paper in PAPERS:
        wanted = cells((ROOT / "examples" / f"{paper}.py").read_text(encoding="utf-8"))
        notebook = stored(paper)
        if not with_texts(notebook, wanted):
            # The example saves its picture in the working directory.
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                notebook = executed(paper, wanted)
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        (ROOT / "docs" / "notebooks" / f"{paper}.ipynb").write_text(text, encoding="utf-8")
        (ROOT / "docs" / "figures" / f"{paper}_example.png").write_bytes(picture(notebook))


if __name__ == "__main__":
    main()
