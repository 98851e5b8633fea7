"""Shards of whole tasks on the disk, mapped into memory when they are worked on."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import feather
from scipy import sparse

from neucrowd_tf.aggregation.engine.local import Engine
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
from neucrowd_tf.annotations.codes import duplicates
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.files.arrays import ARRAY_HEADERS
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.table import PARQUET
from neucrowd_tf.names import typed_names

# Annotations of a shard: small enough that a few are in memory at once, large enough that adding
# up the sums of all shards takes little beside making them.
SHARD_ROWS = 4_000_000
FEWEST = 8
MOST = 4096
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
        return Shard(one_hot, self.num_classes)

    def tasks(self, number: int) -> pa.Array:
        """Returns the names of a shard's tasks."""
        table = feather.read_table(self.folder / _files(number)[2], memory_map=True)
        return table["task"].combine_chunks()


def make_shards(source: Source, settings: Fields, folder: Path, engine: Engine) -> Shards:
    """Reads a source twice (its names, then its rows) and sorts it into shards.

    Args:
        source: the annotations.
        settings: what the fit depends on, for the record of the shards.
        folder: of the shards.
        engine: runs the parts.

    Raises:
        DataError: rows that cannot be used, no row, or two labels of one task by one annotator.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "runs").mkdir(parents=True)
    stored = source.stored(folder / "runs")
    workers = []
    labels = Counter[str]()
    missing = 0
    for workers_of_part, counts, lost in engine.map(vocabulary, stored.parts):
        workers.append(workers_of_part)
        labels += counts
        missing += lost
    annotators = _ordered(united(workers))
    first_file = source.files[0].absolute()
    names = list(map(str, annotators.to_pylist()))
    for piece in source.parts[:1]:
        _, of_workers, of_labels = piece.columns
        if set(of_workers) & set(names) and set(of_labels) & labels.keys():
            raise error("header_again", first_file)
    classes, lines = check_vocabulary(first_file, names, labels, missing, stored.options)
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"{first_file}: label: expected at most {MOST_CLASSES} classes, received {len(classes)}"
        )
    with atomic_path(folder / NAMES) as temporary:
        pq.write_table(pa.table({"annotator": annotators}), temporary)
    buckets = min(max(source.rows // SHARD_ROWS, FEWEST), MOST)
    coded = pa.array(classes, pa.large_string())
    job = functools.partial(scatter, folder, coded, _text(stored), buckets)
    runs = list(itertools.chain.from_iterable(engine.map(job, enumerate(stored.parts))))
    rule = stored.options.duplicates or "last"
    sizes = (len(annotators), len(classes))
    sort = functools.partial(gather, folder, runs, *sizes, first_file, rule)
    tasks, annotations, repeated = zip(*engine.map(sort, range(buckets)), strict=True)
    shutil.rmtree(folder / "runs")
    if state_of(source.files) != source.state:
        raise DataError(f"{first_file}: a file changed while it was read. Start again.")
    if any(repeated):
        pairs = f"{sum(repeated):,}, {rule} used"
        lines.append(f"Duplicate (item, annotator) pairs: {pairs} (--duplicates).")
    shards = {
        "sizes": tasks,
        "num_annotations": sum(annotations),
        "num_annotators": len(annotators),
        "classes": typed_names(classes).tolist(),
        "lines": [*source.lines, *(() if source.table else lines)],
    }
    write_json(folder / RECORD, {"of": settings, **shards})
    return Shards(folder, **shards)


def _ordered(names: pa.Array) -> pa.Array:
    """Returns names sorted, as numbers if every text is how one is spelt."""
    if pa.types.is_large_string(names.type):
        typed = typed_names(names.to_pylist())
        if typed.dtype.kind == "i":
            return names.take(pa.array(np.argsort(typed, kind="stable")))
    return names.take(pc.sort_indices(names))


def _text(source: Source) -> bool:
    """Whether any file has text for its items, so that all items are read as text."""
    for file, items in {(part.file, part.columns[0]) for part in source.parts}:
        if ending(file) not in PARQUET or len(items) > 1:
            return True
        if not pa.types.is_integer(pq.read_schema(file).field(items[0]).type):
            return True
    return False


def gather(
    folder: Path,
    runs: Sequence[Path],
    num_annotators: int,
    num_classes: int,
    source: Path,
    rule: Duplicates,
    number: int,
) -> tuple[int, int, int]:
    """Writes the arrays of a shard, sorted by item and annotator, from what all runs have for it.

    Args:
        folder: of the shards.
        runs: the files of the runs.
        num_annotators, num_classes: R and C.
        source: the annotations, for errors.
        rule: "error", or which of an annotator's labels of one item counts.
        number: the shard's.

    Returns:
        how many items and annotations it has, and how many duplicate ones it left out.

    Raises:
        DataError: two labels of one item by one annotator.
    """
    rows = []
    for run in runs:
        table = feather.read_table(run, memory_map=True)
        offsets = np.frombuffer(table.schema.metadata[b"offsets"], dtype="<i8")
        start, last = offsets[number : number + 2].tolist()
        rows.append(table.slice(start, last - start).replace_schema_metadata())
    table = pa.concat_tables(rows)
    tasks = table["task"].combine_chunks().dictionary_encode()
    order = pc.sort_indices(tasks.dictionary)
    names = tasks.dictionary.take(order)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(names))
    pairs = rank[tasks.indices.to_numpy()] * num_annotators + table["annotator"].to_numpy()
    keys = pairs * num_classes + table["label"].to_numpy()
    ordered = np.sort(keys)
    places = ordered // num_classes
    repeated = np.flatnonzero(places[1:] == places[:-1])
    if len(repeated) and rule == "error":
        item, annotator_code = divmod(int(places[repeated[0]]), num_annotators)
        annotator = pq.read_table(folder / NAMES)["annotator"][annotator_code].as_py()
        raise error("duplicate_pair", source, item=names[item].as_py(), annotator=annotator)
    if len(repeated) and rule != "all":
        ordered = np.sort(np.delete(keys, duplicates(pairs, rule)))
    width = num_annotators * num_classes
    items, columns = np.divmod(ordered, width)
    offsets = np.cumsum(np.bincount(items + 1, minlength=len(names) + 1))
    *paths, last = map(folder.joinpath, _files(number))
    for path, array in zip(paths, (offsets, columns), strict=True):
        with atomic_path(path) as temporary:
            np.save(temporary, array.astype(np.int32 if width < 2**31 else np.int64))
    write_arrow(last, pa.table({"task": names}))
    return len(names), len(columns), len(keys) - len(columns)
