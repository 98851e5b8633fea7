"""Makes DASC's tables and figures from the rows of `benchmarks.dasc_study`; called by `python -m benchmarks.dasc_study report`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.dasc_study import BASES, write_rows

TITLES = {"crowd_layer": "CrowdLayer", "anno_reg": "Anno-Reg", "wdn": "WDN"}
SELECTIONS = ("confidence", "random", "dasc")
# Table 2 (accuracy %, mean and standard deviation over 5 runs): Anno-Reg, CrowdLayer, WDN.
PAPER_TABLE_2: dict[str, dict[str, tuple[str, str, str]]] = {
    "labelme": {
        "ce": ("82.3+-0.3", "84.0+-0.3", "77.1+-2.6"),
        "resampling": ("83.2+-0.5", "85.6+-0.7", "80.6+-1.0"),
        "reweighting": ("83.6+-0.4", "85.6+-0.3", "78.8+-1.6"),
        "focal": ("81.7+-0.4", "84.2+-0.2", "78.4+-1.5"),
        "confidence": ("82.4+-0.2", "71.4+-7.3", "77.7+-1.7"),
        "random": ("83.3+-1.2", "77.3+-0.3", "74.3+-1.2"),
        "dasc": ("85.6+-0.3", "87.6+-0.4", "82.3+-0.9"),
    },
    "music": {
        "ce": ("65.8+-0.7", "66.3+-1.5", "55.1+-4.0"),
        "resampling": ("66.3+-2.0", "68.3+-1.1", "51.6+-1.3"),
        "reweighting": ("67.1+-1.1", "66.7+-0.6", "56.2+-1.4"),
        "focal": ("63.4+-1.2", "65.0+-0.6", "57.5+-2.4"),
        "confidence": ("65.8+-0.9", "57.6+-0.8", "61.5+-1.7"),
        "random": ("66.7+-1.0", "63.2+-1.5", "60.1+-1.8"),
        "dasc": ("68.0+-1.1", "68.5+-0.5", "65.7+-1.4"),
    },
}
PAPER_DEEP_LABELS = {"labelme": {"mv_dl": "81.3+-0.4", "ds_dl": "82.2+-0.4"}, "music": {"mv_dl": "59.3+-1.7", "ds_dl": "65.2+-0.8"}}
# Table 1: training and test size, R, R_g, mean and standard deviation of annotators' accuracy (%), annotations an annotator.
PAPER_TABLE_1 = {"labelme": (1000, 1188, 2.479, 1.730, 69.2, 18.1, 43.2), "music": (700, 300, 1.753, 1.188, 73.3, 24.2, 66.9)}


def read(folder: Path) -> pd.DataFrame:
    """Returns the rows of all runs with `kind` and `base` beside the method."""
    rows = pd.read_csv(folder / "dasc_rounds.csv", dtype={"settings": str})
    rows["settings"] = rows["settings"].fillna("")
    rows["base"] = [next((base for base in BASES if method.endswith(f"_{base}")), "") for method in rows["method"]]
    rows["kind"] = [method.removesuffix(f"_{base}") if base else method for method, base in zip(rows["method"], rows["base"], strict=True)]
    return rows


def spread(values: Iterable[float]) -> str:
    """Returns mean and standard deviation in per cent as the paper prints them."""
    array = 100 * np.asarray(list(values), dtype=float)
    return f"{array.mean():.1f}+-{array.std(ddof=1):.1f}" if len(array) > 1 else f"{array.mean():.1f}"


def last_rounds(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the last round of each run."""
    keys = ["dataset", "keep", "method", "seed", "settings"]
    return rows.loc[rows.groupby(keys, sort=False)["round"].idxmax()]


def table_1(folder: Path, data_dir: str | None) -> None:
    """Statistics of the data beside table 1."""
    import data  # noqa: F401  (registers the datasets)
    from neucrowd_tf import registry, statistics
    from neucrowd_tf.errors import DataError

    names = ("train", "test", "r", "r_truth", "annotator_accuracy", "annotator_accuracy_std", "annotations_per_annotator")
    found = []
    for name in ("labelme", "music", "cifar10n_lt"):
        try:
            dataset = registry.dataset(name).load(data_dir)
        except (DataError, OSError):
            continue
        got = statistics.describe(dataset.annotations, dataset.truth)
        ours = (
            len(dataset.features), len(dataset.test), got["imbalance_ratio"], got["truth_imbalance_ratio"],
            100 * got["mean_annotator_accuracy"], 100 * got["std_annotator_accuracy"], got["annotations_per_annotator"],
        )  # fmt: skip
        paper = PAPER_TABLE_1.get(name, ("",) * len(names))
        found.append([name, *(x for pair in zip((f"{v:.4g}" for v in ours), (str(v) for v in paper), strict=True) for x in pair)])
    write_rows(folder / "dasc_table1.csv", ["dataset", *(x for name in names for x in (name, f"paper_{name}"))], found)


