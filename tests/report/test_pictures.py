"""Pictures take their ink from the page and carry nothing but shapes."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")

from neucrowd_tf.report.pictures import INK, Page, Pictures


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
        assert (
            "<!--" not in text and "<script" not in text and "<text" not in text and INK not in text
        )
        assert "currentColor" in text
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    for text, known in zip((first, second), ids, strict=True):
        assert (
            set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
            <= known
        )


def _ticks(svg: str) -> int:
    return len(re.findall(r'id="[^"]*xtick_\d+"', svg))


def test_a_histogram_begins_with_the_smallest_number() -> None:
    """4, 5 and 6 labels: three bars and as many numbers below them, not an axis from 0."""
    assert _ticks(Pictures().histogram(np.array([4, 5, 6, 6]), "labels", "instances")) == 3
    assert _ticks(Pictures().histogram(np.full(9, 5), "labels", "instances")) == 1
    assert _ticks(Pictures().histogram(np.zeros(0), "labels", "instances")) >= 1


def test_pictures_are_the_same_each_time() -> None:
    values = np.random.default_rng(0).random((50, 2))
    codes = np.arange(50) % 3 - 1
    first, second = (Pictures().scatter(values, codes, ["a", "b"]) for _ in range(2))
    assert first == second


def test_a_picture_that_fails_is_named_and_costs_nothing_else() -> None:
    class Fails(Pictures):
        def matrix(self, *_: object) -> str:
            raise RuntimeError("no")

    page = Page(Fails())
    assert page.draw("Calibration", "matrix") == []
    missing = page.missing
    assert len(missing) == 1 and "Calibration" in missing[0] and "RuntimeError" in missing[0]
    page = Page()
    assert page.draw("Calibration", "matrix") == [] == page.missing
