"""The command: python -m neucrowd_tf.report --annotations=A.csv [--features=F.csv] [--truth=T.csv]
[--run=FOLDER] [--output=report.html]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.annotations import as_name_array, read_annotations
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.command_line import Parser
from neucrowd_tf.io.features import read_features
from neucrowd_tf.io.files import write_text
from neucrowd_tf.io.quiet import import_tensorflow
from neucrowd_tf.io.tables import read_truth

PROBLEM = 2


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m neucrowd_tf.report",
        description="Writes a report on a crowd's labels as one HTML page.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--annotations",
        type=Path,
        help="labels: CSV with task, worker, label, or any other layout that --dataset=table reads",
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
        "--model_annotator",
        default="",
        help="annotators that are models, separated by commas: counted apart in agreement",
    )
    parser.add_argument(
        "--output", type=Path, default=None, help="the page to write (default: report.html)"
    )
    return parser


def write(arguments: argparse.Namespace) -> Path:
    """Writes the page that the arguments ask for and returns its path.

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
    output = Path("report.html") if arguments.output is None else arguments.output
    if output.is_dir():
        raise UsageError(f"--output: expected a file, received the folder {output}")
    annotations, truth, model = None, None, None
    told: list[warnings.WarningMessage] = []
    if arguments.annotations is not None:
        tasks = None if arguments.features is None else read_features(arguments.features)[0]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            annotations = read_annotations(arguments.annotations, tasks)
        if arguments.truth is not None:
            names = as_name_array([str(name) for name in annotations.instance_names.tolist()])
            truth = read_truth(
                arguments.truth, names, annotations.class_names, others=arguments.features is None
            )
    if arguments.run is not None:
        if any((arguments.run / "tensorboard").glob("*tfevents*")):
            # TensorBoard's reader of learning curves does, and is not quiet about it
            import_tensorflow()
        model = read_run(arguments.run)
    source = arguments.annotations or arguments.run
    models = [name.strip() for name in arguments.model_annotator.split(",") if name.strip()]
    known = [] if annotations is None else [str(n) for n in annotations.annotator_names.tolist()]
    for name in models:
        if name not in known:
            raise UsageError(f"--model_annotator: expected an annotator's name, received {name!r}")
    write_text(
        output,
        build_report(
            annotations,
            truth=truth,
            model=model,
            title=f"Crowd report: {source.name or source}",
            model_annotators=models,
        ),
    )
    for warning in told:
        sys.stderr.write(f"warning: {one_line(warning.message)}\n")  # type: ignore[arg-type]
    return output


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one line on stderr."""
    try:
        output = write(_parser().parse_args(argv))
    except (UsageError, DataError, OSError) as error:
        sys.stderr.write(f"error: {one_line(error)}\n")
        return PROBLEM
    sys.stdout.write(f"{output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
