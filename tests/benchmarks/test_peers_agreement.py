"""The page of agreement with other packages."""

from __future__ import annotations

from benchmarks import peers_agreement as peers


def test_page_names_what_is_missing_and_every_exception() -> None:
    text = peers.page([("crowd-kit", "glad", *peers.verdict(2e-6, "differs"))], ["torch"])
    assert "Not installed: torch." in text and "| crowd-kit | glad | 2.0e-06 | agrees |" in text
    assert all(f"`{name}`: {why}." in text for name, why in peers.EXCEPTIONS.items())
    assert peers.verdict(0.1, "their fault") == ("1.0e-01", "their fault")
