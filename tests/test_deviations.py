"""Every `Deviation:` comment says what, why and the effect, and stands in docs/research/."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def deviations() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deviations", ROOT / "docs" / "deviations.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_comments_have_their_parts(deviations: ModuleType) -> None:
    texts = list(deviations.comments())
    assert len(texts) > 50
    for path, text in texts:
        parts = deviations.MARK.findall(text)
        assert parts in (["Paper", "Here", "Why", "Effect"], ["Here", "Why", "Effect"]), (
            f"{path}: write '# Deviation: PAPER PLACE. Paper: ... Here: ... Why: ... Effect: ...', "
            f"not {text[:80]!r}"
        )


@pytest.mark.parametrize("page", ["neucrowd", "rll", "dasc", "crowding", "iced", "others"])
def test_pages_have_the_comments(deviations: ModuleType, page: str) -> None:
    text = (ROOT / "docs" / "research" / f"{page}.md").read_text(encoding="utf-8")
    assert deviations.lines(page)
    assert deviations.updated(page, text) == text, "run python docs/deviations.py"
