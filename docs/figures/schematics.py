"""Draws a schematic of each method: python docs/figures/schematics.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
# Per method: boxes (name, column, row, text) and arrows (from, to, text).
METHODS: dict[str, tuple[list[tuple[str, float, float, str]], list[tuple[str, str, str]]]] = {
    "neucrowd": (
        [
            ("data", 0, 1, "labelled\ninstances"),
            ("safe", 1, 1, "safety: neighbours\nagree with the label?"),
            ("draw", 2, 1, "draw n-tuplets:\nanchor, positive, negatives"),
            ("hard", 3, 1, "sampling network\nkeeps hard tuplets"),
            ("encoder", 3, 0, "encoder, loss against\nthe robust anchor"),
            ("head", 1, 0, "logistic regression\non the embedding"),
        ],
        [
            ("data", "safe", ""),
            ("safe", "draw", "weights"),
            ("draw", "hard", ""),
            ("hard", "encoder", ""),
            ("encoder", "safe", "new embedding"),
            ("encoder", "head", ""),
        ],
    ),
    "rll": (
        [
            ("votes", 0, 1, "votes per\ninstance"),
            ("confidence", 1, 1, "confidence\n(Beta prior, eq. 2)"),
            ("groups", 2, 1, "groups: 2 positives,\nk negatives"),
            ("encoder", 2, 0, "encoder, weighted\nsoftmax loss (eq. 3)"),
            ("head", 1, 0, "logistic regression\non the embedding"),
        ],
        [
            ("votes", "confidence", ""),
            ("confidence", "groups", ""),
            ("groups", "encoder", ""),
            ("encoder", "head", ""),
        ],
    ),
    "dasc": (
        [
            ("labels", 0, 1, "annotations\n(most cells empty)"),
            ("fit", 1, 1, "fit a crowd layer"),
            ("predict", 2, 1, "predict the\nempty cells"),
            ("quota", 2, 0, "quota per class:\nfewer of common ones"),
            ("add", 1, 0, "most confident cells\nof each class are added"),
        ],
        [
            ("labels", "fit", ""),
            ("fit", "predict", ""),
            ("predict", "quota", ""),
            ("quota", "add", ""),
            ("add", "fit", "next round"),
        ],
    ),
    "crowding": (
        [
            ("classifier", 0, 1, "classifier"),
            ("generator", 1, 1, "generator:\nlabels of all annotators"),
            ("disc", 2, 1, "discriminator:\nauthentic?"),
            ("aux", 1, 0, "auxiliary network:\nwhat did the\nclassifier say?"),
        ],
        [
            ("classifier", "generator", "opinion"),
            ("generator", "disc", "labels"),
            ("disc", "classifier", ""),
            ("disc", "generator", ""),
            ("generator", "aux", "labels"),
            ("aux", "generator", ""),
        ],
    ),
    "iced": (
        [
            ("embed", 0, 1, "encoder:\nembeddings"),
            ("synth", 1, 1, "synthesise instances\nof rare classes"),
            ("copy", 2, 1, "annotators copy labels\nof neighbours"),
            ("infer", 2, 0, "Dawid-Skene on real and\nsynthetic instances"),
            ("train", 1, 0, "train encoder\nand classifier"),
        ],
        [
            ("embed", "synth", ""),
            ("synth", "copy", ""),
            ("copy", "infer", ""),
            ("infer", "train", ""),
            ("train", "embed", "next round"),
        ],
    ),
}


def draw(name: str) -> None:
    """Writes one schematic."""
    boxes, arrows = METHODS[name]
    places = {key: (3.1 * x, 1.7 * y) for key, x, y, _ in boxes}
    width = max(x for x, _ in places.values())
    figure, axes = plt.subplots(figsize=(width + 2.4, 3.0))
    axes.set(xlim=(-1.2, width + 1.2), ylim=(-0.7, 2.6))
    axes.axis("off")
    frame = {"boxstyle": "round,pad=0.45", "facecolor": "#e8eefc", "edgecolor": "#3f51b5"}
    shown = {
        key: axes.text(*places[key], text, ha="center", va="center", fontsize=9, bbox=frame)
        for key, _, _, text in boxes
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
