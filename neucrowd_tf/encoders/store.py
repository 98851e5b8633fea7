"""Vectors of texts and images on disk, by the digest of the encoder and of the item."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from neucrowd_tf.io.files.cache import cache_dir

_AT_ONCE = 500  # SQLite's older versions allow 999 values in a query


class Store:
    """A file of vectors for one encoder; several processes may use it.

    A file that cannot be read or written is treated as empty: vectors are then computed again.
    """

    def __init__(self, encoder: str, folder: Path | None = None) -> None:
        """Names the file.

        Args:
            encoder: the encoder's digest.
            folder: where the file is; None for `encoders` in the cache folder.
        """
        self._path = (folder or cache_dir() / "encoders") / f"{encoder}.sqlite"

    def read(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the stored vectors among those with these keys."""
        wanted = list(keys)
        rows: dict[bytes, bytes] = {}
        with contextlib.suppress(sqlite3.Error, OSError), self._open() as database:
            for start in range(0, len(wanted), _AT_ONCE):
                block = wanted[start : start + _AT_ONCE]
                marks = ",".join("?" * len(block))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                rows |= dict(database.execute(query, block))
        return rows

    def write(self, vectors: Mapping[bytes, bytes]) -> None:
        """Stores vectors by key."""
        with contextlib.suppress(sqlite3.Error, OSError), self._open() as database:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", vectors.items())

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(self._path, timeout=30)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)"
            )
            yield database
