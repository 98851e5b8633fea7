"""Columns of features that tell what the annotators said."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.features.numbers import MANY_ROWS
from neucrowd_tf.io.features.table import FeatureTable
from neucrowd_tf.io.files.reading import ending

MOST_CELLS = 100_000_000  # of features that are compared with votes
SAME = 1e-6  # below one, of a correlation: the same numbers but for their unit


def check_no_annotators(names: Sequence[str], crowd: Annotations, path: Path) -> None:
    """Raises DataError for a feature that is called as an annotator is, in words: their labels."""
    called = () if crowd.annotator_names is None else map(str, crowd.annotator_names)
    annotators = {name for name in called if not name.isdigit()}
    for name in names:
        if name in annotators:
            raise DataError(
                f"{path}: column {name!r}: expected a feature, received an annotator's name, as"
                f" labels in the features' table have; --ignore_columns={name} leaves it out,"
                " another name takes it for a feature"
            )


def tell_leak(table: FeatureTable, crowd: Annotations, path: Path) -> None:
    """Warns of a column of features that is a class's share of the votes, or whether it has most,
    in every row.

    Args:
        table: the features, in the order of the annotations' instances.
        crowd: the annotations.
        path: the file of features.
    """
    names = [] if ending(path) == ".npy" else table.names
    labelled = np.flatnonzero(crowd.annotated)
    rows = table.rows
    if rows.ndim != 2 or rows.dtype.kind != "f" or len(labelled) < MANY_ROWS:
        return
    if rows.size > MOST_CELLS:
        return
    votes = crowd.vote_counts()[labelled].astype(np.float64)
    shares = votes / votes.sum(axis=1, keepdims=True)
    most = (votes == votes.max(axis=1, keepdims=True)).astype(np.float64)
    found = np.abs(_standard(rows[labelled]).T @ _standard(np.hstack([shares, most])))
    for place in np.flatnonzero(found.max(axis=1) > 1.0 - SAME)[:1]:
        name = crowd.class_names[int(found[place].argmax()) % votes.shape[1]]
        shown = repr(names[place]) if names else int(place)
        hint = f"; --ignore_columns={names[place]} leaves it out" if names else ""
        warnings.warn(
            f"{path}: column {shown}: expected a feature, received how many annotators"
            f" say {str(name)!r} in every row{hint}",
            stacklevel=4,
        )


def _standard(columns: np.ndarray) -> np.ndarray:
    """Returns columns without their means and of unit length; constant ones are zeros."""
    values = columns.astype(np.float64) - columns.mean(axis=0, dtype=np.float64)
    length = np.sqrt((values**2).sum(axis=0))
    return values / np.where(length > 0, length, np.inf)
