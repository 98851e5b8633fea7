"""Writes each package's index.json: what its modules register, so that names cost no import."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from pathlib import Path
from typing import Any, get_args

from neucrowd_tf.declare import registry

ROOT = Path(__file__).resolve().parents[1]
# The folder of each package's index.
PACKAGES = {
    "neucrowd_tf": "neucrowd_tf/declare",
    "baselines": "baselines",
    "data": "data",
    "reproduction": "reproduction",
}


def import_all() -> None:
    """Imports every module but the commands."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("[!_]*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            importlib.import_module(".".join(parts))


def record(registered: Any, package: str) -> dict[str, Any]:
    """Returns the JSON object of a method, dataset or suite: what is not the default."""
    content: dict[str, Any] = {}
    for field in dataclasses.fields(registry.Entry):
        value = getattr(registered, field.name, field.default)
        if isinstance(field.default, tuple):
            value = tuple(value)
        if field.name == "module":
            value = value.removeprefix(package)
        if value != field.default:
            content[field.name] = value
    return content


def texts() -> dict[Path, str]:
    """Returns each index by its path."""
    import_all()
    result = {}
    for package, folder in PACKAGES.items():
        content: list[str] = []
        for kind in get_args(registry.Kind):
            entries = registry.registered(kind)
            names = list(entries) if kind == "suite" else sorted(entries)
            lines = [
                json.dumps(record(entries[name], folder))
                for name in names
                if entries[name].module.partition(".")[0] == package
            ]
            content.append(f'"{kind}": [\n' + ",\n".join(lines) + "\n]")
        result[ROOT / folder / registry.INDEX] = "{\n" + ",\n".join(content) + "\n}\n"
    return result


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
