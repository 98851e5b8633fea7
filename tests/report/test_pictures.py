"""Pictures take their ink from the page and carry nothing but shapes."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")

from neucrowd_tf.report.pictures import INK, RIGHT, WRONG, Page, Pictures, heatmap


def test_svg_has_no_size_no_text_no_comment_and_ids_of_its_own() -> None:
    artist = Pictures()
    first = artist.bars(
        ["<script>alert(1)</script>", "$\\frac{$", "--><b>"], {"votes": [0.1, 0.2, 0.7]}, "share"
    )
    second = artist.histogram(np.arange(40), "labels", "instances")
    for text in (first, second):
        assert text.startswith("<svg") and text.endswith("</svg>")
        opening = text[: text.index(">")]
        assert "viewBox" in opening and " width=" not in opening and " height=" not in opening
        assert "<!--" not in text
        assert "<script" not in text
        assert "<text" not in text
        assert INK not in text
        assert "currentColor" in text
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    for text, certain in zip((first, second), ids, strict=True):
        assert (
            set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
            <= certain
        )


def _ticks(svg: str) -> int:
    return len(re.findall(r'id="[^"]*xtick_\d+"', svg))


def test_a_histogram_begins_with_the_smallest_number() -> None:
    """4, 5 and 6 labels: three bars and as many numbers below them, not an axis from 0."""
    assert _ticks(Pictures().histogram(np.array([4, 5, 6, 6]), "labels", "instances")) == 3
    assert _ticks(Pictures().histogram(np.full(9, 5), "labels", "instances")) == 1
    assert _ticks(Pictures().histogram(np.zeros(0), "labels", "instances")) >= 1


def test_pictures_are_the_same_each_time() -> None:
    first, second = (Pictures().bars(["a", "b"], {"x": [0.2, 0.8]}, "share") for _ in range(2))
    assert first == second


def test_a_picture_that_fails_is_named_and_costs_nothing_else() -> None:
    class Fails(Pictures):
        def bars(self, *_: object) -> str:
            raise RuntimeError("no")

    page = Page(Fails())
    assert page.draw("Calibration", "bars") == []
    missing = page.missing
    assert len(missing) == 1 and "Calibration" in missing[0] and "RuntimeError" in missing[0]
    page = Page()
    assert page.draw("Calibration", "bars") == [] == page.missing


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
