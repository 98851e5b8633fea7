"""The errors a user can mend: each message is one line that says where, what was expected and what was received."""

from __future__ import annotations


class DataError(ValueError):
    """Input data that cannot be used as it is; the message names the file, row and column where known."""


class IdentitiesError(DataError):
    """A method needs to know who gave which label, but the data holds vote counts only."""


class UnsupportedDataError(DataError):
    """The data is valid, but this method does not handle its kind (the number of classes, say)."""


class UsageError(ValueError):
    """A flag or an argument whose value cannot be used."""
