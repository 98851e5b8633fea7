"""Draws what each method does on a small example: python docs/figures/examples.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from neucrowd_tf import DASC, ICED, RLL, CrowdInG, CrowdLayer, NeuCrowd
from neucrowd_tf.annotations import simulation
from neucrowd_tf.iced import score_rounds

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
COLORS = ("#3f51b5", "#e64a19", "#2e7d32")


def example(sizes: Sequence[int], seed: int = 0) -> tuple[Any, Any, Any]:
    """Returns features, the annotations of ten simulated annotators, and true labels."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    centres = 2.2 * np.eye(len(sizes), 6)
    features = np.random.default_rng(seed).normal(size=(len(truth), 6)) + centres[truth]
    crowd = simulation.class_skill_annotators(10, len(sizes), seed=seed)
    return features, simulation.simulate(truth, crowd, seed=seed, rates=0.4), truth


def save(figure: Any, name: str) -> None:
    """Writes docs/figures/<name>_example.png."""
    figure.tight_layout()
    figure.savefig(HERE / f"{name}_example.png", dpi=80, metadata={"Software": None})
    plt.close(figure)


def embeddings(name: str, model: Any) -> None:
    """Draws the embedding of a fitted model beside the features, each by two components."""
    features, annotations, truth = example((70, 50))
    model.fit(features, annotations)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
    panels = (("features", features), (f"embedding of {name}", model.transform(features)))
    for axis, (title, points) in zip(axes, panels, strict=True):
        centred = points - points.mean(axis=0)
        flat = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
        for code, color in zip((0, 1), COLORS, strict=False):
            axis.scatter(*flat[truth == code].T, s=14, color=color, label=f"true class {code}")
        axis.set_title(title)
    axes[0].legend()
    save(figure, name.lower())


def dasc() -> None:
    """Draws the cells that each round fills, and the classes of the fillings."""
    features, annotations, truth = example((60, 30, 12))
    model = DASC(CrowdLayer(epochs=30), quota=80, rounds=3, seed=0).fit(
        features, annotations, validation=(features, truth)
    )
    cells = np.full((len(truth), annotations.num_annotators), np.nan)
    cells[annotations.instances, annotations.annotators] = 0
    for round_, selected in enumerate(model.selections_, 1):
        cells[selected[:, 0], selected[:, 1]] = round_
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
    shown = axes[0].imshow(cells.T, aspect="auto", cmap="viridis_r", interpolation="nearest")
    figure.colorbar(shown, ax=axes[0], label="0: label of the crowd; 1 to 3: round")
    axes[0].set(title="cells that DASC fills", xlabel="item", ylabel="annotator")
    counts = [np.bincount(annotations.labels, minlength=3)]
    counts += [np.bincount(selected[:, 2], minlength=3) for selected in model.selections_]
    for code, color in enumerate(COLORS):
        axes[1].plot(
            np.cumsum([count[code] for count in counts]), "o-", color=color, label=f"class {code}"
        )
    axes[1].set(title="labels by class, in all", xlabel="round (0: crowd)", xticks=range(4))
    axes[1].legend()
    save(figure, "dasc")


def crowding() -> None:
    """Draws the generator's confusion matrices after the game."""
    features, annotations, truth = example((50, 40, 30))
    model = CrowdInG(pretrain_epochs=20, epochs=3, seed=0)
    model.fit(features, annotations, validation=(features, truth))
    figure, axes = plt.subplots(1, 3, figsize=(8, 2.8))
    for annotator, axis in enumerate(axes):
        axis.imshow(model.confusion_matrices_[annotator], vmin=0, vmax=1, cmap="Blues")
        axis.set(title=f"annotator {annotator}", xlabel="generated label", ylabel="true class")
        axis.set(xticks=range(3), yticks=range(3))
    save(figure, "crowding")


def iced() -> None:
    """Draws label accuracy and synthesised instances by round."""
    features, annotations, truth = example((150, 15))
    model = ICED(rounds=8, seed=0).fit(features, annotations)
    scores = score_rounds(model, truth)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2))
    axes[0].plot(scores["label_accuracy"].to_numpy(), "o-", label="all")
    axes[0].plot(scores["balanced_label_accuracy"].to_numpy(), "o-", label="mean over classes")
    axes[0].set(title="accuracy of inferred labels", xlabel="round (0: before synthesis)")
    axes[0].legend()
    axes[1].plot(range(1, len(scores)), model.synthetic_history_, "o-")
    axes[1].set(title="synthesised instances", xlabel="round")
    axes[1].legend(["class 0", "class 1"])
    save(figure, "iced")


if __name__ == "__main__":
    embeddings("NeuCrowd", NeuCrowd(epochs=10, seed=0))
    embeddings("RLL", RLL(epochs=10, seed=0))
    dasc()
    crowding()
    iced()
