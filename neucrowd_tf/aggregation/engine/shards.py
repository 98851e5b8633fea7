"""Shards of whole tasks on the disk, mapped into memory when they are worked on."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from neucrowd_tf.aggregation.engine.records import Engine, changed, digests
from neucrowd_tf.aggregation.engine.source import (
    NAMES,
    Source,
    check_vocabulary,
    scatter,
    state_of,
    united,
    vocabulary,
    write_arrow,
)
from neucrowd_tf.aggregation.sums import Shard
from neucrowd_tf.annotations import Duplicates
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.files.arrays import ARRAY_HEADERS
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json import read_sealed, write_sealed
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.table import PARQUET
from neucrowd_tf.names import typed_names

# Annotations of a shard: small enough that a few are in memory at once, large enough that adding
# up the sums of all shards takes little beside making them.
SHARD_ROWS = 4_000_000
FEWEST, MOST = 8, 4096
MOST_CLASSES = 1 << 15
RECORD = "shards.json"


def _files(number: int) -> tuple[str, str, str]:
    """Returns the files of a shard: where each task begins, `annotator * C + label`, the tasks."""
    return f"{number:05d}.offsets.npy", f"{number:05d}.columns.npy", f"{number:05d}.tasks.arrow"


@dataclasses.dataclass(frozen=True)
class Shards:
    """The shards in a folder.

    Attributes:
        folder: where they are.
        sizes: tasks of each.
        num_annotations: of all.
        num_annotators: R.
        classes: `[C]` names.
        lines: what was read.
    """

    folder: Path
    sizes: Sequence[int]
    num_annotations: int
    num_annotators: int
    classes: Sequence[Any]
    lines: Sequence[str]

    @property
    def num_classes(self) -> int:
        """C."""
        return len(self.classes)

    @property
    def annotators(self) -> pa.Array:
        """`[R]` the annotators' names."""
        return pq.read_table(self.folder / NAMES)["annotator"].combine_chunks()

    def open(self, number: int) -> Shard:
        """Maps a shard into memory."""
        with ARRAY_HEADERS:
            offsets, columns = (
                np.load(self.folder / name, mmap_mode="r") for name in _files(number)[:2]
            )
        shape = (len(offsets) - 1, self.num_annotators * self.num_classes)
        one_hot = sparse.csr_matrix(
            (np.ones(len(columns)), np.asarray(columns), np.asarray(offsets)), shape=shape
        )
        return Shard(one_hot, self.num_classes, first=sum(self.sizes[:number]))

    def tasks(self, number: int) -> pa.Array:
        """Returns the names of a shard's tasks."""
        with pa.memory_map(str(self.folder / _files(number)[2])) as stream:
            return pa.ipc.open_file(stream).read_all()["task"].combine_chunks()


def read_record(folder: Path) -> dict[str, Any] | None:
    """Returns the record of the shards in a folder, None if they were not finished.

    Raises:
        DataError: a damaged file.
    """
    path = folder / RECORD
    return read_sealed(path) if path.exists() else None


def load_shards(folder: Path, record: dict[str, Any], engine: Engine) -> Shards:
    """Returns the shards of a folder, by their record.

    Raises:
        DataError: a file of theirs is damaged.
    """
    if (path := changed(folder, record["files"], engine)) is not None:
        raise DataError(f"{path}: expected a shard as it was written, received a damaged file")
    fields = [field.name for field in dataclasses.fields(Shards)][1:]
    return Shards(folder, **{name: record[name] for name in fields})


