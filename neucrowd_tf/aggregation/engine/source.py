"""Annotations in CSV or Parquet files, read by parts: ids become codes, rows are scattered into
runs by a hash of their task.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.reading import check_regular
from neucrowd_tf.io.labels.table import is_task_marker
from neucrowd_tf.io.names.ids import plain_integers
from neucrowd_tf.io.names.missing import is_marker, missing_flag, nothing_is_missing
from neucrowd_tf.io.names.spelling import is_scientific, same_task
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import SAMPLE, check_no_twins, separator_of
from neucrowd_tf.io.tables.other_columns import MARKS, others
from neucrowd_tf.io.tables.quotes import check_swallowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = ("task", "worker", "label")
BLOCK = 1 << 22  # bytes of a CSV that are parsed at a time
# Rows of a run: a few of them are in memory at a time.
RUN_ROWS = 2_000_000
# Of tasks that stand for none, or are spoilt, none is of these signs with a digit among them.
PLAIN_ID = r"^[A-Za-z0-9_./-]*[0-9][A-Za-z0-9_./-]*$"
# Tasks that may be another's spelling, beside case, noughts and points: whole numbers with an
# exponent, as spreadsheets write them (those from `LONG` are left alone), spaces, quotes.
ODD = r"^\+?\d+(\.\d*)?e\+?\d+$|^[\s'\"`]|[\s'\"`]$|\s\s|[\t\r\n]|,0{1,2}$"
LONG = 10**30
MOST_TEXTS = 2000  # of a column of marks
# At most this many parts a source is read in, so that many small files do not make as many runs.
MOST_PARTS = 1024


@dataclasses.dataclass(frozen=True)
class Part:
    """Some of the rows of a source: files, and of a Parquet file the row groups from `first` to
    before `last` (all where None); `layout` says how they are written, `marks` which other columns
    of each file may say that labels do not count.
    """

    files: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    marks: tuple[tuple[str, ...], ...]
    first: int = 0
    last: int | None = None
    layout: TableFormat = PLAIN


@dataclasses.dataclass(frozen=True)
class Source:
    """A file or a folder of files.

    Attributes:
        parts: what is read at a time.
        rows: how many there are, an estimate for CSV.
        files: the files.
        state: their sizes and times, to notice that they change while they are read.
        others: files of the folder that are passed over.
        layout: how they are written.
    """

    parts: list[Part]
    rows: int
    files: tuple[Path, ...]
    state: tuple[tuple[int, int], ...]
    others: tuple[Path, ...] = ()
    layout: TableFormat = PLAIN


def find_source(path: Path, layout: TableFormat = PLAIN) -> Source:
    """Looks at a file, or at the Parquet and CSV files of a folder, without reading its rows; how
    they are written, which labels and names are left out and which classes there are, `layout`
    says.

    Raises:
        DataError: no such file, none of these kinds, or columns that are not there.
    """
    files = _files(path)
    parts: list[Part] = []
    rows = 0
    for file in files:
        check_regular(file, folders=False)
        if file.suffix.lower() == ".parquet":
            table = _parquet(file)
            check_no_twins(file, table.schema_arrow.names)
            names = [one.name for one in table.schema_arrow if not pa.types.is_nested(one.type)]
            columns = tuple(layout.require(file, table.schema_arrow.names, *COLUMNS))
            marks = (tuple(others(names, columns, MARKS)),)
            rows += table.metadata.num_rows
            groups = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
            parts += [
                Part((str(file),), (columns,), marks, first, last, layout)
                for first, last in _spans(groups)
            ]
        else:
            columns, found, length = _csv_columns(file, layout)
            rows += 1 + file.stat().st_size // length
            parts.append(Part((str(file),), (columns,), (found,), layout=layout))
    return Source(_merged(parts), rows, tuple(files), state_of(files), _others(path, files), layout)


def state_of(files: Sequence[Path]) -> tuple[tuple[int, int], ...]:
    """Returns the size and the time of each file."""
    return tuple((found.st_size, found.st_mtime_ns) for found in (file.stat() for file in files))


def _others(path: Path, files: list[Path]) -> tuple[Path, ...]:
    """Returns the files of a folder that are neither read nor hidden."""
    if not path.is_dir():
        return ()
    found = (file for file in path.rglob("*") if not file.name.startswith((".", "_")))
    return tuple(sorted({file for file in found if not file.is_dir()} - set(files)))


def _files(path: Path) -> list[Path]:
    kinds = (".parquet", ".csv")
    if path.is_dir():
        found = sorted(
            file
            for file in path.rglob("*")
            if file.suffix.lower() in kinds and not file.name.startswith((".", "_"))
        )
        if not found:
            raise DataError(f"{path}: expected .parquet or .csv files in the folder, received none")
        return found
    if not path.is_file():
        if path.exists():
            check_regular(path, folders=False)
        raise DataError(f"{path}: no such file or folder")
    if path.suffix.lower() not in kinds:
        raise DataError(
            f"{path}: expected a .parquet or .csv file, or a folder of them, received another"
        )
    return [path]


def _parquet(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{file}: expected a Parquet file, received {one_line(error)}") from None


def _separator(file: str | Path, layout: TableFormat) -> str:
    if layout.separator is not None:
        return layout.separator
    with open(file, "rb") as stream:
        return separator_of(stream.read(SAMPLE))


def _csv_columns(file: Path, layout: TableFormat) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Returns the columns of a CSV's task, worker and label, its marks, and about how long a row
    is.
    """
    with file.open("rb") as stream:
        header = stream.readline().decode("utf-8-sig", errors="replace").rstrip("\r\n")
        sample = stream.read(1 << 16)
    written = header.split(_separator(file, layout))
    names = [name.strip().strip('"') for name in written]
    check_no_twins(file, names)
    length = max(len(sample) // max(sample.count(b"\n"), 1), 1)
    columns = tuple(layout.require(file, names, *COLUMNS))
    plain = [name for name, cell in zip(names, written, strict=True) if name == cell.strip('"')]
    return columns, tuple(others(plain, columns, MARKS)), length


def _check_quotes(file: str, layout: TableFormat) -> None:
    """Raises DataError for a CSV with a quoted cell that holds what look like rows."""
    with open(file, "rb") as stream:
        if not any(b'"' in block for block in iter(lambda: stream.read(1 << 22), b"")):
            return
        stream.seek(0)
        if not any(line.count(b'"') % 2 for line in stream):
            return
    separator = _separator(file, layout)
    with contextlib.ExitStack() as opened:

        def lines() -> Any:
            return csv.reader(
                opened.enter_context(
                    open(file, encoding="utf-8-sig", errors="replace", newline="")
                ),
                delimiter=separator,
            )

        with contextlib.suppress(csv.Error):
            check_swallowed(file, lines, separator)


def _spans(groups: list[int]) -> Iterator[tuple[int, int]]:
    """Yields first and last of consecutive row groups that have about `RUN_ROWS` together."""
    first, rows = 0, 0
    for last, size in enumerate(groups, 1):
        rows += size
        if rows >= RUN_ROWS or last == len(groups):
            yield first, last
            first, rows = last, 0


def _merged(parts: list[Part]) -> list[Part]:
    """Puts whole files together where there are very many."""
    if len(parts) <= MOST_PARTS or any(part.first for part in parts):
        return parts
    size = -(-len(parts) // MOST_PARTS)
    return [
        Part(
            tuple(file for part in parts[i : i + size] for file in part.files),
            tuple(names for part in parts[i : i + size] for names in part.columns),
            tuple(names for part in parts[i : i + size] for names in part.marks),
            layout=parts[0].layout,
        )
        for i in range(0, len(parts), size)
    ]


def batches(
    part: Part,
    wanted: tuple[str, ...] = COLUMNS,
    lost: list[int] | None = None,
    told: dict[str, Counter[str]] | None = None,
) -> Iterator[pa.Table]:
    """Yields tables with the columns `wanted` of about `RUN_ROWS` rows at most, without the rows
    that `--missing` leaves out.

    Args:
        part: what is read.
        wanted: which columns.
        lost: takes how many rows of each batch are left out.
        told: takes how often each text occurs in columns of marks.

    Raises:
        DataError: a missing id or label, or a column of numbers that are not whole.
    """
    layout = part.layout
    needed = COLUMNS if layout.missing else wanted
    for file, columns, marks in zip(part.files, part.columns, part.marks, strict=True):
        names = [columns[COLUMNS.index(role)] for role in needed]
        row, held, size = 0, [], 0
        for batch in _read(file, names if told is None else [*names, *marks], part):
            if told is not None:
                for name in marks:
                    _count(told.setdefault(name, Counter()), _plain(batch.column(name)))
            table = pa.table([_plain(batch.column(name)) for name in names], names=list(needed))
            kept = _kept(table, layout.missing or ())
            rows = np.flatnonzero(kept)
            if lost is not None:
                lost.append(len(table) - len(rows))
            if len(rows) < len(table):
                table = table.take(pa.array(rows))
            table = pa.table(
                [_ids(table[role], file, role, rows + row, layout) for role in wanted],
                names=list(wanted),
            )
            row += len(batch)
            held.append(table)
            size += len(table)
            if size >= RUN_ROWS:
                yield pa.concat_tables(held)
                held, size = [], 0
        if held:
            yield pa.concat_tables(held)


def _count(found: Counter[str], column: pa.Array) -> None:
    """Adds how often each text occurs in a column of marks; rare ones count as one of them where
    there are very many, as of times.
    """
    values = pc.value_counts(column)
    often = pc.array_sort_indices(values.field("counts"), order="descending")
    values = values.take(often[:MOST_TEXTS])
    texts = ["" if text is None else str(text).strip() for text in values.field(0).to_pylist()]
    for text, count in zip(texts, values.field(1).to_pylist(), strict=True):
        found[text] += count
    if texts:
        found[texts[-1]] += len(column) - pc.sum(values.field(1)).as_py()
    if len(found) > 2 * MOST_TEXTS:
        (last, _), *rare = found.most_common()[MOST_TEXTS:]
        for text, _ in rare:
            found[last] += found.pop(text)


def _plain(column: pa.Array) -> pa.Array:
    """Returns a column of values, where a dictionary has them."""
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _kept(table: pa.Table, missing: Sequence[str]) -> NDArray[np.bool_]:
    """Returns which rows have a label, and no task or annotator that is none (see
    `is_task_marker`).
    """
    kept = np.ones(len(table), dtype=bool)
    markers = [name for name in missing if is_task_marker(name)]
    empty = [name for name in missing if not name]
    for role in COLUMNS if missing else ():
        column = table[role]
        names = {"task": markers, "worker": markers + empty, "label": list(missing)}[role]
        if pa.types.is_integer(column.type):
            bounds = np.iinfo(column.type.to_pandas_dtype())
            numbers = [int(name) for name in names if name and plain_integers([name])]
            numbers = [number for number in numbers if bounds.min <= number <= bounds.max]
            found = pc.is_in(column, value_set=pa.array(numbers, column.type))
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            bare = pc.utf8_trim_whitespace(column)
            found = pc.is_in(bare, value_set=pa.array(names, column.type))
        else:
            continue
        if "" in names:
            found = pc.or_(pc.fill_null(found, False), pc.is_null(column))
        kept &= ~pc.fill_null(found, False).to_numpy()
    return kept


def _read(file: str, names: list[str], part: Part) -> Iterator[pa.RecordBatch]:
    try:
        if file.lower().endswith(".parquet"):
            table = pq.ParquetFile(file, memory_map=True)
            last = table.num_row_groups if part.last is None else part.last
            groups = list(range(part.first, last))
            yield from table.iter_batches(
                1 << 18, row_groups=groups, columns=names, use_threads=False
            )
            return
        separator = _separator(file, part.layout)
        text = pa_csv.ConvertOptions(
            include_columns=names, column_types=dict.fromkeys(names, pa.string())
        )
        yield from pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=text,
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        said = one_line(error)
        if "straddl" in said:
            said = f"a line of more than {BLOCK >> 20} MB"
        raise DataError(f"{file}: expected {_wanted(file)}, received {said}") from None


def _wanted(file: str) -> str:
    return (
        "a Parquet file"
        if file.lower().endswith(".parquet")
        else "a CSV in UTF-8 as its header says"
    )


def _ids(
    column: pa.ChunkedArray, file: str, role: str, rows: NDArray[np.int64], layout: TableFormat
) -> pa.ChunkedArray:
    """Returns ids as int64 or text, checked; `rows` are those of the file."""
    kind = column.type
    bad = pc.is_null(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_string())
        bad = pc.or_(pc.fill_null(pc.equal(column, ""), False), bad)
        if role == "task":  # which are too many to look through for two that are one
            _check_spaces(column, file, rows)
            _check_tasks(column, file, rows, layout)
    elif pa.types.is_integer(kind):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise DataError(
                f"{file}: {role}: expected whole numbers below 2^63, received larger ones; as text"
                " they are taken"
            ) from None
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.large_string())
    else:
        raise DataError(f"{file}: {role}: expected whole numbers or text, received {kind}")
    if pc.any(bad).as_py():
        place = rows[pc.index(bad, True).as_py()]
        what = "a label" if role == "label" else "an id"
        way_out = f"; {missing_flag(layout.missing, '')} leaves out what is empty" * (
            role != "task"
        )
        raise DataError(
            f"{file}: data row {place}, {role}: expected {what}, received nothing{way_out}"
        )
    return column


def _check_spaces(tasks: pa.ChunkedArray, file: str, rows: NDArray[np.int64]) -> None:
    """Raises DataError for a task id with spaces around it, which without is another."""
    other = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(tasks), tasks), False)
    if pc.any(other).as_py():
        place = pc.index(other, True).as_py()
        raise DataError(
            f"{file}: data row {rows[place]}, task: expected an id without spaces around it,"
            f" received {tasks[place].as_py()!r}"
        )


