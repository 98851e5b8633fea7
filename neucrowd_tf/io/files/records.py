"""JSON files whose fields are declared with their types."""

from __future__ import annotations

import dataclasses
import itertools
import types
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.json import read_json


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON file of this project, of which some fields are declared with their types.

    Attributes:
        content: the whole file, other fields included.
    """

    REMEDY: ClassVar[str] = "Remove it."

    content: Fields

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a file and checks the declared fields.

        Raises:
            DataError: no such file, not an object, or a field that is missing or of another type.
        """
        try:
            content = read_json(path)
        except DataError as error:
            raise DataError(f"{error}. {cls.REMEDY}") from None
        if not isinstance(content, dict):
            raise DataError(f"{path}: not an object. {cls.REMEDY}")
        kinds = get_type_hints(cls)
        values = {}
        for field in dataclasses.fields(cls)[1:]:
            value = content.get(field.name, field.default)
            if field.name not in content and callable(field.default_factory):
                value = field.default_factory()
            if not isinstance(value, _classes(kinds[field.name])):
                raise DataError(f"{path}: {field.name}: missing or of another type. {cls.REMEDY}")
            values[field.name] = value
        return cls(content=content, **values)


def _classes(kind: Any) -> tuple[type, ...]:
    """Returns the classes of an annotation: (list, NoneType) of `list[str] | None`."""
    if get_origin(kind) is types.UnionType:
        return tuple(itertools.chain.from_iterable(map(_classes, get_args(kind))))
    return (get_origin(kind) or kind,)
