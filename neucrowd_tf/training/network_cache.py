"""Estimators whose fits share a compiled network, and snapshots of their fitted state."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Self, TypeVar

Network = TypeVar("Network")


EACH = 4
_made = itertools.count(1)


def free_earlier() -> None:
    """Frees what networks left that nothing refers to any more, as a new one is made.

    TensorFlow keeps a kernel of 36 kB for each variable's name and each function's, for as long as
    the process lives; those in use are rebuilt. The networks themselves are circles of
    references of 2 to 10 MB, which wait for Python's collector. It counts objects, of which
    TensorFlow has so many that it comes once in ten or twenty networks: so after each fourth one.
    """
    from tensorflow.python.eager import context  # as Keras' clear_session does

    number = next(_made)
    if number > 1 and number % EACH == 1:
        gc.collect()
    context.context().clear_kernel_cache()


class NetworkCache:
    """The latest thing that was built, by its specification.

    A specification names all that a network depends on (shapes, widths, rates, a strategy's
    identity); what is not in it may change between fits without a new network.
    """

    def __init__(self) -> None:
        self._spec: Hashable = None
        self._network: Any = None

    def get(self, spec: Hashable, build: Callable[[], Network]) -> Network:
        """Returns what was built for an equal `spec`, or builds it."""
        if self._network is None or spec != self._spec:
            self.clear()  # room first: two large networks at a time are one too many
            self._network, self._spec = build(), spec
        return self._network  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Forgets everything, and with it frees the memory."""
        self._spec = self._network = None


class ReusesNetworks:
    """An estimator whose fits may share compiled networks.

    Attributes (of no copy):
        _networks: what is shared, within `reused()`; `_network` the latest fit's there.
        _functions: what predictions compiled.
    """

    _networks: NetworkCache | None = None
    _network: Any = None
    _functions: NetworkCache | None = None

    @contextlib.contextmanager
    def reused(self, cache: NetworkCache | None = None) -> Iterator[None]:
        """Lets fits on data of one shape share one compiled network within this context.

        Its memory is kept, and `network` gives it. Only the latest fit's predictions can be asked
        for.

        Args:
            cache: one of the caller's own, which keeps networks beyond the context.
        """
        before = self._networks
        self._networks = NetworkCache() if cache is None else cache
        try:
            yield
        finally:
            self._networks, self._network = before, None


class Snapshots:
    """An estimator with a Keras model `model_`, whose fitted state can be kept and taken back."""

    model_: Any

    def snapshot(self) -> dict[str, Any]:
        """Returns the fitted state as arrays and plain values.

        The estimator may then be refitted in place.
        """
        from neucrowd_tf.training.state import read_variables

        state = {
            name: copy.copy(value)
            for name, value in vars(self).items()
            if name.endswith("_") and name != "model_"
        }
        return {"state": state, "weights": read_variables(self.model_.variables)}

    def from_snapshot(self, snapshot: dict[str, Any]) -> Self:
        """Returns a fitted estimator of its own that is as this one was then."""
        import keras
        from sklearn.base import clone

        estimator: Self = clone(self)
        estimator.model_ = keras.models.clone_model(self.model_)
        return estimator.load_snapshot(snapshot)

    def load_snapshot(self, snapshot: dict[str, Any]) -> Self:
        """Takes a snapshot's state in place; `model_` must be this estimator's own."""
        from neucrowd_tf.training.state import write_variables

        for name, value in snapshot["state"].items():
            setattr(self, name, value)
        write_variables(self.model_.variables, snapshot["weights"])
        return self
