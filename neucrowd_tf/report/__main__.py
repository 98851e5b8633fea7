"""The command `neucrowd report`: a crowd's labels as one HTML page."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated, Literal

from neucrowd_tf.aggregation.base import gold_codes
from neucrowd_tf.commands.command_line import (
    STDOUT,
    LabelFlags,
    check_models,
    check_outputs,
    run_command,
    say,
    write_outputs,
)
from neucrowd_tf.io.features import read_features
from neucrowd_tf.io.gold import read_gold
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import ANNOTATIONS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(LabelFlags):
    """Writes a report on a crowd's labels as one HTML page."""

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    scale: Annotated[
        Literal["nominal", "ordinal", "interval"],
        "How classes differ, for the coefficients of agreement.",
    ] = "nominal"
    features: Annotated[
        Path | None, "Features table: the report covers its items, in its order."
    ] = None
    output: Annotated[Path, "HTML page to write; `-` prints it."] = Path("report.html")


def write(flags: Flags) -> list[str]:
    """Writes the page and prints where; returns notes for standard error, of which it has none.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    from neucrowd_tf.report.build import build_report

    inputs = {f"--{name}": getattr(flags, name) for name in ("annotations", "gold", "features")}
    check_outputs({"--output": flags.output}, inputs)
    items = None
    if flags.features is not None:
        items = read_features(flags.features, flags).items.tolist()
    crowd = read_annotations(flags.annotations, flags, items=items).annotations
    gold = None
    if flags.gold is not None:
        gold = gold_codes(read_gold(flags.gold, crowd, flags), crowd)
    check_models(flags.model_annotator, crowd.annotator_names.tolist())
    page = build_report(
        crowd,
        title=f"Crowd report: {flags.annotations.name}",
        model_annotators=flags.model_annotator,
        gold=gold,
        scale=flags.scale,
    )
    write_outputs({flags.output: page})
    if flags.output != STDOUT:
        say(str(flags.output))
    return []


main = functools.partial(run_command, Flags, write, "neucrowd report")
