"""Hooks of mkdocs.yml: pages outside docs/, links between files, formulas, and the API reference.

Pages keep the links that work in a checkout. Here those to pages lead to the site's pages, and
those to other files of the repository become plain text. A notebook is a page with its output.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

import latex2mathml.converter
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PROJECT = {
    "README.md": "README.md",
    "BUILD.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "RESULTS.md": "results.md",
}
PACKAGES = (
    "annotations", "aggregation", "certainty", "choice", "layers",
    "crowd.losses", "datasets", "evaluation", "export", "io.labels",
    "labelling.belief", "labelling.plan", "persistence", "registry", "report.build",
    "training", "nn.losses", "nn.miners",
)  # fmt: skip
API = ("neucrowd_tf", *(f"neucrowd_tf.{name}" for name in PACKAGES))
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]*)(#[^)]*)?\)")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
MARKS = re.compile(r"^(```\w+) [^\n]*$", re.MULTILINE)  # of the tests: "ci", "file=x.py"
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$]+?)(?<!\s)\$(?!\w)", re.DOTALL)


def _uri(path: str) -> str | None:
    """Returns where a file of the repository is in the site, None for one that it has not."""
    if path in PROJECT:
        return PROJECT[path]
    if re.fullmatch(r"examples/\w+\.py", path):
        path = path.replace("examples/", "docs/notebooks/").replace(".py", ".ipynb")
    if path.startswith("docs/notebooks/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    if path.startswith("results/") and path.endswith((".md", ".png", ".csv")):
        return path.replace("results/", "tables/", 1)
    if path.startswith("docs/") and (ROOT / path).is_file() and not path.endswith(".py"):
        return path.removeprefix("docs/")
    return None


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages outside docs/ and one page per package of the API."""
    paths = [*PROJECT, *(f"results/{path.name}" for path in sorted((ROOT / "results").iterdir()))]
    for path in paths:
        uri = _uri(path)
        if uri:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        name, text = f"notebooks/{notebook.stem}.md", notebook_page(notebook)
        files.append(File.generated(config, name, content=text))
    for name in API:
        text = f"# {name}\n\n::: {name}\n"
        files.append(File.generated(config, f"reference/api/{name}.md", content=text))
    lines = "".join(f"- [{name}]({name}.md)\n" for name in API)
    text = f"# Python API\n\nThe public classes and functions of each package.\n\n{lines}"
    files.append(File.generated(config, "reference/api/index.md", content=text))
    return files


def notebook_page(path: Path) -> str:
    """Returns a notebook in Markdown: texts, code, and what it printed and drew."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text'])}```")
            elif "image/png" in output["data"]:
                image = output["data"]["image/png"]
                parts.append(f'<img alt="" src="data:image/png;base64,{image}">')
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites links and formulas outside code."""
    uri = page.file.src_uri
    places = {_uri(path): path for path in PROJECT}
    tables = uri.startswith("tables/")
    path = places.get(uri) or (uri.replace("tables/", "results/", 1) if tables else f"docs/{uri}")
    parts = CODE.split(MARKS.sub(r"\1", markdown))
    for i in range(0, len(parts), 2):
        parts[i] = FORMULA.sub(_mathml, parts[i])
    return LINK.sub(lambda match: _link(match, path, uri), "".join(parts))


def _link(match: re.Match[str], path: str, uri: str) -> str:
    image, text, link, anchor = match[1], match[2], match[3], match[4] or ""
    if not link or path.startswith("docs/reference/api/"):
        return match[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    place = _uri(target) or (_uri(f"{target}/README.md") if (ROOT / target).is_dir() else None)
    if place:
        return f"{image}[{text}]({posixpath.relpath(place, posixpath.dirname(uri) or '.')}{anchor})"
    return text if (ROOT / target).exists() else match[0]  # mkdocs reports the latter


def _mathml(match: re.Match[str]) -> str:
    display = "block" if match[1] else "inline"
    latex = re.sub(r"\s+", " ", match[1] or match[2]).strip()
    return latex2mathml.converter.convert(latex, display=display)
