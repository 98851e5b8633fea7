"""The command `neucrowd report`: a crowd's labels as one HTML page."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated, Literal

from neucrowd_tf.aggregation.base import gold_codes
from neucrowd_tf.aggregation.families import Sources
from neucrowd_tf.cli.command_line import (
    STDOUT,
    LabelFlags,
    check_models,
    check_order,
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


def write(flags: Flags) -> list[str]:
    """Writes the page and prints where; returns notes for standard error, of which it has none.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    from neucrowd_tf.evaluation.agreement import agreement_csvs, people_only
    from neucrowd_tf.report.build import build_report

    inputs = {f"--{name}": getattr(flags, name) for name in ("annotations", "gold", "features")}
    check_outputs({"--output": flags.output, "--agreement": flags.agreement}, inputs)
    items = None
    if flags.features is not None:
        items = read_features(flags.features, flags).items.tolist()
    reading = read_annotations(flags.annotations, flags, items=items)
    crowd = reading.annotations
    check_order(flags, flags.scale, flags.annotations, crowd.class_names.tolist())
    gold = None
    if flags.gold is not None:
        gold = gold_codes(read_gold(flags.gold, crowd, flags), crowd)
    check_models(flags.model_annotator, crowd.annotator_names.tolist())
    page = build_report(
        crowd,
        title=f"Crowd report: {flags.annotations.name}",
        sources=Sources(flags.model_annotator, flags.family),
        gold=gold,
        scale=flags.scale,
        texts=reading.texts,
    )
    written = {flags.output: page}
    if flags.agreement is not None:
        people = people_only(crowd, flags.model_annotator)
        tables = agreement_csvs(people, flags.scale).items()
        written |= {flags.agreement / name: text for name, text in tables}
    write_outputs(written)
    for path in written:
        if path != STDOUT:
            say(str(path))
    return []


main = functools.partial(run_command, Flags, write, "neucrowd report")
