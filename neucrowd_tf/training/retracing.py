"""TensorFlow's warnings of retracing, which several fits in one process bring."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_NOTE = "triggered tf.function retracing"


def _is_no_note(record: logging.LogRecord) -> bool:
    return _NOTE not in record.getMessage()


@contextlib.contextmanager
def retracing_expected() -> Iterator[None]:
    """Keeps TensorFlow from warning of retracing: each fit traces its own network once, which looks
    to it like one function that is traced again and again.
    """
    logger = logging.getLogger("tensorflow")
    if _is_no_note in logger.filters:
        yield
        return
    logger.addFilter(_is_no_note)
    try:
        yield
    finally:
        logger.removeFilter(_is_no_note)
