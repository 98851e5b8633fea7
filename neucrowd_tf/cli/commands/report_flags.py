"""The flags of `neucrowd report`, which `report.py` carries out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from neucrowd_tf.cli.command_line import LabelFlags
from neucrowd_tf.io.schema import ANNOTATIONS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report(LabelFlags):
    """Writes a report on a crowd's labels as one HTML page."""

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    scale: Annotated[
        Literal["nominal", "ordinal", "interval"],
        "Which disagreements are larger, for the coefficients of agreement.",
    ] = "nominal"
    features: Annotated[
        Path | None, "Table of features. The report covers its items, in its order."
    ] = None
    agreement: Annotated[
        Path | None,
        "Folder to write CSV files of the agreement to: coefficients, classes, items and pairs of"
        " annotators.",
    ] = None
    output: Annotated[Path, "HTML page to write; `-` prints it."] = Path("report.html")
