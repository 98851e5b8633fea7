"""Columns of features that tell what the annotators said."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.features.numbers import MANY_ROWS
from neucrowd_tf.io.features.table import FeatureTable
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.names.shell import ignore
from neucrowd_tf.io.tables.column_names import bare

MOST_CELLS = 100_000_000  # of features that are compared with votes
SAME = 1e-6  # below one, of a correlation: the same numbers but for their unit
SAMPLE_ROWS = 200  # that most features show in that they have many values
# What a column explains of the annotators' agreement where it may be the truth: under any name, and
# under one of labels.
OF_THE_TRUTH = 0.8
OF_A_NAME = 0.3
ENOUGH = 20  # labels of a class, and rows where a name says nothing
LEAST = 1e-3  # of agreement beyond chance
_TRUTH = re.compile(
    r"(label|class|klass|categor|kategori|target|truth|answer|gold|golden|annotat|vote)\w*"
    r"|lbl|cls|y|gt|ans|tgt|cat|sentiment|outcome|true|correct|positive|negative"
)


def check_no_annotators(names: Sequence[str], crowd: Annotations, path: Path) -> None:
    """Raises DataError for a feature that is called as an annotator is, in words: their labels."""
    called = () if crowd.annotator_names is None else map(str, crowd.annotator_names)
    annotators = {name for name in called if not name.isdigit()}
    for name in names:
        if name in annotators:
            raise DataError(
                f"{path}: column {name!r}: expected a feature, received an annotator's name, as"
                f" labels in the features' table have; {ignore(name)} leaves it out,"
                " another name takes it for a feature"
            )


def tell_leak(table: FeatureTable, crowd: Annotations, path: Path) -> None:
    """Warns of a column of features that is how many annotators say a class, their share, or
    whether it has most, in every row; and of columns that explain what annotators agree on as only
    the truth would.

    Args:
        table: the features, in the order of the annotations' instances.
        crowd: the annotations.
        path: the file of features.
    """
    labelled = np.flatnonzero(crowd.annotated)
    rows = table.rows
    if rows.ndim != 2 or rows.dtype.kind != "f" or len(labelled) < MANY_ROWS:
        return
    if rows.size > MOST_CELLS:
        return
    rows = rows[labelled]
    votes = crowd.vote_counts()[labelled].astype(np.float64)
    names = [] if ending(path) == ".npy" else table.names
    shares = votes / votes.sum(axis=1, keepdims=True)
    most = (votes == votes.max(axis=1, keepdims=True)).astype(np.float64)
    told = np.hstack([shares, most, votes])
    found = np.abs(_standard(rows).T @ _standard(told))
    exact = np.flatnonzero(found.max(axis=1) > 1.0 - SAME)
    if len(exact):
        name = crowd.class_names[int(found[exact[0]].argmax()) % votes.shape[1]]
        shown, hint = _way_out(names, int(exact[0]))
        warnings.warn(
            f"{path}: column {shown}: expected a feature, received how many annotators"
            f" say {str(name)!r} in every row{hint}",
            stacklevel=4,
        )
        return
    explained = Agreement(votes)
    words = {str(name).casefold() for name in crowd.class_names if not str(name).isdigit()}
    for place in _few_values(rows, votes.shape[1] + 1):
        called = bool(names) and _is_called_truth(names[place], words)
        if not called and len(rows) < ENOUGH:
            continue
        share = explained.share(rows[:, place], 1.0 if called else 2.0)
        if share >= (OF_A_NAME if called else OF_THE_TRUTH):
            shown, hint = _way_out(names, place)
            warnings.warn(
                f"{path}: column {shown} tells {min(share, 1.0):.0%} of what annotators agree on,"
                f" as the true labels would, and is taken for a feature{hint}",
                stacklevel=4,
            )
            return


def _way_out(names: Sequence[str], place: int) -> tuple[str, str]:
    """Returns how a column is shown, and what leaves it out; an array's have no names."""
    if not names:
        return str(place), "; take it out if it is none"
    return repr(names[place]), f"; {ignore(names[place])} leaves it out"


def _is_called_truth(name: str, classes: set[str]) -> bool:
    """Whether a word of a name is one for labels, or a class."""
    words = bare(name).split("_")
    return any(_TRUTH.fullmatch(re.sub(r"\d+$", "", word)) or word in classes for word in words)


def _few_values(rows: np.ndarray, most: int) -> list[int]:
    """Returns the columns that may have at most so many values, as their first rows do."""
    first = np.sort(rows[:SAMPLE_ROWS], axis=0)
    return np.flatnonzero((first[1:] > first[:-1]).sum(axis=0) < most).tolist()


class Agreement:
    """How far annotators agree on instances, beyond chance, and how much of that a column explains.

    Two labels of one instance agree more often than two of any instances. Were the truth of all
    instances known, two labels of different instances of one true class would agree as often as two
    of one instance, whatever mistakes annotators make in each class. So of a column that is the
    truth the share is about one, however noisy the crowd; of a binary feature that is right in nine
    of ten rows it is below two thirds.
    """

    def __init__(self, votes: np.ndarray) -> None:
        """Takes votes `[N, C]`. Where no instance has two labels, these count as the truth."""
        self.votes = votes
        self.labels = votes.sum(axis=1)
        pairs = float((self.labels * (self.labels - 1)).sum())
        given = votes.sum(axis=0)
        self.chance = (given / given.sum()) ** 2
        self.often = given >= ENOUGH
        self.within = (votes * (votes - 1)).sum(axis=0) / pairs if pairs else given / given.sum()
        apart = np.maximum(given / given.sum() - self.within, 0.0)  # of a class, and of all
        self.error, self.whole_error = (
            np.sqrt(part * np.maximum(1 - part, 0.0) * 2 / max(pairs, 2.0))
            for part in (apart, apart.sum())
        )

    def share(self, column: np.ndarray, errors: float) -> float:
        """Returns the share of what a column `[N]` explains of a class, or of all, at its largest;
        0 where it has too many values.

        Args:
            column: its values.
            errors: how many standard errors are added to the annotators' agreement.
        """
        _, codes = np.unique(column, return_inverse=True)
        size = int(codes.max()) + 1
        if not 2 <= size <= self.votes.shape[1] + 1:
            return 0.0

        def sums(values: np.ndarray) -> np.ndarray:
            return np.bincount(codes, weights=values, minlength=size)

        votes = np.stack([sums(v) for v in self.votes.T], axis=1)
        own = np.stack([sums(v**2) for v in self.votes.T], axis=1)
        labels = sums(self.labels)
        pairs = np.maximum(labels**2 - sums(self.labels**2), 1.0)
        among = ((votes**2 - own) / pairs[:, None] * labels[:, None]).sum(axis=0) / labels.sum()
        gained = among - self.chance
        beyond = self.within - self.chance
        each = gained / np.maximum(beyond + errors * self.error, LEAST)
        whole = gained.sum() / max(beyond.sum() + errors * self.whole_error, LEAST)
        return float(max(whole, each[self.often].max(initial=0.0)))


def _standard(columns: np.ndarray) -> np.ndarray:
    """Returns columns without their means and of unit length; constant ones are zeros."""
    values = columns.astype(np.float64) - columns.mean(axis=0, dtype=np.float64)
    length = np.sqrt((values**2).sum(axis=0))
    return values / np.where(length > 0, length, np.inf)
