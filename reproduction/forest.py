"""The forest plot of the claimed gains: ours with their intervals, published ones as diamonds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from neucrowd_tf.io.files.atomic import atomic_path
from reproduction.claims import Claim
from reproduction.panels import Figure

COLOURS = {"yes": "tab:blue", "no": "tab:red", "unclear": "tab:gray"}
LIMITS = (-0.3, 0.4)  # of the axis; bars beyond are cut


def draw(claims: Iterable[Claim], path: Path) -> bool:
    """Draws the main claims that are gains, a row each; False without matplotlib.

    Args:
        claims: with figures and verdicts.
        path: of the picture.
    """
    if Figure is None:
        return False
    shown = (x for x in claims if x.headline and x.controls)
    rows = [(x, x.ours) for x in shown if x.ours is not None]
    figure = Figure(figsize=(7, 1 + 0.36 * len(rows)), layout="constrained")
    axis = figure.add_subplot()
    for y, (claim, ours) in enumerate(reversed(rows)):
        colour = COLOURS.get(claim.verdict.partition(",")[0], "tab:gray")
        if ours.low is not None and ours.high is not None:
            axis.plot([ours.low, ours.high], [y, y], color=colour, linewidth=4)
        axis.plot(ours.mean, y, "|", color="black", markersize=9)
        if ours.published is not None:
            axis.plot(ours.published, y, "D", color="black", markersize=4, fillstyle="none")
    axis.axvline(0, color="0.5", linewidth=0.8)
    axis.set_yticks(range(len(rows)), [_name(x) for x, _ in reversed(rows)], fontsize=8)
    axis.set_xlim(*LIMITS)
    axis.set_xlabel("gain in accuracy")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110, metadata={"Software": None})
    return True


def _name(claim: Claim) -> str:
    """Returns a claim in few words."""
    text = claim.claim.replace(", published settings", "").replace(", published algorithm", "")
    text = f"{claim.paper}: {text}"
    return text if len(text) <= 62 else text[:59] + "..."
