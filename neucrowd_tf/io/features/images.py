"""A folder of images as features."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.reading import check_regular, of_kinds
from neucrowd_tf.io.names.ids import as_name_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PIXELS = 1 << 26
MOST_BYTES = 1 << 33  # of all images as float32
DEEP = 65535.0  # the white of 16 bits
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


def read_images(
    folder: Path, size: int | None = None, max_pixels: int = MAX_PIXELS
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Reads a folder of images as features; the task ids are the files' names without their
    endings.

    Args:
        folder: with PNG, JPEG, BMP, GIF or WebP files; a warning counts what else is there.
        size: the height and width that images are scaled to; None needs images of one size.
        max_pixels: of an image; a larger one is not unpacked.

    Returns:
        task ids `[N]` as text, in the order of the names, and features `[N, height, width, 3]`
        float32 within 0 and 1.

    Raises:
        UsageError: no Pillow to read them with.
        DataError: no folder or no image in it, an unreadable image, two of one name, or images of
            several sizes.
    """
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise UsageError(
            f"{folder}: expected Pillow to read images, received none: pip install"
            " 'neucrowd-tf[images]'"
        ) from None
    files = _files(folder)
    rows: NDArray[np.float32] | None = None
    told: Counter[str] = Counter()
    for row, path in enumerate(files):
        pixels = _read(path, size, max_pixels, told)
        if rows is None:
            if 4 * len(files) * pixels.size > MOST_BYTES:
                raise DataError(
                    f"{folder}: expected images that take at most {MOST_BYTES >> 30} GB of memory,"
                    f" received {len(files)} of {pixels.shape[0]}x{pixels.shape[1]} pixels;"
                    " --image_size scales them"
                )
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
        rows[row] /= 255.0 if pixels.dtype == np.uint8 else DEEP
    if rows is not None and len(rows) > 1 and all((row == rows[0]).all() for row in rows[1:]):
        warnings.warn(
            f"{folder}: expected images that differ, received the same pixels in all {len(rows)}",
            stacklevel=2,
        )
    for what, count in (+told).items():
        warnings.warn(f"{folder}: {count} images {what}", stacklevel=2)
    return as_name_array([path.stem for path in files]), rows  # type: ignore[return-value]


def _files(folder: Path) -> list[Path]:
    """Returns the images of a folder in the order of their names."""
    if not folder.is_dir():
        raise DataError(
            f"{folder}: expected a folder of images, received"
            f" {'a file' if folder.exists() else 'no such folder'}"
        )
    files = of_kinds(folder, IMAGES)
    if not files:
        raise DataError(f"{folder}: expected images ({', '.join(IMAGES)}), received none")
    names = Counter(path.stem for path in files)
    twice = next((name for name, times in names.items() if times > 1), None)
    if twice is not None:
        raise DataError(f"{folder}: expected each task once, received two images named {twice!r}")
    named = sorted(path.name for path in {*folder.iterdir()} - {*files})
    if others := [name for name in named if not name.startswith(".")]:
        warnings.warn(
            f"{folder}: {len(others)} files or folders in it that are no {', '.join(IMAGES)} are"
            f" passed over (the first: {others[0]})",
            stacklevel=3,
        )
    return files


def _read(path: Path, size: int | None, max_pixels: int, told: Counter[str]) -> NDArray[Any]:
    """Returns the pixels of an image, or what is wrong with it."""
    check_regular(path, "an image", folders=False)
    try:
        return _pixels(path, size, max_pixels, told)
    except DataError:
        raise
    except Exception as error:  # a damaged image ends in errors of many kinds
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: expected an image, received {reason}") from None


def _pixels(path: Path, size: int | None, max_pixels: int, told: Counter[str]) -> NDArray[Any]:
    """Returns `[height, width, 3]` uint8, or of images with 16 bits float32 up to 65535, as the
    image is shown: turned as its camera says, on white where it is transparent.
    """
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # ours is said better
        try:
            image = Image.open(path)
        finally:
            Image.MAX_IMAGE_PIXELS = limit
    with image:
        if image.width * image.height > max_pixels:
            raise DataError(
                f"{path}: expected an image of at most {max_pixels:,} pixels, received"
                f" {image.width}x{image.height}; --max_pixels allows more"
            )
        told["have several frames, whose first is taken"] += getattr(image, "n_frames", 1) > 1
        deep = image.mode.startswith("I")
        shown = ImageOps.exif_transpose(image)
        if not deep and ("A" in shown.getbands() or "transparency" in shown.info):
            layers = shown.convert("RGBA")
            seen = np.asarray(layers)[..., 3].min() == 255
            told["are transparent in parts, which are taken as white"] += not seen
            shown = Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers)
        # Pillow would cut what is brighter than 255 to white.
        plain = shown.convert("F") if deep else shown.convert("RGB")
        if size is not None:
            plain = plain.resize((size, size), Image.Resampling.BILINEAR)
        pixels = np.asarray(plain)
        return np.repeat(pixels[..., None], 3, axis=2) if deep else pixels
