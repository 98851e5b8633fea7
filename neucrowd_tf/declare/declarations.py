"""Declarations: each flag of a command and each argument of an estimator is declared once.

    @estimator
    class Method(CrowdEstimator):
        '''One line.'''

        epochs: Annotated[int, whole(1), "passes over the training instances."] = 25
        model_: Any = fitted()

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Flags(TableOptions):
        '''Infers one label per item.'''

        annotations: Annotated[Path, "Labels: CSV with task, annotator, label."]
        seed: Annotated[int, SEED, "Seed of random draws."] = 0

A declaration is a type, a rule and a meaning; without a default it is required. A subclass changes
a default by assigning another one (`epochs: int = 50`): rule and meaning stay. Types are read at
run time, so a module imports those that its declarations name.

`estimator` makes a keyword-only constructor out of the declarations, inherited ones too, so that
`help()`, an editor, `get_params`, `clone` and `GridSearchCV` see all of them; it adds "Args:" to
the docstring. `neucrowd_tf.declare.flag_parsing` parses the flags of a command line.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

import numpy as np

from neucrowd_tf.declare.types import Estimator
from neucrowd_tf.errors import UsageError

Kind = TypeVar("Kind", bound=type)


@dataclasses.dataclass(frozen=True)
class Constraint:
    """What a value may be.

    Attributes:
        expected: in words, for the error: "a whole number from 1".
        holds: whether a value will do.
        choices: the accepted words, if only these are.
    """

    expected: str
    holds: Callable[[Any], bool]
    choices: tuple[str, ...] = ()

    def __or__(self, other: Constraint) -> Constraint:
        """Returns the constraint that either of the two holds."""
        expected = f"{self.expected} or {other.expected}"
        return Constraint(expected, lambda x: self.holds(x) or other.holds(x))

    def check(self, name: str, value: object) -> None:
        """Raises UsageError, which begins with the argument's name, unless the constraint holds."""
        if not self.holds(value):
            raise UsageError(f"{name}: expected {self.expected}, received {value!r:.200}")


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, np.generic):
        value = value.item()
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # A whole number of hundreds of digits is finite, and none that computers reckon with.
    return number and abs(value) <= sys.float_info.max


def _is_list(value: object) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))


none = Constraint("None", lambda value: value is None)
boolean = Constraint("True or False", lambda value: isinstance(value, (bool, np.bool_)))
text = Constraint("text", lambda value: isinstance(value, str))
network = Constraint("a Keras model", callable)


def whole(least: int = 1, most: int | None = None) -> Constraint:
    """Returns the constraint of whole numbers from `least`, up to `most`."""

    def holds(value: Any) -> bool:
        return _is_whole(value) and value >= least and (most is None or value <= most)

    words = f"a whole number from {least}"
    if most is not None:
        words += f" to {most}"
    return Constraint(words, holds)


SEED = whole(0, 2**32 - 1)  # what scikit-learn and NumPy take


