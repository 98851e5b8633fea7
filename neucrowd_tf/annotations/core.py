"""Annotations: who gave which label to which instance, as sparse triples or as vote counts.

Crowd labels in any form become :class:`Annotations`, which are checked once, when they are made;
`replace`, `align`, `select` and rows return changed copies. What can be computed from annotations
is in :mod:`neucrowd_tf.annotations.views`, ids and their codes in
:mod:`neucrowd_tf.annotations.codes`. Files are read by :mod:`neucrowd_tf.io`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations.codes import (
    MISSING,
    Duplicates,
    Names,
    as_frame,
    axis_names,
    classes_in_order,
    coded_triples,
    dense_codes,
    factorize,
    label_columns,
    matched,
    names_for,
    rows_to_keep,
    size_of,
    vote_matrix,
    without_blanks,
)
from neucrowd_tf.annotations.views import AnnotationViews
from neucrowd_tf.declare.types import Array, Frame
from neucrowd_tf.errors import DataError, warn
from neucrowd_tf.names import as_name_array, listed, roles_of, spelt


class Annotations(AnnotationViews):
    """Crowd labels: triples (instance, annotator, label), or vote counts of unknown annotators.

    Attributes:
        num_instances, num_annotators, num_classes: N, R and C. With vote counts alone, R is the
            largest number of votes.
        instance_names, annotator_names, class_names: the ids that the codes stand for; arrays of N,
            R and C.
        generated: `[A]` bool, True for annotations that a method made up; `observed()` leaves them
            out.
        named: whether instances came with names, rather than being numbered by their rows.
        shape: `(N, R)`, so that scikit-learn's searches can split by rows.

    Example:
        >>> Annotations.from_arrays(["a", "a", "b"], ["ann", "bob", "ann"], ["yes", "no", "no"])
        Annotations(3 labels, 2 instances, 2 annotators, 2 classes)
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
        instance_names: Names | None = None,
        annotator_names: Names | None = None,
        class_names: Names | None = None,
        generated: ArrayLike | None = None,
        duplicates: Duplicates = "error",
    ) -> None:
        """Holds `[A]` integer codes from 0; ids of other kinds go through `from_arrays`.

        Raises:
            DataError: lengths differ, a code is out of range, or one annotator labelled one
                instance twice.
        """
        triple = coded_triples(instances, annotators, labels)
        self.num_instances = size_of(triple[0], num_instances, instance_names, "task")
        self.num_annotators = size_of(triple[1], num_annotators, annotator_names, "worker")
        self.num_classes = size_of(triple[2], num_classes, class_names, "label")
        self.instance_names = names_for(instance_names, self.num_instances, "instance_names")
        self.annotator_names = names_for(annotator_names, self.num_annotators, "annotator_names")
        self.class_names = names_for(class_names, self.num_classes, "class_names")
        marks = None
        if generated is not None:
            marks = np.asarray(generated, dtype=bool)
            if marks.shape != triple[0].shape:
                raise DataError(
                    f"generated: expected shape {triple[0].shape}, received {marks.shape}"
                )
        keep = rows_to_keep(
            triple[0], triple[1], self.instance_names, self.annotator_names, duplicates
        )
        if keep is not None:
            triple = [codes[keep] for codes in triple]
            if marks is not None:
                marks = marks[keep]
        self._instances, self._annotators, self._labels = triple
        self._generated = marks
        self._votes = None
        self.named = instance_names is not None

    # ----------------------------------------------------------------- constructors

    @classmethod
    def from_arrays(
        cls,
        tasks: object,
        workers: object,
        labels: object,
        *,
        instance_names: Names | None = None,
        annotator_names: Names | None = None,
        class_names: Names | None = None,
        duplicates: Duplicates = "error",
    ) -> Annotations:
        """Returns annotations from three `[A]` sequences of hashable ids.

        Args:
            tasks: `[A]` ids of instances.
            workers: `[A]` ids of annotators.
            labels: `[A]` ids of classes.
            instance_names: the ids in the order wanted (those of a feature table, for example); by
                default in order of appearance.
            annotator_names: likewise.
            class_names: likewise; by default sorted.
            duplicates: which of several labels of one task by one worker counts: "first", "last" or
                "all"; "error" rejects them.

        Raises:
            DataError: a missing id, one that the names do not contain, or a duplicate.
        """
        instances, tasks = factorize(tasks, instance_names, "task")
        annotators, workers = factorize(workers, annotator_names, "worker")
        codes, classes = factorize(labels, class_names, "label", sort=True)
        return cls(
            instances,
            annotators,
            codes,
            instance_names=tasks,
            annotator_names=workers,
            class_names=classes,
            duplicates=duplicates,
        )

    @classmethod
    def from_dense(
        cls,
        matrix: ArrayLike,
        *,
        num_classes: int | None = None,
        instance_names: Names | None = None,
        annotator_names: Names | None = None,
        class_names: Names | None = None,
    ) -> Annotations:
        """Returns annotations from an `[N, R]` integer array with -1 for missing labels.

        A frame's index and columns are the names of instances and annotators.

        Raises:
            DataError: not two-dimensional, not whole numbers, or a label below -1.
        """
        array = dense_codes(matrix)
        rows, columns = np.nonzero(array >= 0)
        if instance_names is None:
            instance_names = axis_names(matrix, "index")
        if annotator_names is None:
            annotator_names = axis_names(matrix, "columns")
        if num_classes is None and class_names is None:
            num_classes = int(array.max(initial=-1)) + 1
        return cls(
            rows,
            columns,
            array[rows, columns],
            num_instances=array.shape[0],
            num_annotators=array.shape[1],
            num_classes=num_classes,
            instance_names=instance_names,
            annotator_names=annotator_names,
            class_names=class_names,
        )

    @classmethod
    def from_votes(
        cls,
        counts: ArrayLike,
        *,
        instance_names: Names | None = None,
        class_names: Names | None = None,
    ) -> Annotations:
        """Returns annotations from `[N, C]` vote counts of unknown annotators (the hotel data).

        A frame's index and columns are the names of instances and classes.

        Raises:
            DataError: negative or fractional counts.
        """
        votes = vote_matrix(counts)
        if instance_names is None:
            instance_names = axis_names(counts, "index")
        if class_names is None:
            class_names = axis_names(counts, "columns")
        empty = np.zeros(0, dtype=np.int32)
        crowd = cls(
            empty,
            empty,
            empty,
            num_instances=votes.shape[0],
            num_annotators=int(votes.sum(axis=1).max(initial=0)),
            num_classes=votes.shape[1],
            instance_names=instance_names,
            class_names=class_names,
        )
        crowd._votes = votes.astype(np.int32)
        return crowd

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        *,
        task: str | None = None,
        worker: str | None = None,
        label: str | None = None,
        duplicates: Duplicates = "error",
        instance_names: Names | None = None,
        annotator_names: Names | None = None,
        class_names: Names | None = None,
    ) -> Annotations:
        """Returns annotations from a frame with one row per label (crowd-kit's form).

        Rows without a label are left out, and so are instances without any, as files are read; a
        warning counts both. `instance_names` keeps such instances. Blank texts are missing.

        Args:
            frame: `[A]` rows: a DataFrame, or what has `to_pandas` (a Hugging Face dataset).
            task: the column of instances, if it has none of the aliases of
                :mod:`neucrowd_tf.names`.
            worker: likewise of annotators.
            label: likewise of classes.
            duplicates: see `from_arrays`.
            instance_names: see `from_arrays`.
            annotator_names: see `from_arrays`.
            class_names: see `from_arrays`.

        Raises:
            DataError: a missing column, no label, a missing id, an unknown id or a duplicate.
        """
        frame = _frame(frame)
        names = label_columns(frame.columns, {"task": task, "worker": worker, "label": label})
        sides = [without_blanks(frame[name]) for name in names]
        missing = sides[2].isna().to_numpy()
        if missing.all():
            raise DataError("frame: expected at least one row with a label, received none")
        if missing.any():
            for position, side in enumerate(sides):
                if side.dtype.kind == "f" and side.hasnans:  # missing values made floats of ints
                    side = side.convert_dtypes()
                sides[position] = side[~missing]
            remark = ""
            num_lost = frame[names[0]].nunique() - sides[0].nunique()
            if num_lost and instance_names is None:
                remark = f". Instances without a label: {num_lost}"
            warn(
                f"{missing.sum()} of {len(frame)} labels are missing and are left out (the first:"
                f" row {missing.argmax()}){remark}",
                UserWarning,
                stacklevel=2,
            )
        return cls.from_arrays(
            *sides,
            instance_names=instance_names,
            annotator_names=annotator_names,
            class_names=class_names,
            duplicates=duplicates,
        )

    @classmethod
    def from_wide_frame(cls, frame: Frame, *, class_names: Names | None = None) -> Annotations:
        """Returns annotations from a frame with a row per instance and a column per annotator.

        NaN or a blank text is a missing label (cleanlab's form). Whole floats become ints, as NaN
        turns a column of ints into floats.

        Raises:
            DataError: a repeated name of a row or a column, or an unknown label.
        """
        frame = _frame(frame)
        ids = roles_of(frame.columns)["task"]
        if len(ids) == 1 and frame[ids[0]].is_unique:
            raise DataError(
                f"wide frame: column {ids[0]!r} names the instances."
                f" Pass frame.set_index({ids[0]!r})."
            )
        for axis, side in ((frame.index, "row"), (frame.columns, "column")):
            if not axis.is_unique:
                raise DataError(
                    f"wide frame: expected each {side} name once, received"
                    f" {axis[axis.duplicated()][0]!r} again"
                )
        frame = frame.apply(without_blanks)
        rows, columns = np.nonzero(frame.notna().to_numpy())
        if class_names is None and len(set(frame.dtypes)) == 1:
            class_names = classes_in_order(frame.stack())
        cells = frame.to_numpy(dtype=object)[rows, columns]
        labels, classes = factorize(cells.tolist(), class_names, "label", sort=True)
        if class_names is None and MISSING in classes.tolist():
            warn(
                "wide frame: -1 is read as a class. If it stands for a missing label, pass"
                " frame.replace(-1, np.nan); if it is a class, pass class_names.",
                stacklevel=2,
            )
        return cls(
            rows,
            columns,
            labels,
            instance_names=frame.index,
            annotator_names=frame.columns,
            class_names=classes,
        )

    # ----------------------------------------------------------------- as a value

    def __repr__(self) -> str:
        kind = "" if self.has_identities else ", votes only"
        return (
            f"Annotations({self.num_annotations} labels, {self.num_instances} instances,"
            f" {self.num_annotators} annotators, {self.num_classes} classes{kind})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        names = ("instance_names", "annotator_names", "class_names", "generated")
        arrays = (*names, "_instances", "_annotators", "_labels")
        return (
            self.has_identities == other.has_identities
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
            and (self._votes is None or np.array_equal(self._votes, other._votes))  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Returns `[N]` the majority's class names (of equally many votes the first class).

        Scikit-learn's searches split by them, and its scorers compare predictions with them.

        Raises:
            DataError: an instance has no label.
        """
        if not self.annotated.all():
            raise DataError(
                "annotations: expected a label of each instance for a majority vote, received none"
                f" of {spelt(self.instance_names[~self.annotated][0])}. Leave such instances out:"
                " rows = annotations.annotated; x[rows], annotations[rows]"
            )
        majority: Array = self.class_names[self.vote_counts().argmax(axis=1)]
        return np.asarray(majority, dtype=dtype)

    # ----------------------------------------------------------------- parts of it

    def __getitem__(self, rows: Any) -> Annotations:
        """Returns the annotations of some instances, in this order.

        Annotators and classes stay as they are.

        Args:
            rows: a slice, a `[N]` bool mask or an array of instance codes (repeats allowed).
        """
        index = np.atleast_1d(np.arange(self.num_instances)[rows])
        fields = {"num_instances": len(index), "instance_names": self.instance_names[index]}
        if self._votes is not None:
            return self._with(_votes=self._votes[index], **fields)
        pointers, order = self._by_instance
        lengths = pointers[index + 1] - pointers[index]
        # By how much an instance's labels move: from their places in `order` to the new ones.
        moves = np.repeat(pointers[index] - (np.cumsum(lengths) - lengths), lengths)
        chosen = order[moves + np.arange(lengths.sum())]
        instances = np.repeat(np.arange(len(index), dtype=np.int32), lengths)
        return self._at(chosen, _instances=instances, **fields)

    def _with(self, **fields: object) -> Annotations:
        """Returns an unchecked copy with some fields changed and without cached values."""
        changed = object.__new__(Annotations)
        for name in AnnotationViews.__annotations__:
            setattr(changed, name, fields[name] if name in fields else getattr(self, name))
        return changed

    def _at(self, chosen: Array, **fields: object) -> Annotations:
        """Returns the annotations at positions `chosen`, with some other fields changed."""
        columns = ["_instances", "_annotators", "_labels"]
        if self._generated is not None:
            columns += ["_generated"]
        return self._with(**{name: getattr(self, name)[chosen] for name in columns} | fields)

    def replace(
        self,
        *,
        instance_names: Names | None = None,
        annotator_names: Names | None = None,
        class_names: Names | None = None,
    ) -> Annotations:
        """Returns the annotations with other names for the same instances, annotators or classes.

        Raises:
            DataError: another number of names.
        """
        sides = ("instance_names", "annotator_names", "class_names")
        fields = {}
        for side, names in zip(sides, (instance_names, annotator_names, class_names), strict=True):
            if names is not None:
                fields[side] = names_for(names, len(getattr(self, side)), side)
        return self._with(**fields, named=self.named or instance_names is not None)

    def align(
        self, instance_names: Names | None = None, class_names: Names | None = None
    ) -> Annotations:
        """Returns the annotations over other instances or classes, matched by name.

        They are in the order of the names; those that are new have no labels.

        Args:
            instance_names: `[N]` all instances wanted.
            class_names: `[C]` all classes wanted.

        Raises:
            DataError: labels that are not wanted, with the name; a name that is there twice.
        """
        crowd = self
        for side, names in (("instance", instance_names), ("class", class_names)):
            if names is not None:
                crowd = crowd._aligned(side, as_name_array(names))
        return crowd

    def with_annotators(self, names: Iterable[Hashable]) -> Annotations:
        """Returns the annotations with further annotators, who have no labels.

        Names of annotators that are there already, compared as text, change nothing.
        """
        self.require_identities("further annotators")
        all_names = self.annotator_names.tolist()
        old = set(map(str, all_names))
        all_names += [name for name in dict.fromkeys(names) if str(name) not in old]
        if len(all_names) == self.num_annotators:
            return self
        return self._with(num_annotators=len(all_names), annotator_names=as_name_array(all_names))

    def _aligned(self, side: str, names: Array) -> Annotations:
        """Returns the annotations over the instances (or classes) of these names."""
        axis = ("instance", "class").index(side)
        size = ("num_instances", "num_classes")[axis]
        field = ("_instances", "_labels")[axis]
        positions = matched(getattr(self, f"{side}_names"), names, side)
        used = self.vote_counts().sum(axis=1 - axis) > 0
        unwanted = np.flatnonzero(used & (positions < 0))
        if len(unwanted):
            name = spelt(getattr(self, f"{side}_names")[unwanted[0]])
            shown = listed(names.tolist(), 5, repr)
            raise DataError(f"{side} names: expected one of {shown}, received {name}")
        fields = {size: len(names), f"{side}_names": names, "named": self.named or axis == 0}
        if self._votes is None:
            fields[field] = positions[getattr(self, field)].astype(np.int32)
        else:
            votes = np.moveaxis(self._votes, axis, 0)
            wanted = positions >= 0
            counts = np.zeros((len(names), votes.shape[1]), dtype=np.int32)
            counts[positions[wanted]] = votes[wanted]
            fields["_votes"] = np.ascontiguousarray(np.moveaxis(counts, 0, axis))
        return self._with(**fields)

    def select(self, keep: ArrayLike) -> Annotations:
        """Returns the annotations at `keep`, with the same instances, annotators and classes.

        Args:
            keep: `[A]` bool mask, or positions.
        """
        self.require_identities("this operation")
        return self._at(np.arange(len(self.labels))[np.asarray(keep)])

    def observed(self) -> Annotations:
        """Returns the annotations without generated ones."""
        if self.generated.any():
            return self.select(~self.generated)
        return self

    def with_generated(
        self, instances: ArrayLike, annotators: ArrayLike, labels: ArrayLike
    ) -> Annotations:
        """Returns these annotations with generated ones, which are marked.

        Raises:
            DataError: a cell has a label already.
        """
        names = (self.instance_names, self.annotator_names)
        crowd = self._extended((instances, annotators, labels), *names, generated=True)
        cells = crowd.instances.astype(np.int64) * crowd.num_annotators + crowd.annotators
        # Only a generated label must not share a cell: annotators may have labelled one twice.
        cells = np.append(np.unique(cells[: len(self.labels)]), cells[len(self.labels) :])
        rows_to_keep(*np.divmod(cells, max(crowd.num_annotators, 1)), *names, "error")
        crowd.named = self.named
        return crowd

    def _extended(
        self,
        triple: tuple[ArrayLike, ArrayLike, ArrayLike],
        instance_names: Names | None = None,
        annotator_names: Names | None = None,
        *,
        generated: bool = False,
    ) -> Annotations:
        """Returns the annotations with further ones after them.

        Marks stay, and so do several labels of one instance by one annotator.

        Args:
            triple: `[M]` instances, annotators and labels.
            instance_names, annotator_names: by default the numbers from 0.
            generated: whether these are marked.
        """
        extra = coded_triples(*triple)
        columns = zip((self.instances, self.annotators, self.labels), extra, strict=True)
        marks = np.append(self.generated, np.full(len(extra[0]), generated))
        return Annotations(
            *map(np.concatenate, columns),
            instance_names=instance_names,
            annotator_names=annotator_names,
            class_names=self.class_names,
            generated=marks if marks.any() else None,
            duplicates="all",
        )


def _frame(value: object) -> Frame:
    """Returns a DataFrame, or raises DataError."""
    frame = as_frame(value)
    if frame is None:
        raise DataError(f"frame: expected a DataFrame, received {type(value).__name__}")
    return frame
