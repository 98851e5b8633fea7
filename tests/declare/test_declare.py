"""Declarations say the same whether annotations are texts or types, inherited or one's own."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.declare.declarations import check_arguments, declared
from neucrowd_tf.declare.flag_parsing import from_values, parse
from neucrowd_tf.errors import UsageError
from tests.cases import cases, raises

SOURCE = '''
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from neucrowd_tf.declare.declarations import estimator, number, one_of, whole


@estimator
class Base:
    """Base."""

    rate: Annotated[float, number(above=0), "of Adam."] = 0.1
    epochs: Annotated[int, whole(1), "passes."] = 25
    patience: Annotated[Optional[int], whole(1), "in epochs."] = None
    schedule: Annotated[Literal["constant", "cosine"], "of the rates."] = "constant"
    normalise: Annotated[bool | Literal["length"], "what."] = False
    widths: Annotated[Sequence[int], "of layers."] = (64,)
    words: Annotated[str | None, one_of("a", "b"), "one word."] = None


@estimator
class Longer(Base):
    """Longer."""

    epochs: int = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags:
    """Flags."""

    input: Annotated[Path, "A file."]
    size: Annotated[Optional[int], whole(2, 9), "How many."] = None
    share: Annotated[float, number(least=0, most=1), "Of all."] = 1.0
    loud: Annotated[bool, "Or not."] = False
    by: Annotated[str, one_of("x", "y"), "Order."] = "x"
    names: Annotated[tuple[str, ...], "Names."] = ()
    pairs: Annotated[tuple[tuple[str, Any], ...], "Pairs."] = ()
    half: Annotated[int | str, lambda text: int(text) // 2, "Halved."] = 0
'''
FUTURE = "from __future__ import annotations\n"


@pytest.fixture(params=["", FUTURE], ids=["types", "texts"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    module = types.ModuleType("declarations_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(request.param + SOURCE, module.__name__, "exec", dont_inherit=True), vars(module))
    return module


def test_a_subclass_inherits_rule_and_meaning(module) -> None:
    epochs = {item.name: item for item in declared(module.Longer)}["epochs"]
    assert (epochs.default, epochs.meaning, epochs.kinds) == (50, "passes.", (int,))
    assert "epochs: passes." in module.Longer.__doc__
    with pytest.raises(UsageError, match=r"^epochs: expected a whole number from 1, received 0$"):
        check_arguments(module.Longer(epochs=0))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    cases("""
["patience", 0, "None or a whole number from 1"],
["schedule", "step", "'constant' or 'cosine'"],
["normalise", "l2", "True or False or 'length'"],
["words", "c", "None or 'a' or 'b'"],
["rate", null, "a number above 0"]
"""),
)
def test_types_are_part_of_the_rule(module, name: str, value, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_arguments(module.Base(**{name: value}))
    assert str(caught.value) == f"{name}: expected {expected}, received {value!r}"


def test_numbers_get_the_declared_type(module) -> None:
    model = module.Base(rate=1, epochs=np.int64(3), patience=np.int32(2), widths=np.array([4, 2]))
    check_arguments(model)
    values = (model.rate, model.epochs, model.patience, model.widths)
    assert values == (1.0, 3, 2, [4, 2])
    assert [type(value) for value in values] == [float, int, int, list]


def test_flags(module) -> None:
    items = ["--input=a.csv", "--size=3", "--share=.5", "--loud", "--by=y", "--names=a, b"]
    flags = parse(module.Flags, [*items, "--pairs=n=1", "--pairs=m=[2]", "--half=9"])
    assert flags == module.Flags(
        input=Path("a.csv"),
        size=3,
        share=0.5,
        loud=True,
        by="y",
        names=("a", "b"),
        pairs=(("n", 1), ("m", [2])),
        half=4,
    )
    assert from_values(module.Flags, {"input": "a", "share": 1, "names": [1]}) == module.Flags(
        input=Path("a"), names=("1",)
    )


@pytest.mark.parametrize(
    ("item", "message"),
    cases("""
["--size=1", "--size=1: must be a whole number from 2 to 9"],
["--size=x", "--size=x: must be a whole number"],
["--share=2", "must be a number from 0 and at most 1"],
["--by=z", "value should be one of <x|y>"],
["--loud=z", "must be true or false"]
"""),
)
def test_wrong_flags(module, item: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(module.Flags, ["--input=a", item])
    assert message in str(caught.value)
    raises(UsageError, "--input is missing: A file", parse, module.Flags, [])
