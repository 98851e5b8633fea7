"""Draws a schematic of each method: python docs/figures/schematics.py."""

from __future__ import annotations

import tomllib
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
METHODS = tomllib.loads((HERE / "schematics.toml").read_text(encoding="utf-8"))


def draw(name: str) -> None:
    """Writes one schematic."""
    boxes, arrows = METHODS[name]["boxes"], METHODS[name]["arrows"]
    places = {key: (3.1 * x, 1.7 * y) for key, (x, y, _) in boxes.items()}
    width = max(x for x, _ in places.values())
    figure, axes = plt.subplots(figsize=(width + 2.4, 3.0))
    axes.set(xlim=(-1.2, width + 1.2), ylim=(-0.7, 2.6))
    axes.axis("off")
    frame = {"boxstyle": "round,pad=0.45", "facecolor": "#e8eefc", "edgecolor": "#3f51b5"}
    shown = {
        key: axes.text(*places[key], text, ha="center", va="center", fontsize=9, bbox=frame)
        for key, (_, _, text) in boxes.items()
    }
    figure.canvas.draw()
    pairs = {(source, target) for source, target, _ in arrows}
    for source, target, text in arrows:
        (x0, y0), (x1, y1) = places[source], places[target]
        style = {"arrowstyle": "-|>", "color": "#555", "shrinkA": 3, "shrinkB": 3}
        ends = {"patchA": shown[source], "patchB": shown[target]}
        style |= {end: box.get_bbox_patch() for end, box in ends.items()}
        if (target, source) in pairs or (abs(x1 - x0) > 4 and y0 == y1 > 0):
            style["connectionstyle"] = "arc3,rad=0.25"
        axes.annotate("", (x1, y1), (x0, y0), arrowprops=style)
        aside = 0.55 if x0 == x1 else 0
        axes.text((x0 + x1) / 2 + aside, (y0 + y1) / 2 + 0.14, text, fontsize=8, ha="center")
    figure.savefig(HERE / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "neucrowd_tf", "svg.fonttype": "none"})
    for method in METHODS:
        draw(method)
