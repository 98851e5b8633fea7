"""The forest plot of the claimed gains: ours with their intervals, published ones as diamonds."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from neucrowd_tf.declare.picking import having
from neucrowd_tf.declare.types import Axes
from reproduction.claim import OTHER, SAME, SIMILAR, Claim, Ours, in_points
from reproduction.panels import Figure, save
from reproduction.verdicts import AHEAD, BEHIND, FEW_RUNS, UNDECIDED

COLOURS = {AHEAD: "tab:green", BEHIND: "tab:red", UNDECIDED: "tab:gray", FEW_RUNS: "lightgray"}
GROUPS = {SAME: "the paper's data", SIMILAR: "similar data", OTHER: "other data"}
LIMITS = (-35.0, 45.0)  # of the axis, in points; bars beyond are cut
LINE = 0.5  # height of a name's second line, of a row


def draw(claims: Iterable[Claim], path: Path) -> bool:
    """Draws the main claims that are gains, grouped by data; False without matplotlib.

    Args:
        claims: with figures and verdicts.
        path: of the picture.
    """
    if Figure is None:
        return False
    gains = list(filter(in_points, having(claims, headline=True, is_gain=True)))
    rows: list[tuple[str, Claim | None]] = []
    for word, name in GROUPS.items():
        group = having(gains, data_word=word)
        rows += [(f"{name}:", None)] * bool(group)
        rows += zip(map(_name, group), group, strict=True)
    # Narrow, with each name above its bar: the words stay readable on a phone.
    height = sum(1 + LINE * name.count("\n") for name, _ in rows)
    figure = Figure(figsize=(4.8, 1.2 + 0.33 * height), layout="constrained")
    axis = figure.add_subplot()
    y = height
    for name, claim in rows:
        y -= 1 + LINE * name.count("\n")
        weight = "bold"
        if claim is not None and claim.ours is not None:
            weight = "normal"
            _draw_row(axis, y, claim.ours, claim.word)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axis.text(LIMITS[0] + 1, y + 0.25, name, fontsize=8, fontweight=weight, bbox=box)
    axis.axvline(0, color="0.5", linewidth=0.8, zorder=0)
    axis.set(yticks=[], ylim=(-0.7, height - 0.1), xlim=LIMITS)
    axis.set_xlabel("gain here, in points, with 95% interval")
    for word, colour in COLOURS.items():
        axis.plot([], [], color=colour, linewidth=4, label=word)
    axis.plot([], [], "D", color="black", markersize=4, fillstyle="none", label="published gain")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8)
    save(figure, path)
    return True


def _draw_row(axis: Axes, y: float, ours: Ours, word: str) -> None:
    """Draws the interval, the mean and the published gain of one claim, in points."""
    if ours.low is not None and ours.high is not None:
        ends = [100 * ours.low, 100 * ours.high]
        axis.plot(
            ends, [y, y], color=COLOURS.get(word, "tab:gray"), linewidth=4, solid_capstyle="butt"
        )
    axis.plot(100 * ours.mean, y, "|", color="black", markersize=9)
    if ours.published is not None:
        axis.plot(100 * ours.published, y, "D", color="black", markersize=4, fillstyle="none")


def _name(claim: Claim) -> str:
    """Returns a claim in few words, with a mark for published settings."""
    text = re.sub(", published (equations|rules)", " (published)", claim.claim)
    return textwrap.fill(f"{claim.paper}: {text}", 72, break_on_hyphens=False)
