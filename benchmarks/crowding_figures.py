"""Makes CrowdInG's tables and figures from what its runs left; called by `python -m benchmarks.crowding_study report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Test accuracy (%) that the paper prints in tables 1 and 2: mean and standard deviation over 5 runs.
PAPER: dict[str, dict[str, str]] = {
    "labelme": {
        "doctor_net": "82.12+-0.43",
        "dl_cl_self": "85.24+-0.51",
        "dl_cl_gcn": "82.74+-0.34",
        "dl_cl_gan": "85.16+-0.26",
        "dl_cl_ing": "85.42+-0.57",
        "crowding": "87.03+-0.55",
        "crowdg": "85.89+-0.47",
        "crowdingu": "83.12+-0.39",
        "crowdingi": "84.34+-0.72",
        "crowdingr": "86.17+-0.44",
    },
    "music": {
        "doctor_net": "75.41+-0.42",
        "dl_cl_self": "82.56+-0.49",
        "dl_cl_gcn": "81.42+-0.74",
        "dl_cl_gan": "83.17+-0.48",
        "dl_cl_ing": "83.38+-0.59",
        "crowding": "83.73+-0.62",
        "crowdg": "83.14+-0.28",
        "crowdingu": "81.28+-0.51",
        "crowdingi": "82.24+-0.47",
        "crowdingr": "82.74+-0.58",
    },
}
TABLE_1 = ("doctor_net", "dl_cl_self", "dl_cl_gcn", "dl_cl_gan", "dl_cl_ing", "crowding")
TABLE_2 = ("crowdg", "crowdingu", "crowdingi", "crowdingr", "crowding", "crowding_one_step", "crowding_no_lca")
FIGURE_3 = ("mv_dl", "dl_cl", "anno_reg", "max_mig", "aggnet", "mbem", "crowding")
TITLES = {
    "mv_dl": "DL-MV",
    "dl_cl": "DL-CL",
    "anno_reg": "Anno-Reg",
    "max_mig": "Max-MIG",
    "aggnet": "AggNet",
    "mbem": "MBEM",
    "doctor_net": "Doctor Net",
    "dl_cl_self": "DL-CL+Self",
    "dl_cl_gcn": "DL-CL+GCN",
    "dl_cl_gan": "DL-CL+GAN",
    "dl_cl_ing": "DL-CL+InG",
    "crowding": "CrowdInG",
    "crowdg": "CrowdG",
    "crowdingu": "CrowdInGU",
    "crowdingi": "CrowdInGI",
    "crowdingr": "CrowdInGR",
    "crowding_one_step": "one step",
    "crowding_no_lca": "without LCA",
}
DATASETS = {"labelme": "LabelMe", "music": "Music"}


def spread(values: Sequence[float] | pd.Series[Any], signed: bool = False) -> str:
    """Returns mean and standard deviation in per cent as the paper prints them."""
    array = 100 * np.asarray(values, dtype=float)
    if not len(array):
        return ""
    mean = f"{array.mean():+.2f}" if signed else f"{array.mean():.2f}"
    return f"{mean}+-{array.std(ddof=1):.2f}" if len(array) > 1 else mean


def table(results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Returns a row a method: accuracy, its paired gain over DL-CL of the same seed, and the paper's figure, for each dataset."""
    rows = []
    for method in methods:
        row: dict[str, Any] = {"method": method}
        for dataset in DATASETS:
            runs = results[(results["dataset"] == dataset) & (results["status"] == "ok")].set_index("seed")
            own, start = (runs.loc[runs["method"] == name, "accuracy"] for name in (method, "dl_cl"))
            gain = (own - start).dropna()
            row |= {
                f"{dataset}_runs": len(own),
                f"{dataset}_accuracy": spread(own),
                f"{dataset}_gain_over_dl_cl": "" if method == "dl_cl" else spread(gain, signed=True),
                f"{dataset}_paper": PAPER[dataset].get(method, ""),
            }
        rows.append(row)
    return pd.DataFrame(rows)


