"""Shards of whole tasks on the disk, mapped into memory when they are worked on."""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from neucrowd_tf.aggregation.engine.kept import Engine, Origin, changed, digests
from neucrowd_tf.aggregation.engine.source import (
    Scatter,
    Source,
    folded,
    state_of,
    united,
    vocabulary,
    write_arrow,
)
from neucrowd_tf.aggregation.sums import Shard
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import ARRAY_HEADERS
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json import read_sealed, write_sealed
from neucrowd_tf.io.labels.checks.triples import check_vocabulary
from neucrowd_tf.io.names.checks import nobodies, nobody
from neucrowd_tf.io.names.ids import plain_integers, typed_names
from neucrowd_tf.io.names.missing import nothing_is_missing
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.other_columns import mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

# Annotations of a shard: small enough that a few are in memory at once, large enough that adding
# up the sums of all shards takes little beside making them.
SHARD_ROWS = 4_000_000
FEWEST, MOST = 8, 4096
MOST_CLASSES = 1 << 15
# A task of these letters and a digit is somebody's.
BARE_ID = r"^[A-Za-z_][A-Za-z0-9_./-]*[0-9][A-Za-z0-9_./-]*$|^[0-9]+$"
RECORD, NAMES = "shards.json", "annotators.parquet"


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
        num_missing: rows that --missing leaves out.
        told: what columns say of labels that may not count.
    """

    folder: Path
    sizes: tuple[int, ...]
    num_annotations: int
    num_annotators: int
    classes: tuple[Any, ...]
    num_missing: int = 0
    told: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, record: dict[str, Any]) -> Shards:
        """Returns the shards that `read_record` tells of."""
        return cls(
            folder,
            tuple(record["sizes"]),
            record["num_annotations"],
            record["num_annotators"],
            tuple(record["classes"]),
            record["num_missing"],
            tuple(record["told"]),
        )

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
    """Returns what is known of the shards in a folder, None where they were not finished.

    Raises:
        DataError: a damaged file.
    """
    path = folder / RECORD
    return read_sealed(path) if path.exists() else None


def load_shards(folder: Path, record: dict[str, Any], engine: Engine) -> Shards:
    """Returns the shards of a folder.

    Raises:
        DataError: a file of theirs that is not as it was written.
    """
    if (path := changed(folder, record["files"], engine)) is not None:
        raise DataError(f"{path}: expected a shard as it was written, received a damaged file")
    return Shards.of(folder, record)


def make_shards(source: Source, origin: Origin, folder: Path, engine: Engine) -> Shards:
    """Reads a source twice (which ids there are; the rows) and sorts it into shards.

    Args:
        source: what is read.
        origin: what to know it by.
        folder: of the shards.
        engine: runs the parts.

    Raises:
        DataError: rows that cannot be used, no row, or an annotator with two labels of one task.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "runs").mkdir(parents=True)
    layout = source.layout
    found = list(engine.map(vocabulary, source.parts))
    annotators = _ordered(united([part[0] for part in found]))
    classes = _ordered(united([part[1] for part in found]))
    first = str(source.files[0].absolute())
    if not len(classes):
        raise DataError(f"{first}: expected at least one annotation, received none")
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"{first}: label: expected at most {MOST_CLASSES} classes, received {len(classes)}"
        )
    check_vocabulary(first, _plain(annotators), _plain(classes), layout)
    if layout.classes:
        classes = _listed(classes, layout.classes, first)
    header = set(source.parts[0].columns[0])
    if header & set(annotators.to_pylist()) and header & set(classes.to_pylist()):
        raise DataError(f"{first}: expected annotators and labels, received the header again")
    names = folder / NAMES
    with atomic_path(names) as temporary:
        pq.write_table(pa.table({"annotator": annotators}), temporary)
    buckets = min(max(source.rows // SHARD_ROWS, FEWEST), MOST)
    scatter = Scatter(str(folder / "runs"), str(names), classes, _text(source), buckets)
    runs = [run for files in engine.map(scatter, enumerate(source.parts)) for run in files]
    gather = Gather(str(folder), tuple(runs), len(annotators), len(classes), first, layout)
    parts = list(engine.map(gather, range(buckets)))
    shutil.rmtree(folder / "runs")
    if state_of(source.files) != source.state:
        raise DataError(f"{first}: expected files at rest, received one that changes")
    files = [name for number in range(buckets) for name in _files(number)]
    record = {
        "origin": origin.record(),
        "sizes": [part.tasks for part in parts],
        "num_annotations": sum(part.rows for part in parts),
        "num_annotators": len(annotators),
        "classes": _plain(classes),
        "num_missing": sum(part[2] for part in found),
        "told": [*_told([part[3] for part in found]), *_nobodies(parts)],
        "files": digests(folder, [NAMES, *files], engine),
    }
    write_sealed(folder / RECORD, record)
    return Shards.of(folder, record)


def _told(found: Iterable[dict[str, Counter[str]]]) -> Iterator[str]:
    """Yields what columns of marks say, of which parts found how often each text occurs."""
    counts: dict[str, Counter[str]] = {}
    for name, texts in (item for part in found for item in part.items()):
        counts.setdefault(name, Counter()).update(texts)
    for name, texts in counts.items():
        if said := mark(name, pd.Series(dict(texts.most_common()))):
            yield said


def _nobodies(parts: Sequence[Gathered]) -> Iterator[str]:
    """Yields what to say of tasks that may stand for none: words, and the one negative number."""
    negative = [name for part in parts for name in part.negative]
    if len(negative) != 1 or sum(part.tasks for part in parts) == 1:
        negative = []
    for name in [*(name for part in parts for name in part.soft), *negative]:
        yield nobody("task", name)


def _listed(found: pa.Array, wanted: Sequence[str], source: str) -> pa.Array:
    """Returns the classes that the user names, in that order.

    Raises:
        DataError: labels of another.
    """
    other = [name for name in map(str, found.to_pylist()) if name not in wanted]
    if other:
        shown = ", ".join(map(repr, wanted))
        raise DataError(f"{source}: label: expected one of {shown}, received {other[0]!r}")
    if _is_text(found) or not plain_integers(wanted):
        return pa.array(wanted, pa.large_string())
    return pa.array(list(map(int, wanted)), found.type)


def _plain(names: pa.Array) -> list[Any]:
    """Returns names as Python's, those that are spelt as whole numbers as these."""
    return typed_names(names.to_pylist()).tolist() if _is_text(names) else names.to_pylist()


def _is_text(names: pa.Array) -> bool:
    return pa.types.is_large_string(names.type)


def _ordered(names: pa.Array) -> pa.Array:
    """Returns names sorted, as numbers where every text is how one is spelt."""
    if _is_text(names):
        typed = typed_names(names.to_pylist())
        if typed.dtype.kind == "i":
            return names.take(pa.array(np.argsort(typed, kind="stable")))
    return names.take(pc.sort_indices(names))


def _text(source: Source) -> bool:
    """Whether a file has text for its tasks, so that all are taken for it."""
    kinds = set()
    for part in source.parts:
        for file, columns in zip(part.files, part.columns, strict=True):
            if file.lower().endswith(".parquet"):
                kind = pq.read_schema(file).field(columns[0]).type
                kind = kind.value_type if pa.types.is_dictionary(kind) else kind
                kinds.add(pa.types.is_integer(kind))
            else:
                return True
    return False in kinds


class Gathered(NamedTuple):
    """What a shard has: how many tasks and annotations, and tasks that may stand for none (see
    `nobodies`).
    """

    tasks: int
    rows: int
    soft: list[str]
    negative: list[str]


@dataclasses.dataclass(frozen=True)
class Gather:
    """Makes a shard of what all runs have for it, as a function that other processes can be sent.

    Attributes:
        folder: of the shards.
        runs: the files of the runs.
        num_annotators, num_classes: R and C.
        source: the annotations, for errors.
        layout: which names are exact, so that tasks that differ in case or in a number's spelling
            alone are others, and which stand for none.
    """

    folder: str
    runs: tuple[str, ...]
    num_annotators: int
    num_classes: int
    source: str
    layout: TableFormat = PLAIN

    def __call__(self, number: int) -> Gathered:
        """Writes a shard's arrays, sorted by task and annotator."""
        table = self._rows(number)
        tasks = table["task"].combine_chunks().dictionary_encode()
        if isinstance(tasks, pa.ChunkedArray):
            tasks = tasks.combine_chunks()
        order = pc.sort_indices(tasks.dictionary)
        names = tasks.dictionary.take(order)
        if not self.layout.exact_names and _is_text(names):
            self._check_twins(names)
        rank = np.empty(len(names), dtype=np.int64)
        rank[order.to_numpy()] = np.arange(len(names))
        codes = rank[tasks.indices.to_numpy()]
        annotators = table["annotator"].to_numpy()
        labels = table["label"].to_numpy()
        offsets, columns = self._sorted(codes, annotators, labels, names)
        *paths, last = (Path(self.folder) / name for name in _files(number))
        for path, array in zip(paths, (offsets, columns), strict=True):
            with atomic_path(path) as temporary:
                np.save(temporary, array)
        write_arrow(last, pa.table({"task": names}))
        return Gathered(len(names), len(columns), *self._nobodies(names))

    def _nobodies(self, names: pa.Array) -> tuple[list[str], list[str]]:
        """Returns the names that may stand for none: words; negative numbers, of which one alone
        does, so that two say as much as all.
        """
        if self.layout.exact_names or nothing_is_missing(self.layout.missing):
            return [], []
        if _is_text(names):
            odd = pc.match_substring_regex(names, BARE_ID)
            found = names.filter(pc.invert(odd)).to_pylist()
        else:
            found = names.filter(pc.less(names, 0)).to_pylist()
        soft, negative = nobodies(found)
        return [found[place] for place in soft], [str(found[place]) for place in negative[:2]]

    def _check_twins(self, names: pa.Array) -> None:
        """Raises DataError for two spellings of a task."""
        alike = folded(names)
        if len(pc.unique(alike)) == len(alike):
            return
        found: dict[str, str] = {}
        for look, name in zip(alike.to_pylist(), names.to_pylist(), strict=True):
            if (other := found.setdefault(look, name)) != name:
                raise DataError(
                    f"{self.source}: task: expected tasks that differ in more than case, spaces,"
                    f" quotes or how a number is spelt, received {name!a} beside {other!a};"
                    " --exact_names takes them for different ones"
                )

    def _rows(self, number: int) -> pa.Table:
        """Returns the rows of a bucket, copied out of the runs."""
        found = []
        for run in self.runs:
            with pa.memory_map(run) as stream:
                reader = pa.ipc.open_file(stream)
                offsets = np.frombuffer(reader.schema.metadata[b"offsets"], dtype="<i8")
                first, last = offsets[number : number + 2].tolist()
                found.append(reader.read_all().slice(first, last - first))
        return pa.concat_tables(table.replace_schema_metadata() for table in found)

    def _sorted(
        self,
        tasks: NDArray[np.int64],
        annotators: NDArray[np.int32],
        labels: NDArray[np.int16],
        names: pa.Array,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns the offsets `[n + 1]` of the tasks and the column `annotator * C + label` of each
        annotation.
        """
        width = self.num_annotators * self.num_classes
        kind = np.int32 if width < 2**31 else np.int64
        if len(names) * width < 2**63:
            keys = np.sort(tasks * width + annotators.astype(np.int64) * self.num_classes + labels)
            tasks, columns = np.divmod(keys, width)
        else:
            columns = annotators.astype(np.int64) * self.num_classes + labels
            order = np.lexsort((columns, tasks))
            tasks, columns = tasks[order], columns[order]
        who = columns // self.num_classes
        twice = np.flatnonzero((tasks[1:] == tasks[:-1]) & (who[1:] == who[:-1]))
        if len(twice):
            name = pq.read_table(Path(self.folder) / NAMES)["annotator"]
            task, worker = names[int(tasks[twice[0]])].as_py(), name[int(who[twice[0]])].as_py()
            raise DataError(
                f"{self.source}: task {task!r}: expected one label of an annotator, received two of"
                f" {worker!r}"
            )
        counts = np.bincount(tasks, minlength=len(names))
        return np.concatenate([[0], np.cumsum(counts)]).astype(kind), columns.astype(kind)
