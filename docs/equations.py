"""Writes docs/reference/equations.md from docstrings' References and the single-file examples."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "equations.md"
MARK = re.compile(r"(<!-- index of equations -->\n).*?(<!-- end -->)", re.DOTALL)
# All that the papers number, and what they leave without a number under its section.
WANTED = {
    "NeuCrowd": "definitions 1 to 4, sections 3.3.1 to 3.3.4, section 3.4",
    "RLL": "sections III-A and III-B, eqs. 1 to 3",
    "CrowdInG": "eqs. 1 to 6, sections 3.2.1 and 3.2.2, sections 3.3.1 to 3.3.3",
    "DASC": "eqs. 1 to 11, algorithm 1",
    "ICED": "eqs. 2.1 to 2.5, definition 2, algorithm 1, sections 2.2 to 2.5",
}
# "eq. 3", "eqs. (8) and 9", "equations 2.1 to 2.3", "definition 4", "section 3.3.1", "III-A".
_NAMED = re.compile(
    r"\b(equations?|eqs?\.|definitions?|algorithms?|sections?) "
    r"((?:\(?[\dIVX]+(?:[.-][\dA-Z]+)*\)?(?:, | and | to |, and )?)+)",
    re.IGNORECASE,
)
# What stands in brackets beside a number, without a number of its own alone: "(delta in [0, 1])".
_ASIDE = re.compile(r" \((?![\dIVX.-]+\))((?:[^()]|\([^()]*\))*)\)")
# What is numbered and is no formula, years, and what follows a colon.
_OTHER = re.compile(r"\b(?:figures?|tables?|lines?|steps?) \d+|\b(?:19|20)\d\d\b|:.*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?![\w%])")
_KIND = {"eq": "eq.", "de": "definition", "al": "algorithm", "se": "section"}


def documented() -> Iterator[tuple[str, str, str]]:
    """Yields file, qualified name and docstring of each function and class of the library."""
    for folder in ("neucrowd_tf", "baselines"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for name, node in _definitions(tree, ""):
                if text := ast.get_docstring(node):
                    yield str(path.relative_to(ROOT)), name, text


def _definitions(
    tree: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield prefix + node.name, node
            yield from _definitions(node, f"{prefix}{node.name}.")


def references(docstring: str) -> set[tuple[str, str]]:
    """Returns the (paper, equation) pairs of a docstring's References: ("DASC", "eq. 3").

    Raises:
        ValueError: a reference to one of the papers has a number that is not read.
    """
    _, _, section = docstring.partition("References:")
    text = " ".join(section.split("\n\n")[0].split())
    result = set()
    for piece in re.split(r"; |\. (?=[A-Z])", text):
        paper = next((name for name in WANTED if re.search(rf"\b{name}\b", piece)), None)
        if paper is None:
            continue
        plain = _ASIDE.sub("", piece)
        for part in (plain, *_ASIDE.findall(piece)):
            result |= set(_named(paper, part))
        if unread := _NUMBER.findall(_OTHER.sub("", _NAMED.sub("", plain))):
            raise ValueError(f"References: {piece!r}: {', '.join(unread)} is not read")
    return result


def _named(paper: str, text: str) -> list[tuple[str, str]]:
    return [
        (paper, f"{_KIND[kind[:2].lower()]} {number}")
        for kind, numbers in _NAMED.findall(text)
        for number in _spread(numbers)
    ]


def _spread(text: str) -> list[str]:
    """Returns the numbers of "8 and 9", "(2.1) to (2.3)"."""
    plain = re.sub(r"[()]|[, .]*( and| to)?[, .]*$", "", text)
    if span := re.fullmatch(r"((?:\d+\.)*)(\d+) to ((?:\d+\.)*)(\d+)", plain):
        return [f"{span[1]}{number}" for number in range(int(span[2]), int(span[4]) + 1)]
    return [number.rstrip(".") for number in re.split(r", and |, | and ", plain) if number]


def index() -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """Returns for each wanted (paper, equation) the places: file, name, the docstring's summary.

    What names little else comes first, as it is the formula itself and not what uses it; an
    algorithm's first place is the one that names most, the whole of it.
    """
    places = {}
    for paper, wanted in WANTED.items():
        places |= {key: [] for key in _named(paper, wanted)}
    for path, name, text in documented():
        summary = " ".join(text.split("\n\n")[0].split())
        named = references(text)
        for key in named & places.keys():
            width = len(named)
            if key[1].startswith("algorithm"):
                width = -width
            places[key].append((width, -len(text), path, name, summary))
    for key, ranked in places.items():
        places[key] = [place[2:] for place in sorted(ranked)]
    return places


def counterparts() -> dict[tuple[str, str], list[str]]:
    """Returns for each (paper, equation) the functions of the paper's example.

    They are those whose docstrings name it, or else those under a heading that does.
    """
    named = defaultdict(list)
    under = defaultdict(list)
    for paper in WANTED:
        heading = []
        text = (ROOT / "examples" / f"{paper.lower()}.py").read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                heading = _named(paper, str(node.value.value).strip().split("\n")[0])
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                for key in _named(paper, ast.get_docstring(node) or ""):
                    named[key].append(node.name)
                for key in heading:
                    under[key].append(node.name)
    return under | named


def _short(path: str) -> str:
    return path.removeprefix("neucrowd_tf/").removesuffix(".py")


def _link(path: str, text: str) -> str:
    return f"[`{text}`](../../{path})"


def table() -> str:
    """Returns the index in Markdown, a row an equation."""
    rows = ["| paper | equation | what it is | where | in one file |", "|---|---|---|---|---|"]
    files = counterparts()
    for key, places in index().items():
        subject = ""
        if places:
            subject = places[0][2].replace("|", "\\|").removeprefix("Returns ")
        shown = "<br>".join(_link(path, f"{_short(path)}:{name}") for path, name, _ in places)
        example = f"examples/{key[0].lower()}.py"
        in_example = "<br>".join(_link(example, name) for name in files.get(key, ()))
        rows.append(f"| {' | '.join((*key, subject, shown, in_example))} |")
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """Returns the page with its table."""
    return MARK.sub(lambda match: match[1] + table() + match[2], text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
