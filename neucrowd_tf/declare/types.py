"""Names of types that the package's signatures share: arrays, tensors, networks, inputs, options.

TensorFlow, Keras and scikit-learn have no type information, and what the labels alone need does not
import them. Their objects are `Any` to a checker; the names say which objects are meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# A NumPy array of any type: names, features, labels in their own type.
Array: TypeAlias = NDArray[Any]
# A NumPy array of float64: probabilities, weights, rates.
Floats: TypeAlias = NDArray[np.float64]
# A NumPy array of float32: features, what networks return.
Floats32: TypeAlias = NDArray[np.float32]
# A NumPy array of int64: positions, class codes that index arrays.
Indices: TypeAlias = NDArray[np.int64]
# A NumPy array of int32: the codes of `Annotations`.
Codes32: TypeAlias = NDArray[np.int32]
# A NumPy array of truth values: which rows or cells are meant.
Mask: TypeAlias = NDArray[np.bool_]
# A NumPy array of whole numbers: codes, indices, counts.
Integers: TypeAlias = NDArray[np.integer[Any]]

# A `tf.Tensor`, or what TensorFlow makes one of: a variable, a symbolic tensor, an array.
Tensor: TypeAlias = Any
# A `keras.Model`.
Network: TypeAlias = Any
# A `keras.layers.Layer`.
Layer: TypeAlias = Any
# A `keras.optimizers.Optimizer`.
KerasOptimizer: TypeAlias = Any
# A `tf.distribute.Strategy`, or None.
Strategy: TypeAlias = Any
# The shape of a tensor, None for an unknown size, or the shapes of several inputs.
Shape: TypeAlias = tuple[Any, ...]

# What `fit` and `predict` take: an array [N, ...], a frame, a sparse matrix, a list of texts.
Features: TypeAlias = Any
# An object with `fit` and `predict`, ours or scikit-learn's.
Estimator: TypeAlias = Any
# A data frame or Series of pandas, polars or Arrow, which are not imported to read one.
Frame: TypeAlias = Any
# A `matplotlib.axes.Axes`.
Axes: TypeAlias = Any

# Values of several types by name: a record, a configuration of Keras, an object of JSON.
Fields: TypeAlias = dict[str, Any]
# Arguments of a constructor by name, which are read only.
NamedValues: TypeAlias = Mapping[str, Any]
# Texts in order: names of columns, items or classes, the cells of a column.
Texts: TypeAlias = Sequence[str]
# Objects of JSON, each after its place in the file: "record 2", "line 3".
Records: TypeAlias = Iterator[tuple[str, Fields]]
# The entries of a flag that takes several, separated by commas.
Entries: TypeAlias = tuple[str, ...]
# The values of a flag that takes name=value and may be repeated.
Pairs: TypeAlias = tuple[tuple[str, Any], ...]
