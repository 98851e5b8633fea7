"""A folder of images as features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.ids import as_name_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


def read_images(folder: Path, size: int | None = None) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Reads a folder of images as features; the task ids are the files' names without their
    endings.

    Args:
        folder: with PNG, JPEG, BMP, GIF or WebP files; other files are passed over.
        size: the height and width that images are scaled to; None needs images of one size.

    Returns:
        task ids `[N]` as text, in the order of the names, and features `[N, height, width, 3]`
        float32 within 0 and 1.

    Raises:
        UsageError: no Pillow to read them with.
        DataError: no folder or no image in it, an unreadable image, two of one name, or images of
            several sizes.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UsageError(
            f"{folder}: expected Pillow to read images, received none: pip install"
            " 'neucrowd-tf[images]'"
        ) from None
    if not folder.is_dir():
        raise DataError(
            f"{folder}: expected a folder of images, received"
            f" {'a file' if folder.exists() else 'no such folder'}"
        )
    files = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGES and not path.name.startswith(".")
    )
    if not files:
        raise DataError(f"{folder}: expected images ({', '.join(IMAGES)}), received none")
    names = [path.stem for path in files]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{folder}: expected each task once, received two images named {twice!r}")
    rows: NDArray[np.float32] | None = None
    for row, path in enumerate(files):
        try:
            with Image.open(path) as image:
                pixels = np.asarray(
                    image.convert("RGB")
                    if size is None
                    else image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
                )
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(
                f"{path}: expected an image, received {' '.join(str(error).split())[:200]}"
            ) from None
        if rows is None:
            rows = np.empty((len(files), *pixels.shape), dtype=np.float32)
        if pixels.shape != rows.shape[1:]:
            first, this = (
                "x".join(map(str, shape)) for shape in (rows.shape[1:3], pixels.shape[:2])
            )
            raise DataError(
                f"{path}: expected an image of {first} pixels as the first one, received {this};"
                " --image_size scales all of them"
            )
        rows[row] = pixels
        rows[row] /= 255.0
    return as_name_array(names), rows  # type: ignore[return-value]
