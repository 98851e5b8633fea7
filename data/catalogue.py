"""Where each dataset comes from and what is known of it, as catalogue.toml has it: there a section
is a dataset, and "$name" in its notes stands for a note that several share.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

from data.download import Source
from neucrowd_tf.datasets import Card


@functools.cache
def _sections() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def card(name: str) -> Card:
    """Returns what is known of a dataset."""
    found = {key: value for key, value in _sections()[name].items() if key != "published"}
    shared = _sections()["notes"]
    notes = re.sub(r"\$(\w+)", lambda word: str(shared[word[1]]), found.pop("notes", ""))
    return Card(**found, notes=notes)


def source(name: str) -> Source:
    """Returns where a dataset's files are published."""
    return Source(**_sections()[name]["published"])
