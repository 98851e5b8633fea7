"""Image encoders: images to vectors by a network of Keras Applications, run once for each image."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
from tqdm import tqdm

from neucrowd_tf.declare.declarations import check_arguments, estimator, fitted, text
from neucrowd_tf.declare.types import Array, Floats32, Layer, Network
from neucrowd_tf.encoders.base import Encoder
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.saving.transaction import transaction

APPLICATION = "keras:"
SIDE = 224  # pixels, which most of these networks were trained on
BATCH = 32
ROUNDING = 1e-3  # by which resized images may lie beyond 0 and 1


@estimator
class ImageEncoder(Encoder):
    """A trained network of `keras.applications` from images to its pooled features.

    Images are scaled to 224 x 224 pixels. Vectors are kept in memory, and on disk in the cache
    folder (`$NEUCROWD_CACHE`, or `~/.cache/neucrowd_tf`). An exported model contains the network.

    Attributes:
        digest_: SHA-256 of the network's name and weights and of the images' size.
        shape_: of an image.

    Example:
        >>> encoder = ImageEncoder("keras:MobileNetV3Small").fit(images)  # doctest: +SKIP
        >>> features = encoder.transform(images)  # doctest: +SKIP
    """

    source: Annotated[
        str,
        text,
        '"keras:NAME", a network of keras.applications with its ImageNet weights from'
        ' Keras\' cache; or "keras:NAME:FILE" with weights (without the top) from a file.',
    ] = dataclasses.field(kw_only=False)

    takes: ClassVar[str] = "images"
    digest_: str = fitted()
    shape_: tuple[int, ...] = fitted()

    def fit(self, images: Any = None, y: object = None) -> ImageEncoder:
        """Loads the network and computes its digest; nothing is learned.

        Args:
            images: `[M, height, width, 3]` from 0 to 1, whose size later images must have.
            y: ignored; a `Pipeline` passes it.

        Raises:
            UsageError: Keras has no such network.
            DataError: no images, or no weights of this network.
        """
        check_arguments(self)
        shape = self._checked(images).shape[1:]
        with transaction(self):
            self.shape_ = shape
            self._vectors: dict[bytes, bytes] = {}
            network, self._model = _application(self.source, self.shape_)
            digest = hashlib.sha256(f"{network.name} {SIDE} {self.shape_}".encode())
            for weights in network.get_weights():
                digest.update(np.ascontiguousarray(weights).tobytes())
            self.digest_ = digest.hexdigest()
        return self

    def _checked(self, images: Any) -> Floats32:
        """Returns images as the network takes them, or raises DataError."""
        if np.ndim(images) != 4 or np.shape(images)[3] != 3:
            raise DataError(
                f"--encoder={self.source}: expected colour images [items, height, width, 3],"
                f" received shape {np.shape(images)}. Remove the encoder or pass images."
            )
        values = np.asarray(images)
        low = 0.0
        high = 0.0
        if values.size:
            low = float(values.min())
            high = float(values.max())
        in_range = low >= -ROUNDING and high <= 1 + ROUNDING
        if values.dtype.kind != "f" or not in_range:
            raise DataError(
                f"--encoder={self.source}: expected images of floats from 0 to 1, received"
                f" {values.dtype} from {low:g} to {high:g}. Divide 8-bit images by 255."
            )
        return values.astype(np.float32, copy=False)

    def transform(self, images: Array) -> Floats32:
        """Returns the vectors of images, from the cache if they are there.

        Args:
            images: `[M, height, width, 3]` from 0 to 1, of the size that was fitted.

        Returns:
            `[M, d]`.

        Raises:
            DataError: the network is another one than before, or the images have another size or
                range.
        """
        images = self._checked(images)
        if images.shape[1:] != self.shape_:
            raise DataError(
                f"features: expected images of shape {self.shape_}, received {images.shape[1:]}"
            )
        keys = [hashlib.sha256(image.tobytes()).digest() for image in images]
        return self._cached(keys, images)

    def layer(self) -> Layer:
        """Returns the Keras model from images to their vectors."""
        self._find_network(np.zeros((1, *self.shape_), np.float32))
        return self._model

    def _blank(self) -> object:
        return np.zeros(self.shape_, np.float32)

    def _encoded(self, images: list[Floats32]) -> Iterator[Floats32]:
        model = self.layer()
        with tqdm(total=len(images), desc="encoding images", disable=None, leave=False) as bar:
            for start in range(0, len(images), BATCH):
                block = np.stack(images[start : start + BATCH])
                yield from np.asarray(model(block, training=False), np.float32)
                bar.update(len(block))


def _application(source: str, shape: tuple[int, ...]) -> tuple[Network, Network]:
    """Returns a network of Keras Applications without its top, and its model of raw images."""
    import keras

    name, _, weights = source.removeprefix(APPLICATION).partition(":")
    build = getattr(keras.applications, name, None)
    if not source.startswith(APPLICATION) or not name[:1].isupper() or build is None:
        raise UsageError(
            f"--encoder={source}: Keras has no such network. Use for example"
            f" {APPLICATION}MobileNetV3Small."
        )
    try:
        network = build(
            include_top=False,
            weights=weights or "imagenet",
            pooling="avg",
            input_shape=(SIDE, SIDE, 3),
        )
    except Exception as error:  # of the download, of HDF5 and of the network
        raise DataError(
            f"--encoder={source}: no weights ({one_line(error)[:200]}). Name a file with"
            f" {APPLICATION}{name}:FILE; Keras looks for ImageNet weights in ~/.keras/models."
        ) from None
    inputs = keras.Input(shape, dtype="float32", name="images")
    scaled = keras.layers.Resizing(SIDE, SIDE, dtype="float32")(inputs)
    scaled = keras.layers.Rescaling(255.0, dtype="float32")(scaled)
    prepared = sys.modules[build.__module__].preprocess_input(scaled)
    return network, keras.Model(inputs, network(prepared, training=False))
