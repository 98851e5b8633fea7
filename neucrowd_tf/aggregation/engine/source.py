"""Labels in files, read by parts: names become codes, rows are scattered into runs by item."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import feather

from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.io import values
from neucrowd_tf.io.checks import broken, error, unreadable
from neucrowd_tf.io.column_names import MISSING
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.reading import check_regular, ending
from neucrowd_tf.io.folders import tables_in
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers import find
from neucrowd_tf.io.labels import class_line, read_annotations
from neucrowd_tf.io.layouts import settle
from neucrowd_tf.io.roles import Roles
from neucrowd_tf.io.schema import DEFAULTS, TableOptions
from neucrowd_tf.io.table import JOINT, PARQUET, arrow_batches, cell_text, head_of, rows_about

COLUMNS = ("task", "worker", "label")
NAMES = "annotators.parquet"
TABLES = (".csv", ".tsv", ".tab", ".txt", *PARQUET)
# Rows of a run: a few of them are in memory at a time.
RUN_ROWS = 2_000_000
PLAIN_ID = r"^[A-Za-z0-9_./:@ -]*$"  # ids that need no closer look
# Options that only a file in memory is read with.
WHOLE = ("bins", "multi_label", "votes_columns", "question", "first")


class Part(NamedTuple):
    """Some of the rows of a source.

    Attributes:
        file: the file.
        columns: its columns of item, annotator and label.
        options: how they are read.
        groups: the row groups from the first to before the last of a Parquet file; None for all.
    """

    file: Path
    columns: tuple[tuple[str, ...], ...]
    options: TableOptions
    groups: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True)
class Source:
    """A file or a folder of files.

    Attributes:
        parts: what is read at a time.
        rows: how many rows there are, an estimate for CSV.
        files: the files.
        state: their sizes and times, to notice that they change during reading.
        options: how they are read.
        lines: what was read, for the report.
        table: the labels, if the layout is not a long table and so was read into memory.
    """

    parts: list[Part]
    rows: int
    files: list[Path]
    state: list[tuple[int, int]]
    options: TableOptions
    lines: tuple[str, ...] = ()
    table: pa.Table | None = None

    def stored(self, folder: Path) -> Source:
        """Returns the source with labels in memory written to a file in a folder."""
        if self.table is None:
            return self
        path = folder / "labels.parquet"
        pq.write_table(self.table, path)
        columns = tuple(zip(COLUMNS, strict=True))
        options = TableOptions(missing=(), duplicates="all", exact_names=True, classes=("all",))
        return dataclasses.replace(self, parts=[Part(path, columns, options)], options=options)


def find_source(path: Path, options: TableOptions = DEFAULTS) -> Source:
    """Looks at a file, or at the tables of a folder; only the first rows are read.

    A file that is not a long table is read into memory.

    Raises:
        DataError: no such file, or roles of columns that have to be named.
    """
    files = _files(path)
    parts = []
    rows = 0
    for file in files:
        check_regular(file, folders=False)
        roles = _roles(file, options)
        if roles is None:
            if len(files) > 1:
                problem = "several files are read only as long tables"
                advice = "Write a row per label: task, worker, label."
                raise error("unknown_layout", file, problem=problem, advice=advice)
            return _in_memory(file, options)
        columns = (roles.task, roles.worker, roles.label)
        if ending(file) in PARQUET:
            metadata = pq.ParquetFile(file).metadata
            rows += metadata.num_rows
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            parts += [Part(file, columns, options, span) for span in _spans(sizes)]
        else:
            rows += 1 + rows_about(file)
            parts.append(Part(file, columns, options))
    item, annotator, label = map(JOINT.join, columns)
    line = f"{path.name}: long table; item {item}, annotator {annotator}, label {label}"
    if roles is not None and roles.reason:
        line += f" ({roles.reason})"
    return Source(parts, rows, files, state_of(files), options, (line,))


def _roles(file: Path, options: TableOptions) -> Roles | None:
    """Returns the roles of a long table's columns, None for any other layout."""
    if ending(file) not in TABLES or any(attributes_of(options, WHOLE).values()):
        return None
    head = Head(file, options)
    if head.kind not in ("table", "parquet"):
        return None
    if options.header == "first" and find(head) is not None:
        return None
    roles = settle(head_of(file, options), options)
    if roles is not None and roles.layout == "long" and roles.task:
        return roles
    return None


def _in_memory(file: Path, options: TableOptions) -> Source:
    """Reads a file of another layout than a long table."""
    lines: list[str] = []
    crowd = read_annotations(file, options, report=lines.append).annotations
    if not crowd.has_identities:
        problem = "vote counts do not name annotators, which --engine needs"
        raise error("unknown_layout", file, problem=problem, advice="Leave --engine out.")
    table = pa.Table.from_pandas(crowd.to_frame().astype(str), preserve_index=False)
    return Source([], len(table), [file], state_of([file]), options, tuple(lines), table)


