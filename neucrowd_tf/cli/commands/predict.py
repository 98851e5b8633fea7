"""The command `neucrowd predict`: class probabilities of items from an exported model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neucrowd_tf.annotations.votes import decided
from neucrowd_tf.cli.command_line import STDOUT, check_outputs, say, write_outputs
from neucrowd_tf.cli.commands.predict_flags import Predict
from neucrowd_tf.cli.quiet import import_tensorflow
from neucrowd_tf.declare.types import Array, Floats32, Texts
from neucrowd_tf.encoders import SentenceEncoder
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.features import read_features, read_texts
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.images import read_images
from neucrowd_tf.io.predictions import probability_columns
from neucrowd_tf.io.run_files import ExportedNames
from neucrowd_tf.io.tables.writing import columns_csv
from neucrowd_tf.names import as_name_array, positions, without
from neucrowd_tf.saving.saved_model import NAMES

BATCH = 1024
OF_ITEMS = ("task_column", "separator", "exact_names")  # options of tables that predict reads


class Scorer:
    """A SavedModel that a run with `--export` wrote.

    A SavedModel is a program and runs with all rights of the process: load only models that you
    trust.

    Attributes:
        classes: `[C]` class names.
        feature_names: the columns that the model was trained on; None without names.
        shape: of one row of features; () for texts.
        takes_texts: whether the model scores texts rather than features.
        encoder: "source" and "digest" of the sentence encoder whose vectors are the features, or
            None.
        scale: of the classes; of ordered ones the median is predicted.

    Example:
        >>> scorer = Scorer(Path("runs/table/auto/seed-0/saved_model"))  # doctest: +SKIP
    """

    def __init__(self, folder: Path) -> None:
        """Loads the model.

        Raises:
            DataError: the folder does not contain a SavedModel of features or texts, or it is
                damaged.
        """
        if not (folder / "saved_model.pb").is_file():
            raise DataError(f"{folder}: no SavedModel here. Runs write one with --export.")
        import_tensorflow()
        import tensorflow as tf

        str(folder).encode()  # TensorFlow accepts only paths in UTF-8
        try:
            self._model = tf.saved_model.load(str(folder))
            self._serve = self._model.signatures["serving_default"]
            ((self._name, spec),) = self._serve.structured_input_signature[1].items()
            size = int(self._serve.structured_outputs["probabilities"].shape[-1])
            self.shape = tuple(map(int, spec.shape[1:]))
        except Exception as error:  # a damaged or other model raises errors of many types
            reason = " ".join(str(error).split())[:200]
            raise DataError(
                f"{folder}: not a SavedModel from features to probabilities ({reason}). Export the"
                " model again."
            ) from None
        self._dtype = spec.dtype
        self.takes_texts = spec.dtype == tf.string
        names = ExportedNames.read(folder / NAMES)
        self.encoder = names.encoder
        self.scale = names.scale
        self.classes = as_name_array(names.classes)
        self.feature_names = names.features
        columns = (len(names.features or ()),)
        unlike = names.features and len(self.shape) == 1 and columns != self.shape
        if len(self.classes) != size or unlike:
            raise DataError(f"{folder / NAMES}: names of another model. {ExportedNames.REMEDY}")

    def probabilities(self, features: Array) -> Floats32:
        """Returns class probabilities `[M, C]` of features `[M, ...]` or texts `[M]`."""
        import tensorflow as tf

        batches = [np.empty((0, len(self.classes)), np.float32)]
        for start in range(0, len(features), BATCH):
            batch = features[start : start + BATCH]
            if self.takes_texts:
                batch = np.array([text.encode("utf-8", "replace") for text in batch], dtype=object)
            outputs = self._serve(**{self._name: tf.constant(batch, self._dtype)})
            batches.append(np.asarray(outputs["probabilities"]))
        return np.concatenate(batches)


def arrange(features: Floats32, names: Texts, scorer: Scorer, source: Path) -> Floats32:
    """Returns features `[M, ...]` in the order and shape that the model was trained on.

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
        position = positions(names)
        if missing := without(wanted, position):
            raise DataError(f"{source}: column {missing[0]!r} is missing; the model needs it.")
        if extra := without(names, set(wanted)):
            raise DataError(
                f"{source}: the model was not trained on column {extra[0]!r}. Leave it out with"
                f" --ignore_columns={','.join(extra)}."
            )
        features = features[:, list(map(position.__getitem__, wanted))]
    if features.shape[1:] != scorer.shape:
        if features.ndim == 2 and features.shape[1] == np.prod(scorer.shape):
            return features.reshape(-1, *scorer.shape)
        raise DataError(
            f"{source}: rows have shape {features.shape[1:]}; the model was trained on rows of"
            f" shape {scorer.shape}."
        )
    return features