def save(frame: pd.DataFrame, path: Path) -> None:
    from neucrowd_tf.files import write_text

    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def plot(path: Path, panels: Sequence[str], draw: Callable[[Any, str], None], size: tuple[float, float] = (4.2, 3.2)) -> None:
    """Draws a row of panels, one each for `panels`, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from neucrowd_tf.files import atomic_path

    figure, axes = plt.subplots(1, len(panels), figsize=(size[0] * len(panels), size[1]), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        draw(axis, panel)
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=7)
    figure.tight_layout()
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png", metadata={"Software": None})
    plt.close(figure)


def band(axis: Any, x: Any, values: pd.DataFrame, label: str) -> None:
    """Draws the mean over seeds (columns) with a band of a standard deviation."""
    mean, deviation = 100 * values.mean(axis=1), 100 * values.std(axis=1).fillna(0.0)
    (line,) = axis.plot(x, mean, label=label, linewidth=1.2)
    axis.fill_between(x, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15)


def over_epochs(curves: pd.DataFrame, dataset: str, method: str, column: str) -> pd.DataFrame:
    """Returns accuracies with a row an epoch (stages one after the other) and a column a seed."""
    rows = curves[(curves["dataset"] == dataset) & (curves["method"] == method)].copy()
    rows["step"] = rows.groupby("seed", sort=False).cumcount()
    return rows.pivot(index="step", columns="seed", values=column)


def curve_figures(curves: pd.DataFrame, folder: Path, entropy: pd.DataFrame) -> None:
    """Figures 2 (a: accuracy by entropy; b: one step against two) and 3 (training and test curves)."""
    panels = [name for name in DATASETS if (curves["dataset"] == name).any()]

    def figure_2(axis: Any, panel: str) -> None:
        kind, _, dataset = panel.partition(" ")
        if kind == "a":
            values = entropy[entropy["dataset"] == dataset].pivot(index="share", columns="seed", values="accuracy")
            band(axis, values.index, values, "DL-CL")
            axis.set(title=f"{DATASETS[dataset]}", xlabel="share of training instances, surest first", ylabel="accuracy (%)")
            return
        for method, title in (("crowding", "two steps"), ("crowding_one_step", "one step")):
            game = curves[curves["stage"] == "game"]
            values = over_epochs(game, dataset, method, "test_accuracy")
            if len(values):
                band(axis, values.index + 1, values, title)
        axis.set(title=DATASETS[dataset], xlabel="epoch of the game", ylabel="test accuracy (%)")

    plot(folder / "crowding_figure2.png", [f"{kind} {name}" for kind in "ab" for name in panels], figure_2)

    def figure_3(axis: Any, panel: str) -> None:
        dataset, _, column = panel.partition(" ")
        for method in ("mv_dl", "anno_reg", "max_mig", "aggnet", "crowding"):
            values = over_epochs(curves, dataset, method, column)
            if len(values):
                band(axis, values.index + 1, values, TITLES[method])
        rows = curves[(curves["dataset"] == dataset) & (curves["method"] == "crowding") & (curves["stage"] == "classifier")]
        if len(rows):
            axis.axvline(rows["epoch"].max() + 1, linestyle="--", color="grey", linewidth=1)
        axis.set(title=f"{DATASETS[dataset]}, {column.split('_')[0]}", xlabel="epoch", ylabel="accuracy (%)")

    plot(folder / "crowding_figure3.png", [f"{name} {column}" for name in panels for column in ("train_accuracy", "test_accuracy")], figure_3)


def sparsity_figure(rows: pd.DataFrame, folder: Path) -> None:
    """Figure 5, and its means as a table."""
    groups = rows.groupby(["dataset", "method", "keep"], sort=False)
    made = groups.agg(runs=("seed", "size"), annotations=("annotations", "mean"), accuracy=("test_accuracy", spread)).reset_index()
    save(made, folder / "crowding_figure5.csv")

    def draw(axis: Any, dataset: str) -> None:
        for method in ("mv_dl", "dl_cl", "crowding"):
            part = rows[(rows["dataset"] == dataset) & (rows["method"] == method)]
            values = part.pivot(index="keep", columns="seed", values="test_accuracy").sort_index(ascending=False)
            if len(values):
                band(axis, 100 * (1 - values.index), values, TITLES[method])
        axis.set(title=DATASETS[dataset], xlabel="annotations removed (%)", ylabel="test accuracy (%)")

    plot(folder / "crowding_figure5.png", [name for name in DATASETS if (rows["dataset"] == name).any()], draw)


def sensitivity_figure(rows: pd.DataFrame, folder: Path) -> None:
    """Figure 6, and its means as a table."""
    rows = rows.assign(gain=rows["test_accuracy"] - rows["start_accuracy"])
    groups = rows.groupby(["dataset", "parameter", "value"], sort=False)
    made = groups.agg(
        runs=("seed", "size"), accuracy=("test_accuracy", spread), gain_over_dl_cl=("gain", lambda values: spread(values, signed=True))
    )
    save(made.reset_index(), folder / "crowding_figure6.csv")

    def draw(axis: Any, panel: str) -> None:
        dataset, _, parameter = panel.partition(" ")
        part = rows[(rows["dataset"] == dataset) & (rows["parameter"] == parameter)]
        values = part.pivot(index="value", columns="seed", values="test_accuracy")
        if len(values):
            band(axis, values.index, values, "CrowdInG")
            axis.axhline(100 * part["start_accuracy"].mean(), linestyle="--", color="grey", linewidth=1, label="DL-CL")
        symbol = {"information": "lambda", "threshold": "t"}[parameter]
        axis.set(title=DATASETS[dataset], xlabel=symbol, ylabel="test accuracy (%)")

    names = [name for name in DATASETS if (rows["dataset"] == name).any()]
    plot(folder / "crowding_figure6.png", [f"{name} {parameter}" for name in names for parameter in ("information", "threshold")], draw)


def report(folder: Path, results: Path) -> dict[str, str]:
    """Writes whatever there are runs for, and returns what was made from what."""
    made: dict[str, str] = {}
    if results.exists():
        rows = pd.read_csv(results)
        for name, methods in (("table1", ("dl_cl", *TABLE_1)), ("table2", ("dl_cl", *TABLE_2)), ("figure3", FIGURE_3)):
            save(table(rows, methods), folder / f"crowding_{name}.csv")
            made[f"crowding_{name}.csv"] = results.name
    parts = {part: folder / f"crowding_{part}.csv" for part in ("curves", "entropy", "sparsity", "sensitivity")}
    if parts["curves"].exists() and parts["entropy"].exists():
        curve_figures(pd.read_csv(parts["curves"]), folder, pd.read_csv(parts["entropy"]))
        made |= dict.fromkeys(("crowding_figure2.png", "crowding_figure3.png"), "crowding_curves.csv, crowding_entropy.csv")
    for part, number, draw in (("sparsity", 5, sparsity_figure), ("sensitivity", 6, sensitivity_figure)):
        if parts[part].exists():
            draw(pd.read_csv(parts[part]), folder)
            made[f"crowding_figure{number}.csv"] = parts[part].name
    return made