def state_of(files: Sequence[Path]) -> list[tuple[int, int]]:
    """Returns the size and the time of each file."""
    return [(status.st_size, status.st_mtime_ns) for status in map(Path.stat, files)]


def _files(path: Path) -> list[Path]:
    """Returns a file, or the tables in a folder and its folders that are not hidden."""
    if not path.is_dir():
        return [path]
    files = tables_in(path)
    if not files:
        problem = "the folder has no .parquet or .csv files"
        raise unreadable(path, problem, "Name another folder, or a file")
    return files


def _spans(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Yields first and last of consecutive row groups that have about `RUN_ROWS` together."""
    first = 0
    rows = 0
    for last, size in enumerate(sizes, 1):
        rows += size
        if rows >= RUN_ROWS or last == len(sizes):
            yield first, last
            first = last
            rows = 0


def batches(piece: Part, wanted: tuple[str, ...] = COLUMNS) -> Iterator[tuple[pa.Table, int]]:
    """Yields tables of about `RUN_ROWS` rows at most, and how many rows were left out of each.

    Rows without a label, an item or an annotator are left out.

    Args:
        piece: what is read.
        wanted: which columns; the label always is one.

    Raises:
        DataError: rows that are not those of a table, or an id that a spreadsheet spoilt.
    """
    tables = []
    lost = 0
    for batch in _read(piece, wanted):
        table = _present(batch, piece.options)
        lost += len(batch) - len(table)
        if "task" in wanted:
            _check_items(table["task"], piece.file)
        tables.append(table)
        if sum(map(len, tables)) >= RUN_ROWS:
            yield pa.concat_tables(tables), lost
            tables = []
            lost = 0
    if tables:
        yield pa.concat_tables(tables), lost


def _read(piece: Part, wanted: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yields the wanted columns of a part as whole numbers or text."""
    file = piece.file
    named = dict(zip(COLUMNS, piece.columns, strict=True))
    names = list(dict.fromkeys(itertools.chain.from_iterable(map(named.__getitem__, wanted))))
    groups = list(range(*piece.groups)) if piece.groups else None
    rows = 0
    try:
        for batch in arrow_batches(file, names, piece.options, groups=groups):
            yield _table(batch, named, wanted)
            rows += len(batch)
    except (OSError, pa.ArrowException) as bad:
        if ending(file) in PARQUET:
            raise broken(file, f"the file cannot be read ({bad})") from None
    else:
        return
    # Rows that Arrow does not take: the reader of rows takes them, or says what is wrong where.
    for batch in arrow_batches(file, names, piece.options, plain=False):
        if rows < len(batch):
            yield _table(batch.slice(rows), named, wanted)
        rows = max(rows - len(batch), 0)


def _table(
    batch: pa.RecordBatch, named: dict[str, tuple[str, ...]], wanted: tuple[str, ...]
) -> pa.Table:
    arrays = {}
    for role in wanted:
        columns = list(map(_ids, map(batch.column, named[role])))
        arrays[role] = columns[0]
        if len(columns) > 1:
            texts = [column.cast(pa.large_string()) for column in columns]
            texts = [pc.if_else(pc.equal(text, ""), None, text) for text in texts]
            joint = pa.scalar(JOINT, pa.large_string())
            arrays[role] = pc.binary_join_element_wise(*texts, joint)
    return pa.table(arrays)


def _ids(column: pa.Array) -> pa.Array:
    """Returns a column as int64 or text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.large_string())
    if pa.types.is_nested(kind):
        raise pa.ArrowInvalid(f"values of type {kind} cannot be names")
    if pa.types.is_uint64(kind) and (pc.max(column).as_py() or 0) >= 1 << 63:
        raise pa.ArrowInvalid("whole numbers from 2^63 cannot be read; write them as text")
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    coded = column.dictionary_encode()
    texts = list(map(cell_text, coded.dictionary.to_pylist()))
    return pa.array(texts, pa.large_string()).take(coded.indices)


def _present(table: pa.Table, options: TableOptions) -> pa.Table:
    """Returns the rows that have a label, an item and an annotator."""
    absent = pa.scalar(False)
    for role in table.column_names:
        column = table[role]
        words = {""}
        if role == "label":
            words.update(MISSING if options.missing is None else options.missing)
        values: list[Any] = sorted(words)
        if pa.types.is_integer(column.type):
            values = [int(word) for word in words if word.lstrip("-").isdigit()]
        else:
            column = pc.utf8_trim_whitespace(column)
            if role == "label" and options.missing is None:
                column = pc.utf8_lower(column)
        missing = pc.is_in(column, value_set=pa.array([*values, None], column.type))
        absent = pc.or_(absent, missing)
    if pc.any(absent).as_py():
        return table.filter(pc.invert(absent))
    return table


def _check_items(items: pa.ChunkedArray, file: Path) -> None:
    """Raises DataError for items that `check_ids` rejects; only odd ids are looked at in Python."""
    if pa.types.is_integer(items.type):
        return
    odd = items.filter(pc.invert(pc.match_substring_regex(items, PLAIN_ID)))
    if len(odd):
        values.check_ids(file, "item", pc.unique(odd).to_pylist(), lambda at: "")


def vocabulary(piece: Part) -> tuple[pa.Array, Counter[str], int]:
    """Returns the annotators and labels of a part, and how many of its rows are left out.

    Raises:
        DataError: what `batches` raises.
    """
    annotators = []
    labels = Counter[str]()
    missing = 0
    for table, lost in batches(piece, COLUMNS[1:]):
        annotators.append(pc.unique(table["worker"]))
        for item in pc.value_counts(table["label"].combine_chunks()):
            labels[str(item["values"].as_py())] += item["counts"].as_py()
        missing += lost
    return united(annotators), labels, missing


def united(arrays: Sequence[pa.Array]) -> pa.Array:
    """Returns the ids that occur in any of the arrays; all are text if some are."""
    if not arrays:
        return pa.array([], pa.large_string())
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(pa.large_string()) for array in arrays]
    return pc.unique(pa.chunked_array(arrays))


def check_vocabulary(
    path: Path, annotators: Sequence[str], labels: Counter[str], missing: int, options: TableOptions
) -> tuple[list[str], list[str]]:
    """Checks names as those of a file in memory are.

    Returns:
        the classes in their order, and lines for the report.

    Raises:
        DataError: names or labels that cannot be used.
    """
    if not labels:
        raise error("no_labels", path, problem="; all are missing" if missing else "")
    place: Callable[[int], str] = lambda at: ""  # noqa: E731
    values.check_names(path, "annotator", annotators, place, options)
    values.check_ids(path, "annotator", annotators, place)
    names = list(labels)
    counts = np.array(list(labels.values()))
    notes = [*values.check_several(path, names, place)]
    notes += values.check_classes(path, "label", names, counts, options)
    if options.missing is None:
        notes += values.nothing_said(names, counts, ())
    values.check_names(path, "label", names, place, options)
    if missing:
        notes.append(f"{missing:,} labels are missing.")
    if len(names) == 1:
        notes.append("All labels are the same.")
    line = " ".join([class_line(names, counts), *notes])
    return values.classes_of(path, names, options, place), [line]


def scatter(
    folder: Path, classes: pa.Array, text: bool, buckets: int, item: tuple[int, Part]
) -> list[Path]:
    """Writes the rows of a part as runs; returns their files.

    A run has its rows in the order of the buckets; the schema's metadata has the offsets.

    Args:
        folder: of the shards, with the annotators in the order of their codes; the runs are in
            `runs`.
        classes: the class names in their order.
        text: whether ids of items are text in all parts.
        buckets: into how many the rows are scattered.
        item: the part's number, and the part.
    """
    number, piece = item
    names = pq.read_table(folder / NAMES)["annotator"].combine_chunks()
    files = []
    for i, (table, _) in enumerate(batches(piece)):
        path = folder / "runs" / f"run-{number:05d}-{i:04d}.arrow"
        items = table["task"].combine_chunks()
        if text and not pa.types.is_large_string(items.type):
            items = items.cast(pa.large_string())
        bucket = buckets_of(items, buckets)
        order = np.argsort(bucket, kind="stable")
        offsets = np.searchsorted(bucket[order], np.arange(buckets + 1))
        columns = {"task": items, "annotator": coded(table["worker"], names)}
        columns["label"] = coded(table["label"], classes).cast(pa.int16())
        run = pa.table(columns).take(pa.array(order))
        metadata = {"offsets": offsets.astype("<i8").tobytes()}
        write_arrow(path, run.combine_chunks().replace_schema_metadata(metadata))
        files.append(path)
    return files


def write_arrow(path: Path, table: pa.Table) -> None:
    """Writes a table so that it can be mapped into memory."""
    with atomic_path(path) as temporary:
        feather.write_feather(table, temporary, "uncompressed", chunksize=max(len(table), 1))


def coded(values: pa.ChunkedArray, names: pa.Array) -> pa.Array:
    """Returns the position of each value in `names`, int32."""
    encoded = values.combine_chunks().dictionary_encode()
    entries = encoded.dictionary
    if entries.type != names.type:
        entries = entries.cast(names.type)
    return pc.index_in(entries, value_set=names).take(encoded.indices)


def buckets_of(items: pa.Array, buckets: int) -> NDArray[np.uint16]:
    """Returns a bucket for each item, the same wherever it occurs."""
    if pa.types.is_integer(items.type):
        keys = items.to_numpy().view(np.uint64)
    else:
        encoded = items.dictionary_encode()
        entries = np.asarray(encoded.dictionary.to_pylist(), dtype=object)
        keys = pd.util.hash_array(entries, categorize=False)[encoded.indices.to_numpy()]
    # Fibonacci hashing: the upper bits of a product with an odd number depend on all bits.
    mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return ((mixed * np.uint64(buckets)) >> np.uint64(32)).astype(np.uint16)
