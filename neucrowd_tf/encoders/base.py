"""What all encoders do: each item is encoded once, and its vector is kept."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from neucrowd_tf.declare.types import Array, Floats32
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.cache import cache_dir
from neucrowd_tf.names import without
from neucrowd_tf.saving.persistent import Persistent
from neucrowd_tf.saving.transaction import transaction

AT_ONCE = 256  # vectors that are written or looked up together


class Encoder(Persistent, BaseEstimator):
    """A trained network from texts or images to vectors, with a cache.

    Attributes:
        digest_: SHA-256 of the network and of all that its vectors depend on.
    """

    takes: ClassVar[str]  # "texts" or "images"
    source: str
    digest_: str
    _vectors: dict[bytes, bytes]

    def fit(self, items: object = None, y: object = None) -> Any:
        """Finds the network and computes its digest; nothing is learned.

        Args:
            items: texts or images.
            y: ignored; a `Pipeline` passes it.
        """
        raise NotImplementedError

    def _find_network(self, items: object) -> None:
        """Finds the network of a loaded encoder; raises DataError if it is another one."""
        if not hasattr(self, "_vectors"):
            before = getattr(self, "digest_", None)
            with transaction(self):
                if before not in (None, self.fit(items).digest_):
                    raise DataError(
                        f"{self.source}: not the encoder that the model was trained with. Restore"
                        " that one, or fit again."
                    )

    def _blank(self) -> object:
        """Returns an item that can always be encoded."""
        raise NotImplementedError

    def _encoded(self, items: list[Any]) -> Iterator[Floats32]:
        """Yields the vectors of items that are in no cache, with progress."""
        raise NotImplementedError

    def _cached(self, keys: Sequence[bytes], items: Sequence[object] | Array) -> Floats32:
        """Returns the vectors `[M, d]` of items with these digests, from the cache if possible.

        Raises:
            DataError: the network cannot be read, or it is another one than before.
        """
        self._find_network(items)
        if not keys:
            return np.stack([*self._encoded([self._blank()])])[:0]
        vectors = self._vectors
        item_of = dict(zip(keys, items, strict=True))
        new = without(item_of, vectors)
        if new:
            vectors |= self._stored(new)
        missing = without(new, vectors)
        if missing:
            items_of_missing = list(map(item_of.__getitem__, missing))
            encoded = map(np.ndarray.tobytes, self._encoded(items_of_missing))
            pairs = zip(missing, encoded, strict=True)
            while block := dict(itertools.islice(pairs, AT_ONCE)):
                self._store(block)
                vectors |= block
        return np.stack([np.frombuffer(vectors[key], np.float32) for key in keys])

    # A cache file that cannot be read or written is treated as empty; its vectors are recomputed.

    def _stored(self, keys: list[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors on disk among those with these keys."""
        rows: dict[bytes, bytes] = {}
        with contextlib.suppress(sqlite3.Error, OSError), self._database() as database:
            for start in range(0, len(keys), AT_ONCE):
                block = keys[start : start + AT_ONCE]
                marks = ",".join("?" * len(block))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                rows |= dict(database.execute(query, block))
        return rows

    def _store(self, vectors: Mapping[bytes, bytes]) -> None:
        """Writes vectors by digest to the file on disk."""
        with contextlib.suppress(sqlite3.Error, OSError), self._database() as database:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", vectors.items())

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Opens the encoder's file in the cache folder; several processes may use it."""
        path = cache_dir() / "encoders" / f"{self.digest_}.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)"
            )
            yield database
