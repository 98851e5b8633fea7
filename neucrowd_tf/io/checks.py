"""The catalogue of everything for which a file of labels or features is rejected.

Each check has an id, a message, a cause, a fix and an example; the message ends with the id.
`docs/data_formats.md` is generated from it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import DataError


@dataclasses.dataclass(frozen=True)
class Check:
    """A reason for rejecting a file.

    Attributes:
        name: its id.
        problem: what is wrong; words in braces are filled in.
        fix: what to do.
        cause: how files come to be like this.
        example: content, or the words of a message, that the check rejects.
    """

    name: str
    problem: str
    fix: str
    cause: str
    example: str


CHECKS = {
    check.name: check
    for check in (
        Check(
            "unreadable",
            "{problem}.",
            "{advice}.",
            "The path is wrong, is a folder or a device, or needs other permissions; an archive is"
            " damaged or holds several files.",
            "labels.zip with two CSV files",
        ),
        Check(
            "encoding",
            "the bytes are not {encoding}.",
            "Save the file as UTF-8.",
            "The file was saved as Latin-1 or in another encoding of a region.",
            "the single byte E9 for é",
        ),
        Check(
            "broken_file",
            "{problem}.",
            "Write the file again, or correct this place.",
            "The file was cut off, a quotation mark is not closed, or its ending is another"
            " format's.",
            't1,ann,"yes',
        ),
        Check(
            "no_labels",
            "there are no labels{problem}.",
            "Check that this is the file of labels.",
            "The file is empty, has only a header, or all its labels are missing.",
            "task,worker,label and no further line",
        ),
        Check(
            "row_length",
            "{cells} cells, but the header has {columns}.",
            "Quote cells that contain the separator{separator}, or name another with --separator.",
            "A text contains the separator, or the row was cut off.",
            "t1,ann,yes,no below task,worker,label",
        ),
        Check(
            "column_twice",
            "there are two columns {column!r}.",
            "Rename one.",
            "Tables were joined side by side.",
            "task,label,label",
        ),
        Check(
            "header_again",
            "the header is repeated as a row.",
            "Remove the row.",
            "Several files were appended to one.",
            "task,worker,label in line 500",
        ),
        Check(
            "unknown_layout",
            "the layout is not known: {problem}.",
            "{advice}.",
            "JSON is read only in the layouts of annotation tools and of published corpora.",
            '{{"t1": [{{"who": "ann", "what": "yes"}}]}}',
        ),
        Check(
            "nothing_to_aggregate",
            "{tool}: {reason}.",
            "{advice}.",
            "The file has spans, drawings or texts rather than classes, or does not say who"
            " labelled.",
            "a doccano file with spans only",
        ),
        Check(
            "several_questions",
            "{tool} with several questions: {questions}.",
            "Choose one: {command}.",
            "Annotators answered several questions about each item.",
            "Answer.sentiment and Answer.topic",
        ),
        Check(
            "no_column",
            "there is no column {column!r} (--{flag}).",
            "The columns are {columns}.",
            "A flag has a typing error or belongs to another file.",
            "--task_column=item_id for a file with item",
        ),
        Check(
            "missing_role",
            "no {roles} column. {columns}.",
            "{advice}",
            "The columns have names that are not aliases of a role.",
            "topicID,workerID,docID,gold,label",
        ),
        Check(
            "two_columns",
            "{first!r} and {second!r} both mean the {role}. {columns}.",
            "{advice}",
            "Two columns have names that are aliases of the same role.",
            "task,item,worker,label",
        ),
        Check(
            "which_label",
            "{problem}. {columns}.",
            "{advice}",
            "Several columns could be the label, or the column called `label` is the true label.",
            "item,worker,label,judgment_x where label never differs within an item",
        ),
        Check(
            "no_header",
            "the first line looks like data: {problem}. {columns}.",
            "{advice}",
            "The file has no line with column names.",
            "A17G2QHR8AH5VV<tab>201<tab>0 as the first line",
        ),
        Check(
            "vote_counts",
            "columns {names} sum to {total!r} in every row, as counts of votes do. {columns}.",
            "{advice}",
            "The file has a number of votes per class, not who voted.",
            "count,hate_speech,offensive_language,neither",
        ),
        Check(
            "bad_count",
            "column {column!r}: {value!r} is not a number of votes.",
            "Write whole numbers from 0.",
            "A column of votes has fractions, negative numbers or texts.",
            "votes_yes with 0.5",
        ),
        Check(
            "one_hot",
            "{count} of the columns {columns} are 1, and exactly one must be.",
            "Choose columns of which one is 1 in each row.",
            "The columns are of several questions, or several classes can be chosen.",
            "--label_column='is_abuse.*' with two 1 in a row",
        ),
        Check(
            "multi_label",
            "a cell has several labels: {value!r}.",
            "Each class becomes a yes/no question with --multi_label={sign}.",
            "Annotators could choose several classes.",
            "politics|sports",
        ),
        Check(
            "ratings",
            "the labels are {count:,} different numbers from {low:g} to {high:g}, so they are"
            " ratings, not classes.",
            "Make classes of them with --bins=5 or --bins=EDGES, or accept all with --classes=all.",
            "Annotators gave numbers on a scale.",
            "scores from 0 to 100",
        ),
        Check(
            "free_text",
            "column {column!r} has {count:,} different values for {labels:,} labels, so it is free"
            " text, not classes.",
            "Name another column with --label_column.",
            "The column has texts, ids or times.",
            "translations of a sentence",
        ),
        Check(
            "similar_names",
            "{what} {first!r} and {second!r} differ only in case, spaces or Unicode form.",
            "Correct one of them, or pass --exact_names.",
            "A name was typed in two ways.",
            "Yes and yes",
        ),
        Check(
            "bad_characters",
            "{what} {name!r} has {characters}.",
            "Correct it in the program that wrote the file.",
            "The file was decoded wrongly, or cells contain binary data.",
            "caf\ufffd",
        ),
        Check(
            "cut_id",
            "{what} {name!r} is a number that a spreadsheet rounded.",
            "Export the column as text.",
            "A spreadsheet showed a long id as a number.",
            "1.23457E+11",
        ),
        Check(
            "names_as_labels",
            "all labels are names of {what}.",
            "Check --label_column and the other columns.",
            "Two columns are exchanged.",
            "--label_column=worker_id",
        ),
        Check(
            "duplicate_pair",
            "item {item!r} has another label by annotator {annotator!r}.",
            "Choose which counts with --duplicates=last, first or all.",
            "An annotator labelled an item again, or two files overlap.",
            "t1,ann,yes and t1,ann,no",
        ),
        Check(
            "unknown_class",
            "label {label!r} is not one of the classes {classes}.",
            "Add it to --classes, or list it in --missing.",
            "A label has a typing error, or --classes is not complete.",
            "maybe with --classes=no,yes",
        ),
        Check(
            "unmatched_item",
            "item {item!r} is not one of the {count:,} items of {other}.",
            "{advice}.",
            "Two files have different items, or write their ids differently.",
            "7 in the labels, item-7 in the features",
        ),
        Check(
            "bad_feature",
            "column {column!r}: {value!r} is not a finite number.",
            "{advice}.",
            "A cell is empty, a text, or infinite.",
            "inf",
        ),
        Check(
            "leak",
            "{problem}.",
            "{advice}.",
            "The features contain what the annotators said, or test items among training items.",
            "a column majority_vote",
        ),
    )
}


def error(name: str, path: str | Path, place: str = "", /, **words: Any) -> DataError:
    """Returns the error of a check: `<file>: <place>: <problem> <fix> [<id>]`.

    Args:
        name: the check's id.
        path: the file.
        place: where in the file, if known.
        words: what fills the braces of the message.
    """
    check = CHECKS[name]
    message = f"{check.problem} {check.fix}".format_map(words)
    command = "\n" in message
    where = f"{path}: {place}: " if place else f"{path}: "
    if command:
        first, rest = message.split("\n", 1)
        return DataError(f"{where}{first.strip()} [{name}]\n{rest}")
    return DataError(f"{where}{message} [{name}]")