def number(
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> Constraint:
    """Returns the constraint of finite numbers within the bounds."""
    words = []
    bounds = []
    for word, holds_for, bound in (
        ("from", operator.ge, least),
        ("above", operator.gt, above),
        ("below", operator.lt, below),
        ("at most", operator.le, most),
    ):
        if bound is not None:
            words.append(f"{word} {bound:g}")
            bounds.append((holds_for, bound))

    def holds(value: Any) -> bool:
        return _is_number(value) and all(test(value, bound) for test, bound in bounds)

    return Constraint(f"a number {' and '.join(words)}".rstrip(), holds)


def one_of(*choices: str) -> Constraint:
    """Returns the constraint of a few names."""
    *first, last = map(repr, choices)
    spelt = " or ".join(filter(None, [", ".join(first), last]))
    return Constraint(spelt, lambda value: isinstance(value, str) and value in choices, choices)


def many(item: Constraint, entries: str, least: int = 1) -> Constraint:
    """Returns the constraint of a list whose entries all hold `item`.

    Args:
        item: the constraint of an entry.
        entries: names the entries in messages, such as "numbers above 0".
        least: the smallest length.
    """

    def holds(value: Any) -> bool:
        return _is_list(value) and len(value) >= least and all(map(item.holds, value))

    return Constraint(f"a list of {entries}", holds)


widths = many(whole(1), "whole numbers from 1")
strengths = many(number(above=0), "numbers above 0")
share = number(above=0, below=1)


@dataclasses.dataclass(frozen=True)
class Declaration:
    """A declared argument of an estimator, or flag of a command.

    Attributes:
        kinds: its types, those of a union each; None is not among them.
        default: MISSING if it is required.
        rule: what it may be; None leaves the check to the method.
        meaning: what it does, with units and the paper's symbol.
        convert: makes a flag's value of its text, or raises ValueError; None for the types' own.
        positional: whether it may stand without its name (a method's one natural first argument).
    """

    name: str
    kinds: tuple[Any, ...]
    default: Any
    rule: Constraint | None = None
    meaning: str = ""
    convert: Callable[[str], Any] | None = None
    positional: bool = False


def fitted(*, init: Literal[False] = False) -> Any:
    """Declares a result of `fit`, whose name ends in `_`; type checkers see that by `init`."""
    return dataclasses.field(init=init)


@dataclass_transform(kw_only_default=True, field_specifiers=(fitted, dataclasses.field))
def estimator(kind: Kind) -> Kind:
    """Makes the constructor from the declarations of a class and its bases, and documents it."""
    description = inspect.cleandoc(kind.__doc__ or "")
    decorated: Any = dataclasses.dataclass(eq=False, repr=False, kw_only=True)(kind)
    decorated.__doc__ = _documented(description, decorated)
    return kind


def declared(kind: object) -> list[Declaration]:
    """Returns the arguments of an estimator or its class, or the flags of a command.

    Positional ones come first, then the class's own, then those of its bases.
    """
    return list(_declared(kind if isinstance(kind, type) else type(kind)))


def declared_by_name(kind: object) -> dict[str, Declaration]:
    """Returns what `declared` returns by name."""
    return {declaration.name: declaration for declaration in declared(kind)}


@functools.cache
def _declared(kind: type) -> tuple[Declaration, ...]:
    depth: dict[str, int] = {}
    for level, base in enumerate(kind.__mro__):
        depth |= dict.fromkeys(inspect.get_annotations(base), level)
    fields = [field for field in dataclasses.fields(kind) if field.init]  # type: ignore[arg-type]
    fields.sort(key=lambda field: (bool(field.kw_only), depth.get(field.name, 0)))
    return tuple(_declaration(kind, field) for field in fields)


# A class's own annotations, evaluated in its module: `typing.get_type_hints` evaluates those of all
# bases again, and functions within rules then lack their module's names.
_types = functools.cache(functools.partial(inspect.get_annotations, eval_str=True, locals={}))


def _declaration(kind: type, field: dataclasses.Field[object]) -> Declaration:
    """Returns a field's declaration: the nearest type, the nearest rule and meaning."""
    hints = []
    for base in kind.__mro__:
        if field.name in inspect.get_annotations(base):
            hints.append(_types(base)[field.name])
    nearest = hints[0]
    if typing.get_origin(nearest) is Annotated:
        nearest = nearest.__origin__
    metadata: tuple[Any, ...] = ()
    for hint in reversed(hints):
        metadata = getattr(hint, "__metadata__", metadata)
    members = (nearest,)
    if typing.get_origin(nearest) in (typing.Union, types.UnionType):
        members = typing.get_args(nearest)
    kinds = tuple(member for member in members if member is not types.NoneType)
    rule = next((item for item in metadata if isinstance(item, Constraint)), None)
    if metadata and rule is None:
        rule = _implied(kinds)
    if rule is not None and types.NoneType in members and not rule.holds(None):
        rule = dataclasses.replace(none | rule, choices=rule.choices)
    return Declaration(
        name=field.name,
        kinds=kinds,
        default=field.default,
        rule=rule,
        meaning=next((item for item in metadata if isinstance(item, str)), ""),
        convert=next((item for item in metadata if callable(item)), None),
        positional=not field.kw_only,
    )


def _implied(kinds: Sequence[object]) -> Constraint | None:
    """Returns the rule that types imply if each is bool or a Literal of words."""
    rules: list[Constraint] = []
    for kind in kinds:
        if kind is bool:
            rules.append(boolean)
        elif typing.get_origin(kind) is Literal:
            rules.append(one_of(*typing.get_args(kind)))
        else:
            return None
    return functools.reduce(Constraint.__or__, rules)


def _documented(text: str, kind: object) -> str:
    """Returns the docstring with "Args:" before its first other section."""
    lines = []
    for argument in declared(kind):
        lines += textwrap.wrap(
            ": ".join(filter(None, [argument.name, argument.meaning])),
            96,
            initial_indent="    ",
            subsequent_indent="        ",
            break_on_hyphens=False,
        )
    if not lines:
        return text
    sections = ("\nAttributes:\n", "\nRaises:\n", "\nReferences:\n")
    places = [place for place in map(text.find, sections) if place >= 0]
    cut = min(places, default=len(text))
    parts = [text[:cut].rstrip(), "Args:\n" + "\n".join(lines), text[cut:].strip("\n")]
    return "\n\n".join(filter(None, parts))


def check_arguments(estimator: Estimator) -> None:
    """Checks the arguments of an estimator and converts numbers to Python's types.

    NumPy's numbers become Python's, and whole ones floats if the annotation says so: Keras accepts
    no others.

    Raises:
        UsageError: the first argument, in the order of `declared`, that breaks its constraint:
            "name: expected ..., received ...".
    """
    for argument in declared(estimator):
        value = getattr(estimator, argument.name)
        if argument.rule is not None:
            argument.rule.check(argument.name, value)
        plain = _plain(value, argument.kinds)
        if plain is not value:
            setattr(estimator, argument.name, plain)


def _plain(value: Any, kinds: Sequence[Any] = ()) -> Any:
    """Returns a number, or a list of numbers, in Python's types; the value itself where it is."""
    if isinstance(value, np.ndarray) and any(typing.get_origin(kind) is Sequence for kind in kinds):
        return value.tolist()
    if type(value) in (list, tuple):
        plain = list(map(_plain, value))
        if all(map(operator.is_, plain, value)):
            return value
        return type(value)(plain)
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    if float in kinds and int not in kinds and type(value) is int:
        return float(value)
    return value