def table_2(folder: Path, rows: pd.DataFrame) -> None:
    """Test accuracy at the last round and at the round that validation picks, beside table 2."""
    plain = rows[(rows["keep"] == 1) & (rows["settings"] == "")]
    last = last_rounds(plain)
    picked = plain[plain["picked"] == 1]
    found = []
    for name in dict.fromkeys(plain["dataset"]):
        for method in ("gold_dl", "mv_dl", "ds_dl"):
            mine = last[(last["dataset"] == name) & (last["method"] == method)]
            if len(mine):
                found.append([name, method, "", str(len(mine)), spread(mine["test_accuracy"]), "", PAPER_DEEP_LABELS.get(name, {}).get(method, "")])
        for kind in ("ce", "resampling", "reweighting", "focal", "confidence", "random", "dasc"):
            for base in BASES:
                if kind == "ce":
                    own = plain[(plain["dataset"] == name) & (plain["method"] == f"dasc_{base}") & (plain["round"] == 0)]
                    best = own
                else:
                    own = last[(last["dataset"] == name) & (last["method"] == f"{kind}_{base}")]
                    best = picked[(picked["dataset"] == name) & (picked["method"] == f"{kind}_{base}")]
                if not len(own):
                    continue
                paper = PAPER_TABLE_2.get(name, {}).get(kind, ("", "", ""))[("anno_reg", "crowd_layer", "wdn").index(base)]
                chosen = spread(best["test_accuracy"]) if kind in SELECTIONS and own["val_accuracy"].notna().all() else ""
                found.append([name, kind, base, str(len(own)), spread(own["test_accuracy"]), chosen, paper])
    write_rows(folder / "dasc_table2.csv", ["dataset", "method", "base", "runs", "last_round", "picked_round", "paper"], found)


def curves(folder: Path, name: str, panels: Sequence[tuple[str, pd.DataFrame]], x: str, y: str, label: str, scale: float = 1.0) -> None:
    """Writes the means behind a figure, and the figure: a panel for each pair of title and rows, a line for each kind of method."""
    from matplotlib.figure import Figure

    panels = [(title, part) for title, part in panels if len(part)]
    if not panels:
        return
    columns = min(3, len(panels))
    height = -(-len(panels) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.9 * height), layout="constrained")
    found = []
    for place, (title, part) in enumerate(panels, 1):
        axes = figure.add_subplot(height, columns, place)
        for key, own in part.groupby("kind", sort=False):
            means = own.groupby(x)[y].agg(["mean", "std", "count"])
            means[["mean", "std"]] *= scale
            axes.errorbar(means.index, means["mean"], yerr=means["std"].fillna(0), label=str(key), marker="o", markersize=3, capsize=2)
            for at, row in means.iterrows():
                found.append([title, str(key), f"{at:g}", f"{row['mean']:.4g}", f"{row['std']:.3g}", f"{row['count']:.0f}"])
        axes.set_title(title, fontsize=9)
        axes.set_xlabel(x)
        axes.set_ylabel(label)
        axes.legend(fontsize=7)
    write_rows(folder / f"{name}.csv", ["panel", "method", x, "mean", "std", "runs"], found)
    figure.savefig(folder / f"{name}.png", dpi=120)


def by_round(rows: pd.DataFrame, datasets: Iterable[str], kinds: Sequence[str], bases: Sequence[str] = BASES) -> list[tuple[str, pd.DataFrame]]:
    """Returns a panel for each dataset and base."""
    chosen = rows[rows["kind"].isin(kinds)]
    return [
        (f"{dataset}, {TITLES[base]}", chosen[(chosen["dataset"] == dataset) & (chosen["base"] == base)]) for dataset in datasets for base in bases
    ]


def figure_1(folder: Path, rows: pd.DataFrame, data_dir: str | None) -> None:
    """Figure 1: sparsity and imbalance of LabelMe's annotations, and how self-training by confidence fares."""
    from matplotlib.figure import Figure

    import data  # noqa: F401
    from neucrowd_tf import registry

    labelme = registry.dataset("labelme").load(data_dir)
    crowd, truth = labelme.annotations, labelme.truth
    shares = 100 * np.sort(np.bincount(crowd.annotators, minlength=crowd.num_annotators))[::-1] / crowd.num_instances
    counts = {"truth": np.bincount(truth, minlength=8), "annotations": np.bincount(crowd.labels, minlength=8)}
    found = [["a", "annotator", str(i), f"{value:.4g}"] for i, value in enumerate(shares)]
    found += [["b", name, str(c), f"{100 * n / values.sum():.4g}"] for name, values in counts.items() for c, n in enumerate(values)]
    confidence = rows[(rows["dataset"] == "labelme") & (rows["method"] == "confidence_crowd_layer") & (rows["keep"] == 1)]
    lines = confidence.groupby("round")[["test_accuracy", "imbalance_ratio"]].mean()
    found += [["c", "imbalance_ratio", str(t), f"{row['imbalance_ratio']:.4g}"] for t, row in lines.iterrows()]
    found += [["d", "test_accuracy", str(t), f"{100 * row['test_accuracy']:.4g}"] for t, row in lines.iterrows()]
    write_rows(folder / "dasc_figure1.csv", ["panel", "series", "x", "value"], found)
    figure = Figure(figsize=(11, 2.8), layout="constrained")
    panels: list[tuple[str, Callable[[Any], Any]]] = [
        ("a: instances an annotator labelled, %", lambda axes: axes.bar(range(len(shares)), shares)),
        ("b: classes, %", lambda axes: [axes.plot(100 * v / v.sum(), marker="o", label=k) for k, v in counts.items()] and axes.legend(fontsize=7)),
        ("c: R by round, confidence", lambda axes: axes.plot(lines.index, lines["imbalance_ratio"], marker="o")),
        ("d: test accuracy %, confidence", lambda axes: axes.plot(lines.index, 100 * lines["test_accuracy"], marker="o")),
    ]
    for place, (title, draw) in enumerate(panels, 1):
        axes = figure.add_subplot(1, 4, place)
        draw(axes)
        axes.set_title(title, fontsize=9)
    figure.savefig(folder / "dasc_figure1.png", dpi=120)


