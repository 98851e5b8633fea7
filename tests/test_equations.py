"""docs/reference/equations.md: complete, true, and read off the docstrings."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def equations() -> ModuleType:
    spec = importlib.util.spec_from_file_location("equations", ROOT / "docs" / "equations.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    setattr(module, "index", functools.cache(module.index))  # noqa: B010 (a module's attribute)
    return module


def test_every_equation_of_the_papers_has_its_function(equations: ModuleType) -> None:
    missing = [" ".join(key) for key, places in equations.index().items() if not places]
    assert not missing, f"no docstring's References name {', '.join(missing)}"


def test_every_equation_of_the_papers_is_in_the_papers_example(equations: ModuleType) -> None:
    others = {("DASC", f"eq. {number}") for number in (5, 6, 7, 10, 11)}  # of two more base models
    wanted = equations.index().keys() - others
    missing = [" ".join(key) for key in wanted - equations.counterparts().keys()]
    assert not missing, f"no function of an example names {', '.join(sorted(missing))}"


def test_the_page_is_what_the_docstrings_say(equations: ModuleType) -> None:
    text = (ROOT / "docs" / "reference" / "equations.md").read_text(encoding="utf-8")
    assert equations.page(text) == text, "run python docs/equations.py"
