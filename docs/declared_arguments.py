"""Extension of the API reference: constructors that `estimator` makes, with their arguments.

The reference reads source code without running it, so that it does not see a constructor that is
made from declarations. Here it gets signature and "Args:" from the class itself.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import typing
from typing import Any

import griffe

from neucrowd_tf.declare.declarations import declared

PACKAGE = "neucrowd_tf."


def runtime_class(path: str) -> type | None:
    """Returns the class of that path, None for other things."""
    module, _, name = path.rpartition(".")
    if not path.startswith(PACKAGE):
        return None
    try:
        value = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
    return value if inspect.isclass(value) else None


def shown_type(kinds: tuple[Any, ...]) -> str:
    """Returns how declared types are written: `int | None`."""
    names = []
    for kind in kinds:
        plain = inspect.isclass(kind) and not typing.get_args(kind)
        name = kind.__name__ if plain else str(kind)
        names.append(re.sub(r"\b(?:\w+\.)+", "", "None" if name == "NoneType" else name))
    return " | ".join(names)


class DeclaredArguments(griffe.Extension):
    """Gives each class with declared arguments the constructor that it has at run time."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        kind = runtime_class(cls.path)
        if not dataclasses.is_dataclass(kind) or "__init__" in cls.members:
            return
        types = {argument.name: shown_type(argument.kinds) for argument in declared(kind)}
        parameters = [
            griffe.Parameter(
                name,
                annotation=types.get(name),
                kind=griffe.ParameterKind(str(parameter.kind.description)),
                default=None if parameter.default is parameter.empty else repr(parameter.default),
            )
            for name, parameter in inspect.signature(kind.__init__).parameters.items()
        ]
        constructor = griffe.Function("__init__", parameters=griffe.Parameters(*parameters))
        cls.set_member("__init__", constructor)
        text = inspect.getdoc(kind)
        if text and cls.docstring is not None:
            cls.docstring.value = text
