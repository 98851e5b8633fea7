"""Labels in files, read by parts: names become codes, rows are scattered into runs by item."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import feather

from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.declare.types import Floats, Texts
from neucrowd_tf.errors import DataError
from neucrowd_tf.io import values
from neucrowd_tf.io.checks import broken, error, unreadable
from neucrowd_tf.io.coding import (
    AGES,
    PLACEHOLDERS,
    Coded,
    duplicates_line,
    id_lines,
    missing_line,
    nameless_line,
    spelt_labels,
    twice_spelt,
)
from neucrowd_tf.io.column_names import MISSING
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.reading import check_regular, ending
from neucrowd_tf.io.folders import tables_in
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers import find
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.layouts import settle
from neucrowd_tf.io.lines import about_columns, about_sizes, class_line
from neucrowd_tf.io.roles import Roles
from neucrowd_tf.io.schema import DEFAULTS, TableOptions
from neucrowd_tf.io.table import (
    JOINT,
    PARQUET,
    arrow_batches,
    encode,
    head_of,
    rows_about,
    texts_of_arrow,
)
from neucrowd_tf.io.tables.writing import bare_name
from neucrowd_tf.io.times import time_form
from neucrowd_tf.names import places_of, plain_integers, positions

COLUMNS = ("task", "worker", "label")
NAMES = "annotators.parquet"
TABLES = (".csv", ".tsv", ".tab", ".txt", *PARQUET)
MOST_CLASSES = 1 << 15
NO_COLUMNS = LabelColumns((), (), (), str)
# Rows of a run: a few of them are in memory at a time.
RUN_ROWS = 2_000_000
PLAIN_ID = r"^[A-Za-z0-9_./:@ -]*$"  # ids that need no closer look
# Options that need the whole file in memory.
WHOLE = ("bins", "multi_label", "votes_columns", "question", "first")

# How many rows lack a role: a label by its text, item and annotator by "" or a placeholder.
Lost: TypeAlias = Counter[tuple[str, str]]


class Part(NamedTuple):
    """Some of the rows of a source.

    Attributes:
        file: the file.
        columns: by role, its columns of item, annotator and label, and of times if they count.
        options: how they are read.
        groups: the row groups from the first to before the last of a Parquet file; None for all.
    """

    file: Path
    columns: dict[str, tuple[str, ...]]
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
        columns: the first labels of the first file.
        time: the form of the times, None without them, see `time_form`.
        time_problem: why times are not read.
        table: the labels, if the layout is not a long table and so was read into memory; items are
            rows of `items`.
        items: their names: `task`, and `class` if cells had several labels.
        classes: their classes in order.
    """

    parts: list[Part]
    rows: int
    files: list[Path]
    state: list[tuple[int, int]]
    options: TableOptions
    lines: tuple[str, ...] = ()
    columns: LabelColumns = NO_COLUMNS
    time: str | None = None
    time_problem: str = ""
    table: pa.Table | None = None
    items: pa.Table | None = None
    classes: tuple[str, ...] = ()

    def stored(self, folder: Path) -> Source:
        """Returns the source with labels in memory written to a file in a folder."""
        if self.table is None:
            return self
        path = folder / "labels.parquet"
        pq.write_table(self.table, path)
        columns: dict[str, tuple[str, ...]] = {}
        for role in COLUMNS:
            columns[role] = (role,)
        options = TableOptions(missing=(), duplicates="all", exact_names=True, classes=self.classes)
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
    heads = []
    for file in files:
        check_regular(file, folders=False)
        settled = _roles(file, options)
        if settled is None:
            if len(files) > 1:
                problem = "several files are read only as long tables"
                advice = "Write a row per label: task, worker, label."
                raise error("unknown_layout", file, problem=problem, advice=advice)
            return _in_memory(file, options)
        roles, head = settled
        heads.append(head)
        columns = dict(zip(COLUMNS, (roles.task, roles.worker, roles.label), strict=True))
        if len(head.times) and options.duplicates in (None, *AGES):
            columns["time"] = (head.roles["time"],)
        if ending(file) in PARQUET:
            metadata = pq.ParquetFile(file).metadata
            rows += metadata.num_rows
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            parts += [Part(file, columns, options, span) for span in _spans(sizes)]
        else:
            rows += 1 + rows_about(file)
            parts.append(Part(file, columns, options))
    first = heads[0]
    form = None
    problem = ""
    if all(len(head.times) for head in heads):
        form, problem = time_form(list(dict.fromkeys(itertools.chain(*map(_times, heads)))))
    if form is None:  # times of some files decide nothing
        for part in parts:
            part.columns.pop("time", None)
    item, annotator, label = map(first.roles.__getitem__, COLUMNS)
    line = f"{path.name}: {first.layout}; item {item}, annotator {annotator}, label {label}"
    if first.reason:
        line += f" ({first.reason})"
    state = state_of(files)
    return Source(parts, rows, files, state, options, (line,), first, form, problem)


