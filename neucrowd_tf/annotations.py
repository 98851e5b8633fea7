"""Annotations: who gave which label to which instance, held as sparse triples.

Everything that turns crowd labels from one form into another goes through :class:`Annotations`; files are read and
written by :mod:`neucrowd_tf.annotation_files`, whose functions stand here as class methods.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse

from neucrowd_tf.errors import DataError, IdentitiesError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MISSING = -1
Duplicates = Literal["error", "first", "last"]


def _code_array(values: ArrayLike, what: str) -> NDArray[np.int32]:
    """Returns `values` as one-dimensional int32 codes, refusing what is not a whole number."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{what}: expected a one-dimensional array of codes, received shape {array.shape}")
    if array.dtype.kind not in "iu":
        if array.size and array.dtype.kind != "b":
            raise DataError(f"{what}: expected integer codes, received dtype {array.dtype}; use Annotations.from_arrays for names")
        array = array.astype(np.int32)
    return array.astype(np.int32, copy=False)


def _check_range(codes: NDArray[np.int32], upper: int, what: str) -> None:
    if codes.size and (codes.min() < 0 or codes.max() >= upper):
        row = int(np.flatnonzero((codes < 0) | (codes >= upper))[0])
        raise DataError(f"row {row}, {what}: expected a code from 0 to {upper - 1}, received {codes[row]}")


def _names(names: Sequence[Hashable] | NDArray[Any] | None, size: int, what: str) -> NDArray[Any]:
    """Returns `size` names as an array; integers 0..size-1 when none are given."""
    if names is None:
        return np.arange(size)
    array = as_name_array(names)
    if len(array) != size:
        raise DataError(f"{what}: expected {size} names, received {len(array)}")
    return array