def encoded(texts: Array, scorer: Scorer, model: Path, source: str | None = None) -> Floats32:
    """Returns the vectors `[M, d]` of texts by the sentence encoder that a model was trained with.

    Args:
        texts: `[M]`.
        scorer: the model.
        model: its folder, for errors.
        source: of the encoder; None for where it was in training.

    Raises:
        DataError: the model takes other features, or the encoder is another one.
    """
    if scorer.encoder is None:
        raise DataError(f"{model}: a model of features. Use --features instead of --texts.")
    encoder = SentenceEncoder(source or scorer.encoder.get("source", "")).fit()
    if encoder.digest_ != scorer.encoder.get("digest"):
        raise DataError(
            f"{encoder.source}: not the encoder that {model} was trained with. Name that one with"
            " --encoder."
        )
    return encoder.transform(texts)


def run(flags: Predict) -> list[str]:
    """Scores the items that the flags name; the file is written whole or not.

    Returns:
        notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    inputs = {f"--{name}": getattr(flags, name) for name in ("features", "texts", "images")}
    if list(inputs.values()).count(None) != 2:
        raise UsageError("--features, --texts or --images: name one of them.")
    if flags.encoder is not None and flags.texts is None:
        raise UsageError("--encoder: only with --texts. Leave it out.")
    if flags.ignore_columns and flags.features is None:
        raise UsageError("--ignore_columns: only with --features. Leave it out.")
    for name in without(flags.changed(), OF_ITEMS):
        raise UsageError(f"--{name}: predict reads no labels. Leave it out.")
    output = flags.output
    check_outputs({"--output": output}, inputs)
    if flags.model.resolve() in output.resolve().parents:
        raise UsageError(f"--output={output}: inside the model's folder. Choose another place.")
    scorer, tasks, rows = _scored(flags)
    probas = scorer.probabilities(rows)
    predicted = scorer.classes[decided(probas, scorer.scale)]
    columns = [("task", tasks), ("predicted", predicted)]
    columns += probability_columns(scorer.classes, probas)
    write_outputs({output: columns_csv(columns)})
    if output == STDOUT:
        return [f"{len(tasks)} rows"]
    say(f"{output}: {len(tasks)} rows")
    return []


def _scored(flags: Predict) -> tuple[Scorer, Array, Array]:
    """Returns the model, the items' names, and their texts or features."""
    scorer = Scorer(flags.model)
    if flags.texts is not None:
        tasks, rows = read_texts(flags.texts, flags)
        if not scorer.takes_texts:
            rows = encoded(rows, scorer, flags.model, flags.encoder)
        return scorer, tasks, rows
    if scorer.takes_texts:
        raise DataError(f"{flags.model}: a model of texts. Use --texts instead.")
    if flags.images is not None:
        size = None
        if len(scorer.shape) == 3 and scorer.shape[0] == scorer.shape[1]:
            size = scorer.shape[0]
        tasks, rows = read_images(flags.images, size)
        return scorer, tasks, arrange(rows, [], scorer, flags.images)
    source = Path(flags.features or "")
    table = read_features(source, flags, flags.ignore_columns)
    return scorer, table.items, arrange(table.rows, table.names, scorer, source)
