"""From a fitted estimator to a SavedModel that TensorFlow alone can load and serve."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.annotations.votes import scale_of
from neucrowd_tf.declare.types import Estimator, Features, Fields, Layer
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.atomic import atomic_folder
from neucrowd_tf.io.files.json_text import write_json

# The names of classes and columns, in the folder that TensorFlow reserves for other files.
NAMES = Path("assets.extra") / "names.json"


def export_saved_model(
    estimator: Estimator, path: str | os.PathLike[str], feature_names: Sequence[str] | None = None
) -> Path:
    """Writes a SavedModel, which appears under its name only when it is complete.

    The signature `serving_default` takes one input, `features` `[None, ...]`: raw features in
    float32, or in float64 if float32 cannot represent a column. It returns `probabilities` `[None,
    C]` and, for methods with a representation, `embedding` `[None, h]`, both float32. A batch may
    have any size. The model contains preprocessing and an `ImageEncoder`.

    If the method was fitted to texts, the input is `texts` `[None]`, strings in UTF-8. If a
    sentence encoder made the features, the input is its vectors, `features` `[None, d]`; the
    encoder's name and digest are written beside the model.

    Args:
        estimator: a fitted estimator.
        path: the folder to write; an existing SavedModel is replaced.
        feature_names: the columns of the features table in their order, for scoring another table.

    Returns:
        the folder.

    Raises:
        DataError: the folder exists and holds something else.
        NotImplementedError: the estimator has nothing to export.
    """
    import keras
    import tensorflow as tf

    target = Path(path)
    _check_target(target)
    model = estimator.inference_model()
    text_layer = estimator.text_layer()

    def serve(features: Features) -> Fields:
        if text_layer is not None:
            features = text_layer(features)
        outputs = model(features, training=False)
        return {name: tf.cast(value, tf.float32) for name, value in outputs.items()}

    archive = keras.export.ExportArchive()
    archive.track(model)
    entry = model
    if text_layer is not None:
        archive.track(text_layer)
        entry = text_layer
    if isinstance(entry, keras.Model):
        tensor = entry.inputs[0]
        signature = tf.TensorSpec((None, *tensor.shape[1:]), tensor.dtype, name="features")
    else:
        # Keras 3.8 exports the lookup tables of its own layers only.
        archive.variables.extend(entry.tables)
        signature = tf.TensorSpec((None,), tf.string, name="texts")
    archive.add_endpoint("serving_default", serve, input_signature=[signature])
    names = _names(estimator, text_layer, feature_names)
    with atomic_folder(target) as temporary:
        try:
            archive.write_out(str(temporary), verbose=False)
        except tf.errors.OpError as error:
            full = os.strerror(errno.ENOSPC)
            if not isinstance(error, tf.errors.ResourceExhaustedError) and full not in str(error):
                raise
            raise OSError(errno.ENOSPC, f"{full}; free some and start again", str(target)) from None
        write_json(temporary / NAMES, names)
    return target


def _check_target(folder: Path) -> None:
    """Raises DataError if the folder holds something that is not a SavedModel."""
    if not folder.exists() or (folder / "saved_model.pb").exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise DataError(f"{folder}: not a SavedModel. Remove it or choose another place.")


def _names(estimator: Estimator, text_layer: Layer, columns: Sequence[str] | None) -> Fields:
    """Returns what is written to `NAMES`: classes, columns, the scale and the encoder."""
    names = {"classes": estimator.classes_.tolist(), "features": None}
    if columns is not None:
        names["features"] = list(columns)
    if scale_of(estimator) == "ordinal":
        names["scale"] = "ordinal"
    if text_layer is None and hasattr(estimator, "encoder_"):
        encoder = estimator.encoder_
        names["encoder"] = {"source": encoder.source, "digest": encoder.digest_}
    return names
