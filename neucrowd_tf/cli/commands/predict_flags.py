"""The flags of `neucrowd predict`, which `predict.py` carries out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from neucrowd_tf.declare.types import Entries
from neucrowd_tf.io.schema import TableOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predict(TableOptions):
    """Scores items with an exported model.

    A SavedModel is a program: use only models that you trust.
    """

    model: Annotated[Path, "Folder saved_model of a run with --export."]
    features: Annotated[Path | None, "CSV, Parquet or NPY of items and their features."] = None
    texts: Annotated[Path | None, "CSV task,text, for a model of texts."] = None
    images: Annotated[Path | None, "Folder of images, whose file names are item names."] = None
    encoder: Annotated[str | None, "Folder of the encoder (with --texts), if it has moved."] = None
    output: Annotated[Path, "CSV to write: task,predicted,p_<class>... `-` prints."]
    ignore_columns: Annotated[Entries, "Columns of --features to leave out."] = ()
