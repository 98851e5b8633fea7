"""The command: python -m neucrowd_tf.report --annotations=A.csv [--features=F.csv] [--truth=T.csv]
[--run=FOLDER] [--output=report.html]; --help has how the labels may be written
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neucrowd_tf.annotations import as_name_array
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.command_line import STDOUT, Parser, check_outputs, run, say, write_output
from neucrowd_tf.io.features import read_features
from neucrowd_tf.io.quiet import import_tensorflow
from neucrowd_tf.io.run_files import changed, files_read
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.flags import add_table_options, layout_of, model_names
from neucrowd_tf.io.tables.tasks import beside, read_truth
from neucrowd_tf.labelling.source import read_crowd

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

# Of the tasks that a truth could have at most: fewer are an accident.
FEWEST = 0.05


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m neucrowd_tf.report",
        description="Writes a report on a crowd's labels as one HTML page.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--truth", type=Path, help="CSV with task, label: shown beside what is inferred"
    )
    parser.add_argument(
        "--features", type=Path, help="the features table, whose tasks are reported on in its order"
    )
    parser.add_argument(
        "--run", type=Path, help="a run's folder: adds the model's results, or remakes them alone"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=None,
        help="the page to write, - for stdout (default: report.html)",
    )
    add_table_options(parser)
    return parser


def write(arguments: argparse.Namespace) -> list[str]:
    """Writes the page that the arguments ask for, says where, and returns notes for stderr.

    Raises:
        UsageError, DataError: what cannot be used, in a line.
    """
    from neucrowd_tf.report.build import build_report
    from neucrowd_tf.report.results import read_run

    if arguments.annotations is None and arguments.run is None:
        raise UsageError(
            "--annotations: expected a file with labels (or --run with a run's folder), received"
            " none"
        )
    check_outputs(arguments, ("output",), ("annotations", "truth", "features"))
    output = Path("report.html") if arguments.output is None else arguments.output
    crowd, truth, model = None, None, None
    notes: list[str] = []
    if arguments.annotations is not None:
        crowd, truth, notes = _crowd(arguments)
    models = model_names(
        arguments.model_annotator, () if crowd is None else crowd.annotator_names.tolist()
    )
    if arguments.run is not None:
        if any((arguments.run / "tensorboard").glob("*tfevents*")):
            # TensorBoard's reader of learning curves does, and is not quiet about it
            import_tensorflow()
        model = read_run(arguments.run)
        given = {name: getattr(arguments, name) for name in ("annotations", "truth", "features")}
        own = files_read(arguments.run)
        notes += changed(arguments.run, own | {k: path for k, path in given.items() if path})
    source = arguments.annotations or arguments.run
    page = build_report(
        crowd,
        truth=truth,
        model=model,
        title=f"Crowd report: {source.name or source}",
        model_annotators=models,
    )
    write_output(output, page)
    if output != STDOUT:
        say(str(output))
    return notes


def _crowd(
    arguments: argparse.Namespace,
) -> tuple[Annotations, NDArray[np.int64] | None, list[str]]:
    """Returns the labels, the truth where a file has it, and notes."""
    layout = layout_of(arguments)
    tasks = (
        None
        if arguments.features is None
        else read_features(arguments.features, layout.options).items
    )
    crowd, notes = read_crowd(arguments.annotations, tasks, layout)
    if arguments.truth is None:
        return crowd, None, notes
    names = as_name_array([str(name) for name in crowd.instance_names.tolist()])
    truth = read_truth(
        arguments.truth, names, crowd.class_names, others=tasks is None, layout=layout
    )
    matched, size = (
        int((truth >= 0).sum()),
        len(CsvFile.open(arguments.truth, beside(arguments.truth, layout)).table()),
    )
    what = f"{matched:,} of its {size:,} tasks among the {len(names):,} of {arguments.annotations}"
    if matched < FEWEST * min(size, len(names)):
        raise DataError(f"{arguments.truth}: expected tasks that have labels, received {what}")
    return crowd, truth, notes


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one line on stderr."""
    return run(lambda: write(_parser().parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
