"""From a fitted estimator to a SavedModel that TensorFlow alone can load and serve."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neucrowd_tf.annotations.votes import scale_of
from neucrowd_tf.declare.types import Estimator, Features, Fields
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.atomic import atomic_folder
from neucrowd_tf.io.files.json_text import write_json

# Beside the model, in the folder that TensorFlow leaves to others: the names that its numbers stand
# for.
NAMES = Path("assets.extra") / "names.json"


def export_saved_model(
    estimator: Estimator, path: str | os.PathLike[str], feature_names: Sequence[str] | None = None
) -> Path:
    """Writes a SavedModel; it appears under its name only when it is whole.

    The signature `serving_default` takes raw features, one input `features` of shape `[None, ...]`
    (float32; float64 if float32 cannot hold a column), and gives `probabilities` `[None, C]` and,
    for methods with a representation, `embedding` `[None, h]`, both float32. Of a method that was
    fitted to texts the input is `texts`, strings in UTF-8 of shape `[None]`; if a sentence encoder
    made the features, it is their vectors, `features` `[None, d]`, and the encoder's name and
    digest are written beside the model. Preprocessing and an `ImageEncoder` are inside. A batch may
    have any size.

    Args:
        estimator: a fitted estimator.
        path: the folder to write; a SavedModel that is there already is replaced.
        feature_names: the columns of the features table in their order, for those who score another
            table.

    Returns:
        the folder.

    Raises:
        DataError: the folder exists and holds something else.
        NotImplementedError: the estimator has nothing to export.
    """
    import keras
    import tensorflow as tf

    target = Path(path)
    saved = (target / "saved_model.pb").exists()
    if target.exists() and not saved and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target}: not a SavedModel. Remove it or choose another place.")
    model = estimator.inference_model()
    vectors: Any = estimator.text_layer() if hasattr(estimator, "text_layer") else None

    def serve(features: Features) -> Fields:
        outputs = model(features, training=False)
        return {
            name: tf.cast(value, tf.float32)
            for name, value in outputs.items()
            if name in ("probabilities", "embedding")
        }

    archive = keras.export.ExportArchive()
    archive.track(model)
    if vectors is not None:
        archive.track(vectors)
    if vectors is None:
        first = model
    else:
        first = vectors
    if isinstance(first, keras.Model):
        entry = first.inputs[0]
        signature = tf.TensorSpec((None, *entry.shape[1:]), entry.dtype, name="features")
    else:
        # Keras 3.8 exports the lookup tables of its own layers alone.
        archive.variables.extend(vectors.tables)
        signature = tf.TensorSpec((None,), tf.string, name="texts")
    endpoint = serve if vectors is None else lambda items: serve(vectors(items))
    archive.add_endpoint("serving_default", endpoint, input_signature=[signature])
    if feature_names is None:
        columns = None
    else:
        columns = list(feature_names)
    names = {"classes": estimator.classes_.tolist(), "features": columns}
    if scale_of(estimator) == "ordinal":
        names["scale"] = "ordinal"
    if vectors is None and (encoder := getattr(estimator, "encoder_", None)) is not None:
        names["encoder"] = {"source": encoder.source, "digest": encoder.digest_}
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
