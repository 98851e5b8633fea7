"""The options of reading a table of labels: each is declared once, with its default and its help.

Every command takes a flag from each field of `TableOptions`; the field's name is the flag's name.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Annotated, Any, Literal

from neucrowd_tf.declare.declarations import declared
from neucrowd_tf.declare.flag_parsing import from_values, split_list
from neucrowd_tf.declare.types import Entries, Fields
from neucrowd_tf.errors import UsageError

ANNOTATIONS = (
    "File of labels: a CSV, TSV, Parquet, JSON or NPY file, or an annotation tool's export."
)
MODEL_ANNOTATOR = (
    "Annotators that are models: names or patterns such as gpt-*, separated by commas. If they err"
    " together they count as one source; agreement is reported separately for them."
)
FAMILY = (
    "Annotators whose errors go together, such as the prompts of one model: they count as one"
    " source. A pattern of names per family, such as gpt-* or ann|bob, separated by commas."
)


def _sign(text: str) -> str:
    sign = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(sign) != 1 or sign in '\n\r"' or not sign.isascii():
        raise UsageError("expected one ASCII sign, tab or space")
    return sign


def _bins(text: str) -> tuple[float, ...]:
    try:
        edges = tuple(map(float, split_list(text)))
    except ValueError:
        edges = ()
    count = len(edges) == 1 and edges[0].is_integer() and 2 <= edges[0] <= 1000
    increasing = len(edges) > 2 and all(map(operator.lt, edges, edges[1:]))
    if not count and not increasing:
        raise UsageError("expected a number of bins from 2, or at least three increasing edges")
    return edges


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """How a table of labels is read.

    Example:
        >>> TableOptions.of(task_column="topicID,docID", header="none").task_column
        ('topicID', 'docID')
    """

    separator: Annotated[
        str | None,
        _sign,
        "Sign between the columns of a CSV; `tab` and `space` are accepted. Default: a tab for"
        " .tsv, otherwise the sign most frequent in the header.",
    ] = None
    header: Annotated[
        Literal["first", "none"],
        "Where the column names are: `first` is the first line; with `none` the columns are"
        " numbered from 1.",
    ] = "first"
    task_column: Annotated[
        Entries, "Column of items. Several columns are joined: `topicID,docID`."
    ] = ()
    worker_column: Annotated[
        Entries, "Column of annotators. Several columns are joined, or a pattern: `TurkId*`."
    ] = ()
    label_column: Annotated[
        Entries,
        "Column of labels. Several columns, or a pattern such as `Answer.*`, are one-hot"
        " classes if there is a column of annotators, otherwise one column per annotator.",
    ] = ()
    missing: Annotated[
        Entries | None,
        "Texts that are missing labels, separated by commas; empty for no text. Default: NA,"
        " N/A, NaN, null and #N/A. An empty cell is always missing.",
    ] = None
    duplicates: Annotated[
        Literal["last", "first", "all", "error"] | None,
        "What happens to several labels of one item by one annotator: the `last` or `first` is"
        " used, `all` are, or they are an `error`. Default: last, unless they are many and a column"
        " tells them apart, or items repeat in a wide table: then the command asks.",
    ] = None
    classes: Annotated[
        Entries,
        "All classes in their order, separated by commas. Default: those in use, sorted. `all`"
        " accepts any number of different numbers as classes.",
    ] = ()
    exact_names: Annotated[
        bool, "Treats names as different that differ only in case, spaces or Unicode form."
    ] = False
    bins: Annotated[
        tuple[float, ...],
        _bins,
        "Makes classes of ratings: a number of bins of equal width, or the edges of the bins.",
    ] = ()
    multi_label: Annotated[
        str | None,
        "Sign between several classes in one cell, or `newline` or `list` (JSON). Each class"
        " becomes a yes/no question.",
    ] = None
    votes_columns: Annotated[
        Entries, "Columns of vote counts, one per class, separated by commas."
    ] = ()
    question: Annotated[
        str | None,
        "Question of an annotation tool's export, if it has several. In a table `column=value`: its"
        " rows with this value.",
    ] = None
    first: Annotated[bool, "Uses only the first of several choices in a tool's export."] = False

    @classmethod
    def of(cls, **values: Any) -> TableOptions:
        """Returns the options with these values; texts are parsed as the flags are.

        None stands for the default.

        Raises:
            UsageError: an unknown name, or a value that cannot be used.
        """
        return from_values(cls, values)

    def __post_init__(self) -> None:
        """Raises UsageError for a column that is named twice; a class counts once."""
        object.__setattr__(self, "classes", tuple(dict.fromkeys(self.classes)))
        names: set[str] = set()
        for name in (*self.task_column, *self.worker_column, *self.label_column):
            if name.casefold() in names:
                raise UsageError(
                    f"--task_column, --worker_column, --label_column: column {name!r} is named"
                    " twice. Name a different column for each."
                )
            names.add(name.casefold())

    def changed(self) -> Fields:
        """Returns the options that differ from their defaults, by name."""
        changed = {}
        for field in dataclasses.fields(TableOptions):
            value = getattr(self, field.name)
            if value != field.default:
                changed[field.name] = value
        return changed


FLAGS = {flag.name: flag.meaning for flag in declared(TableOptions)}
DEFAULTS = TableOptions()
