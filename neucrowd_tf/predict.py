"""The command: python -m neucrowd_tf.predict --model=RUN/saved_model
--features=X.csv|--texts=T.csv|--images=DIR --output=Y.csv
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from neucrowd_tf.annotations import as_name_array
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.export import NAMES
from neucrowd_tf.io.command_line import STDOUT, Parser, check_outputs, run, say, standard_output
from neucrowd_tf.io.features import read_features, read_texts
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.reading import check_regular, check_tree, ending
from neucrowd_tf.io.images import IMAGES, MAX_PIXELS, read_images
from neucrowd_tf.io.quiet import import_tensorflow
from neucrowd_tf.io.tables.flags import add_option
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.writing import csv_writer, text_cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH = 1024
AGAIN = "export the model again, or copy its folder whole"
# What TensorFlow says of a damaged file that it does not name.
_FILES = {
    "sstable": "variables/variables.index",
    "Read less bytes": "variables/variables.data-00000-of-00001",
    "MetaGraph": "saved_model.pb",
}


class Scorer:
    """A SavedModel that `--export` wrote. A SavedModel is a program, which runs with all rights of
    whoever loads it: load those alone whose origin is trusted.

    Attributes:
        classes: `[C]` class names.
        feature_names: the columns it was trained on, or None where they are not known.
        shape: of one row of features; () for texts.
        takes_texts: whether it scores texts rather than features.
    """

    def __init__(self, folder: Path) -> None:
        """Loads the model.

        Raises:
            DataError: the folder holds no SavedModel, a damaged one, or one of another kind.
        """
        if not (folder / "saved_model.pb").is_file():
            hint = "; did the run have --export?" if folder.name == "saved_model" else ""
            raise DataError(f"{folder}: expected a folder with a SavedModel, received none{hint}")
        check_tree(folder)  # TensorFlow would wait for a pipe
        import_tensorflow()
        import tensorflow as tf

        str(folder).encode()  # TensorFlow takes no other paths
        _check_fingerprint(folder)
        try:
            self._model = tf.saved_model.load(str(folder))
            self._serve = self._model.signatures["serving_default"]
            (self._name, spec), *others = self._serve.structured_input_signature[1].items()
            outputs = self._serve.structured_outputs
        except Exception as error:  # a damaged model ends in errors of many kinds
            found = " ".join(str(error).split())[:200]
            file = next((folder / name for said, name in _FILES.items() if said in found), folder)
            raise DataError(
                f"{file}: expected a SavedModel with the signature serving_default, received"
                f" {found}; {AGAIN}"
            ) from None
        if (
            others
            or "probabilities" not in outputs
            or spec.shape.rank is None
            or (spec.shape.rank == 1) != (spec.dtype == tf.string)
        ):
            found = f"{len(others) + 1} inputs and the outputs {list(outputs)}"
            raise DataError(
                f"{folder}: expected a model from features to probabilities, received {found};"
                f" {AGAIN}"
            )
        self._dtype = spec.dtype
        self.takes_texts = spec.dtype == tf.string
        self.shape = tuple(int(size) for size in spec.shape[1:])
        size = int(outputs["probabilities"].shape[-1])
        self.classes, self.feature_names = self._names(folder / NAMES, size)
        columns = self.feature_names
        if columns is not None and len(self.shape) == 1 and len(columns) != self.shape[0]:
            raise DataError(
                f"{folder / NAMES}: expected {self.shape[0]} names of columns, received"
                f" {len(columns)}; {AGAIN}"
            )

    @staticmethod
    def _names(path: Path, size: int) -> tuple[NDArray[Any], list[str] | None]:
        """Returns the names of classes and of columns."""
        try:
            names = read_json(path) if path.is_file() else {}
        except DataError as error:
            raise DataError(f"{error}; {AGAIN}") from None
        names = names if isinstance(names, dict) else {"classes": names}
        given = names.get("classes")
        columns = names.get("features")
        unknown = ["features"] if "features" not in names else []
        if given is None:
            given, unknown = list(range(size)), ["classes", *unknown]
        if not (
            isinstance(given, list)
            and all(isinstance(name, (str, int, float)) for name in given)
            and len({str(name) for name in given}) == len(given)
            and (columns is None or isinstance(columns, list))
            and all(isinstance(name, str) for name in columns or ())
            and not names.get("centre")  # of models that earlier versions exported
        ):
            raise DataError(
                f"{path}: expected the names of classes and columns, received something else;"
                f" {AGAIN}"
            )
        if len(given) != size:
            raise DataError(f"{path}: expected {size} class names, received {len(given)}; {AGAIN}")
        if unknown:
            what = "no such file" if not path.is_file() else f"no {' and '.join(unknown)} in it"
            warnings.warn(
                f"{path}: expected the names of classes and columns, received {what}: columns are"
                " taken in their order, classes without names are called 0, 1, ...;"
                f" {AGAIN}",
                stacklevel=3,
            )
        return as_name_array(given), columns

    def batches(
        self, features: NDArray[Any], batch_size: int = BATCH
    ) -> Iterator[NDArray[np.float32]]:
        """Yields class probabilities `[<= batch_size, C]` of features `[M, ...]` or texts `[M]`."""
        import tensorflow as tf

        for start in range(0, len(features), batch_size):
            part = features[start : start + batch_size]
            if self.takes_texts:
                part = np.array([text.encode("utf-8", "replace") for text in part], dtype=object)
            found = self._serve(**{self._name: tf.constant(part, self._dtype)})
            yield np.asarray(found["probabilities"])


def _check_fingerprint(folder: Path) -> None:
    """Raises DataError for a model's fingerprint that is damaged, of which TensorFlow shows a
    traceback."""
    import tensorflow as tf

    try:
        tf.saved_model.experimental.read_fingerprint(str(folder))
    except FileNotFoundError:  # older models have none
        pass
    except RuntimeError:
        raise DataError(
            f"{folder / 'fingerprint.pb'}: expected the fingerprint of a SavedModel, received a"
            f" damaged one; {AGAIN}"
        ) from None


def arrange(
    features: NDArray[np.float32], names: Sequence[str], scorer: Scorer, source: Path
) -> NDArray[np.float32]:
    """Returns the features in the order and shape that the model was trained on.

    Args:
        features: `[M, ...]` as read.
        names: their columns.
        scorer: the model.
        source: the file, for errors.

    Raises:
        DataError: a column is missing or too many, or the sizes differ.
    """
    wanted = scorer.feature_names
    if wanted is not None and features.ndim == 2 and ending(source) != ".npy":
        position = {name: place for place, name in enumerate(names)}
        missing = [name for name in wanted if name not in position]
        extra = [name for name in names if name not in set(wanted)]
        if missing or extra:
            way_out = f"also {', '.join(map(repr, extra[:3]))}; --ignore_columns leaves columns out"
            what = f"none of the name {missing[0]!r}" if missing else way_out
            raise DataError(
                f"{source}: expected the {len(wanted)} feature columns that the model was trained"
                f" on, received {what}"
            )
        features = features[:, [position[name] for name in wanted]]
    if features.shape[1:] != scorer.shape:
        if features.ndim == 2 and features.shape[1] == np.prod(scorer.shape):
            return features.reshape(-1, *scorer.shape)
        raise DataError(
            f"{source}: expected rows of shape {scorer.shape}, as the model was trained on,"
            f" received {features.shape[1:]}"
        )
    return features


def predict(
    model: Path,
    features: Path | None,
    output: Path,
    *,
    texts: Path | None = None,
    batch_size: int = BATCH,
    layout: TableFormat = PLAIN,
    max_pixels: int = MAX_PIXELS,
) -> int:
    """Scores a table and writes `task,predicted,p_<class>...`; the file appears whole or not at
    all, where it is not `-` for stdout.

    Args:
        model: the folder of a SavedModel that `--export` wrote.
        features: CSV, Parquet or NPY, as for `--dataset=table`; or a folder of images, which are
            scaled to the size that a model of square images was trained on.
        texts: in place of `features`, a CSV `task,text`, for a model that was trained on texts.
        output: the CSV to write.
        batch_size: rows a call of the model.
        layout: how the table is written, and which columns are no features.
        max_pixels: of an image; larger ones are refused.

    Returns:
        the number of rows.

    Raises:
        UsageError, DataError: what cannot be used, in a line.
    """
    if batch_size < 1:
        raise UsageError(f"--batch_size: expected a whole number from 1, received {batch_size}")
    if model.resolve() in output.resolve().parents:
        raise UsageError(f"--output: expected a file outside of the model, received {output}")
    if max_pixels < 1:
        raise UsageError(f"--max_pixels: expected a whole number from 1, received {max_pixels}")
    scorer, tasks, rows = _scored(model, features, texts, layout, max_pixels)
    classes = scorer.classes.tolist()
    labels = [text_cell(name) for name in classes]
    with _stream(output) as stream:
        writer = csv_writer(stream)
        writer.writerow(["task", "predicted", *(f"p_{name}" for name in classes)])
        done = 0
        for part in scorer.batches(rows, batch_size):
            ids = tasks[done : done + len(part)].tolist()
            for task, best, row in zip(
                ids, part.argmax(axis=1).tolist(), part.tolist(), strict=True
            ):
                writer.writerow([text_cell(task), labels[best], *(f"{p:.9g}" for p in row)])
            done += len(part)
    return done


@contextlib.contextmanager
def _stream(output: Path) -> Iterator[TextIO]:
    if output == STDOUT:
        with standard_output() as shown:
            yield shown
        return
    with (
        atomic_path(output) as temporary,
        temporary.open("w", encoding="utf-8", errors="replace", newline="") as stream,
    ):
        yield stream


def _scored(
    model: Path, features: Path | None, texts: Path | None, layout: TableFormat, max_pixels: int
) -> tuple[Scorer, NDArray[Any], NDArray[Any]]:
    """Returns the model, and the tasks and what it takes of them."""
    names: list[str] = []
    if texts is not None:
        tasks, found = read_texts(texts, layout.options)
        scorer = Scorer(model)
        if not scorer.takes_texts:
            raise DataError(
                f"{model}: expected a model of texts, received one of features: --features"
            )
        return scorer, tasks, found
    if features is None:
        raise UsageError("expected --features, --texts or --images, received none")
    if features.is_dir():
        scorer = Scorer(model)
        height, width = scorer.shape[:2] if len(scorer.shape) == 3 else (0, -1)
        tasks, rows = read_images(features, height if height == width else None, max_pixels)
    else:
        check_regular(features)
        scorer = Scorer(model)
        table = read_features(features, layout.options, layout.ignored)
        tasks, rows, names = table.items, table.rows, table.names
    if scorer.takes_texts:
        raise DataError(f"{model}: expected a model of features, received one of texts: --texts")
    return scorer, tasks, arrange(rows, names, scorer, features)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="python -m neucrowd_tf.predict",
        description="Scores a table of features with an exported model. A SavedModel is a program:"
        " use those alone that you would run.",
        allow_abbrev=False,
    )
    parser.add_argument("--model", type=Path, required=True, help="a run's saved_model folder")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--features", type=Path, help="CSV with task and the columns trained on; or Parquet, or NPY"
    )
    source.add_argument("--texts", type=Path, help="CSV with task and text")
    source.add_argument(
        "--images",
        type=Path,
        dest="features",
        help="a folder of images, whose names without endings are the tasks",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        help="the CSV to write, - for stdout: task, predicted, p_<class>...",
    )
    parser.add_argument("--batch_size", type=int, default=BATCH, help="rows a call of the model")
    parser.add_argument("--ignore_columns", help="columns that are no features, by commas")
    parser.add_argument(
        "--max_pixels", type=int, default=MAX_PIXELS, help="--images: the most pixels of one"
    )
    for name in ("separator", "task_column", "exact_names"):
        add_option(parser.add_argument, name)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one line on stderr."""
    return run(lambda: _score(_arguments(argv)))


def _score(given: argparse.Namespace) -> list[str]:
    """Scores what the arguments name, and says where; returns notes for stderr."""
    check_outputs(given, ("output",), ("features", "texts"), kinds=IMAGES)
    layout = TableFormat.of(
        separator=given.separator,
        task_column=given.task_column,
        ignore_columns=given.ignore_columns,
        exact_names=given.exact_names,
    )
    size = predict(
        given.model,
        given.features,
        given.output,
        texts=given.texts,
        batch_size=given.batch_size,
        layout=layout,
        max_pixels=given.max_pixels,
    )
    if given.output == STDOUT:
        return [f"{size} rows"]
    say(f"{given.output}: {size} rows")
    return []


if __name__ == "__main__":
    sys.exit(main())
