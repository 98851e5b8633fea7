"""What all encoders do: each item is encoded once, and its vector is kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from neucrowd_tf.encoders.store import Store
from neucrowd_tf.errors import DataError
from neucrowd_tf.persistence import Persistent

if TYPE_CHECKING:
    from numpy.typing import NDArray

STORED_AT_ONCE = 256


class Encoder(Persistent, BaseEstimator):
    """A trained network from texts or images to vectors, with a cache.

    Attributes:
        digest_: SHA-256 of the network and of all that its vectors depend on.
    """

    takes: ClassVar[str]  # "texts" or "images"
    source: str
    digest_: str
    _vectors: dict[bytes, bytes]

    def fit(self, items: Any = None) -> Any:
        """Finds the network and takes its digest; nothing is learned."""
        raise NotImplementedError

    def _find_network(self, items: Any) -> None:
        """Finds the network of a loaded encoder; raises DataError if it is another one."""
        if not hasattr(self, "_vectors"):
            before = getattr(self, "digest_", None)
            if before not in (None, self.fit(items).digest_):
                raise DataError(f"{self.source}: another encoder than the model was trained with.")

    def _encoded(self, items: list[Any]) -> Iterator[NDArray[np.float32]]:
        """Yields the vectors of items that are in no cache, with progress."""
        raise NotImplementedError

    def _cached(
        self, keys: Sequence[bytes], items: Sequence[Any] | NDArray[Any]
    ) -> NDArray[np.float32]:
        """Returns the vectors `[M, d]` of items with these digests, from the cache if possible.

        Raises:
            DataError: the network cannot be read, or it is another one than before.
        """
        self._find_network(items)
        vectors = self._vectors
        new = {key: one for key, one in zip(keys, items, strict=True) if key not in vectors}
        if new:
            store = Store(self.digest_)
            vectors |= store.read(new)
            missing = [key for key in new if key not in vectors]
            fresh = self._encoded([new[key] for key in missing]) if missing else iter(())
            pairs = ((key, next(fresh).tobytes()) for key in missing)
            while block := dict(itertools.islice(pairs, STORED_AT_ONCE)):
                store.write(block)
                vectors |= block
        return np.stack([np.frombuffer(vectors[key], np.float32) for key in keys])
