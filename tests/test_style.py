"""Pages, docstrings, messages and help use the project's words: no phrase of style_phrases.txt."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
PHRASES = [
    line
    for line in (HERE / "style_phrases.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
PATTERN = re.compile(r"\b(?:" + "|".join(map(re.escape, PHRASES)) + r")\b", re.IGNORECASE)
# Pages that quote the phrases.
EXEMPT = ("CONTRIBUTING.md",)
# How often a file still has such phrases, and cells of over 25 words; the list may only shrink.
EXCEPTIONS = {
    name: int(count)
    for line in (HERE / "style_exceptions.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
    for name, _, count in [line.partition(" ")]
}
CODE = re.compile(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|<!--.*?-->", re.DOTALL)
LONGEST_CELL = 25


def files() -> list[str]:
    names = subprocess.run(
        ["git", "ls-files", "*.md", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [name for name in names if not name.startswith("tests/") and name not in EXEMPT]


def texts(name: str) -> Iterator[str]:
    """Yields a page outside its code and quotations, or the strings of a module."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        yield CODE.sub(" ", text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield CODE.sub(" ", node.value)


def offences(name: str) -> Iterator[str]:
    for text in texts(name):
        yield from PATTERN.findall(re.sub(r"\s+", " ", text))
    if name.endswith(".md"):
        for line in CODE.sub("x", (ROOT / name).read_text(encoding="utf-8")).splitlines():
            if line.startswith("|"):
                cells = (len(cell.split()) for cell in line.strip("|").split("|"))
                yield from ("a cell of over 25 words" for words in cells if words > LONGEST_CELL)


@pytest.mark.parametrize("name", files())
def test_no_phrase_that_readers_must_decode(name: str) -> None:
    phrases = Counter(phrase.lower() for phrase in offences(name))
    allowed = EXCEPTIONS.get(name, 0)
    assert phrases.total() <= allowed, f"{name}: {dict(phrases)}, at most {allowed} allowed"


def test_prose_has_no_long_lines_and_pages_are_short() -> None:
    """Prose has at most 200 characters a line, and a page of docs/ for readers 1,500 words."""
    long_lines, long_pages = [], {}
    for name in files():
        if not name.endswith(".md"):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        prose = re.sub(r"^(```.*?^```|[|#!$<`].*?$)", "", text, flags=re.MULTILINE | re.DOTALL)
        long_lines += [f"{name}: {line[:60]}" for line in prose.splitlines() if len(line) > 200]
        words = re.sub(
            r"```.*?```|\$\$.*?\$\$|<!-- (\w+) -->.*?<!-- end of \1 -->", "", text, flags=re.DOTALL
        )
        if name.startswith(("docs/tutorials", "docs/howto", "docs/methods")):
            long_pages |= {name: len(words.split())} if len(words.split()) > 1500 else {}
    assert not long_lines, f"lines of over 200 characters: {long_lines}"
    assert not long_pages, f"pages of over 1,500 words; move a part to another page: {long_pages}"


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a page's prose; code, formulas and links' targets are left out."""
    text = re.sub(r"<!-- (\w+) -->.*?<!-- end of \1 -->|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|^[|#!].*?$", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`|\$[^$]*\$", "x", re.sub(r"\]\([^)]*\)", "", text))
    for piece in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        yield from re.split(r"(?<=[.?!:])\**\s+", " ".join(piece.split()))


def test_sentences_have_at_most_25_words() -> None:
    readers = ("README", "SECURITY", "docs/tutorials", "docs/howto", "docs/methods")
    long = [
        f"{name}: {sentence[:80]}"
        for name in files()
        if name.startswith(readers) and name.endswith(".md")
        for sentence in sentences((ROOT / name).read_text(encoding="utf-8"))
        if len(sentence.split()) > 25
    ]
    assert not long, f"split these sentences: {long}"


def test_exceptions_only_shrink() -> None:
    """An exception that is no longer needed leaves the list."""
    counted = {name: sum(1 for _ in offences(name)) for name in files()}
    stale = {
        name: counted.get(name, 0) for name in EXCEPTIONS if counted.get(name, 0) < EXCEPTIONS[name]
    }
    assert not stale, f"lower these in style_exceptions.txt: {stale}"


def test_every_marked_test_exists() -> None:
    for line in (HERE / "marks.txt").read_text(encoding="utf-8").splitlines():
        path, *_, name = line.partition(" ")[2].split("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"marks.txt: {line}"
