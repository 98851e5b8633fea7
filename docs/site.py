"""Hooks of mkdocs.yml: pages outside docs/, links between files, formulas, and the API reference.

Pages keep the links that work in a checkout. Here those to pages lead to the site's pages, and
those to other files of the repository become plain text. A notebook is a page with its output.
"""

from __future__ import annotations

import csv
import html
import importlib
import inspect
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
CITATION = "project/citation.md"
# Tables that are pages with a box that filters their rows: the page's title and its first sentence.
FILTERED = {
    "docs/reference/deviations.csv": (
        "reference/deviations.md",
        "Deviations and other choices",
        "This table lists where the code departs from a paper, or chooses where it is silent.",
    ),
    "results/claims.csv": (
        "papers/claims.md",
        "Claims of the papers",
        "This table lists every claim of the papers, and our own choices, with our figures.",
    ),
    "docs/reference/crowding_sources.csv": (
        "reference/crowding_sources.md",
        "CrowdInG: the paper, the released code and ours",
        "This table compares three forms of CrowdInG. Values in brackets are ours.",
    ),
    "docs/reference/parameters.csv": (
        "reference/parameters.md",
        "Parameters of the methods",
        "This table lists the arguments of every method. Pass them as `--hparam name=value`, or to"
        " the constructor in Python.",
    ),
    "docs/reference/flags.csv": (
        "reference/flags.md",
        "Flags of every command",
        "This table lists the flags of each command. `neucrowd COMMAND --help` prints them, and"
        " `--flagfile=FILE` reads them from a file, one per line.",
    ),
    "docs/reference/checks.csv": (
        "reference/checks.md",
        "Checks of input files",
        "This table lists the reasons why a file is rejected or asked about. A message ends with"
        " the name of its check, such as `[missing_role]`, and says what to do.",
    ),
}
# What users type to find a page, beside the page's own words.
WORDS = {
    "README.md": "install installation setup pip start quickstart cite citation BibTeX license"
    " licence pandas DataFrame",
    "results.md": "which method should use choose best reproduce replicate paper benchmark"
    " recommend",
    "faq.md": "Snorkel cleanlab crowd-kit GPU how many labels cost regression continuous numbers"
    " scores NER spans boxes supported",
    "reference/datasets.md": "dataset download data LabelMe Music CIFAR10",
    "howto/people_and_models.md": "LLM GPT ChatGPT Claude Gemini language model as annotator"
    " judge replace human",
    "howto/data_formats.md": "Excel CSV spreadsheet xlsx one column per annotator wide long"
    " pivot missing label Google Sheets multi-label pandas DataFrame NumPy array matrix",
    "howto/importers.md": "Label Studio Prodigy Toloka MTurk Mechanical Turk Argilla doccano"
    " export",
    "howto/certainty.md": "worker annotator rater quality reliability bad careless spammers skill"
    " gold questions confidence probability interval control",
    "howto/reading_the_report.md": "inter-annotator agreement Krippendorff alpha kappa Cohen"
    " Fleiss worker annotator quality report",
    "howto/relabelling.md": "active learning which items to label next budget cost collect"
    " more labels",
    "howto/serving.md": "export deploy serve TFLite ONNX SavedModel mobile production Docker",
    "howto/own_keras_model.md": "custom Keras model crowd layer head loss multi-annotator logits"
    " softmax probabilities",
    "howto/keras_parts.md": "Keras layers heads losses logits softmax metric learning triplets",
    "howto/adding_a_method.md": "own method register plug-in package extend implement",
    "howto/own_network.md": "own network BERT ResNet encoder early stopping callbacks"
    " optimizer TensorBoard",
    "howto/scale.md": "large data memory Dask parallel million GPU distributed",
    "howto/paper_names.md": "reproduce paper published original settings baseline compare fair",
    "methods/truth_inference.md": "majority vote Dawid-Skene EM GLAD MACE aggregate"
    " aggregation truth inference ordinal ordered ratings stars Likert worker quality",
    "methods/choice.md": "auto automatic model selection which method",
    "methods/baselines.md": "baselines majority vote logistic regression softprob",
    "methods/glossary.md": "meaning definition terms words",
    "papers/neucrowd.md": "NeuCrowd representation metric learning hard tuplets sampling",
    "papers/rll.md": "RLL representation metric learning few labels confidence groups",
    "papers/crowding.md": "CrowdInG generator discriminator adversarial GAN generated labels",
    "papers/iced.md": "imbalanced classes rare class minority synthetic oversampling SMOTE",
    "papers/dasc.md": "imbalanced classes rare class sparse labels self-training",
    "tutorials/texts.md": "text classification sentiment NLP BERT Hugging Face HuggingFace"
    " sentence transformer",
    "tutorials/labels_only.md": "aggregate combine labels several people raters majority vote"
    " consensus first steps",
    "tutorials/train_and_serve.md": "train classifier export SavedModel predict",
    "tutorials/compare.md": "own method benchmark baseline comparison hyperparameter search"
    " tune grid",
}
# Packages with a page of the API: the names of `__all__`, or all that they define.
PACKAGES = (
    "methods.neucrowd", "methods.rll", "methods.dasc", "methods.crowding", "methods.iced",
    "methods.crowd_layers.common.estimator", "methods.crowd_layers.common.head",
    "saving.keras_objects", "methods.two_stage", "training", "methods.auto", "encoders",
    "aggregation", "annotations", "certainty", "certainty.labelling.belief",
    "certainty.labelling.plan", "datasets", "io.labels", "evaluation",
    "evaluation.report.build", "saving.saved_model", "saving.loading", "saving.persistent",
    "declare.registry", "declare.registration", "methods.texts", "cli.runs.plugins",
    "methods.crowd_layers.common.losses", "nn.losses", "nn.miners",
)  # fmt: skip
METHODS = tuple(
    f"neucrowd_tf.methods.crowd_layers.{path.stem}"
    for path in sorted((ROOT / "neucrowd_tf" / "methods" / "crowd_layers").glob("*.py"))
    if path.stem not in ("__init__", "against_imbalance")
)
API = (*(f"neucrowd_tf.{name}" for name in PACKAGES), *METHODS)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]*)(#[^)]*)?\)")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
MARKS = re.compile(r"^(```\w+) [^\n]*$", re.MULTILINE)  # of the tests: "ci", "file=x.py"
FUNCTION = r"\\(?:arg|det|exp|log|max|min)(?![a-z])"
AROUND = (  # the MathML would lack TeX's space beside a function's name, and raise primes twice
    (re.compile(rf"(?<=[\w)\]}}])\s*({FUNCTION})"), r"\\,\1"),
    (re.compile(rf"({FUNCTION})(?=\s*[A-Za-z0-9|\\{{])(?!\s*\\[,;])"), r"\1\\,"),
    (re.compile(r"((?:\\[a-z]+ )?[A-Za-z]|\\[a-z]+)'"), r"{\1\\prime}"),
)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$]+?)(?<!\s)\$(?!\w)", re.DOTALL)


