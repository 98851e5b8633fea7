"""Names in a frame that often stand for none, or are one in two spellings, told in a line: whoever
holds a frame mends it there, as files are by flags.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from neucrowd_tf.io.names.ids import spelt
from neucrowd_tf.io.names.missing import is_marker
from neucrowd_tf.io.names.spelling import is_plain_id, meant, same_task

_WHAT = {"task": "an instance", "worker": "an annotator", "label": "a class"}


def tell_names(names: Iterable[Any], role: str, source: str) -> None:
    """Warns of the first name that often stands for none (of labels also -1), and of the first two
    that are spelt alike.

    Args:
        names: distinct names.
        role: task, worker or label.
        source: what to call the frame.
    """
    alike: Callable[[Any], Any] = same_task if role == "task" else meant
    seen: dict[Any, Any] = {}
    none: list[Any] = []
    twins: list[tuple[Any, Any]] = []
    names = list(names)
    if role != "label" and (all(type(name) is int for name in names) or _are_plain(names)):
        return
    for name in names:
        look = alike(name)
        if is_marker(name) or (role == "label" and look == -1):
            none.append(name)
        other = seen.setdefault(look, name)
        if other is not name:
            twins.append((other, name))
    if none:
        _tell(
            f"{source}: the {role} {spelt(none[0])}{_more(none)} often stands for none, and is"
            f" taken for {_WHAT[role]}; leave out rows of none"
            + ", or class_names=... names all classes"
            * (role == "label")
        )
    if twins:
        one, other = map(spelt, twins[0])
        _tell(
            f"{source}: the {role}s {one} and {other}{_more(twins)} differ in how they are spelt"
            f" alone, and are taken for two; spell them alike if they are one"
        )


def _are_plain(names: list[Any]) -> bool:
    """Whether all names are plain ids (t17) without case's twins; there may be a million."""
    return all(
        isinstance(name, str) and name[:1].isalpha() and is_plain_id(name) for name in names
    ) and len({name.lower() for name in names}) == len(names)


def _more(found: list[Any]) -> str:
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""


def _tell(text: str) -> None:
    warnings.warn(text, stacklevel=5)
