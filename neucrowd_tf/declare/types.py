"""Names of types that the package's signatures share: arrays, tensors, networks, inputs, options.

TensorFlow, Keras and scikit-learn have no type information, and what the labels alone need does not
import them. Their objects are `Any` to a checker; the names say which objects are meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A NumPy array of any type: names, features, labels in their own type."""
Floats: TypeAlias = NDArray[np.float64]
"""A NumPy array of float64: probabilities, weights, rates."""
Integers: TypeAlias = NDArray[np.integer[Any]]
"""A NumPy array of whole numbers: codes, indices, counts."""

Tensor: TypeAlias = Any
"""A `tf.Tensor`, or what TensorFlow makes one of: a variable, a symbolic tensor, an array."""
Network: TypeAlias = Any
"""A `keras.Model`."""
Layer: TypeAlias = Any
"""A `keras.layers.Layer`."""
KerasOptimizer: TypeAlias = Any
"""A `keras.optimizers.Optimizer`."""
Strategy: TypeAlias = Any
"""A `tf.distribute.Strategy`, or None."""
Shape: TypeAlias = tuple[Any, ...]
"""The shape of a tensor, None for an unknown size, or the shapes of several inputs."""

Features: TypeAlias = Any
"""What `fit` and `predict` take: an array [N, ...], a frame, a sparse matrix, a list of texts."""
Estimator: TypeAlias = Any
"""An object with `fit` and `predict`, ours or scikit-learn's."""
Frame: TypeAlias = Any
"""A data frame or Series of pandas, polars or Arrow, which are not imported to read one."""
Axes: TypeAlias = Any
"""A `matplotlib.axes.Axes`."""

Fields: TypeAlias = dict[str, Any]
"""Values of several types by name: a record, a configuration of Keras, an object of JSON."""
NamedValues: TypeAlias = Mapping[str, Any]
"""Arguments of a constructor by name, which are read only."""
