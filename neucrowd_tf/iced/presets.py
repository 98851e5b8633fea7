"""Hyper-parameters of ICED by dataset, and what `--tune` may try."""

from __future__ import annotations

from typing import Any

PAPER = (
    "Wang, Thekinen, Liu, Liu and Tang: Learning from Imbalanced Crowdsourced Labeled Data (ICED)"
)
SPACE: dict[str, tuple[Any, ...]] = {
    "rounds": (10, 15, 20),
    "dropout": (0.0, 0.3, 0.5),
    "annotation_neighbours": (10, 20, 40),
    "warm_up": ("all", "groups"),
    "standardise": (True, False),
    "hidden_units": ((128, 64), (256, 64), (64, 32)),
    "learning_rate": (3e-4, 1e-3, 3e-3),
}
# Pixels in [0, 1] are left as they are: border pixels, blank but for a few images, are noise once
# they are standardised.
PRESETS: dict[str, dict[str, Any]] = {
    "usps_syn": {"standardise": False},
    "usps_lt": {"standardise": False},
}
