"""Records of JSON or Parquet as tables: fields named by path, such as `annotations.user`.

A part of a path is a key, or `*` for every key: a path of items or annotators may end there, which
gives the key itself (`scores.*`), or go on (`scores.*.value`); a path of labels that ends there
gives the keys whose values are true; without annotators it gives annotators and their labels,
unless all values are true or false. Lists of objects become a row per object; lists of one length
beside each other (`users`, `labels`) become a row per entry.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import few, is_id, is_person, is_second
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import JOINT, Table, cell_text
from neucrowd_tf.names import ROLES, roles_of

ANY = "*"
ONE = "?"
VALUE = "(value)"  # the part of a path that is the value itself, after `*`
MOST_LOOKED_AT = 100  # records whose fields are looked for
MOST_DEPTH = 8  # of fields that are looked for
FALSE = (None, False, 0, "", "false")  # values of keys that were not chosen
ABSENT = object()  # the value of a key that a record does not have
LAYOUTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
Record = Mapping[str, Any]
Row = dict[str, Any]
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


def fields_of(records: Iterable[Record]) -> list[Field]:
    """Returns the values within the first records."""
    fields = (
        field
        for _, record in zip(range(MOST_LOOKED_AT), records, strict=False)
        for field in _fields(record, "", (), MOST_DEPTH)
    )
    return list(dict.fromkeys(fields))


def _fields(value: Any, path: str, lists: tuple[str, ...], depth: int) -> Iterator[Field]:
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
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
        paths = {path: parts if parts != (VALUE,) else () for path, parts in paths.items()}
        if isinstance(value, list) and any(paths.values()):
            return [row for entry in value for row in self.rows(entry, paths)]
        if not any(paths.values()):
            if value is ABSENT:
                return [dict.fromkeys(paths)]
            self.seen.update(paths)
            spread = isinstance(value, list) and not self.names.isdisjoint(paths)
            return [dict.fromkeys(paths, entry) for entry in (value if spread else [value])]
        if isinstance(value, dict):
            keyed = value
        else:
            keyed = {}
        groups = []
        for key, within in _grouped(keyed, paths).items():
            if key == ANY:
                groups.append(self._of_any_key(keyed, within))
            else:
                groups.append(self.rows(keyed.get(key, ABSENT), within))
        return _side_by_side(groups)

    def _of_any_key(self, keyed: Record, paths: Paths) -> list[Row]:
        """Returns the rows of the keys that `*` stands for."""
        here = [path for path, parts in paths.items() if not parts]
        self.seen.update(here)
        below = {path: parts for path, parts in paths.items() if parts}
        if not below and self.names.isdisjoint(here):
            chosen = [key for key, value in keyed.items() if value not in FALSE]
            return [dict.fromkeys(here, chosen)]
        rows = []
        for key, value in keyed.items():
            if below:
                within = self.rows(value, below)
            else:
                within = [{}]
            rows += [dict.fromkeys(here, key) | row for row in within]
        return rows


def _grouped(keyed: Record, paths: Paths) -> dict[str, dict[str, tuple[str, ...]]]:
    """Returns the paths within each key; a key may have points itself."""
    groups: dict[str, dict[str, tuple[str, ...]]] = {}
    for path, parts in paths.items():
        sizes = range(len(parts), 0, -1)
        size = next((size for size in sizes if ".".join(parts[:size]) in keyed), 1)
        groups.setdefault(".".join(parts[:size]), {})[path] = parts[size:]
    return groups


def _side_by_side(groups: Sequence[list[Row]]) -> list[Row]:
    """Returns rows of the fields of one object: lists run in parallel, single values repeat."""
    sizes = {len(rows) for rows in groups if len(rows) != 1}
    if sizes:
        size = sizes.pop()
    else:
        size = 1
    if sizes:
        raise ValueError("lists of different lengths")
    joined: list[Row] = [{} for _ in range(size)]
    for rows in groups:
        for field, value in rows[0].items() if len(rows) == 1 else ():
            parallel = isinstance(value, list) and size > 1
            if parallel and len(value) != size:
                raise ValueError("lists of different lengths")
            for at, row in enumerate(joined):
                if parallel:
                    row[field] = value[at]
                else:
                    row[field] = value
        for row, more in zip(joined, rows if len(rows) == size > 1 else (), strict=False):
            row.update(more)
    return joined


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
    flagged = {role: getattr(options, f"{role}_column") for role in ROLES}
    named = [name for names in flagged.values() for name in names]
    fields = fields_of(record for _, record in records)
    reader = _Reader(frozenset((*flagged["task"], *flagged["worker"], *_keys(named))))
    paths = {name: tuple(name.split(".")) for name in (*named, *_beside(named, fields))}
    rows: list[Row] = []
    for place, record in records:
        try:
            rows += reader.rows(record, paths)
        except ValueError as bad:
            raise broken(path, f"{bad} in the fields {', '.join(named)}", place) from None
    for role, names in flagged.items():
        for name in names:
            if name not in reader.seen:
                listed = few([field.path for field in fields])
                raise error("no_column", path, column=name, flag=f"{role}_column", columns=listed)
    if len(flagged["label"]) == 1 and not flagged["worker"]:
        votes = _votes(rows, flagged["task"], *flagged["label"])
        if votes is not None:
            return votes
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    cells = [[cell_text(_only(row.get(column))) for row in rows] for column in columns]
    return Table(path, columns, cells)


def with_keys_as_annotators(
    records: Sequence[tuple[str, Record]], options: TableOptions
) -> TableOptions:
    """Returns the options with the keys of `--label_column=scores.*` as annotators.

    They are if nothing else names annotators and not all values are true or false.
    """
    label = ",".join(options.label_column)
    fields = fields_of(record for _, record in records)
    last_keys = [field.path.rpartition(".")[2] for field in fields]
    if options.worker_column or not label.endswith(f".{ANY}") or roles_of(last_keys)["worker"]:
        return options
    keyed = f"{label}.{VALUE}"
    paths = {keyed: tuple(keyed.split("."))}
    for _, record in records:
        for row in _Reader(frozenset()).rows(record, paths):
            if row.get(keyed) not in (*FALSE, True, "true"):
                return dataclasses.replace(options, worker_column=(label,), label_column=(keyed,))
    return options


def _keys(named: Sequence[str]) -> list[str]:
    """Returns the paths of the keys that `*` stands for within other paths."""
    return [name[: at.end() - 1] for name in named for at in re.finditer(r"(?<=\.)\*\.", name)]


def _beside(named: Sequence[str], fields: Sequence[Field]) -> list[str]:
    """Returns further fields with one value for each row that the named fields make.

    They may be items, and tell apart what would otherwise be two labels of one item and annotator.
    """
    lists = {field.lists for field in fields if field.path in named} | {()}
    single = [field.path for field in fields if field.lists in lists and not field.is_list]
    starts = tuple(f"{name.partition('.*')[0]}." for name in named)
    others = [name for name in single if not name.startswith(starts)]
    return [name for name in (*_keys(named), *others) if name not in named]


def _only(value: Any) -> Any:
    """Returns the entry of a list of one."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def _votes(rows: Sequence[Row], task: Sequence[str], label: str) -> LabelColumns | None:
    """Returns the votes of each row, None if it has labels.

    A list of which no label occurs twice may be what one annotator chose, and is no votes.
    """
    values = [row[label] for row in rows if row[label] is not None]
    if values and all(isinstance(value, dict) for value in values):
        votes = [row[label] or {} for row in rows]
    elif values and all(isinstance(value, list) for value in values):
        votes = [Counter(filter(None, map(cell_text, row[label] or ()))) for row in rows]
        if max((count for counts in votes for count in counts.values()), default=1) == 1:
            return None
    else:
        return None
    items = [JOINT.join(cell_text(row[name]) for name in task) for row in rows]
    if not task:
        items = [str(number) for number in range(len(rows))]
    entries = [(at, name, count) for at, of in enumerate(votes) for name, count in of.items()]
    return LabelColumns(
        items=[items[at] for at, _, _ in entries],
        annotators=[],
        labels=[str(name) for _, name, _ in entries],
        place=lambda row: f"record {entries[row][0] + 1}",
        layout="votes of each record",
        roles={"task": JOINT.join(task) or "the record's number", "label": label},
        counts=[int(count) for _, _, count in entries],
        rows=() if task else tuple(items),
    )


