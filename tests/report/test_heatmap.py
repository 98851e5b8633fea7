"""Confusion matrices as small PNGs."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest

from neucrowd_tf.report.heatmap import RIGHT, WRONG, heatmap


def test_a_pixel_a_cell() -> None:
    """[[.8, .2], [NaN, NaN]]: opacities round(255 * .8) = 204 and 51, green on the diagonal, red
    beside it; no evidence is transparent.
    """
    image = pytest.importorskip("PIL.Image")
    head, _, body = heatmap(np.array([[0.8, 0.2], [np.nan, np.nan]])).partition(",")
    assert head == "data:image/png;base64"
    pixels = np.asarray(image.open(io.BytesIO(base64.b64decode(body))))
    assert pixels.shape == (2, 2, 4)
    assert pixels[0, 0].tolist() == [*RIGHT, 204]
    assert pixels[0, 1].tolist() == [*WRONG, 51]
    assert pixels[1, :, 3].tolist() == [0, 0]