def as_name_array(values: Any) -> NDArray[Any]:
    """Returns hashable ids as a one-dimensional array that keeps their types (ints as int64, anything mixed as object)."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iub":
        return values
    if isinstance(values, (pd.Series, pd.Index)) and values.dtype.kind in "iub":
        return np.asarray(values)
    items = values.tolist() if isinstance(values, (np.ndarray, pd.Series, pd.Index)) else list(values)
    kinds = {type(item) for item in items}
    if kinds == {int}:
        return np.asarray(items)
    if kinds == {bool}:
        return np.asarray(items, dtype=bool)
    return np.fromiter(items, dtype=object, count=len(items))  # one cell an id, tuples too


def spelt(name: Any) -> str:
    """Returns how an error message shows an id: a NumPy number as the plain number."""
    return repr(name.item() if isinstance(name, np.generic) else name)


def factorize(values: Any, known: NDArray[Any] | None, what: str, sort: bool) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Turns ids into codes.

    Args:
        values: `[A]` hashable ids.
        known: the allowed ids in their order, or None to take those that occur.
        what: the column's name, for the error.
        sort: whether ids that occur are sorted (where they can be compared) or kept in order of appearance.

    Returns:
        codes `[A]` int32 and the names they index.

    Raises:
        DataError: a missing id, or one that `known` does not hold.
    """
    array = values if isinstance(values, (np.ndarray, pd.Series, pd.Index)) else as_name_array(values)
    if isinstance(array.dtype, pd.CategoricalDtype):
        # A categorical's small codes stand for its values, so that each distinct value is looked at once.
        categories = pd.Series(array).cat
        codes, found = pd.factorize(categories.codes.to_numpy())
        absent = found < 0
        codes = np.where(absent[codes], MISSING, codes) if absent.any() else codes
        uniques: Any = as_name_array(categories.categories)[found]
    else:
        codes, uniques = pd.factorize(array)
    if len(codes) and codes.min() < 0:
        raise DataError(f"row {int(np.flatnonzero(codes < 0)[0])}, column {what!r}: expected a value, received a missing one")
    names = as_name_array(uniques)
    if known is None:
        if sort:
            try:
                order = np.argsort(names, kind="stable")
            except TypeError:  # ids of several types have no common order
                return codes.astype(np.int32), names
            rank = np.empty(len(order), dtype=np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            return rank[codes], names[order]
        return codes.astype(np.int32), names
    position = {name: i for i, name in enumerate(known.tolist())}
    if len(position) != len(known):
        twice = known[pd.Series(known).duplicated().to_numpy()][0]
        raise DataError(f"{what} names: expected each name once, received {spelt(twice)} again")
    mapped = np.array([position.get(name, MISSING) for name in names.tolist()], dtype=np.int32)
    if (mapped < 0).any():
        unknown = int(np.flatnonzero(mapped < 0)[0])
        row = int(np.flatnonzero(codes == unknown)[0])
        shown = ", ".join(repr(name) for name in known[:5].tolist()) + (", ..." if len(known) > 5 else "")
        raise DataError(f"row {row}, column {what!r}: expected one of {shown}, received {spelt(names[unknown])}")
    return mapped[codes], known


class Annotations:
    """Crowd labels as triples (instance, annotator, label), or as vote counts where no identities are known.

    Attributes:
        num_instances, num_annotators, num_classes: N, R and C. With vote counts alone, R is the largest number of votes.
        instance_names, annotator_names, class_names: the ids that the codes stand for; arrays of N, R and C.
        generated: `[A]` bool, True for annotations that a method made up; `observed()` leaves them out.
        shape: `(N, R)`, so that scikit-learn's searches can split by rows.
    """

    def __init__(
        self,
        instances: ArrayLike,
        annotators: ArrayLike,
        labels: ArrayLike,
        *,
        num_instances: int | None = None,
        num_annotators: int | None = None,
        num_classes: int | None = None,
        instance_names: Sequence[Hashable] | NDArray[Any] | None = None,
        annotator_names: Sequence[Hashable] | NDArray[Any] | None = None,
        class_names: Sequence[Hashable] | NDArray[Any] | None = None,
        generated: ArrayLike | None = None,
        duplicates: Duplicates = "error",
    ) -> None:
        """Holds `[A]` integer codes from 0; ids of other kinds go through `from_arrays`.

        Raises:
            DataError: lengths differ, a code is out of range, or one annotator labelled one instance twice.
        """
        triple = [_code_array(v, w) for v, w in ((instances, "instances"), (annotators, "annotators"), (labels, "labels"))]
        if len({len(codes) for codes in triple}) != 1:
            raise DataError(f"expected instances, annotators and labels of one length, received {[len(c) for c in triple]}")
        sizes = []
        for codes, size, names, what in zip(
            triple,
            (num_instances, num_annotators, num_classes),
            (instance_names, annotator_names, class_names),
            ("task", "worker", "label"),
            strict=True,
        ):
            found = size if size is not None else len(names) if names is not None else int(codes.max(initial=-1)) + 1
            _check_range(codes, found, what)
            sizes.append(found)
        self.num_instances, self.num_annotators, self.num_classes = sizes
        self.instance_names = _names(instance_names, self.num_instances, "instance_names")
        self.annotator_names = _names(annotator_names, self.num_annotators, "annotator_names")
        self.class_names = _names(class_names, self.num_classes, "class_names")
        marks = None if generated is None else np.asarray(generated, dtype=bool)
        if marks is not None and marks.shape != triple[0].shape:
            raise DataError(f"generated: expected shape {triple[0].shape}, received {marks.shape}")
        keep = self._duplicates(triple[0], triple[1], duplicates)
        if keep is not None:
            triple = [codes[keep] for codes in triple]
            marks = None if marks is None else marks[keep]
        self._instances, self._annotators, self._labels = triple
        self._generated = marks
        self._votes: NDArray[np.int32] | None = None

    def _duplicates(self, instances: NDArray[np.int32], annotators: NDArray[np.int32], rule: Duplicates) -> NDArray[Any] | None:
        """Returns the rows to keep, or None for all of them."""
        if rule not in ("error", "first", "last"):
            raise DataError(f"duplicates: expected 'error', 'first' or 'last', received {rule!r}")
        cells = self.num_instances * max(self.num_annotators, 1)
        keys: NDArray[Any] = instances.astype(np.uint32 if cells < 2**32 else np.int64)
        np.multiply(keys, keys.dtype.type(self.num_annotators), out=keys)
        np.add(keys, annotators.astype(keys.dtype), out=keys)
        if rule == "error":
            ordered = np.sort(keys)
            if not (ordered[1:] == ordered[:-1]).any():
                return None
        twice = pd.Series(keys).duplicated(keep="last" if rule == "last" else "first").to_numpy()
        if not twice.any():
            return None
        if rule == "error":
            row = int(np.flatnonzero(twice)[0])
            task, worker = self.instance_names[instances[row]], self.annotator_names[annotators[row]]
            raise DataError(
                f"row {row}, columns 'task' and 'worker': expected each pair once, received task {spelt(task)} and worker {spelt(worker)} again "
                "(in Python, duplicates='first' or 'last' keeps one)"
            )
        return ~twice

    # ----------------------------------------------------------------- made from

    @classmethod
    def from_arrays(
        cls,
        tasks: Any,
        workers: Any,
        labels: Any,
        *,
        instance_names: Any = None,
        annotator_names: Any = None,
        class_names: Any = None,
        duplicates: Duplicates = "error",
    ) -> Annotations:
        """Makes annotations from three `[A]` sequences of hashable ids.

        Args:
            tasks, workers, labels: ids of any hashable type.
            instance_names, annotator_names, class_names: the ids in the order wanted (a feature table's tasks, say); by
                default tasks and workers in order of appearance, classes sorted.
            duplicates: what to do when one worker labelled one task twice: "error", "first" or "last".

        Raises:
            DataError: a missing id, one that the given names do not hold, or a duplicate.
        """
        columns: dict[str, Any] = {}
        for key, what, values, known, sort in (
            ("instance", "task", tasks, instance_names, False),
            ("annotator", "worker", workers, annotator_names, False),
            ("class", "label", labels, class_names, True),
        ):
            columns[key], columns[f"{key}_names"] = factorize(values, None if known is None else as_name_array(known), what, sort)
        return cls(
            columns["instance"],
            columns["annotator"],
            columns["class"],
            instance_names=columns["instance_names"],
            annotator_names=columns["annotator_names"],
            class_names=columns["class_names"],
            duplicates=duplicates,
        )

    @classmethod
    def from_dense(cls, matrix: ArrayLike, *, num_classes: int | None = None, **names: Any) -> Annotations:
        """Makes annotations from an `[N, R]` integer array in which -1 means that the annotator gave no label.

        Raises:
            DataError: not two-dimensional, not whole numbers, or a label below -1.
        """
        array = np.asarray(matrix)
        if array.ndim != 2:
            raise DataError(f"dense annotations: expected shape [instances, annotators], received {array.shape}")
        if array.dtype.kind == "f":
            if not np.isfinite(array).all():
                row, column = np.argwhere(~np.isfinite(array))[0]
                raise DataError(f"row {row}, annotator {column}: expected a label or -1, received {array[row, column]}; use from_wide_frame for NaN")
            if (array != np.round(array)).any():
                row, column = np.argwhere(array != np.round(array))[0]
                raise DataError(f"row {row}, annotator {column}: expected a whole number, received {array[row, column]}")
        elif array.dtype.kind not in "iub":
            raise DataError(f"dense annotations: expected whole numbers with -1 for missing, received dtype {array.dtype}")
        array = array.astype(np.int64, copy=False)
        if array.size and array.min() < MISSING:
            row, column = np.argwhere(array < MISSING)[0]
            raise DataError(f"row {row}, annotator {column}: expected a label from 0 or -1 for missing, received {array[row, column]}")
        rows, columns = np.nonzero(array >= 0)
        if num_classes is None and "class_names" not in names:
            num_classes = int(array.max(initial=-1)) + 1
        return cls(rows, columns, array[rows, columns], num_instances=array.shape[0], num_annotators=array.shape[1], num_classes=num_classes, **names)

    @classmethod
    def from_votes(cls, counts: ArrayLike, *, instance_names: Any = None, class_names: Any = None) -> Annotations:
        """Makes annotations from `[N, C]` vote counts, where it is not known who voted (the hotel data).

        Raises:
            DataError: negative or fractional counts.
        """
        votes = np.asarray(counts)
        if votes.ndim != 2 or votes.dtype.kind not in "iuf":
            raise DataError(f"votes: expected whole numbers of shape [instances, classes], received {votes.dtype} of shape {votes.shape}")
        bad = np.argwhere(~np.isfinite(votes) | (votes < 0) | (votes != np.round(votes))) if votes.dtype.kind == "f" else np.argwhere(votes < 0)
        if len(bad):
            row, column = bad[0]
            raise DataError(f"row {row}, class {column}: expected a count from 0, received {votes[row, column]}")
        empty = np.zeros(0, dtype=np.int32)
        made = cls(
            empty,
            empty,
            empty,
            num_instances=votes.shape[0],
            num_annotators=int(votes.sum(axis=1).max(initial=0)),
            num_classes=votes.shape[1],
            instance_names=instance_names,
            class_names=class_names,
        )
        made._votes = votes.astype(np.int32)
        return made

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, duplicates: Duplicates = "error", source: str = "frame", **names: Any) -> Annotations:
        """Makes annotations from a frame with a row for each label: `task, worker, label` or their aliases (crowd-kit's form)."""
        from neucrowd_tf import annotation_files

        return annotation_files.from_frame(frame, duplicates=duplicates, source=source, **names)

    @classmethod
    def from_wide_frame(cls, frame: pd.DataFrame, *, class_names: Any = None) -> Annotations:
        """Makes annotations from a frame with a row an instance and a column an annotator, NaN where there is no label (cleanlab's form)."""
        from neucrowd_tf import annotation_files

        return annotation_files.from_wide_frame(frame, class_names=class_names)

    @classmethod
    def from_csv(cls, path: str | Path, *, duplicates: Duplicates = "error", **names: Any) -> Annotations:
        """Reads a CSV with a row for each label; see `from_frame`."""
        from neucrowd_tf import annotation_files

        return annotation_files.from_csv(path, duplicates=duplicates, **names)

    @classmethod
    def from_answers_json(cls, source: str | Path | Mapping[str, Mapping[str, Hashable]], **names: Any) -> Annotations:
        """Reads peerannot's `answers.json`: `{task: {worker: label}}`."""
        from neucrowd_tf import annotation_files

        return annotation_files.from_answers_json(source, **names)

    # ----------------------------------------------------------------- what is held

    @property
    def has_identities(self) -> bool:
        """Whether it is known who gave each label."""
        return self._votes is None

    def require_identities(self, method: str) -> None:
        """Raises IdentitiesError when there are vote counts only."""
        if not self.has_identities:
            raise IdentitiesError(f"{method} needs to know which annotator gave which label, but the data holds vote counts only (no identities)")

    @property
    def instances(self) -> NDArray[np.int32]:
        """`[A]` instance codes."""
        self.require_identities("this operation")
        return self._instances

    @property
    def annotators(self) -> NDArray[np.int32]:
        """`[A]` annotator codes."""
        self.require_identities("this operation")
        return self._annotators

    @property
    def labels(self) -> NDArray[np.int32]:
        """`[A]` class codes."""
        self.require_identities("this operation")
        return self._labels

    @property
    def generated(self) -> NDArray[np.bool_]:
        """`[A]` True where a method made the annotation up."""
        return np.zeros(len(self._labels), dtype=bool) if self._generated is None else self._generated

    @property
    def shape(self) -> tuple[int, int]:
        return self.num_instances, self.num_annotators

    def __len__(self) -> int:
        return self.num_instances

    @property
    def num_annotations(self) -> int:
        """The number of labels given, A."""
        return len(self._labels) if self._votes is None else int(self._votes.sum())

    def __repr__(self) -> str:
        kind = "" if self.has_identities else ", votes only"
        return (
            f"Annotations({self.num_annotations} labels, {self.num_instances} instances, {self.num_annotators} annotators, "
            f"{self.num_classes} classes{kind})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        if self.shape != other.shape or self.num_classes != other.num_classes or self.has_identities != other.has_identities:
            return False
        pairs = [
            (self.instance_names, other.instance_names),
            (self.annotator_names, other.annotator_names),
            (self.class_names, other.class_names),
            (self._instances, other._instances),
            (self._annotators, other._annotators),
            (self._labels, other._labels),
            (self.generated, other.generated),
        ]
        same_votes = (self._votes is None) or np.array_equal(self._votes, other._votes)  # type: ignore[arg-type]
        return same_votes and all(np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    # ----------------------------------------------------------------- derived

    def vote_counts(self) -> NDArray[np.int32]:
        """Returns `[N, C]` int32: how often each class was given to each instance."""
        if self._votes is not None:
            return self._votes.copy()
        # In blocks, so that the 64-bit keys and counts of np.bincount stay a small multiple of what is held anyway.
        size = self.num_instances * self.num_classes
        counts = np.zeros(size, dtype=np.int32)
        block = max(1 << 22, size)
        for start in range(0, len(self._labels), block):
            part = slice(start, start + block)
            keys = self._instances[part].astype(np.int64)
            keys *= self.num_classes
            keys += self._labels[part]
            counts += np.bincount(keys, minlength=size).astype(np.int32)
        return counts.reshape(self.num_instances, self.num_classes)

    @cached_property
    def annotated(self) -> NDArray[np.bool_]:
        """`[N]` True where an instance has at least one label."""
        return self.vote_counts().sum(axis=1) > 0

    def labels_per_annotator(self) -> NDArray[np.int64]:
        """Returns `[R]`: how many labels each annotator gave."""
        return np.bincount(self.annotators, minlength=self.num_annotators)

    @cached_property
    def _by_instance(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row pointers `[N + 1]` and the order that sorts the triples by instance."""
        pointers = np.zeros(self.num_instances + 1, dtype=np.int64)
        np.cumsum(np.bincount(self._instances, minlength=self.num_instances), out=pointers[1:])
        return pointers, np.argsort(self._instances, kind="stable")

    def to_sparse(self) -> sparse.csr_matrix:
        """Returns `[N, R]` CSR with label + 1 where there is a label (0 is "no label")."""
        return sparse.csr_matrix((self.labels + 1, (self.instances, self.annotators)), shape=self.shape)

    def one_hot(self, dtype: Any = np.float64) -> sparse.csr_matrix:
        """Returns `[N, R * C]` CSR with a one at column `annotator * C + label` for each label."""
        columns = self.annotators.astype(np.int64) * self.num_classes + self.labels
        ones = np.ones(len(self._labels), dtype=dtype)
        return sparse.csr_matrix((ones, (self.instances, columns)), shape=(self.num_instances, self.num_annotators * self.num_classes))

    def to_dense(self, dtype: Any = np.int64) -> NDArray[Any]:
        """Returns `[N, R]` labels with -1 where there is none."""
        matrix = np.full(self.shape, MISSING, dtype=dtype)
        matrix[self.instances, self.annotators] = self.labels
        return matrix

    def to_frame(self) -> pd.DataFrame:
        """Returns a row for each label with the original ids: task, worker, label."""
        return pd.DataFrame(
            {
                "task": self.instance_names[self.instances],
                "worker": self.annotator_names[self.annotators],
                "label": self.class_names[self.labels],
            }
        )

    def to_wide_frame(self) -> pd.DataFrame:
        """Returns a row an instance and a column an annotator with NaN for missing labels (cleanlab's form)."""
        values = np.full(self.shape, np.nan, dtype=object)
        values[self.instances, self.annotators] = self.class_names[self.labels]
        return pd.DataFrame(values, index=pd.Index(self.instance_names), columns=pd.Index(self.annotator_names))

    def to_csv(self, path: str | Path) -> None:
        """Writes `task,worker,label`; the file appears whole or not at all."""
        from neucrowd_tf import annotation_files

        annotation_files.to_csv(self, path)

    def to_answers_json(self, path: str | Path | None = None) -> dict[str, dict[str, Any]]:
        """Returns (and writes, with a path) peerannot's `{task: {worker: label}}`."""
        from neucrowd_tf import annotation_files

        return annotation_files.to_answers_json(self, path)

    # ----------------------------------------------------------------- parts of it

    def __getitem__(self, rows: Any) -> Annotations:
        """Returns the annotations of some instances, in the order asked for; annotators and classes stay as they are.

        Args:
            rows: a slice, a `[N]` bool mask or an array of instance codes (repeats allowed).
        """
        index = np.arange(self.num_instances)[rows]
        index = np.atleast_1d(index)
        names = self.instance_names[index]
        if self._votes is not None:
            part = Annotations.from_votes(self._votes[index], instance_names=names, class_names=self.class_names)
            part.num_annotators, part.annotator_names = self.num_annotators, self.annotator_names
            return part
        pointers, order = self._by_instance
        lengths = pointers[index + 1] - pointers[index]
        starts = np.repeat(pointers[index] - np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(index) else lengths, lengths)
        chosen = order[starts + np.arange(lengths.sum())]
        return self._replace(np.repeat(np.arange(len(index), dtype=np.int32), lengths), chosen, num_instances=len(index), instance_names=names)

    def _replace(self, instances: NDArray[Any], chosen: NDArray[Any], **instance_side: Any) -> Annotations:
        side = instance_side or {"num_instances": self.num_instances, "instance_names": self.instance_names}
        return Annotations(
            instances,
            self._annotators[chosen],
            self._labels[chosen],
            num_annotators=self.num_annotators,
            num_classes=self.num_classes,
            annotator_names=self.annotator_names,
            class_names=self.class_names,
            generated=None if self._generated is None else self._generated[chosen],
            **side,
        )

    def select(self, keep: ArrayLike) -> Annotations:
        """Returns the annotations at `keep` (a `[A]` bool mask or positions), with the same instances, annotators and classes."""
        chosen = np.arange(len(self.labels))[np.asarray(keep)]
        return self._replace(self._instances[chosen], chosen)

    def observed(self) -> Annotations:
        """Returns the annotations that people gave, without generated ones."""
        return self if self._generated is None or not self._generated.any() else self.select(~self._generated)

    def with_generated(self, instances: ArrayLike, annotators: ArrayLike, labels: ArrayLike) -> Annotations:
        """Returns these annotations with made-up ones added and marked; a cell that has a label already is an error."""
        extra = _code_array(labels, "labels")
        return Annotations(
            np.concatenate([self.instances, _code_array(instances, "instances")]),
            np.concatenate([self.annotators, _code_array(annotators, "annotators")]),
            np.concatenate([self.labels, extra]),
            num_instances=self.num_instances,
            num_annotators=self.num_annotators,
            num_classes=self.num_classes,
            instance_names=self.instance_names,
            annotator_names=self.annotator_names,
            class_names=self.class_names,
            generated=np.concatenate([self.generated, np.ones(len(extra), dtype=bool)]),
        )


def as_annotations(annotations: Annotations | ArrayLike, num_classes: int | None = None) -> Annotations:
    """Returns `Annotations`, taking a dense `[N, R]` matrix with -1 for missing labels too."""
    if isinstance(annotations, Annotations):
        return annotations
    return Annotations.from_dense(annotations, num_classes=num_classes)