def _times(head: LabelColumns) -> Texts:
    return Coded.of(head.times).names


def _roles(file: Path, options: TableOptions) -> tuple[Roles, LabelColumns] | None:
    """Returns the roles of a long table's columns, None for any other layout; see `settle`."""
    if ending(file) not in TABLES or any(attributes_of(options, WHOLE).values()):
        return None
    head = Head(file, options)
    if head.kind not in ("table", "parquet"):
        return None
    if options.header == "first" and find(head) is not None:
        return None
    settled = settle(head_of(file, options), options)
    if settled is not None and settled[0].layout == "long" and settled[0].task:
        return settled
    return None


def _in_memory(file: Path, options: TableOptions) -> Source:
    """Reads a file of another layout than a long table."""
    lines: list[str] = []
    reading = read_annotations(file, options, report=lines.append)
    crowd = reading.annotations
    if not crowd.has_identities:
        problem = "vote counts do not name annotators, which --engine needs"
        raise error("unknown_layout", file, problem=problem, advice="Leave --engine out.")
    frame = crowd.to_frame().astype(str).assign(task=crowd.instances)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    items = pa.table({"task": crowd.instance_names})
    if reading.pairs is not None:
        items = pa.table(list(map(pa.array, zip(*reading.pairs, strict=True))), ["task", "class"])
    source = Source([], len(table), [file], state_of([file]), options, tuple(lines))
    classes = tuple(map(str, crowd.class_names.tolist()))
    return dataclasses.replace(source, table=table, items=items, classes=classes)


def state_of(files: Sequence[Path]) -> list[tuple[int, int]]:
    """Returns the size and the time of each file."""
    return [(status.st_size, status.st_mtime_ns) for status in map(Path.stat, files)]


def _files(path: Path) -> list[Path]:
    """Returns a file, or the tables in a folder and its folders that are not hidden."""
    if not path.is_dir():
        return [path]
    files = tables_in(path)
    if not files:
        problem = "the folder has no tables as .parquet, .csv or .tsv"
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


def batches(piece: Part, wanted: tuple[str, ...]) -> Iterator[tuple[pa.Table, Lost]]:
    """Yields tables of about `RUN_ROWS` rows at most, and what was left out of each.

    Rows without a label, an item or an annotator are left out.

    Args:
        piece: what is read.
        wanted: which columns; the label always is one.

    Raises:
        DataError: rows that are not those of a table.
    """
    tables = []
    lost: Lost = Counter()
    for batch in _read(piece, wanted):
        table, absent = _present(batch, piece.options)
        lost += absent
        tables.append(table)
        if sum(map(len, tables)) >= RUN_ROWS:
            yield pa.concat_tables(tables), lost
            tables = []
            lost = Counter()
    if tables:
        yield pa.concat_tables(tables), lost


