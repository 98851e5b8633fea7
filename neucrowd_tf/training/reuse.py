"""Networks that several fits share: compiling one often takes longer than training it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

from neucrowd_tf.declare.types import Estimator, Network

Built = TypeVar("Built")
UNSET: Any = None  # of an attribute that every class of networks has, without a base class for it


def arguments_of(estimator: Estimator) -> tuple[Hashable, ...]:
    """Returns an estimator's arguments without the seed: all that its networks may depend on."""
    values: list[Hashable] = []
    for value in (estimator.get_params(deep=False) | {"seed": None}).values():
        # A configuration by its text, as it may be changed in place; objects by their identity.
        is_configuration = isinstance(value, (Mapping, list, tuple))
        values.append(str(value) if is_configuration else value)
    return tuple(values)


class NetworkCache:
    """The latest thing that was built, by its specification.

    A specification names all that a network depends on (shapes, widths, rates, a strategy's
    identity); what is not in it may change between fits without a new network.
    """

    def __init__(self) -> None:
        self._spec: Hashable = None
        self._network: Network = None

    def get(self, spec: Hashable, build: Callable[[], Built]) -> Built:
        """Returns what was built for an equal `spec`, or builds it."""
        if self._network is None or spec != self._spec:
            self.clear()  # room first: two large networks at a time are one too many
            self._network = build()
            self._spec = spec
        return self._network

    def clear(self) -> None:
        """Forgets everything, and with it frees the memory."""
        self._spec = self._network = None


@contextlib.contextmanager
def reused(estimator: Estimator, cache: NetworkCache | None = None) -> Iterator[None]:
    """Lets fits on data of one shape share one compiled network within this context.

    Its memory is kept, and `network` gives it. Only the latest fit's predictions can be asked for.

    Args:
        estimator: one with `_networks`, what is shared, and `_network`, the latest fit's there.
        cache: one of the caller's own, which keeps networks beyond the context.
    """
    before = estimator._networks
    if cache is None:
        cache = NetworkCache()
    estimator._networks = cache
    try:
        yield
    finally:
        estimator._networks = before
        estimator._network = None


@contextlib.contextmanager
def forgotten_after_errors(estimator: Estimator) -> Iterator[None]:
    """Clears the caches of an estimator whose fit ends with an exception.

    Its networks are in the midst of something, and a later fit takes new ones.
    """
    try:
        yield
    except BaseException:
        for value in vars(estimator).values():
            caches = value.values() if isinstance(value, dict) else [value]
            for cache in caches:
                if isinstance(cache, NetworkCache):
                    cache.clear()
        raise
