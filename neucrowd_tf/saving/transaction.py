"""A fit is a transaction: an exception out of it leaves what was fitted before as it was."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from neucrowd_tf.saving.persistent import Persistent


@contextlib.contextmanager
def transaction(estimator: object) -> Iterator[None]:
    """Within, any exception, also `KeyboardInterrupt`, leaves the estimator as it was before.

    If a first fit fails, the estimator is not fitted. If a later fit fails, the estimator has its
    earlier attributes. The Keras models among them, which fits may share, have their earlier
    weights.
    """
    attributes = vars(estimator)
    earlier = attributes.copy()
    variables = list(_variables(attributes))
    values = [np.array(variable.numpy()) for variable in variables]  # copies
    try:
        yield
    except BaseException:
        attributes.clear()
        attributes.update(earlier)
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        raise


def _variables(value: object) -> Iterator[Any]:
    """Yields the variables of the Keras models in results, in lists of them and in fitted parts."""
    keras = sys.modules.get("keras")
    if keras is None:  # without it there are no models
        return
    if isinstance(value, keras.Model):
        yield from value.variables
    elif isinstance(value, Persistent):
        yield from _variables(vars(value))
    elif isinstance(value, dict):
        for name, item in value.items():
            if not str(name).startswith("_"):
                yield from _variables(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _variables(item)
