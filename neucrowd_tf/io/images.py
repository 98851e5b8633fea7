"""A folder of images as features, in memory or read when they are needed."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.declare.picking import by_name
from neucrowd_tf.declare.types import Array, Floats32
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.checks import broken, install, unreadable
from neucrowd_tf.io.files.reading import check_regular, of_kinds
from neucrowd_tf.names import as_name_array, without

DEEP = 65535.0  # the white of 16 bits
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
STEM = operator.attrgetter("stem")


def read_images(folder: Path, size: int | None = None) -> tuple[Array, Floats32]:
    """Reads a folder of images as features; the files' names without endings are the ids.

    Args:
        folder: with PNG, JPEG, BMP, GIF or WebP files; other files are not read.
        size: height and width to which images are scaled; None needs images of one size.

    Returns:
        ids `[N]` as text, in the order of the names, and features `[N, height, width, 3]` float32
        from 0 to 1.

    Raises:
        UsageError: Pillow is not installed.
        DataError: no folder or no image in it, an unreadable image, two of one name, or images of
            several sizes.
    """
    files = image_files(folder)
    shape = read_image(files[0], size).shape
    rows = np.empty((len(files), *shape), dtype=np.float32)
    for row, path in enumerate(files):
        pixels = read_image(path, size)
        if pixels.shape != shape:
            height, width, _ = pixels.shape
            first = f"the first one {shape[0]}x{shape[1]}"
            problem = f"the image has {height}x{width} pixels, {first}"
            raise unreadable(path, problem, "Scale all images with --image_size")
        rows[row] = pixels
    return as_name_array(list(map(STEM, files))), rows


def image_files(folder: Path) -> list[Path]:
    """Returns the images of a folder in the order of their names."""
    if not folder.is_dir():
        raise unreadable(folder, "there is no such folder", "Name a folder with --images")
    files = of_kinds(folder, IMAGES)
    if not files:
        raise broken(folder, f"it has no images ({', '.join(IMAGES)})")
    (name, times), *_ = Counter(map(STEM, files)).most_common(1)
    if times > 1:
        raise broken(folder, f"two images are named {name!r}")
    return files


def read_image(path: Path, size: int | None = None) -> Floats32:
    """Returns an image `[height, width, 3]` from 0 to 1.

    The image is as it is shown: turned as its camera says, on white if it is transparent, the
    first of several frames.

    Raises:
        UsageError: Pillow is not installed.
        DataError: an unreadable image.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError:
        how = install("images")
        raise UsageError(f"{path.parent}: images need Pillow. {how}") from None
    check_regular(path, folders=False)
    try:
        with Image.open(path) as image:
            deep = image.mode.startswith("I")
            shown = ImageOps.exif_transpose(image)
            if not deep and ("A" in shown.getbands() or "transparency" in shown.info):
                layers = shown.convert("RGBA")
                shown = Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers)
            plain = shown.convert("F" if deep else "RGB")  # RGB would cut 16 bits at 255
            if size is not None:
                plain = plain.resize((size, size), Image.Resampling.BILINEAR)
            pixels = np.asarray(plain, dtype=np.float32)
    except Image.DecompressionBombError:
        problem = "the image has more pixels than Pillow reads"
        raise unreadable(path, problem, "Scale the image down") from None
    except Exception as bad:  # a damaged image ends in errors of many kinds
        reason = " ".join(str(bad).split())[:200]
        raise broken(path, f"this is not an image ({reason})") from None
    scaled = np.asarray(pixels / np.float32(DEEP if deep else 255.0), dtype=np.float32)
    if deep:
        return np.repeat(scaled[..., None], 3, axis=2)
    return scaled


def image_folder(folder: str | Path, names: Sequence[Any], size: int) -> Any:
    """Returns a `tf.data.Dataset` of (image, index) that reads each image when it is needed.

    Args:
        folder: with PNG, JPEG, BMP, GIF or WebP files.
        names: `[N]` files' names, with or without endings, such as `annotations.instance_names`;
            `index` is the position here. Other files are not read.
        size: height and width to which images are scaled.

    Returns:
        images `[size, size, 3]` from 0 to 1, in an order that mixes the names.

    Raises:
        DataError: no folder, or a name that has no image.
    """
    import tensorflow as tf

    paths_in = image_files(Path(folder))
    files = dict(zip(map(STEM, paths_in), paths_in, strict=True)) | by_name(paths_in)
    texts = list(map(str, names))
    for missing in without(texts, files):
        raise DataError(f"{folder}: there is no image named {missing!r}")
    order = np.random.default_rng(0).permutation(len(names))  # classes may follow each other
    paths = [str(files[texts[index]]) for index in order]

    def read(path: Any, index: Any) -> tuple[Any, Any]:
        pixels = tf.numpy_function(lambda x: read_image(Path(x.decode()), size), [path], tf.float32)
        return tf.ensure_shape(pixels, (size, size, 3)), index

    dataset = tf.data.Dataset.from_tensor_slices((paths, order))
    return dataset.map(read, num_parallel_calls=tf.data.AUTOTUNE)
