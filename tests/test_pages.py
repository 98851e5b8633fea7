"""The one check of pages (`make check-pages`).

Generated pages are current, links lead somewhere, methods have their pages, and pages, messages and
help use the project's words (style_phrases.txt; CONTRIBUTING.md has the words to use instead).
"""

from __future__ import annotations

import ast
import csv
import functools
import importlib.util
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from neucrowd_tf.cli.runs import plugins
from neucrowd_tf.declare import registry
from tests.cases import cases, raises

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PHRASES = [
    line
    for line in (ROOT / "tests" / "style_phrases.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
PATTERN = re.compile(r"\b(?:" + "|".join(map(re.escape, PHRASES)) + r")\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|<!--.*?-->", re.DOTALL)
GENERATED = r"<!-- ([\w ]+) -->.*?<!-- end of \1 -->|\$\$.*?\$\$"
READERS = ("README", "SECURITY", "docs/tutorials", "docs/howto", "docs/methods", "docs/papers")


@functools.cache
def script(name: str):
    """Returns a module of docs/."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------- generated pages


def makers(name: str) -> dict[Path, Callable[[str], str]]:
    """Returns what a script of docs/ makes of the text of each of its pages."""
    module = script(name)
    if name == "deviations":
        return {module.TABLE: lambda _: module.table()}
    if name == "index":
        return {path: lambda _, text=text: text for path, text in module.texts().items()}
    if name in ("flags", "parameters"):
        return {module.PAGE: lambda _: module.table()}
    if name == "data_formats":
        return {module.PAGE: module.page, module.TABLE: lambda _: module.checks()}
    return {module.PAGE: module.page}


@pytest.mark.parametrize(
    "name", ["index", "flags", "data_formats", "parameters", "equations", "deviations"]
)
def test_generated_pages_are_current(name: str) -> None:
    for path, make in makers(name).items():
        text = path.read_text(encoding="utf-8")
        assert make(text) == text, f"{path}: run make pages"


def test_comments_on_deviations_have_their_parts() -> None:
    module = script("deviations")
    texts = list(module.comments())
    assert len(texts) > 50
    papers = {row["paper"] for row in module.deviations()}
    assert papers == {*module.PAPERS, module.OTHERS}
    for path, text in texts:
        parts = module.MARK.findall(text)
        assert parts in (["Paper", "Here", "Why", "Effect"], ["Here", "Why", "Effect"]), (
            f"{path}: write '# Deviation: PAPER PLACE. Paper: ... Here: ... Why: ... Effect: ...', "
            f"not {text[:80]!r}"
        )


def test_every_equation_has_its_function_and_its_example() -> None:
    module = script("equations")
    places = module.index()
    missing = [" ".join(key) for key, functions in places.items() if not functions]
    assert not missing, f"no docstring's References name {', '.join(missing)}"
    others = {("DASC", f"eq. {number}") for number in (5, 6, 7, 10, 11)}  # of two more base models
    text = "x\n\nReferences:\n    ICED, equations 2.3 (delta within [0, 1]) and 2.5."
    assert module.references(text) == {("ICED", "eq. 2.3"), ("ICED", "eq. 2.5")}
    raises(ValueError, "9 is not read", module.references, "x\n\nReferences:\n    ICED, rule 9.")
    missing = [" ".join(key) for key in places.keys() - others - module.counterparts().keys()]
    assert not missing, f"no function of an example names {', '.join(sorted(missing))}"


@pytest.mark.parametrize("paper", ["neucrowd", "rll", "crowding", "dasc", "iced"])
def test_a_papers_notebook_is_its_file_with_output(paper: str) -> None:
    module = script("notebooks")
    sources = module.cells((ROOT / "examples" / f"{paper}.py").read_text(encoding="utf-8"))
    assert module.sources(module.stored(paper)) == sources, "run python docs/notebooks.py"
    text = (DOCS / "notebooks" / f"{paper}.ipynb").read_text(encoding="utf-8")
    outputs = [output for cell in json.loads(text)["cells"] for output in cell.get("outputs", ())]
    assert any("test accuracy" in "".join(output.get("text", ())) for output in outputs)
    assert any("image/png" in output.get("data", ()) for output in outputs)


# ------------------------------------------------------------------- links and methods


def test_links_lead_somewhere() -> None:
    for path in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")]):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}"


def test_a_method_page_has_its_parts() -> None:
    for path in sorted((DOCS / "methods").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if "parameters.csv" in text and path.stem != "choice":
            assert "## When to use" in text and "$" in text, path
            assert path.stem == "baselines" or "## Equation" in text, path


def test_the_table_of_parameters_has_every_method_and_aggregator() -> None:
    import neucrowd_tf

    with open(script("parameters").PAGE, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    listed = {name for row in rows for name in row["classes"].split(", ")}
    wanted = {"NeuCrowd", "RLL", "CrowdInG", "DASC", "ICED", "Consensus", "Raykar", "DawidSkene"}
    assert wanted <= listed and {*listed} & {*neucrowd_tf.__all__} >= wanted - {"Raykar"}
    assert all(row["meaning"] for row in rows), "an argument has no meaning"


def test_every_registered_method_is_named_on_a_page() -> None:
    """`focal_...` and `focal_` are all names that begin so, `_ds` all that end so."""
    plugins.register(("baselines",))
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("[mpr][ea]*/*.md"))
    names = set(re.findall(r"`([a-z0-9_]+)(?:\.\.\.)?`", text))
    heads = [name for name in names if name.endswith("_")]
    tails = [name for name in names if name.startswith("_")]
    for package in ("neucrowd_tf.declare", "baselines"):
        for name in registry.read_index(package)["method"]:
            assert (
                name in names
                or any(name.startswith(x) and name.removeprefix(x) in names for x in heads)
                or any(name.endswith(x) and name.removesuffix(x) in names for x in tails)
            ), name


def test_what_one_may_write_has_the_figures_of_the_tables() -> None:
    text = " ".join((DOCS / "howto" / "paper_names.md").read_text(encoding="utf-8").split())
    text = text.replace(" > ", " ")
    rows = {}
    for table in ("neucrowd_table2", "rll_ladder", "crowding_table2", "dasc_table2", "iced_table2"):
        with open(ROOT / "results" / f"{table}.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                rows[row["dataset"], row["method"], row["metric"]] = row
    means = {key: f"{float(row['mean']):.3f}" for key, row in rows.items() if row["mean"]}
    for paper, data, published, changed in cases("""
["NeuCrowd", "hotel", "neucrowd_printed", "neucrowd"],
["RLL (eq. 2)", "hotel", "eq. 2 as published/rll_equations", "rll_bayesian"],
["CrowdInG", "labelme", "crowding_printed", "crowding"],
["CrowdInG", "music", "crowding_printed", "crowding"],
["DASC", "labelme", "dasc_crowd_layer", "dasc_crowd_layer"],
["ICED", "usps_syn", "iced_printed", "iced"]
"""):
        line = re.search(rf"{re.escape(paper)}, `{data}`[^|]*((?:\|[^|]*){{3}})", text)
        assert line, (paper, data)
        in_paper = "private"
        for form, metric in product((changed, published), ("accuracy", "last_round_accuracy")):
            if cell := rows.get((data, form, metric), {}).get("published"):
                in_paper = f"{float(cell):.3f}"
        figures = [means[data, form, "accuracy"] for form in (published, changed)]
        shown = re.findall(r"(?:\||our reading) ([\d.]+|private)", line[1])
        assert shown == [in_paper, *figures], (paper, data)
    for data, form, runs in (
        ("music", "crowding_printed", "a mean of five runs"),
        ("usps_syn", "iced_printed", "one run"),
    ):
        row = rows[data, form, "accuracy"]
        mean, low, high, published = (
            f"{float(row[name]):.3f}"
            for name in ("mean", "predicted_low", "predicted_high", "published")
        )
        sentence = f"accuracy {mean}; 95% prediction interval of {runs} [{low}, {high}]"
        assert f"{sentence}; published {published}" in text
    literal = means["usps_syn", "iced_literal", "accuracy"]
    assert f"`iced_literal`: {literal})" in text and f"`iced_literal` {literal} |" in text


# ------------------------------------------------------------------- words


def files() -> list[str]:
    names = subprocess.run(
        ["git", "ls-files", "*.md", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [name for name in names if not name.startswith("tests/") and name != "CONTRIBUTING.md"]


def texts(name: str) -> Iterator[str]:
    """Yields a page outside its code and quotations, or the strings of a module."""
    text = (ROOT / name).read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(text)) if name.endswith(".py") else [ast.Constant(text)]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\s+", " ", CODE.sub(" ", node.value))


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a page's prose; code, formulas and links' targets are left out."""
    text = re.sub(r"```.*?```|^[|#!].*?$", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|\$[^$]*\$", "x", re.sub(r"\]\([^)]*\)", "", text))
    for piece in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        yield from re.split(r"(?<=[.?!:])\**\s+", " ".join(piece.split()))


def prose_problems(name: str) -> Iterator[str]:
    """Yields cells of over 25 words and lines of over 200 characters.

    For pages of readers also sentences of over 25 words, and the page if it has over 1,500, or
    2,600 if it has all of a paper.
    """
    text = (ROOT / name).read_text(encoding="utf-8")
    for line in CODE.sub("x", text).splitlines():
        cells = line.strip("|").split("|") if line.startswith("|") else ()
        yield from (f"cell: {cell[:60]}" for cell in cells if len(cell.split()) > 25)
    prose = re.sub(r"^(```.*?^```|[|#!$<`].*?$)", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (f"line: {line[:60]}" for line in prose.splitlines() if len(line) > 200)
    if name.startswith(READERS):
        text = re.sub(GENERATED, "", text, flags=re.DOTALL)
        yield from (f"split: {x[:80]}" for x in sentences(text) if len(x.split()) > 25)
        most = 2600 if name.startswith("docs/papers/") else 1500
        if name.startswith("docs/") and len(re.sub(r"(?s)```.*?```", "", text).split()) > most:
            yield f"over {most:,} words; move a part to another page"


def test_words_and_sentences_are_readable() -> None:
    problems = {
        name: [
            *(phrase for text in texts(name) for phrase in PATTERN.findall(text)),
            *(prose_problems(name) if name.endswith(".md") else ()),
        ]
        for name in files()
    }
    assert not any(problems.values()), {name: x for name, x in problems.items() if x}


def test_all_pages_together_are_short() -> None:
    pages = [name for name in files() if name.endswith(".md")] + ["CONTRIBUTING.md"]
    words = sum(len((ROOT / name).read_text(encoding="utf-8").split()) for name in pages)
    assert words <= 50_000, "say each thing once; lists go into a CSV"


def test_no_page_has_a_placeholder_in_capitals() -> None:
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = re.sub(
            r"^```.*?^```|`[^`\n]+`", "", path.read_text(encoding="utf-8"), flags=re.M | re.S
        )
        assert not re.search(r"^[A-Z]{3,}(?:_[A-Z]+)+$", text, re.M), path
