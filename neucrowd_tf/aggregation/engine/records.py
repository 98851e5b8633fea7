"""What a fit records in its folder: the digests of what it read and of what it wrote."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from neucrowd_tf.aggregation.engine.source import Source
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.files.json import jsonable
from neucrowd_tf.io.files.reading import digest

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps functions over parts, on threads or on other machines."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields `function(item)` of each item, in their order."""

    def close(self) -> None:
        """Ends its threads or processes."""


def in_order(submit: Callable[[Item], Any], items: Iterable[Item], ahead: int) -> Iterator[Any]:
    """Yields the result of each item, in their order; at most `ahead` futures wait meanwhile.

    So memory does not grow with the number of items.
    """
    waiting: deque[Any] = deque()
    try:
        for item in items:
            waiting.append(submit(item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def origin_of(annotations: Path, source: Source, engine: Engine) -> dict[str, Any]:
    """Returns what shards are made of, as JSON has it.

    Returns:
        `files`, the SHA-256 of each file of annotations by its path in their folder, and `layout`,
        the options of reading that differ from their defaults.
    """
    names = (
        file.relative_to(annotations).as_posix() if file != annotations else file.name
        for file in source.files
    )
    files = dict(zip(names, engine.map(digest, source.files), strict=True))
    return {"files": files, "layout": jsonable(source.options.changed())}


def check_origin(origin: Mapping[str, Any], before: Mapping[str, Any], output: Path) -> None:
    """Raises UsageError if the annotations differ from those of an earlier fit.

    Args:
        origin: see `origin_of`.
        before: that of the fit in `output`.
        output: its folder.
    """
    files, now = before["files"], origin["files"]
    if files == now:
        return
    name = next(name for name in [*files, *now] if files.get(name) != now.get(name))
    was = f"{name} as it was (SHA-256 {files[name][:12]})" if name in files else f"no {name},"
    received = f"it changed ({now[name][:12]})" if name in now else "none"
    raise UsageError(
        f"--annotations: expected {was} when the fit in {output} was begun, received"
        f" {received if name in files else 'one'}; choose another --output, or remove that folder"
    )


def digests(folder: Path, names: Iterable[str], engine: Engine) -> dict[str, str]:
    """Returns the SHA-256 of files in a folder, by their names."""
    listed = list(names)
    return dict(zip(listed, engine.map(digest, [folder / name for name in listed]), strict=True))


def changed(folder: Path, before: Mapping[str, str], engine: Engine) -> Path | None:
    """Returns the first file that is missing or differs from its digest in `before`, or None."""
    for name in before:
        if not (folder / name).is_file():
            return folder / name
    now = digests(folder, before, engine)
    return next((folder / name for name in before if now[name] != before[name]), None)
