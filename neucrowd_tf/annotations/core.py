"""Annotations: who gave which label to which instance, held as sparse triples.

Everything that turns crowd labels from one form into another goes through :class:`Annotations`.
Files are read and written by :mod:`neucrowd_tf.io.annotations`, whose functions stand here as class
methods; what can be read off annotations is in :mod:`neucrowd_tf.annotations.views`, and ids and
their codes in :mod:`neucrowd_tf.annotations.codes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.annotations.codes import (
    MISSING,
    Duplicates,
    as_name_array,
    check_range,
    code_array,
    dense_codes,
    factorize,
    names_for,
    rows_to_keep,
    spelt,
    vote_matrix,
)
from neucrowd_tf.annotations.views import AnnotationViews
from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "MISSING",
    "Annotations",
    "Duplicates",
    "as_annotations",
    "as_name_array",
    "factorize",
    "spelt",
]


class Annotations(AnnotationViews):
    """Crowd labels as triples (instance, annotator, label), or as vote counts where no identities
    are known.

    Attributes:
        num_instances, num_annotators, num_classes: N, R and C. With vote counts alone, R is the
            largest number of votes.
        instance_names, annotator_names, class_names: the ids that the codes stand for; arrays of N,
            R and C.
        generated: `[A]` bool, True for annotations that a method made up; `observed()` leaves them
            out.
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
            DataError: lengths differ, a code is out of range, or one annotator labelled one
                instance twice.
        """
        triple = [
            code_array(v, w)
            for v, w in ((instances, "instances"), (annotators, "annotators"), (labels, "labels"))
        ]
        if len({len(codes) for codes in triple}) != 1:
            raise DataError(
                "expected instances, annotators and labels of one length, received"
                f" {[len(c) for c in triple]}"
            )
        sizes = []
        for codes, size, names, what in zip(
            triple,
            (num_instances, num_annotators, num_classes),
            (instance_names, annotator_names, class_names),
            ("task", "worker", "label"),
            strict=True,
        ):
            found = (
                size
                if size is not None
                else len(names)
                if names is not None
                else int(codes.max(initial=-1)) + 1
            )
            check_range(codes, found, what)
            sizes.append(found)
        self.num_instances, self.num_annotators, self.num_classes = sizes
        self.instance_names = names_for(instance_names, self.num_instances, "instance_names")
        self.annotator_names = names_for(annotator_names, self.num_annotators, "annotator_names")
        self.class_names = names_for(class_names, self.num_classes, "class_names")
        marks = None if generated is None else np.asarray(generated, dtype=bool)
        if marks is not None and marks.shape != triple[0].shape:
            raise DataError(f"generated: expected shape {triple[0].shape}, received {marks.shape}")
        keep = rows_to_keep(
            triple[0], triple[1], self.instance_names, self.annotator_names, duplicates
        )
        if keep is not None:
            triple = [codes[keep] for codes in triple]
            marks = None if marks is None else marks[keep]
        self._instances, self._annotators, self._labels = triple
        self._generated = marks
        self._votes = None

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
            instance_names, annotator_names, class_names: the ids in the order wanted (a feature
                table's tasks, say); by default tasks and workers in order of appearance, classes
                sorted.
            duplicates: what to do when one worker labelled one task twice: "error", "first" or
                "last".

        Raises:
            DataError: a missing id, one that the given names do not hold, or a duplicate.
        """
        columns: dict[str, Any] = {}
        for key, what, values, known, sort in (
            ("instance", "task", tasks, instance_names, False),
            ("annotator", "worker", workers, annotator_names, False),
            ("class", "label", labels, class_names, True),
        ):
            columns[key], columns[f"{key}_names"] = factorize(
                values, None if known is None else as_name_array(known), what, sort
            )
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
    def from_dense(
        cls, matrix: ArrayLike, *, num_classes: int | None = None, **names: Any
    ) -> Annotations:
        """Makes annotations from an `[N, R]` integer array in which -1 means that the annotator
        gave no label.

        Raises:
            DataError: not two-dimensional, not whole numbers, or a label below -1.
        """
        array = dense_codes(matrix)
        rows, columns = np.nonzero(array >= 0)
        if num_classes is None and "class_names" not in names:
            num_classes = int(array.max(initial=-1)) + 1
        return cls(
            rows,
            columns,
            array[rows, columns],
            num_instances=array.shape[0],
            num_annotators=array.shape[1],
            num_classes=num_classes,
            **names,
        )

    @classmethod
    def from_votes(
        cls, counts: ArrayLike, *, instance_names: Any = None, class_names: Any = None
    ) -> Annotations:
        """Makes annotations from `[N, C]` vote counts, where it is not known who voted (the hotel
        data).

        Raises:
            DataError: negative or fractional counts.
        """
        votes = vote_matrix(counts)
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
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        duplicates: Duplicates = "error",
        source: str = "frame",
        **names: Any,
    ) -> Annotations:
        """Makes annotations from a frame with a row for each label: `task, worker, label` or their
        aliases (crowd-kit's form).
        """
        from neucrowd_tf.io import annotations as annotation_files

        return annotation_files.from_frame(frame, duplicates=duplicates, source=source, **names)

    @classmethod
    def from_wide_frame(cls, frame: pd.DataFrame, *, class_names: Any = None) -> Annotations:
        """Makes annotations from a frame with a row an instance and a column an annotator, NaN
        where there is no label (cleanlab's form).
        """
        from neucrowd_tf.io import annotations as annotation_files

        return annotation_files.from_wide_frame(frame, class_names=class_names)

    @classmethod
    def from_csv(
        cls, path: str | Path, *, duplicates: Duplicates = "error", **names: Any
    ) -> Annotations:
        """Reads a CSV with a row for each label; see `from_frame`."""
        from neucrowd_tf.io import annotations as annotation_files

        return annotation_files.from_csv(path, duplicates=duplicates, **names)

    @classmethod
    def from_answers_json(
        cls, source: str | Path | Mapping[str, Mapping[str, Hashable]], **names: Any
    ) -> Annotations:
        """Reads peerannot's `answers.json`: `{task: {worker: label}}`."""
        from neucrowd_tf.io import annotations as annotation_files

        return annotation_files.from_answers_json(source, **names)

    def to_csv(self, path: str | Path) -> None:
        """Writes `task,worker,label`; the file appears whole or not at all."""
        from neucrowd_tf.io import annotations as annotation_files

        annotation_files.to_csv(self, path)

    def to_answers_json(self, path: str | Path | None = None) -> dict[str, dict[str, Any]]:
        """Returns (and writes, with a path) peerannot's `{task: {worker: label}}`."""
        from neucrowd_tf.io import annotations as annotation_files

        return annotation_files.to_answers_json(self, path)

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
        if (
            self.shape != other.shape
            or self.num_classes != other.num_classes
            or self.has_identities != other.has_identities
        ):
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

    # ----------------------------------------------------------------- parts of it

    def __getitem__(self, rows: Any) -> Annotations:
        """Returns the annotations of some instances, in the order asked for; annotators and classes
        stay as they are.

        Args:
            rows: a slice, a `[N]` bool mask or an array of instance codes (repeats allowed).
        """
        index = np.arange(self.num_instances)[rows]
        index = np.atleast_1d(index)
        names = self.instance_names[index]
        if self._votes is not None:
            part = Annotations.from_votes(
                self._votes[index], instance_names=names, class_names=self.class_names
            )
            part.num_annotators, part.annotator_names = self.num_annotators, self.annotator_names
            return part
        pointers, order = self._by_instance
        lengths = pointers[index + 1] - pointers[index]
        starts = np.repeat(
            (
                pointers[index] - np.concatenate([[0], np.cumsum(lengths)[:-1]])
                if len(index)
                else lengths
            ),
            lengths,
        )
        chosen = order[starts + np.arange(lengths.sum())]
        return self._replace(
            np.repeat(np.arange(len(index), dtype=np.int32), lengths),
            chosen,
            num_instances=len(index),
            instance_names=names,
        )

    def _replace(
        self, instances: NDArray[Any], chosen: NDArray[Any], **instance_side: Any
    ) -> Annotations:
        side = instance_side or {
            "num_instances": self.num_instances,
            "instance_names": self.instance_names,
        }
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
        """Returns the annotations at `keep` (a `[A]` bool mask or positions), with the same
        instances, annotators and classes.
        """
        chosen = np.arange(len(self.labels))[np.asarray(keep)]
        return self._replace(self._instances[chosen], chosen)

    def observed(self) -> Annotations:
        """Returns the annotations that people gave, without generated ones."""
        return (
            self
            if self._generated is None or not self._generated.any()
            else self.select(~self._generated)
        )

    def with_generated(
        self, instances: ArrayLike, annotators: ArrayLike, labels: ArrayLike
    ) -> Annotations:
        """Returns these annotations with made-up ones added and marked; a cell that has a label
        already is an error.
        """
        extra = code_array(labels, "labels")
        return Annotations(
            np.concatenate([self.instances, code_array(instances, "instances")]),
            np.concatenate([self.annotators, code_array(annotators, "annotators")]),
            np.concatenate([self.labels, extra]),
            num_instances=self.num_instances,
            num_annotators=self.num_annotators,
            num_classes=self.num_classes,
            instance_names=self.instance_names,
            annotator_names=self.annotator_names,
            class_names=self.class_names,
            generated=np.concatenate([self.generated, np.ones(len(extra), dtype=bool)]),
        )


def as_annotations(
    annotations: Annotations | ArrayLike, num_classes: int | None = None
) -> Annotations:
    """Returns `Annotations`, taking a dense `[N, R]` matrix with -1 for missing labels too."""
    if isinstance(annotations, Annotations):
        return annotations
    return Annotations.from_dense(annotations, num_classes=num_classes)
