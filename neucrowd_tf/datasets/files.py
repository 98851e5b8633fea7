"""The files of `--dataset=table`: each flag is declared here, for the command and the loader."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from neucrowd_tf.declare.declarations import whole
from neucrowd_tf.declare.flag_parsing import from_values
from neucrowd_tf.declare.types import Entries
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.schema import ANNOTATIONS

KINDS = ("features", "images", "texts")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableFiles:
    """Files of --dataset=table."""

    annotations: Annotated[Path | None, ANNOTATIONS] = None
    features: Annotated[Path | None, "CSV or Parquet with `task` and numbers, or an NPY array."] = (
        None
    )
    images: Annotated[Path | None, "Folder of images, instead of --features."] = None
    texts: Annotated[Path | None, "CSV task,text, instead of --features."] = None
    truth: Annotated[Path | None, "CSV task,label: true labels, only for evaluation."] = None
    test_features: Annotated[Path | None, "Features of the test items."] = None
    test_texts: Annotated[Path | None, "Texts of the test items."] = None
    test_truth: Annotated[Path | None, "True labels of the test items."] = None
    image_size: Annotated[int | None, whole(1, 4096), "Side, in pixels, that images get."] = None
    unmatched: Annotated[
        Literal["error", "drop"],
        "What happens to labels of items that --features does not contain.",
    ] = "error"
    ignore_columns: Annotated[Entries, "Columns of --features to leave out."] = ()

    @classmethod
    def of(cls, **values: object) -> Self:
        """Returns the files with these values, which belong together; texts are read as flags are.

        Raises:
            UsageError: a value of another type, or files that do not belong together.
        """
        files = from_values(cls, values)
        for problem in files.problems():
            raise UsageError(problem)
        return files

    @property
    def kind(self) -> str:
        """What the items are: features, images or texts."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    def problems(self) -> Iterator[str]:
        """Yields why the files do not belong together."""
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            yield "--features, --images or --texts: --dataset=table needs exactly one."
            return
        if self.annotations is None:
            yield "--annotations is missing: --dataset=table needs a file of labels."
        pair = (f"test_{self.kind}", "test_truth") if self.images is None else ()
        for name in ("test_features", "test_texts", "test_truth"):
            if name not in pair and getattr(self, name) is not None:
                yield f"--{name}: cannot be combined with --{self.kind}. Remove it."
        for name, other in (pair, pair[::-1]) if pair else ():
            if getattr(self, name) is None and getattr(self, other) is not None:
                yield f"--{name} is missing: --test_{self.kind} and --test_truth go together."
        if self.image_size is not None and self.images is None:
            yield "--image_size: needs --images. Remove it."