def _read(piece: Part, wanted: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yields the wanted columns of a part as whole numbers or text."""
    file = piece.file
    named = piece.columns
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
    batch: pa.RecordBatch, named: Mapping[str, tuple[str, ...]], wanted: tuple[str, ...]
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
    texts = texts_of_arrow(coded.dictionary)
    return pa.array(texts, pa.large_string()).take(coded.indices)


def _present(table: pa.Table, options: TableOptions) -> tuple[pa.Table, Lost]:
    """Returns the rows that have a label, an item and an annotator, and what others may lack."""
    lost: Lost = Counter()
    for role in ("label", "task", "worker"):
        if role not in table.column_names:
            continue
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
        absent = pc.is_in(column, value_set=pa.array([*values, None], column.type))
        if pc.any(absent).as_py():
            for text, count in _counts(table[role].filter(absent)).items():
                lost[role, text if role == "label" else ""] += count
            table = table.filter(pc.invert(absent))
    for role in ("task", "worker"):
        if role in table.column_names and not pa.types.is_integer(table[role].type):
            placeholders = pc.is_in(table[role], value_set=pa.array(PLACEHOLDERS, table[role].type))
            if pc.any(placeholders).as_py():
                for text, count in _counts(table[role].filter(placeholders)).items():
                    lost[role, text] += count
    return table, lost


def _counts(column: pa.ChunkedArray) -> Counter[str]:
    """Returns how often each text occurs; a missing one is ""."""
    counts = Counter[str]()
    for item in pc.value_counts(column.combine_chunks()):
        text = item["values"].as_py()
        counts["" if text is None else str(text)] += item["counts"].as_py()
    return counts


def _check_items(items: pa.ChunkedArray, file: Path) -> None:
    """Raises DataError for items that `check_ids` rejects; only odd ids are looked at in Python."""
    if pa.types.is_integer(items.type):
        return
    odd = items.filter(pc.invert(pc.match_substring_regex(items, PLAIN_ID)))
    if len(odd):
        values.check_ids(file, "item", pc.unique(odd).to_pylist(), lambda at: "")


def vocabulary(piece: Part) -> tuple[pa.Array, Counter[str], Lost]:
    """Returns the annotators and labels of a part, and what is left out.

    Raises:
        DataError: what `batches` raises, or an id that a spreadsheet spoilt.
    """
    annotators = []
    labels = Counter[str]()
    left_out: Lost = Counter()
    for table, lost in batches(piece, COLUMNS):
        _check_items(table["task"], piece.file)
        annotators.append(pc.unique(table["worker"]))
        labels += _counts(table["label"])
        left_out += lost
    return united(annotators), labels, left_out


def united(arrays: Sequence[pa.Array]) -> pa.Array:
    """Returns the ids that occur in any of the arrays; all are text if some are."""
    if not arrays:
        return pa.array([], pa.large_string())
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(pa.large_string()) for array in arrays]
    return pc.unique(pa.chunked_array(arrays))


class Size(NamedTuple):
    """How large a shard is.

    Attributes:
        tasks, annotations: how many it has.
        repeated: how many labels have an earlier one by the same annotator.
        by_time: whether times decide which of them counts.
        most: the largest number of labels of a task.
        twice: how many names of tasks look like another or are one number, see `twice_spelt`.
    """

    tasks: int
    annotations: int
    repeated: int
    by_time: bool
    most: int
    twice: Floats


class Vocabulary(NamedTuple):
    """The labels of a source, spelt as those of a file in memory are.

    Attributes:
        counts: how often each label occurs as it is written.
        codes: the class of each.
        classes: the classes in their order.
        notes: on the labels.
    """

    counts: Counter[str]
    codes: NDArray[np.int16]
    classes: list[str]
    notes: list[str]

    def num_labels(self) -> Floats:
        """Returns `[C]` how many labels each class has."""
        counts = np.array(list(self.counts.values()), dtype=np.float64)
        sizes: Floats = np.zeros(len(self.classes))
        np.add.at(sizes, self.codes, counts)
        return sizes


def check_vocabulary(
    source: Source, options: TableOptions, annotators: Sequence[str], labels: Counter[str]
) -> Vocabulary:
    """Checks names as those of a file in memory are.

    Raises:
        DataError: names or labels that cannot be used.
    """
    path = source.files[0].absolute()
    place: Callable[[int], str] = lambda at: ""  # noqa: E731
    values.check_names(path, "annotator", annotators, place, options)
    values.check_ids(path, "annotator", annotators, place)
    structured = source.table is not None
    of_labels, options, notes = spelt_labels(
        path, list(labels), options, place, structured=structured
    )
    names, codes = encode(of_labels)
    counts = np.bincount(codes, list(labels.values()))
    notes += values.check_classes(path, "label", names, counts, options)
    values.check_names(path, "label", names, place, options)
    values.check_not_names(path, names, (), annotators, options)
    classes = values.classes_of(path, names, options, place)
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"{path}: label: expected at most {MOST_CLASSES} classes, received {len(classes)}"
        )
    code_of = places_of(names, positions(classes))
    return Vocabulary(labels, code_of[codes].astype(np.int16), classes, notes)


def lines_of(
    source: Source, annotators: Sequence[str], labels: Vocabulary, lost: Lost, sizes: Sequence[Size]
) -> list[str]:
    """Returns what was read, in the words of a file in memory.

    Args:
        source: the annotations.
        annotators: their names.
        labels: the classes.
        lost: what was left out.
        sizes: of the shards.
    """
    notes = []
    if repeated := sum(map(operator.attrgetter("repeated"), sizes)):
        rule = source.options.duplicates or "last"
        by_time = any(map(operator.attrgetter("by_time"), sizes))
        problem = source.time_problem
        notes.append(duplicates_line(repeated, rule, source.columns, problem, by_time=by_time))
    absent: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (role, text), count in lost.items():
        absent[role][text] = count
    if texts := list(absent["label"]):
        notes.append(missing_line(sum(absent["label"].values()), texts))
    words = {"task": "item", "worker": "annotator"}
    for role, word in words.items():
        if nameless := absent[role].get("", 0):
            notes.append(nameless_line(nameless, word))
    if source.options.missing is None:
        counts = np.array(list(labels.counts.values()))
        notes += values.nothing_said(list(labels.counts), counts, list(filter(None, texts)))
    of_tasks = np.sum(list(map(operator.attrgetter("twice"), sizes)), axis=0)
    twice = {"task": of_tasks, "worker": twice_spelt(annotators)}
    for role, word in words.items():
        notes += id_lines(word, twice[role], absent[role])
    num_labels = labels.num_labels()
    most = max(map(operator.attrgetter("most"), sizes))
    sentences = [
        class_line(labels.classes, num_labels),
        *about_columns(source.columns, annotators, is_timed=source.time is not None),
        *notes,
        *labels.notes,
        *about_sizes(len(annotators), most, num_labels),
    ]
    return [" ".join(sentences), *source.columns.notes]


def scatter(
    folder: Path,
    classes: tuple[pa.Array, pa.Array],
    text: bool,
    buckets: int,
    item: tuple[int, Part],
) -> list[Path]:
    """Writes the rows of a part as runs; returns their files.

    A run has its rows in the order of the buckets, with their place in the part's batch as `row`;
    the schema's metadata has the offsets.

    Args:
        folder: of the shards, with the annotators in the order of their codes; the runs are in
            `runs`.
        classes: the labels as they are written, and the class of each.
        text: whether ids of items are text in all parts.
        buckets: into how many the rows are scattered.
        item: the part's number, and the part.
    """
    number, piece = item
    names = pq.read_table(folder / NAMES)["annotator"].combine_chunks()
    files = []
    written, codes = classes
    for i, (table, _) in enumerate(batches(piece, tuple(piece.columns))):
        path = folder / "runs" / f"run-{number:05d}-{i:04d}.arrow"
        items = table["task"].combine_chunks()
        if text and not pa.types.is_large_string(items.type):
            items = items.cast(pa.large_string())
        bucket = buckets_of(items, buckets)
        order = np.argsort(bucket, kind="stable")
        offsets = np.searchsorted(bucket[order], np.arange(buckets + 1))
        columns = {"task": items, "annotator": coded(table["worker"], names)}
        columns["label"] = codes.take(coded(table["label"], written))
        columns["row"] = pa.array(np.arange(len(items), dtype=np.int32))
        if "time" in piece.columns:
            columns["time"] = pc.fill_null(table["time"].cast(pa.large_string()), "")
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
    """Returns a bucket for each item, the same wherever it occurs and however it is written."""
    if pa.types.is_integer(items.type):
        keys = items.to_numpy().view(np.uint64)
    else:
        encoded = items.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        if not plain_integers(names):
            names = list(map(_one_form, names))
        entries = np.asarray(names, dtype=object)
        keys = pd.util.hash_array(entries, categorize=False)[encoded.indices.to_numpy()]
    # Fibonacci hashing: the upper bits of a product with an odd number depend on all bits.
    mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return ((mixed * np.uint64(buckets)) >> np.uint64(32)).astype(np.uint16)


def _one_form(name: str) -> str:
    """Returns what spellings of an id have in common, see `twice_spelt`."""
    if name.isascii() and name[0].isalpha() and name[-1] != " ":
        return name
    bare = bare_name(name)
    if values.is_number(bare):
        # 10, not 1E+1, as plain integers are hashed as they are.
        return f"{Decimal(bare).normalize():f}"
    return bare
