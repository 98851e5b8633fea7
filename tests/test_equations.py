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


def test_the_formula_stands_before_what_uses_it(equations: ModuleType) -> None:
    first = {" ".join(key): places[0][1] for key, places in equations.index().items()}
    assert first["CrowdInG eq. 5"] == "counterfactual_risk"
    assert first["NeuCrowd definition 3"] == "safe_examples"
    assert first["DASC eq. 4"] == "fractions"
    assert first["ICED algorithm 1"] == "ICED._fit"


def test_references_are_read(equations: ModuleType) -> None:
    text = """Does.

    References:
        DASC, eqs. 8 to 10 and algorithm 1; ICED, definition 2 and equation (2.4).
        Kipf and Welling (2017), eq. 2. RLL, section III-A.

    eq. 7 of DASC is not a reference.
    """
    assert equations.references(text) == {
        ("DASC", "eq. 8"),
        ("DASC", "eq. 9"),
        ("DASC", "eq. 10"),
        ("DASC", "algorithm 1"),
        ("ICED", "definition 2"),
        ("ICED", "eq. 2.4"),
        ("RLL", "section III-A"),
    }
