"""The flags of `neucrowd convert`, which `convert.py` carries out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from neucrowd_tf.cli.command_line import STDOUT
from neucrowd_tf.io.schema import TableOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Convert(TableOptions):
    """Writes the labels of an annotation tool's export, or of a table, as task,annotator,label.

    What was read and left out is printed to standard error.
    """

    input: Annotated[Path, "Export or table: a file, or SageMaker's folder."]
    output: Annotated[Path, "CSV to write: task,annotator,label. `-` prints."] = STDOUT
    tasks: Annotated[
        Path | None, "CSV to write: task,text, if the export has the texts that were labelled."
    ] = None
    gold: Annotated[
        Path | None, "CSV to write: task,true_label, if the export has true labels."
    ] = None