def _check_tasks(
    tasks: pa.ChunkedArray, file: str, rows: NDArray[np.int64], layout: TableFormat
) -> None:
    """Raises DataError for ids of tasks that are none's, as `check_names` has them."""
    bare = pc.and_not(pc.ascii_is_alnum(tasks), pc.ascii_is_alpha(tasks))
    rest = pc.unique(tasks.filter(pc.invert(pc.fill_null(bare, True))))
    for name in rest.filter(pc.invert(pc.match_substring_regex(rest, PLAIN_ID))).to_pylist():
        way_out = "--exact_names takes it for a name"
        said = (
            "a number whose other digits a spreadsheet cut off"
            if is_scientific(name)
            else "a spreadsheet's formula"
            if name.startswith('="')
            else "with a NUL character"
            if "\0" in name
            else ""
        ) * (not layout.exact_names)
        if name and is_marker(name) and not nothing_is_missing(layout.missing):
            said = "which often stands for none"
            way_out = f"{missing_flag(layout.missing, name)} leaves these out"
            way_out += ", --missing= takes it for a name" * (not layout.missing)
        if said:
            place = rows[pc.index(tasks, name).as_py()]
            raise DataError(
                f"{file}: data row {place}, task: expected a task, received {name!r}, {said};"
                f" {way_out}"
            )