def make_shards(source: Source, origin: dict[str, Any], folder: Path, engine: Engine) -> Shards:
    """Reads a source twice (its names, then its rows) and sorts it into shards.

    Args:
        source: the annotations.
        origin: see `records.origin_of`.
        folder: of the shards.
        engine: runs the parts.

    Raises:
        DataError: rows that cannot be used, no row, or two labels of one task by one annotator.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "runs").mkdir(parents=True)
    stored = source.stored(folder / "runs")
    vocabularies = list(engine.map(vocabulary, stored.parts))
    annotators = _ordered(united([piece.annotators for piece in vocabularies]))
    labels = sum((piece.labels for piece in vocabularies), Counter())
    missing = sum(piece.missing for piece in vocabularies)
    first = source.files[0].absolute()
    spelt = list(map(str, annotators.to_pylist()))
    _, workers, names_of_labels = source.parts[0].columns if source.parts else ((), (), ())
    if set(workers) & set(spelt) and set(names_of_labels) & labels.keys():
        raise error("header_again", first)
    classes, lines = check_vocabulary(first, spelt, labels, missing, stored.options)
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"{first}: label: expected at most {MOST_CLASSES} classes, received {len(classes)}"
        )
    with atomic_path(folder / NAMES) as temporary:
        pq.write_table(pa.table({"annotator": annotators}), temporary)
    buckets = min(max(source.rows // SHARD_ROWS, FEWEST), MOST)
    coded = pa.array(classes, pa.large_string())
    job = functools.partial(scatter, folder, coded, _text(stored), buckets)
    runs = [run for files in engine.map(job, enumerate(stored.parts)) for run in files]
    duplicates = stored.options.duplicates
    sizes = (len(annotators), len(classes))
    gather = Gather(folder, tuple(runs), *sizes, first, duplicates)
    parts = list(engine.map(gather, range(buckets)))
    shutil.rmtree(folder / "runs")
    if state_of(source.files) != source.state:
        raise DataError(f"{first}: expected files at rest, received one that changes")
    if twice := sum(piece[2] for piece in parts):
        lines.append(
            f"Duplicate (item, annotator) pairs: {twice:,}, {duplicates} used (--duplicates)."
        )
    shards: dict[str, Any] = {
        "sizes": [piece[0] for piece in parts],
        "num_annotations": sum(piece[1] for piece in parts),
        "num_annotators": len(annotators),
        "classes": typed_names(classes).tolist(),
        "lines": [*source.lines, *(() if source.table else lines)],
    }
    files = [name for number in range(buckets) for name in _files(number)]
    record = {"origin": origin, "files": digests(folder, [NAMES, *files], engine)}
    write_sealed(folder / RECORD, {**record, **shards})
    return Shards(folder, **shards)


def _ordered(names: pa.Array) -> pa.Array:
    """Returns names sorted, as numbers if every text is how one is spelt."""
    if pa.types.is_large_string(names.type):
        typed = typed_names(names.to_pylist())
        if typed.dtype.kind == "i":
            return names.take(pa.array(np.argsort(typed, kind="stable")))
    return names.take(pc.sort_indices(names))


def _text(source: Source) -> bool:
    """Whether any file has text for its tasks, so that all tasks are read as text."""
    kinds = set()
    for file, (items, *_) in {(piece.file, piece.columns) for piece in source.parts}:
        if ending(file) not in PARQUET or len(items) > 1:
            return True
        kind = pq.read_schema(file).field(items[0]).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        kinds.add(pa.types.is_integer(kind))
    return False in kinds


@dataclasses.dataclass(frozen=True)
class Gather:
    """Makes a shard of what all runs have for it, as a function that other processes can be sent.

    Attributes:
        folder: of the shards.
        runs: the files of the runs.
        num_annotators, num_classes: R and C.
        source: the annotations, for errors.
        duplicates: "error", or which of an annotator's labels of one task counts: "first", "last"
            or "all".
    """

    folder: Path
    runs: tuple[Path, ...]
    num_annotators: int
    num_classes: int
    source: Path
    duplicates: Duplicates = "error"

    def __call__(self, number: int) -> tuple[int, int, int]:
        """Writes a shard's arrays, sorted by task and annotator.

        Returns:
            how many tasks and annotations it has, and how many duplicate ones it left out.
        """
        table = self._rows(number)
        tasks = table["task"].combine_chunks().dictionary_encode()
        if isinstance(tasks, pa.ChunkedArray):
            tasks = tasks.combine_chunks()
        order = pc.sort_indices(tasks.dictionary)
        names = tasks.dictionary.take(order)
        rank = np.empty(len(names), dtype=np.int64)
        rank[order.to_numpy()] = np.arange(len(names))
        codes = rank[tasks.indices.to_numpy()]
        annotators = table["annotator"].to_numpy()
        labels = table["label"].to_numpy()
        offsets, columns = self._sorted(codes, annotators, labels, names)
        *paths, last = (self.folder / name for name in _files(number))
        for path, array in zip(paths, (offsets, columns), strict=True):
            with atomic_path(path) as temporary:
                np.save(temporary, array)
        write_arrow(last, pa.table({"task": names}))
        return len(names), len(columns), len(codes) - len(columns)

    def _rows(self, number: int) -> pa.Table:
        """Returns the rows of a bucket, copied out of the runs."""
        rows = []
        for run in self.runs:
            with pa.memory_map(str(run)) as stream:
                reader = pa.ipc.open_file(stream)
                offsets = np.frombuffer(reader.schema.metadata[b"offsets"], dtype="<i8")
                first, last = offsets[number : number + 2].tolist()
                rows.append(reader.read_all().slice(first, last - first))
        return pa.concat_tables(table.replace_schema_metadata() for table in rows)

    def _sorted(
        self,
        tasks: NDArray[np.int64],
        annotators: NDArray[np.int32],
        labels: NDArray[np.int16],
        names: pa.Array,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns the tasks' offsets `[n + 1]` and the annotations' columns.

        Raises:
            DataError: two labels of one task by one annotator.
        """
        width = self.num_annotators * self.num_classes
        kind = np.int32 if width < 2**31 else np.int64
        columns = annotators.astype(np.int64) * self.num_classes + labels
        if len(names) * width < 2**63:
            ordered, columns = np.divmod(np.sort(tasks * width + columns), width)
        else:
            order = np.lexsort((columns, tasks))
            ordered, columns = tasks[order], columns[order]
        who = columns // self.num_classes
        twice = np.flatnonzero((ordered[1:] == ordered[:-1]) & (who[1:] == who[:-1]))
        if len(twice) and self.duplicates == "error":
            name = pq.read_table(self.folder / NAMES)["annotator"]
            task, worker = names[int(ordered[twice[0]])].as_py(), name[int(who[twice[0]])].as_py()
            raise error("duplicate_pair", self.source, item=task, annotator=worker)
        if len(twice) and self.duplicates != "all":
            order = np.lexsort((annotators, tasks))  # within a pair in the order of the rows
            pairs = np.stack([tasks[order], annotators[order]])
            changes = (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)
            first = self.duplicates == "first"
            chosen = order[np.r_[True, changes] if first else np.r_[changes, True]]
            return self._sorted(tasks[chosen], annotators[chosen], labels[chosen], names)
        counts = np.bincount(ordered, minlength=len(names))
        return np.concatenate([[0], np.cumsum(counts)]).astype(kind), columns.astype(kind)
