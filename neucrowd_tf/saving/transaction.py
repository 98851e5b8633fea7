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
    """Within, an exception of any kind leaves the estimator as it was before.

    `KeyboardInterrupt` is one of them. A first fit that fails leaves an object that is not fitted.
    After a refit that fails, attributes are the earlier ones. So are the weights of the Keras
    models among them, which fits may share.
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