def vocabulary(part: Part) -> tuple[pa.Array, pa.Array, int, dict[str, Counter[str]]]:
    """Returns the annotators and the labels that occur in some of the rows, how many rows are left
    out, and how often each text occurs in columns that may say that labels do not count.

    Raises:
        DataError: quoted cells that hold what look like rows, unless names are exact; or what
            `batches` raises.
    """
    for file in () if part.layout.exact_names else part.files:
        if file.lower().endswith(".csv"):
            _check_quotes(file, part.layout)
    found: list[pa.Table] = [[], []]
    lost: list[int] = []
    told: dict[str, Counter[str]] = {}
    for table in batches(part, COLUMNS[1:], lost, told):
        for held, column in zip(found, table.columns, strict=True):
            held.append(pc.unique(column))
    annotators, labels = (united(held) for held in found)
    return annotators, labels, sum(lost), told


def united(arrays: list[pa.Array]) -> pa.Array:
    """Returns the ids that occur in any of the arrays; whole numbers become text where some are
    text.
    """
    if not arrays:
        return pa.array([], pa.large_string())
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(pa.large_string()) for array in arrays]
    return pc.unique(pa.chunked_array(arrays))


@dataclasses.dataclass(frozen=True)
class Scatter:
    """Turns parts into runs, as a function that other processes can be sent.

    Attributes:
        folder: of the runs.
        names: a Parquet file with the annotators in the order of their codes, and
        classes: the class names in theirs.
        text: whether ids of tasks are text in all parts.
        buckets: into how many the rows are scattered.
    """

    folder: str
    names: str
    classes: pa.Array
    text: bool
    buckets: int

    def __call__(self, item: tuple[int, Part]) -> list[str]:
        """Writes the runs of a part; returns their files.

        A run has its rows in the order of the buckets; the schema's metadata has the offsets.
        """
        number, part = item
        names = pq.read_table(self.names)["annotator"].combine_chunks()
        files = []
        for i, table in enumerate(batches(part)):
            path = Path(self.folder) / f"run-{number:05d}-{i:04d}.arrow"
            tasks = table["task"].combine_chunks()
            if self.text and not pa.types.is_large_string(tasks.type):
                tasks = tasks.cast(pa.large_string())
            bucket = buckets_of(tasks, self.buckets)
            order = np.argsort(bucket, kind="stable")
            offsets = np.searchsorted(bucket[order], np.arange(self.buckets + 1))
            run = pa.table(
                {
                    "task": tasks,
                    "annotator": coded(table["worker"], names),
                    "label": coded(table["label"], self.classes).cast(pa.int16()),
                }
            ).take(pa.array(order))
            schema = run.schema.with_metadata({"offsets": offsets.astype("<i8").tobytes()})
            run = run.combine_chunks().replace_schema_metadata(schema.metadata)
            write_arrow(path, run)
            files.append(str(path))
        return files


