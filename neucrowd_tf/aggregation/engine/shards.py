"""Shards of whole tasks on the disk, mapped into memory when they are worked on."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
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
    Lost,
    Size,
    Source,
    check_vocabulary,
    lines_of,
    scatter,
    state_of,
    united,
    vocabulary,
    write_arrow,
)
from neucrowd_tf.aggregation.sums import Shard
from neucrowd_tf.annotations import Duplicates
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.coding import superseded, twice_spelt
from neucrowd_tf.io.files.arrays import ARRAY_HEADERS
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.table import PARQUET
from neucrowd_tf.io.times import seconds_in
from neucrowd_tf.names import typed_names

# Annotations of a shard: small enough that a few are in memory at once, large enough that adding
# up the sums of all shards takes little beside making them.
SHARD_ROWS = 4_000_000
FEWEST = 8
MOST = 4096
RECORD = "shards.json"
ITEMS = "items.parquet"  # the names of items that are numbers


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

    def tasks(self, number: int) -> pa.Table:
        """Returns the names of a shard's tasks, and their order in the source as `row`.

        It is the first row with a label of the task. If the items were read into memory, it is the
        item's number.
        """
        tasks = feather.read_table(self.folder / _files(number)[2], memory_map=True)
        if not (self.folder / ITEMS).exists():
            return tasks
        names = pq.read_table(self.folder / ITEMS).take(tasks["task"])
        return names.append_column("row", tasks["task"])


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
    lost: Lost = Counter()
    for workers_of_part, counts, lost_of_part in engine.map(vocabulary, stored.parts):
        workers.append(workers_of_part)
        labels += counts
        lost += lost_of_part
    annotators = _ordered(united(workers))
    first_file = source.files[0].absolute()
    names = list(map(str, annotators.to_pylist()))
    for piece in source.parts[:1]:
        if set(piece.columns["worker"]) & set(names) and set(piece.columns["label"]) & {*labels}:
            raise error("header_again", first_file)
    if not labels:
        raise error("no_labels", first_file, problem="; all are missing" if lost else "")
    coded = check_vocabulary(stored, stored.options, names, labels)
    classes = coded.classes
    if source.items is not None:
        pq.write_table(source.items, folder / ITEMS)
    with atomic_path(folder / NAMES) as temporary:
        pq.write_table(pa.table({"annotator": annotators}), temporary)
    buckets = min(max(source.rows // SHARD_ROWS, FEWEST), MOST)
    spelling = (pa.array(list(labels), pa.large_string()), pa.array(coded.codes))
    job = functools.partial(scatter, folder, spelling, _text(stored), buckets)
    runs = list(itertools.chain.from_iterable(engine.map(job, enumerate(stored.parts))))
    rule = stored.options.duplicates or "last"
    sizes = (len(annotators), len(classes))
    sort = functools.partial(gather, folder, runs, *sizes, first_file, source.time, rule)
    shards_of = list(engine.map(sort, range(buckets)))
    shutil.rmtree(folder / "runs")
    if state_of(source.files) != source.state:
        raise DataError(f"{first_file}: a file changed while it was read. Start again.")
    lines = list(source.lines)
    if source.table is None:
        lines += lines_of(source, names, coded, lost, shards_of)
    shards = {
        "sizes": list(map(operator.attrgetter("tasks"), shards_of)),
        "num_annotations": sum(map(operator.attrgetter("annotations"), shards_of)),
        "num_annotators": len(annotators),
        "classes": typed_names(classes).tolist(),
        "lines": lines,
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
    for file, items in {(part.file, part.columns["task"]) for part in source.parts}:
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
    time: str | None,
    rule: Duplicates,
    number: int,
) -> Size:
    """Writes the arrays of a shard, sorted by item and annotator, from what all runs have for it.

    Times decide which of an item's labels by one annotator is the last or the first, if there are.

    Args:
        folder: of the shards.
        runs: the files of the runs.
        num_annotators, num_classes: R and C.
        source: the annotations, for errors.
        time: the form of times, None without times.
        rule: "error", or which of an annotator's labels of one item counts.
        number: the shard's.

    Raises:
        DataError: two labels of one item by one annotator.
    """
    rows = []
    row_numbers = []
    before = 0
    for run in runs:
        table = feather.read_table(run, memory_map=True)
        offsets = np.frombuffer(table.schema.metadata[b"offsets"], dtype="<i8")
        start, last = offsets[number : number + 2].tolist()
        table = table.slice(start, last - start).replace_schema_metadata()
        row_numbers.append(table["row"].to_numpy() + np.int64(before))
        before += int(offsets[-1])
        rows.append(table)
    table = pa.concat_tables(rows)
    tasks = table["task"].combine_chunks().dictionary_encode()
    order = pc.sort_indices(tasks.dictionary)
    names = tasks.dictionary.take(order)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(names))
    codes = tasks.indices.to_numpy()
    pairs = rank[codes] * num_annotators + table["annotator"].to_numpy()
    # Codes of the dictionary are in the order in which tasks appear.
    firsts = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    first_rows = np.concatenate(row_numbers)[firsts][order.to_numpy()]
    keys = pairs * num_classes + table["label"].to_numpy()
    ordered = np.sort(keys)
    places = ordered // num_classes
    repeated = np.flatnonzero(places[1:] == places[:-1])
    if len(repeated) and rule == "error":
        item, annotator_code = divmod(int(places[repeated[0]]), num_annotators)
        annotator = pq.read_table(folder / NAMES)["annotator"][annotator_code].as_py()
        raise error("duplicate_pair", source, item=names[item].as_py(), annotator=annotator)
    by_time = False
    if len(repeated) and rule != "all":
        seconds = None
        if time is not None and "time" in table.column_names:
            seconds = np.full(len(pairs), np.nan)
            again = np.flatnonzero(np.isin(pairs, places[repeated]))
            seconds[again] = seconds_in(time, table["time"].take(again).to_pylist())
        extra, by_time = superseded(pairs, rule, seconds)
        ordered = np.sort(np.delete(keys, extra))
    width = num_annotators * num_classes
    items, columns = np.divmod(ordered, width)
    offsets = np.cumsum(np.bincount(items + 1, minlength=len(names) + 1))
    *paths, last = map(folder.joinpath, _files(number))
    for path, array in zip(paths, (offsets, columns), strict=True):
        with atomic_path(path) as temporary:
            np.save(temporary, array.astype(np.int32 if width < 2**31 else np.int64))
    write_arrow(last, pa.table({"task": names, "row": first_rows}))
    most = int(np.diff(offsets).max(initial=0))
    twice = np.zeros(2)
    if pa.types.is_large_string(names.type):
        twice = twice_spelt(names.to_pylist())
    return Size(len(names), len(columns), len(repeated), by_time, most, twice)
