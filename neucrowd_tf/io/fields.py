"""Records of JSON or Parquet as tables: fields named by path, such as `annotations.user`.

A part of a path is a key, or `*` for every key: a path of items or annotators may end there, which
gives the key itself (`scores.*`), or go on (`scores.*.value`); a path of labels that ends there
gives the keys whose values are true; without annotators it gives annotators and their labels,
unless all values are true or false. Lists of objects become a row per object; lists of one length
beside each other (`users`, `labels`) become a row per entry.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from neucrowd_tf.declare.picking import attributes_of, entries_of
from neucrowd_tf.declare.types import Fields, NamedValues, Texts
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import few, is_id, is_person, is_second
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import JOINT, Table, as_records, cell_text, count_of, table_of_records
from neucrowd_tf.names import ROLES, roles_of, without

ANY = "*"
ONE = "?"
FLAGS = ("task_column", "worker_column", "label_column")
VALUE = "(value)"  # the part of a path that is the value itself, after `*`
MOST_LOOKED_AT = 100  # records whose fields are looked for
MOST_DEPTH = 8  # of fields that are looked for
FALSE = (None, False, 0, "", "false")  # values of keys that were not chosen
ABSENT = object()  # the value of a key that a record does not have
LAYOUTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
Record = NamedValues
Row = Fields
Paths = Mapping[str, tuple[str, ...]]


class Field(NamedTuple):
    """A value within records.

    Attributes:
        path: the keys that lead to it.
        lists: the paths of the lists on the way.
        is_list: whether it is a list of values itself.
    """

    path: str
    lists: tuple[str, ...]
    is_list: bool


def fields_of(records: Sequence[tuple[str, Record]]) -> list[Field]:
    """Returns the values within the first of some records, each with its place."""
    fields: dict[Field, None] = {}
    for _, record in records[:MOST_LOOKED_AT]:
        fields.update(dict.fromkeys(_fields(record, "", (), MOST_DEPTH)))
    return list(fields)


def _fields(value: Any, path: str, lists: tuple[str, ...], depth: int) -> Iterator[Field]:
    if isinstance(value, list) and dict in map(type, value):
        for entry in value:
            yield from _fields(entry, path, (*lists, path), depth)
    elif isinstance(value, dict) and depth:
        for key, below in value.items():
            yield from _fields(below, f"{path}.{key}" if path else str(key), lists, depth - 1)
    elif path:
        yield Field(path, lists, isinstance(value, list))


@dataclasses.dataclass
class _Reader:
    """Makes rows of records.

    Attributes:
        names: the paths of items and annotators: a list of these is a row per entry.
        seen: the paths that led to a value.
    """

    names: frozenset[str]
    seen: set[str] = dataclasses.field(default_factory=set)

    def rows(self, value: Any, paths: Paths) -> list[Row]:
        """Returns a row per object or entry of a list; a list of labels stays in its cell.

        Raises:
            ValueError: lists of different lengths beside each other.
        """
        if not any(paths.values()) or set(paths.values()) == {(VALUE,)}:
            if value is ABSENT:
                return [dict.fromkeys(paths)]
            self.seen.update(paths)
            if not isinstance(value, list) or self.names.isdisjoint(paths):
                value = [value]
            return [dict.fromkeys(paths, entry) for entry in value]
        rows: list[Row] = []
        if isinstance(value, list):
            for entry in value:
                rows += self.rows(entry, paths)
            return rows
        keyed = value if isinstance(value, dict) else {}
        groups = []
        for key, within in _grouped(keyed, paths).items():
            if key == ANY:
                groups.append(self._of_any_key(keyed, within))
            else:
                groups.append(self.rows(keyed.get(key, ABSENT), within))
        return _side_by_side(groups)

    def _of_any_key(self, keyed: Record, paths: Paths) -> list[Row]:
        """Returns the rows of the keys that `*` stands for."""
        below = entries_of(paths, filter(paths.get, paths))
        here = paths.keys() - below.keys()
        self.seen.update(here)
        if not below and self.names.isdisjoint(here):
            chosen = [key for key, value in keyed.items() if value not in FALSE]
            return [dict.fromkeys(here, chosen)]
        rows = []
        for key, value in keyed.items():
            for row in self.rows(value, below) if below else [{}]:
                rows.append(dict.fromkeys(here, key) | row)
        return rows


def _grouped(keyed: Record, paths: Paths) -> dict[str, dict[str, tuple[str, ...]]]:
    """Returns the paths within each key; a key may have points itself."""
    groups: dict[str, dict[str, tuple[str, ...]]] = {}
    for path, parts in paths.items():
        size = len(parts)
        while size > 1 and ".".join(parts[:size]) not in keyed:
            size -= 1
        groups.setdefault(".".join(parts[:size]), {})[path] = parts[size:]
    return groups


def _side_by_side(groups: Sequence[list[Row]]) -> list[Row]:
    """Returns rows of the fields of one object: lists run in parallel, single values repeat."""
    sizes = set(map(len, groups)) - {1}
    size = sizes.pop() if sizes else 1
    if sizes:
        raise ValueError("lists of different lengths")
    columns: Row = {}  # a list of values, one for each row
    for rows in groups:
        for field in rows[0] if rows else ():
            values = list(map(operator.itemgetter(field), rows))
            if len(rows) == 1:
                parallel = isinstance(values[0], list) and size > 1
                values = values[0] if parallel else values * size
            if len(values) != size:
                raise ValueError("lists of different lengths")
            columns[field] = values
    return as_records(columns, zip(*columns.values(), strict=True))


def columns_of_fields(
    path: Path, records: Sequence[tuple[str, Record]], options: TableOptions
) -> Table | LabelColumns:
    """Returns the fields that flags name, and the single values beside them, as a table.

    Without annotators, lists of labels and objects of classes with numbers are votes.

    Args:
        path: the file.
        records: the place and the content of each.
        options: which fields have which role.

    Raises:
        DataError: a field that no record has, or lists beside each other of different lengths.
    """
    flagged = attributes_of(options, FLAGS)
    named = list(itertools.chain(*flagged.values()))
    fields = fields_of(records)
    keys = _keys(named)
    reader = _Reader(frozenset((*options.task_column, *options.worker_column, *keys)))
    paths = {name: tuple(name.split(".")) for name in (*named, *keys, *_beside(named, fields))}
    rows: list[Row] = []
    for place, record in records:
        try:
            rows += reader.rows(record, paths)
        except ValueError as bad:
            raise broken(path, f"{bad} in the fields {', '.join(named)}", place) from None
    for flag, names in flagged.items():
        for name in without(names, reader.seen):
            shown = few(list(map(path_of, fields)))
            raise error("no_column", path, column=name, flag=flag, columns=shown)
    if len(options.label_column) == 1 and not options.worker_column:
        votes = _votes(path, rows, options.task_column, *options.label_column)
        if votes is not None:
            return votes
    for row in rows:
        for name, value in row.items():
            if isinstance(value, list) and len(value) == 1:
                row[name] = value[0]
    return table_of_records(path, rows)


def with_keys_as_annotators(
    records: Sequence[tuple[str, Record]], options: TableOptions
) -> TableOptions:
    """Returns the options with the keys of `--label_column=scores.*` as annotators.

    They are if nothing else names annotators and not all values are true or false.
    """
    label = ",".join(options.label_column)
    last_keys = map(_last_key, fields_of(records))
    if options.worker_column or not label.endswith(f".{ANY}") or roles_of(last_keys)["worker"]:
        return options
    keyed = f"{label}.{VALUE}"
    for _, record in records:
        for row in _Reader(frozenset()).rows(record, {keyed: tuple(keyed.split("."))}):
            if row.get(keyed) not in (*FALSE, True, "true"):
                return dataclasses.replace(options, worker_column=(label,), label_column=(keyed,))
    return options


path_of = operator.attrgetter("path")
lists_of = operator.attrgetter("lists")


def _last_key(field: Field) -> str:
    return field.path.rpartition(".")[2]


def _keys(named: Texts) -> list[str]:
    """Returns the paths of the keys that `*` stands for within other paths."""
    keys: dict[str, None] = {}
    for name in named:
        for at in re.finditer(r"(?<=\.)\*\.", name):
            keys[name[: at.end() - 1]] = None
    return without(keys, named)


def _beside(named: Texts, fields: Sequence[Field]) -> list[str]:
    """Returns further fields with one value for each row that the named fields make.

    They may be items, and tell apart what would otherwise be two labels of one item and annotator.
    """
    lists: set[tuple[str, ...]] = {()}
    for path, in_lists, _ in fields:
        if path in named:
            lists.add(in_lists)
    starts = tuple(name.partition(".*")[0] + "." for name in named)
    beside = []
    for path, in_lists, is_list in fields:
        single = in_lists in lists and not is_list
        if single and not f"{path}.".startswith(starts):
            beside.append(path)
    return without(beside, named)


def _votes(path: Path, rows: Sequence[Row], task: Texts, label: str) -> LabelColumns | None:
    """Returns the votes of each row, None if it has labels.

    A list of which no label occurs twice may be what one annotator chose, and is no votes.

    Raises:
        DataError: a number that is no number of votes.
    """
    kinds = {type(row[label]) for row in rows} - {type(None)}
    if kinds not in ({dict}, {list}):
        return None
    names = []
    items: list[str] = []
    labels: list[str] = []
    counts: list[int] = []
    record_of: list[int] = []
    for number, row in enumerate(rows):
        votes = row[label] or {}
        if kinds == {list}:
            votes = Counter(filter(None, map(cell_text, votes)))
        for name, value in votes.items():
            if isinstance(value, bool):
                value = int(value)
            count = count_of(cell_text(value))
            if count is None:
                place = f"record {number + 1}"
                raise error("bad_count", path, place, column=f"{label}.{name}", value=value)
            labels.append(str(name))
            counts.append(count)
        names.append(str(number))
        if task:
            names[-1] = JOINT.join(map(cell_text, map(row.__getitem__, task)))
        items += names[-1:] * len(votes)
        record_of += [number] * len(votes)
    if kinds == {list} and max(counts, default=1) == 1:
        return None
    return LabelColumns(
        items=items,
        annotators=[],
        labels=labels,
        place=lambda row: f"record {record_of[row] + 1}",
        layout="votes of each record",
        roles={"task": JOINT.join(task) or "the record's number", "label": label},
        counts=counts,
        rows=() if task else tuple(names),
    )


def proposals_of(fields: Sequence[Field]) -> list[dict[str, str]]:
    """Returns flags that may read records with these fields: those of tools, then likely names."""
    proposals: list[dict[str, str]] = []
    for layout in LAYOUTS.values():
        for label_path in _labels_like(layout["label"], fields):
            flags = {f"{role}_column": layout[role] for role in ROLES if role in layout}
            flags["label_column"] = label_path
            if "question" in layout:
                proposals.append({**flags, "question": layout["question"]})
            proposals.append(flags)
    named: dict[str, list[Field]] = defaultdict(list)
    for field in fields:
        name = _last_key(field)
        if field.is_list:
            name = name.removesuffix("s")
        for role, aliases in roles_of([name]).items():
            if aliases or is_second(name, role):
                named[role].append(field)
        if is_person(name):
            named["person"].append(field)
        elif is_id(name):
            named["id"].append(field)
    workers = dict.fromkeys(named["person"] + named["worker"])
    tasks = sorted(dict.fromkeys(named["task"] + named["id"]), key=_depth)
    for worker, task, label in itertools.product(workers, tasks, named["label"]):
        if len({task, worker, label}) == 3 and _along(worker, label):
            proposals.append(dict(zip(FLAGS, map(path_of, (task, worker, label)), strict=True)))
    return proposals


def _labels_like(pattern: str, fields: Sequence[Field]) -> list[str]:
    """Returns the paths of labels that a tool's pattern means in some records."""
    if ONE not in pattern:
        return [pattern]
    key = r"[^.]+"
    like = re.compile(re.escape(pattern).replace(r"\?", key).replace(r"\*", key))
    labels = list(filter(like.fullmatch, map(path_of, fields)))
    if pattern.endswith(ANY):
        labels = [label.rpartition(".")[0] + ".*" for label in labels]
    return list(dict.fromkeys(labels))


def _depth(field: Field) -> int:
    return field.path.count(".")


def _along(one: Field, other: Field) -> bool:
    """Whether one of two fields is in every list that the other is in."""
    size = min(len(one.lists), len(other.lists))
    return one.lists[:size] == other.lists[:size]
