"""The command `neucrowd report`: a crowd's labels, and a run's results, as one HTML page."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neucrowd_tf.aggregation.base import gold_codes
from neucrowd_tf.commands.command_line import (
    STDOUT,
    LabelFlags,
    check_outputs,
    model_names,
    read_labels,
    run_command,
    say,
    table_options,
    write_outputs,
)
from neucrowd_tf.commands.quiet import import_tensorflow
from neucrowd_tf.commands.run_files import changed_files, files_to_keep, input_files
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.flags import flag
from neucrowd_tf.io.features import read_features
from neucrowd_tf.io.gold import read_beside, read_gold, read_true_labels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

# Smallest share of the items with true labels that must have annotations.
LEAST_SHARE = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(LabelFlags):
    """Writes a report on a crowd's labels, on a run, or on both, as one HTML page."""

    truth: Path | None = flag(None, help="CSV task,label: true labels to compare with.")
    gold: Path | None = flag(
        None,
        help="CSV task,label: true labels of some items. They are kept, and calibrate the"
        " probabilities.",
    )
    scale: str = flag(
        "nominal",
        choices=("nominal", "ordinal", "interval"),
        help="How classes differ, for the coefficients of agreement.",
    )
    features: Path | None = flag(
        None, help="Features table: the report covers its items, in its order."
    )
    run: Path | None = flag(None, help="Folder of a run: adds the model's results.")
    output: Path = flag(Path("report.html"), help="HTML page to write; `-` prints it.")


def write(flags: Flags) -> list[str]:
    """Writes the page and prints where; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    from neucrowd_tf.report.build import build_report
    from neucrowd_tf.report.results import read_run

    if flags.annotations is None and flags.run is None:
        raise UsageError("--annotations is missing: name a file of labels, or --run=FOLDER.")
    sources = {name: getattr(flags, name) for name in ("annotations", "truth", "gold", "features")}
    inputs = {f"--{name}": path for name, path in sources.items()}
    check_outputs({"--output": flags.output}, inputs | files_to_keep(flags.run))
    crowd, truth, gold, model = None, None, None, None
    notes: list[str] = []
    if flags.annotations is not None:
        crowd, truth, notes = _crowd(flags, flags.annotations)
        if flags.gold is not None:
            gold = gold_codes(read_gold(flags.gold, crowd, table_options(flags)), crowd)
    names = () if crowd is None else crowd.annotator_names.tolist()
    models = model_names(flags.model_annotator, names)
    if flags.run is not None:
        if any((flags.run / "tensorboard").glob("*tfevents*")):
            # TensorBoard's reader of learning curves imports it, with its start-up notes.
            import_tensorflow()
        model = read_run(flags.run)
        named = {name: path for name, path in sources.items() if path}
        notes += changed_files(flags.run, input_files(flags.run) | named)
    source = flags.annotations or flags.run or Path()
    page = build_report(
        crowd,
        truth=truth,
        model=model,
        title=f"Crowd report: {source.name or source}",
        model_annotators=models,
        gold=gold,
        scale=flags.scale,  # type: ignore[arg-type]  # one of the choices
    )
    write_outputs({flags.output: page})
    if flags.output != STDOUT:
        say(str(flags.output))
    return notes


def _crowd(flags: Flags, path: Path) -> tuple[Annotations, NDArray[np.int64] | None, list[str]]:
    """Returns the labels, the true labels if a file has them, and notes."""
    options = table_options(flags)
    tasks = None if flags.features is None else read_features(flags.features, options).items
    items = None if tasks is None else tasks.tolist()
    crowd = read_labels(path, options, items).annotations
    if flags.truth is None:
        return crowd, None, []
    names = [str(name) for name in crowd.instance_names.tolist()]
    classes = [str(name) for name in crowd.class_names.tolist()]
    truth = read_true_labels(flags.truth, names, classes, options, drop=tasks is None)
    matched = int((truth >= 0).sum())
    size = len(read_beside(flags.truth, options)[0])
    if matched < LEAST_SHARE * min(size, len(names)):
        raise DataError(
            f"{flags.truth}: {matched:,} of its {size:,} items are among the {len(names):,} of"
            f" {path}. Check that the item names agree."
        )
    return crowd, truth, []


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_command(Flags, write, "neucrowd report", argv)


if __name__ == "__main__":
    sys.exit(main())