def figure_5(folder: Path, rows: pd.DataFrame, datasets: Sequence[str]) -> None:
    """Figure 5: precision on majority and recall on minority classes of the first and the fifth selection."""
    chosen = rows[rows["kind"].isin(SELECTIONS) & rows["round"].isin([1, 5]) & (rows["keep"] == 1)]
    found = []
    for (dataset, base, kind, number), own in chosen.groupby(["dataset", "base", "kind", "round"], sort=False):
        if dataset in datasets:
            found.append([dataset, base, kind, str(number), spread(own["precision_majority"].dropna()), spread(own["recall_minority"].dropna())])
    if found:
        write_rows(folder / "dasc_figure5.csv", ["dataset", "base", "selection", "round", "precision_majority", "recall_minority"], found)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(BASES), 2.8 * 2 * max(1, len(datasets))), layout="constrained")
    place = 0
    for dataset in datasets:
        for measure in ("precision_majority", "recall_minority"):
            for base in BASES:
                place += 1
                axes = figure.add_subplot(2 * len(datasets), len(BASES), place)
                for shift, kind in enumerate(SELECTIONS):
                    mine = (chosen["dataset"] == dataset) & (chosen["base"] == base) & (chosen["kind"] == kind)
                    own = chosen[mine].groupby("round")[measure].mean()
                    axes.bar(np.arange(len(own)) + 0.25 * shift, 100 * own, width=0.25, label=kind)
                    axes.set_xticks(np.arange(len(own)) + 0.25, [f"t = {t}" for t in own.index])
                axes.set_title(f"{dataset}, {TITLES[base]}: {measure.replace('_', ', ')}", fontsize=8)
                axes.legend(fontsize=6)
    figure.savefig(folder / "dasc_figure5.png", dpi=120)


def figure_6(folder: Path, rows: pd.DataFrame, datasets: Sequence[str]) -> None:
    """Figure 6: test accuracy of the last round when a share of the annotations is removed."""
    start = rows[(rows["kind"] == "dasc") & (rows["round"] == 0)].assign(kind="ce")
    ends = last_rounds(rows)
    both = pd.concat([start, ends[ends["kind"].isin(SELECTIONS)]])
    both = both.assign(removed=100 * (1 - both["keep"]))
    thinned = [name for name in datasets if (both[both["dataset"] == name]["keep"] < 1).any()]
    curves(folder, "dasc_figure6", by_round(both, thinned, ("ce", *SELECTIONS)), "removed", "test_accuracy", "test accuracy %", 100)


def report(folder: Path, data_dir: str | None) -> None:
    """Writes every table and figure that the rows allow."""
    rows = read(folder)
    main = rows[(rows["keep"] == 1) & (rows["settings"] == "")]
    datasets = [name for name in ("labelme", "music", "cifar10n_lt") if (main["dataset"] == name).any()]
    table_1(folder, data_dir)
    table_2(folder, rows)
    if "labelme" in datasets:
        figure_1(folder, rows, data_dir)
    curves(folder, "dasc_figure4", by_round(main, datasets, SELECTIONS), "round", "imbalance_ratio", "R")
    figure_5(folder, rows, [name for name in datasets if name != "cifar10n_lt"])
    figure_6(folder, rows[rows["settings"] == ""], datasets)
    compared = [name for name in datasets if (main[main["dataset"] == name]["kind"] == "focal_self").any()]
    panels = by_round(main, compared, ("dasc", "focal_self", "cb_focal_self"), ("crowd_layer",))
    curves(folder, "dasc_figure7a", panels, "round", "test_accuracy", "test accuracy %", 100)
    curves(folder, "dasc_figure7b", panels, "round", "imbalance_ratio", "R")
    heavy = [name for name in dict.fromkeys(main["dataset"]) if "_ovr_" in name]
    curves(folder, "dasc_figure8", by_round(main, heavy, SELECTIONS), "round", "test_accuracy", "test accuracy %", 100)
