"""What public classes say of their types can be read by tools."""

from __future__ import annotations

import importlib
import inspect
import typing
from pathlib import Path


def test_the_types_of_every_public_class_can_be_read(repository: Path) -> None:
    unread, classes = [], 0
    for folder in ("neucrowd_tf", "baselines", "data"):
        for path in sorted((repository / folder).rglob("[!_]*.py")):
            name = ".".join(path.relative_to(repository).with_suffix("").parts)
            module = importlib.import_module(name)
            for public, member in vars(module).items():
                if public.startswith("_") or not inspect.isclass(member):
                    continue
                if member.__module__ != name:
                    continue
                classes += 1
                try:
                    typing.get_type_hints(member)
                except NameError as error:
                    unread.append(f"{name}.{public}: {error}")
    assert classes > 200 and not unread, "\n".join(unread)