def write_arrow(path: Path, table: pa.Table) -> None:
    """Writes a table so that it can be mapped into memory."""
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def coded(values: pa.ChunkedArray, names: pa.Array) -> pa.Array:
    """Returns the position of each value in `names`, int32."""
    found = values.combine_chunks().dictionary_encode()
    entries = found.dictionary
    if entries.type != names.type:
        entries = entries.cast(names.type)
    return pc.index_in(entries, value_set=names).take(found.indices)


def folded(tasks: pa.Array) -> pa.Array:
    """Returns what two spellings of a task have in common, as `same_task` does: 01, 1.0 and 1e0 are
    1. Only what may be spelt in another way is looked at in Python.
    """
    small = pc.utf8_lower(tasks)
    odd = pc.or_(pc.match_substring_regex(small, ODD), pc.invert(pc.string_is_ascii(small)))
    odd = pc.fill_null(odd, False)
    if pc.any(odd).as_py():
        # Of other alphabets' letters the capitals look alike.
        looks = [_look(name) for name in tasks.filter(odd).to_pylist()]
        small = pc.replace_with_mask(small, odd, pa.array(looks, small.type))
    if not any(
        pc.any(found).as_py()
        for found in (
            *(pc.starts_with(small, sign) for sign in "+0"),
            pc.match_substring(small, "."),
        )
    ):
        return small
    return pc.replace_substring_regex(small, r"^\+?0*(\d+?)(?:\.0*)?$", r"\1")


def _look(name: str) -> str:
    """Returns what a task is compared by: a whole number, if it is none too long, as that."""
    found = same_task(name)
    if isinstance(found, str):
        return found
    return name.lower() if abs(found) >= LONG else str(int(found))


def buckets_of(tasks: pa.Array, buckets: int) -> NDArray[np.uint16]:
    """Returns a bucket for each task, the same wherever it occurs."""
    if pa.types.is_integer(tasks.type):
        keys = tasks.to_numpy().view(np.uint64)
    else:
        found = tasks.dictionary_encode()
        # Two spellings of a task are in one bucket, where they can be seen.
        entries = np.asarray(folded(found.dictionary).to_pylist(), dtype=object)
        hashed = pd.util.hash_array(entries, categorize=False)
        keys = hashed[found.indices.to_numpy()]
    # Fibonacci hashing: the upper bits of a product with an odd number depend on all bits.
    mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return ((mixed * np.uint64(buckets)) >> np.uint64(32)).astype(np.uint16)
