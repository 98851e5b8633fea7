"""Cases of tests as text, and calls that have to raise an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest


def cases(text: str) -> list[Any]:
    """Returns the JSON values of a text, with commas between them."""
    return json.loads(f"[{text}]")


def raises(error: type[Exception], match: str, call: Callable[..., object], /, *args, **options):
    """Checks that a call raises such an error with such a message."""
    with pytest.raises(error, match=match):
        call(*args, **options)
