"""Cases of tests as text."""

from __future__ import annotations

import json
from typing import Any


def cases(text: str) -> list[Any]:
    """Returns the JSON values of a text, with commas between them."""
    return json.loads(f"[{text}]")
