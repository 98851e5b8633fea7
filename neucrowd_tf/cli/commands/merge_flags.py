"""The flags of `neucrowd merge`, which `merge.py` carries out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from neucrowd_tf.cli.command_line import STDOUT
from neucrowd_tf.io.schema import ANNOTATIONS, TableOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Merge(TableOptions):
    """Adds new labels, such as the answers to relabel.csv, to a table of labels.

    If an annotator has labelled an item before, the new label replaces the earlier one. Flags that
    say how a file is read apply to both files; a named column, to the file that has it.
    """

    annotations: Annotated[Path, ANNOTATIONS]
    labels: Annotated[
        Path | None,
        "File of new labels: task,annotator,label, or another layout that --annotations accepts."
        " Rows without a label are ignored. Default: that of --annotations, with"
        " --annotator_columns.",
    ] = None
    annotator_columns: Annotated[
        tuple[str, ...],
        "Columns of --labels with the labels of one annotator each, such as a model. Each item has"
        " one label in such a column.",
    ] = ()
    output: Annotated[
        Path,
        "CSV to write: task,annotator,label, with --multi_label also a column class. `-` prints.",
    ] = STDOUT