def proposals_of(fields: Sequence[Field]) -> list[dict[str, str]]:
    """Returns flags that may read records with these fields: those of tools, then likely names."""
    paths = {field.path: field for field in fields}
    proposals: list[dict[str, str]] = []
    for layout in LAYOUTS.values():
        labels = [layout["label"]]
        if ONE in layout["label"]:
            pattern = re.escape(layout["label"]).replace(r"\?", r"[^.]+").replace(r"\*", r"[^.]+")
            hits = [path for path in paths if re.fullmatch(pattern, path)]
            if layout["label"].endswith(ANY):
                end = ".*"
            else:
                end = ""
            labels = list(
                dict.fromkeys(hit.rpartition(".")[0] + end if end else hit for hit in hits)
            )
        for label in labels:
            flags = {f"{role}_column": layout[role] for role in ROLES if role in layout}
            flags["label_column"] = label
            with_question = {**flags, "question": layout.get("question", "")}
            if "question" in layout:
                proposals += [with_question, flags]
            else:
                proposals += [flags]

    last = {path: path.rpartition(".")[2] for path in paths}
    last |= {path: last[path].removesuffix("s") for path, field in paths.items() if field.is_list}

    def named(role: str) -> list[str]:
        hits = roles_of(last.values())[role]
        return [path for path in paths if last[path] in hits or is_second(last[path], role)]

    people = [path for path in paths if is_person(last[path])]
    ids = [path for path in paths if is_id(last[path]) and path not in people]
    proposals += [
        {"task_column": task, "worker_column": worker, "label_column": label}
        for worker in dict.fromkeys([*people, *named("worker")])
        for task in sorted(dict.fromkeys([*named("task"), *ids]), key=lambda path: path.count("."))
        for label in named("label")
        if len({task, worker, label}) == 3 and _along(paths[worker], paths[label])
    ]
    return proposals


def _along(one: Field, other: Field) -> bool:
    """Whether one of two fields is in every list that the other is in."""
    size = min(len(one.lists), len(other.lists))
    return one.lists[:size] == other.lists[:size]
