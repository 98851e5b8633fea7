"""Networks that several fits share: compiling one often takes longer than training it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

from neucrowd_tf.declare.types import Estimator, Network

Built = TypeVar("Built")
UNSET: Any = None  # of an attribute that every class of networks has, without a base class for it


def specified(estimator: Estimator) -> tuple[Hashable, ...]:
    """Returns the class and the arguments of an estimator without its seed, for a specification.

    A configuration is there by its text, as it may be changed in place; objects by their identity.
    """
    arguments = {**estimator.get_params(deep=False), "seed": None}.values()
    texts = (str(x) if isinstance(x, (Mapping, list, tuple)) else x for x in arguments)
    return (type(estimator), *texts)


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
        return self._network  # type: ignore[no-any-return]

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
        estimator._networks = NetworkCache()
    else:
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
            for cache in value.values() if isinstance(value, dict) else [value]:
                if isinstance(cache, NetworkCache):
                    cache.clear()
        raise