def _uri(path: str) -> str | None:
    """Returns where a file of the repository is in the site, None for one that it has not."""
    if path in PROJECT:
        return PROJECT[path]
    if path == "CITATION.cff":
        return CITATION
    if re.fullmatch(r"examples/\w+\.py", path):
        path = path.replace("examples/", "docs/notebooks/").replace(".py", ".ipynb")
    if path.startswith("docs/notebooks/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    if path.startswith("results/") and path.endswith((".md", ".png", ".csv")):
        return path.replace("results/", "tables/", 1)
    if path in FILTERED:
        return FILTERED[path][0]
    if path.startswith("docs/") and (ROOT / path).is_file() and not path.endswith(".py"):
        return path.removeprefix("docs/")
    if path.startswith("neucrowd_tf/") and path.endswith(".py"):
        module = path.removesuffix(".py").replace("/", ".")
        packages = [name for name in API if module == name or module.startswith(f"{name}.")]
        return f"reference/api/{max(packages, key=len)}.md" if packages else None
    return None


def public(module: str) -> dict[str, str]:
    """Returns the public names of a module, with the path of what each is."""
    loaded = importlib.import_module(module)
    names = [name for name in getattr(loaded, "__all__", ()) if name != "__version__"]
    return {name: _path(loaded, name) for name in names}


def _path(module: Any, name: str) -> str:
    """Returns the path of a class or function where it is defined, of others where they are."""
    value = getattr(module, name)
    if inspect.ismodule(value):
        return value.__name__
    if inspect.isclass(value) or inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    later = getattr(module, "_MODULE_OF", {})  # names that are imported when they are used
    return f"neucrowd_tf.{later[name]}.{name}" if name in later else f"{module.__name__}.{name}"


def api_pages() -> dict[str, str]:
    """Returns the text of each page of the API by name."""
    pages: dict[str, str] = {}
    options = "    options: {show_root_heading: true, show_root_toc_entry: true}\n"
    shown: set[str] = set()  # an object has one page; others link to it
    for module in (*METHODS, *API):
        names, text = public(module), inspect.getdoc(importlib.import_module(module)) or ""
        lines = [
            f"- [`{name}`][{path}]\n"
            if path in shown or path.startswith(METHODS)
            else f"::: {path}\n{options}"
            for name, path in names.items()
        ]
        shown |= set(names.values())
        summary = text.split("\n\n")[0]
        body = "\n".join([summary, "", *lines]) if names else f"::: {module}\n"
        pages[module] = f"# {module}\n\n{body}"
    pages["index"] = api_index()
    return pages


def summary_of(value: Any) -> str:
    """Returns the first line of a docstring."""
    return (inspect.getdoc(value) or "").partition("\n")[0]


def _reference(name: str, path: str) -> str:
    """Returns a link to a public name's entry, of a module to its page."""
    return f"[`{name}`]({path}.md)" if path in API else f"[`{name}`][{path}]"


def api_index() -> str:
    """Returns the page that lists the public names and the packages, a line each."""
    package = importlib.import_module("neucrowd_tf")
    paths = public("neucrowd_tf")
    names = [
        f"| {_reference(name, paths[name])} | {summary_of(getattr(package, name))} |"
        for name in sorted(paths, key=str.lower)
    ]
    packages = [
        f"| [{module}]({module}.md) | {summary_of(importlib.import_module(module))} |"
        for module in API
    ]
    purpose = "This reference has the public classes and functions with their source code."
    heading = ["| name | what it is |", "|---|---|"]
    parts = ["# Python API", "", purpose, "", "## Names of neucrowd_tf", "", *heading, *names]
    parts += ["", "## Packages", "", *heading, *packages, ""]
    return "\n".join(parts)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages outside docs/ and one page per package of the API."""
    paths = [*PROJECT, *(f"results/{path.name}" for path in sorted((ROOT / "results").iterdir()))]
    for path in paths:
        if (uri := _uri(path)) and path not in FILTERED:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        name, text = f"notebooks/{notebook.stem}.md", notebook_page(notebook)
        files.append(File.generated(config, name, content=text))
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    text = "# How to cite\n\nCite the program, and the paper of each method that you use.\n"
    text += f"\n```yaml\n{citation}```\n"
    files.append(File.generated(config, CITATION, content=text))
    for path, (uri, title, purpose) in FILTERED.items():
        files.append(File.generated(config, uri, content=filtered_page(path, title, purpose)))
    for name, text in api_pages().items():
        files.append(File.generated(config, f"reference/api/{name}.md", content=text))
    return files


def filtered_page(path: str, title: str, purpose: str) -> str:
    """Returns a CSV as a page; site.js adds a box that filters the table's rows."""
    with open(ROOT / path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    lines = [_table_row(header, "th"), *(_table_row(row, "td") for row in rows)]
    table = "\n".join(["<table>", *lines, "</table>"])
    how = "Type a word, such as a paper's name, to see only the rows that have it."
    heading = f"# {title}\n\n{purpose} {how}"
    return f'{heading}\n\n<div class="filtered">\n{table}\n</div>\n'


def _table_row(row: list[str], tag: str) -> str:
    cells = f"</{tag}><{tag}>".join(html.escape(cell) for cell in row)
    cells = re.sub(r"`([^`<]+)`", r"<code>\1</code>", cells)
    return f"<tr><{tag}>{cells}</{tag}></tr>"


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
    # A search finds how-tos and answers first, then a paper's page, then its class.
    boosts = {
        "howto/": 3,
        "tutorials/": 3,
        "papers/": 2,
        "faq": 3,
        "results": 2,
        "notebooks": 0.5,
        "tables/": 0.3,
        "reference/": 0.5,
        "project/": 0.3,
    }
    boost = next((boost for start, boost in boosts.items() if uri.startswith(start)), 1)
    page.meta.setdefault("search", {"boost": boost})
    if uri in WORDS:
        page.meta.setdefault("tags", WORDS[uri].split())
    places = {_uri(path): path for path in PROJECT}
    tables = uri.startswith("tables/")
    path = places.get(uri) or (uri.replace("tables/", "results/", 1) if tables else f"docs/{uri}")
    parts = CODE.split(MARKS.sub(r"\1", markdown))
    for i in range(0, len(parts), 2):
        parts[i] = FORMULA.sub(_mathml, parts[i])
    text = LINK.sub(lambda match: _link(match, path, uri), "".join(parts))
    if uri in WORDS:  # as a tag a word moves a page up, and as text it lets the page be found
        text = re.sub(r"\n\n", f"\n\n<p hidden>{WORDS[uri]}</p>\n\n", text, count=1)
    return text


def _link(match: re.Match[str], path: str, uri: str) -> str:
    image, link, anchor = match[1], match[3], match[4] or ""
    text = LINK.sub(lambda inner: _link(inner, path, uri), match[2])  # an image with a link
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
    for pattern, replacement in AROUND:
        latex = pattern.sub(replacement, latex)
    formula: str = latex2mathml.converter.convert(latex, display=display)
    # At the beginning of a line Markdown takes an unknown tag for a block of its own.
    return formula if match[1] else f"<span>{formula}</span>"
