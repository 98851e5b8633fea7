"""A confusion matrix as a picture of a few hundred bytes, a pixel a cell: no plotting library is
needed.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RIGHT, WRONG = (22, 130, 70), (200, 60, 40)


def heatmap(matrix: NDArray[Any]) -> str:
    """Returns a data address of a PNG with a pixel for each cell of `[C, C]`: the true class down,
    the label across.

    The diagonal is green, mistakes are red; opacity is the cell's probability, so that it reads on
    light and dark pages. A NaN cell (no evidence) is transparent.
    """
    shares = np.clip(np.nan_to_num(np.asarray(matrix, dtype=np.float64)), 0.0, 1.0)
    pixels = np.empty((*shares.shape, 4), dtype=np.uint8)
    pixels[..., :3] = WRONG
    diagonal = np.arange(min(shares.shape))
    pixels[diagonal, diagonal, :3] = RIGHT
    pixels[..., 3] = np.round(255 * shares)
    return png(pixels)


def png(pixels: NDArray[np.uint8]) -> str:
    """Returns RGBA pixels `[height, width, 4]` as a data address of a PNG."""
    height, width = pixels.shape[:2]
    rows = np.concatenate(
        [np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1
    )  # each row begins with its filter: none
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode("ascii")
