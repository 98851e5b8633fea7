"""Annotations: who gave which label to which instance, held as sparse triples.

Everything that turns crowd labels from one form into another goes through :class:`Annotations`. It
is made, and checked, once; `replace`, `align`, `select` and rows give changed copies without doing
so again. What can be read off annotations is in :mod:`neucrowd_tf.annotations.views`, ids and their
codes in :mod:`neucrowd_tf.annotations.codes`.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from neucrowd_tf.annotations.codes import (
    Duplicates,
    as_name_array,
    code_array,
    coded_triples,
    dense_codes,
    factorize,
    matched,
    names_for,
    rows_to_keep,
    size_of,
    spelt,
    vote_matrix,
)
from neucrowd_tf.annotations.views import AnnotationViews
from neucrowd_tf.errors import DataError, RowError
from neucrowd_tf.io.files.json import write_json
from neucrowd_tf.io.labels.answers import read_answers
from neucrowd_tf.io.labels.long import read_frame, read_long, write_long
from neucrowd_tf.io.labels.table import LabelTable
from neucrowd_tf.io.labels.wide import read_wide_frame
from neucrowd_tf.io.names.telling import tell_names
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import EXACT, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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
        named: whether instances came with names, rather than being numbered by their rows.
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
        triple = coded_triples(instances, annotators, labels)
        sizes = [
            size_of(codes, size, names, what)
            for codes, size, names, what in zip(
                triple,
                (num_instances, num_annotators, num_classes),
                (instance_names, annotator_names, class_names),
                ("task", "worker", "label"),
                strict=True,
            )
        ]
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
        self.named = instance_names is not None

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
        cls,
        matrix: ArrayLike,
        *,
        num_classes: int | None = None,
        instance_names: Any = None,
        annotator_names: Any = None,
        class_names: Any = None,
    ) -> Annotations:
        """Makes annotations from an `[N, R]` integer array in which -1 means that the annotator
        gave no label.

        Raises:
            DataError: not two-dimensional, not whole numbers, or a label below -1.
        """
        array = dense_codes(matrix)
        rows, columns = np.nonzero(array >= 0)
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
        frame: Any,
        *,
        task: str | None = None,
        worker: str | None = None,
        label: str | None = None,
        duplicates: Duplicates = "error",
        source: str = "frame",
        instance_names: Any = None,
        annotator_names: Any = None,
        class_names: Any = None,
    ) -> Annotations:
        """Makes annotations from a frame with a row for each label: `task, worker, label` or their
        aliases (crowd-kit's form). Names that often stand for none (`"NA"`, `"-"`) or are one in
        two spellings (`"1"`, `1.0`) are told, unless they are given here.

        Args:
            frame: `[A]` rows: a DataFrame, or what has `to_pandas` (a Hugging Face dataset).
            task, worker, label: the columns' names, where they are others than the aliases.
            duplicates: "error", "first" or "last" for a pair (task, worker) that occurs again.
            source: what to call the frame in errors.
            instance_names, annotator_names, class_names: as for `from_arrays`.

        Raises:
            DataError: a missing column, an empty frame, a missing value, an unknown id or a
                duplicate.
        """
        layout = TableFormat(task=task, worker=worker, label=label)
        return cls.from_table(
            read_frame(frame, layout, source),
            duplicates=duplicates,
            instance_names=instance_names,
            annotator_names=annotator_names,
            class_names=class_names,
        )._telling(source, instance_names, annotator_names, class_names)

    @classmethod
    def from_wide_frame(cls, frame: Any, *, class_names: Any = None) -> Annotations:
        """Makes annotations from a frame with a row an instance and a column an annotator, NaN
        where there is no label (cleanlab's form). Tells what `from_frame` does.
        """
        crowd = cls.from_table(read_wide_frame(frame), class_names=class_names)
        return crowd._telling("frame", None, None, class_names)

    def _telling(self, source: str, *given: Any) -> Annotations:
        """Warns of names of tasks, workers and labels that were not given, as `tell_names` does."""
        found = (self.instance_names, self.annotator_names, self.class_names)
        for role, names, own in zip(ALIASES, found, given, strict=True):
            if own is None:
                tell_names(names.tolist(), role, source)
        return self

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        duplicates: Duplicates = "error",
        layout: TableFormat = EXACT,
        instance_names: Any = None,
        annotator_names: Any = None,
        class_names: Any = None,
    ) -> Annotations:
        """Reads a CSV with a row for each label, names being what they say; see `from_frame`."""
        return cls.from_table(
            read_long(CsvFile.open(path, layout), layout),
            duplicates=duplicates,
            instance_names=instance_names,
            annotator_names=annotator_names,
            class_names=class_names,
        )

    @classmethod
    def from_answers_json(
        cls,
        source: str | Path | Mapping[str, Mapping[str, Hashable]],
        *,
        instance_names: Any = None,
        annotator_names: Any = None,
        class_names: Any = None,
    ) -> Annotations:
        """Reads peerannot's `answers.json`: `{task: {worker: label}}`."""
        return cls.from_table(
            read_answers(source, EXACT),
            instance_names=instance_names,
            annotator_names=annotator_names,
            class_names=class_names,
        )

    @classmethod
    def from_table(
        cls,
        table: LabelTable,
        *,
        duplicates: Duplicates = "error",
        instance_names: Any = None,
        annotator_names: Any = None,
        class_names: Any = None,
    ) -> Annotations:
        """Makes annotations from what a reader of :mod:`neucrowd_tf.io` returned; names that are
        given here go before the table's.

        Raises:
            DataError: what `from_arrays`, `from_dense` or `from_votes` refuses; names the source.
        """
        tasks, workers, classes = (
            theirs if ours is None else ours
            for ours, theirs in (
                (instance_names, table.instance_names),
                (annotator_names, table.annotator_names),
                (class_names, table.class_names),
            )
        )
        try:
            if table.counts is not None:
                return cls.from_votes(table.counts, instance_names=tasks, class_names=classes)
            names = {"instance_names": tasks, "annotator_names": workers, "class_names": classes}
            if table.matrix is not None:
                return cls.from_dense(table.matrix, **names)
            return cls.from_arrays(*(table.triples or ((),) * 3), duplicates=duplicates, **names)
        except RowError as error:
            raise table.error(error.row, error.rest) from None
        except DataError as error:
            raise DataError(f"{table.source}: {error}") from None

    def to_csv(self, path: str | Path) -> None:
        """Writes `task,worker,label`; the file appears whole or not at all."""
        frame = self.to_frame()
        write_long(path, (frame[name] for name in frame))

    def to_answers_json(self, path: str | Path | None = None) -> dict[str, dict[str, Any]]:
        """Returns (and writes, with a path) peerannot's `{task: {worker: label}}`. JSON's keys are
        text, so ids of other types are spelt out.

        Raises:
            DataError: two ids that are spelt alike (1 and "1").
        """
        tasks, workers = (
            [str(name) for name in names.tolist()]
            for names in (self.instance_names, self.annotator_names)
        )
        for names, what in ((tasks, "task"), (workers, "worker")):
            if len(set(names)) != len(names):
                raise DataError(
                    f"answers.json: expected {what} ids that differ as text, received two that are"
                    f" both spelt {pd.Series(names).mode()[0]!r}"
                )
        classes = self.class_names.tolist()
        answers: dict[str, dict[str, Any]] = {task: {} for task in tasks}
        codes = (self.instances.tolist(), self.annotators.tolist(), self.labels.tolist())
        for i, j, c in zip(*codes, strict=True):
            answers[tasks[i]][workers[j]] = classes[c]
        if path is not None:
            write_json(path, answers, indent=None)
        return answers

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
        index = np.atleast_1d(np.arange(self.num_instances)[rows])
        side = {"num_instances": len(index), "instance_names": self.instance_names[index]}
        if self._votes is not None:
            return self._with(_votes=self._votes[index], **side)
        pointers, order = self._by_instance
        lengths = pointers[index + 1] - pointers[index]
        firsts = np.repeat(pointers[index] - (np.cumsum(lengths) - lengths), lengths)
        chosen = order[firsts + np.arange(lengths.sum())]
        instances = np.repeat(np.arange(len(index), dtype=np.int32), lengths)
        return self._at(chosen, _instances=instances, **side)

    def _with(self, **fields: Any) -> Annotations:
        """Returns a copy with some fields changed; what was computed from the old ones is left
        behind. The caller answers for what the constructor would check.
        """
        made = copy.copy(self)
        made._forget_cached()
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def _at(self, chosen: NDArray[Any], **fields: Any) -> Annotations:
        """Returns the annotations at positions `chosen`, with some fields changed besides."""
        held = {name: getattr(self, name) for name in ("_instances", "_annotators", "_labels")}
        if self._generated is not None:
            held["_generated"] = self._generated
        return self._with(**{**{name: codes[chosen] for name, codes in held.items()}, **fields})

    def replace(
        self, *, instance_names: Any = None, annotator_names: Any = None, class_names: Any = None
    ) -> Annotations:
        """Returns the annotations with other names for the same instances, annotators or classes.

        Raises:
            DataError: another number of names.
        """
        fields: dict[str, Any] = {}
        for what, names in (
            ("instance", instance_names),
            ("annotator", annotator_names),
            ("class", class_names),
        ):
            if names is not None:
                size = len(getattr(self, f"{what}_names"))
                fields[f"{what}_names"] = names_for(names, size, f"{what}_names")
        return self._with(**fields, named=self.named or instance_names is not None)

    def align(
        self,
        instance_names: Any = None,
        class_names: Any = None,
        *,
        unmatched: Literal["error", "drop"] = "error",
    ) -> Annotations:
        """Returns the annotations over other instances or classes, matched by name and in the order
        given; those that are new have no labels.

        Args:
            instance_names: `[N]` all instances wanted.
            class_names: `[C]` all classes wanted.
            unmatched: what to do with labels of instances, or for classes, that are not wanted.

        Raises:
            DataError: labels that are not wanted, with the name (unless they are to be dropped); a
                name that is there twice.
        """
        made = self
        for what, names in (("instance", instance_names), ("class", class_names)):
            if names is not None:
                wanted = as_name_array(names)
                old = getattr(made, f"{what}_names")
                made = made._moved(what, matched(old, wanted, what), wanted, unmatched)
        return made

    def with_annotators(self, names: Iterable[Hashable]) -> Annotations:
        """Returns the annotations with further annotators, who have no labels; those that are
        there already, compared as they are spelt, stay as they are.
        """
        self.require_identities("further annotators")
        held = self.annotator_names.tolist()
        known = {str(name) for name in held}
        held += [name for name in dict.fromkeys(names) if str(name) not in known]
        if len(held) == self.num_annotators:
            return self
        return self._with(num_annotators=len(held), annotator_names=as_name_array(held))

    def _moved(
        self, what: str, places: NDArray[np.int64], names: NDArray[Any], unmatched: str = "error"
    ) -> Annotations:
        """Returns the annotations with instance (or class) i at `places[i]` among `names`, -1 for
        one that is left out.
        """
        axis, field = (0, "_instances") if what == "instance" else (1, "_labels")
        size = {"num_instances" if axis == 0 else "num_classes": len(names), f"{what}_names": names}
        used = self.vote_counts().sum(axis=1 - axis) > 0
        lost = np.flatnonzero(used & (places < 0))
        if len(lost) and unmatched == "error":
            name = spelt(getattr(self, f"{what}_names")[lost[0]])
            shown = ", ".join(map(repr, names[:5].tolist())) + (", ..." if len(names) > 5 else "")
            raise DataError(f"{what} names: expected one of {shown}, received {name}")
        if axis == 0:
            size["named"] = True
        if self._votes is not None:
            shape = [*self._votes.shape]
            shape[axis] = len(names)
            counts = np.zeros(shape, dtype=np.int32)
            kept = np.flatnonzero(places >= 0)
            target = (places[kept],) if axis == 0 else (slice(None), places[kept])
            counts[target] = self._votes.take(kept, axis=axis)
            return self._with(_votes=counts, **size)
        codes = places[getattr(self, field)].astype(np.int32)
        if len(lost):
            chosen = np.flatnonzero(codes >= 0)
            return self._at(chosen, **{field: codes[chosen]}, **size)
        return self._with(**{field: codes}, **size)

    def select(self, keep: ArrayLike) -> Annotations:
        """Returns the annotations at `keep` (a `[A]` bool mask or positions), with the same
        instances, annotators and classes.
        """
        self.require_identities("this operation")
        return self._at(np.arange(len(self.labels))[np.asarray(keep)])

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
