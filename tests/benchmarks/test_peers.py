"""The page of agreement with other packages, and of accuracy and seconds beside them."""

from __future__ import annotations

from benchmarks import peers


def test_page_names_what_is_missing_and_every_exception() -> None:
    times = [dict(zip(peers.TIMES, ("CF", "glad", "here", 0.6, 2.0, 1.0), strict=True))]
    rows = [("crowd-kit", "glad", *peers.verdict(2e-6, "differs"))]
    text = peers.page(rows, ["torch"], times)
    assert "Not installed: torch." in text and "| crowd-kit | glad | 2.0e-06 | agrees |" in text
    assert all(f"`{name}`: {why}." in text for name, why in peers.EXCEPTIONS.items())
    assert "| CF | glad | here | 0.6000 | 2.0000 | 1.0000 |" in text
    assert peers.verdict(0.1, "their fault") == ("1.0e-01", "their fault")
