"""The annotation tools whose exports are read, by name, and how a file's tool is told."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers import (
    argilla,
    doccano,
    label_studio,
    labelbox,
    mturk,
    prodigy,
    sagemaker,
    toloka,
)
from neucrowd_tf.io.importers.archives import open_archive
from neucrowd_tf.io.importers.export import Collector, Duplicates, Export
from neucrowd_tf.io.importers.heads import Head, read_head
from neucrowd_tf.io.importers.records import records
from neucrowd_tf.io.names.shell import flag
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES, require_columns


@dataclasses.dataclass(frozen=True)
class Tool:
    """A kind of export.

    Attributes:
        title: what to call it.
        marks: what its files are recognised by, in words.
        recognises: whether a file's head looks like it.
        read: hands what a file says to a `Collector`.
    """

    title: str
    marks: str
    recognises: Callable[[Head], bool]
    read: Callable[[Head, Collector], None]


TOOLS: dict[str, Tool] = {
    "label_studio": Tool(
        "Label Studio's JSON",
        "tasks with 'data' and 'annotations', each with 'result'",
        label_studio.is_json,
        label_studio.read_json,
    ),
    "label_studio_min": Tool(
        "Label Studio's JSON_MIN",
        "objects with 'annotator' and 'annotation_id'",
        label_studio.is_min,
        label_studio.read_min,
    ),
    "prodigy": Tool(
        "Prodigy's JSONL", "lines with '_input_hash' and 'answer'", prodigy.is_export, prodigy.read
    ),
    "sagemaker": Tool(
        "SageMaker Ground Truth's labels by worker",
        "a folder worker-response, 'datasetObjectId' or 'annotationsFromAllWorkers'",
        sagemaker.is_export,
        sagemaker.read,
    ),
    "doccano": Tool(
        "doccano's export",
        "a zip of <username>.jsonl, or lines with 'annotations' of 'label' and 'user'",
        doccano.is_export,
        doccano.read,
    ),
    "argilla": Tool(
        "Argilla's records",
        "records with 'fields' and 'responses', or '<question>.responses.users'",
        argilla.is_export,
        argilla.read,
    ),
    "labelbox": Tool(
        "Labelbox's NDJSON",
        "lines with 'data_row' and 'projects'",
        labelbox.is_export,
        labelbox.read,
    ),
    "toloka": Tool(
        "Toloka's TSV",
        "columns ASSIGNMENT:worker_id and OUTPUT:<field>, with tabs between",
        toloka.is_export,
        toloka.read,
    ),
    "mturk": Tool(
        "Mechanical Turk's batch CSV",
        "columns HITId, WorkerId and Answer.<field>",
        mturk.is_export,
        mturk.read,
    ),
}


def detect(path: str | Path, separator: str | None = None) -> str | None:
    """Returns the name of the tool whose export a file looks like, None for any other file; the
    separator is a table's, as for `read_head`.

    Raises:
        DataError: no such file.
    """
    return _detect(read_head(Path(path), separator))


def _detect(head: Head) -> str | None:
    return next((name for name, tool in TOOLS.items() if tool.recognises(head)), None)


def read_export(
    path: str | Path,
    tool: str = "auto",
    *,
    question: str | None = None,
    first: bool = False,
    duplicates: Duplicates = "error",
    layout: TableFormat = PLAIN,
) -> Export:
    """Reads the export of an annotation tool.

    Args:
        path: a file, or a folder as SageMaker writes it.
        tool: a name in `TOOLS`, or "auto".
        question: which of several questions to take.
        first: takes the first of several choices in an answer, where it is an error otherwise.
        duplicates: "error", "first" or "last" where a worker answered a task again with another
            label; the same label again is left out and counted.
        layout: a table's separator, and the columns that the user named; an export in JSON has
            none, and a warning says so.

    Raises:
        UsageError: an unknown tool.
        DataError: a file of another kind, a broken one, several questions and none named, several
            choices; the message names the file and the place in it.
    """
    source = Path(path)
    if tool != "auto" and tool not in TOOLS:
        raise UsageError(f"expected a tool of auto, {', '.join(TOOLS)}, received {tool!r}")
    head = read_head(source, layout.separator)
    chosen = TOOLS[name := _recognised(source, tool, head)]
    head = dataclasses.replace(head, named=_named(head, chosen.title, layout))
    found = Collector(source, question)
    try:
        chosen.read(head, found)
    except (AttributeError, IndexError, KeyError, TypeError):
        # Parts of records are of other types than the tool writes.
        after = f" after {found.last}" if found.last else ""
        raise DataError(
            f"{source}: expected {chosen.title} ({chosen.marks}), received a record of another"
            f" form{after}"
        ) from None
    return found.finish(name, first=first, duplicates=duplicates)


def _named(head: Head, title: str, layout: TableFormat) -> dict[str, str]:
    """Returns the columns that the user named, by role.

    Raises:
        DataError: one that the table does not have.
    """
    wanted = {role: name for role in ALIASES if (name := getattr(layout, role)) is not None}
    if wanted and head.kind != "table":
        flags = ", ".join(flag(f"{role}_column", name) for role, name in wanted.items())
        warnings.warn(
            f"{head.path}: {flags} is without effect: {title} has no columns", stacklevel=5
        )
        return {}
    roles = layout.roles(head.columns)
    require_columns(head.path, head.columns, [name for r, name in wanted.items() if r not in roles])
    return {role: roles[role] for role in wanted}


def _recognised(source: Path, tool: str, head: Head) -> str:
    """Returns the name of the tool whose export a file is: `tool`, or any for "auto"."""
    name = _detect(head)
    if name is None and head.kind == "zip":
        open_archive(source).close()  # says what is wrong with a broken one
    if name is None and head.kind == "json" and not head.first:
        list(records(read_text(source), str(source)))  # and with JSON that is cut off
    if tool == "auto":
        if name is None:
            raise DataError(
                f"{source}: expected an export of {', '.join(TOOLS)}, received a file that looks"
                f" like none of them ({head.shown()})"
            )
        return name
    if not TOOLS[tool].recognises(head):
        other = f"what looks like {TOOLS[name].title}" if name else "a file without them"
        raise DataError(
            f"{source}: expected {TOOLS[tool].title} ({TOOLS[tool].marks}), received {other}"
        )
    return tool
