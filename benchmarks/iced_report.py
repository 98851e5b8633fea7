"""Tables of the ICED study from its CSV files, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from neucrowd_tf.files import write_text
from neucrowd_tf.harness.suites.papers import ICED_TABLE2

# Table 3, accuracy and F1; figure 2 has no numbers but those that section 3.3 names, for Gisette-Syn.
TABLE3 = {
    ("usps_syn", "Trad-I"): (0.7500, 0.7333),
    ("usps_syn", "Trad-II"): (0.7922, 0.7828),
    ("usps_syn", "ICED-w"): (0.8373, 0.8329),
    ("gsad_syn", "Trad-I"): (0.4581, 0.3142),
    ("gsad_syn", "Trad-II"): (0.4504, 0.3105),
    ("gsad_syn", "ICED-w"): (0.8376, 0.8332),
}


def interval(values: Sequence[float]) -> str:
    """Returns mean and half the width of the 95 % interval over seeds."""
    from scipy import stats

    array = np.asarray(values, dtype=float)
    if len(array) < 2:
        return f"{array.mean():.4f}"
    half = stats.t.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    return f"{array.mean():.4f} ± {half:.4f}"


def table(frame: pd.DataFrame, columns: Sequence[str], printed: dict[tuple[str, str, str], float]) -> str:
    """Returns a Markdown table with a row a dataset and method; `printed` is the paper's, by dataset, method and column."""
    heads = [f"{column} | paper" if any(key[2] == column for key in printed) else column for column in columns]
    lines = [f"| dataset | method | seeds | {' | '.join(heads)} |", "|---" * (3 + sum(1 + head.count("|") for head in heads)) + "|"]
    for (dataset, method), part in frame.groupby(["dataset", "method"], sort=False):
        cells = [str(dataset), str(method), str(len(part))]
        for column, head in zip(columns, heads, strict=True):
            values = part[column].dropna() if column in part else pd.Series(dtype=float)
            cells.append(interval(values) if len(values) else "")
            if "|" in head:
                found = printed.get((str(dataset), str(method), column))
                cells.append("" if found is None else f"{found:.4f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def paired(frame: pd.DataFrame, dataset: str, other: str) -> str:
    """Returns ICED's gain over another method on the same seeds."""
    pivot = frame[frame["dataset"] == dataset].pivot(index="seed", columns="method", values="accuracy")
    if "iced" not in pivot or other not in pivot:
        return ""
    gain = (pivot["iced"] - pivot[other]).dropna()
    return f"- `{dataset}`: iced - {other}: {interval(gain.tolist())} over {len(gain)} seeds"


def write_report(folder: Path) -> None:
    """Writes `iced.md` from the CSV files that are there; remarks in `iced_remarks.md` come first."""
    frames = {part: pd.read_csv(path) for part in ("table2", "table3", "figure2", "ten_classes") if (path := folder / f"iced_{part}.csv").exists()}
    said = ["# ICED: measured figures", "", "Mean and 95 % interval over seeds; a seed draws the rows, the annotators and the weights."]
    remarks = folder / "iced_remarks.md"
    if remarks.exists():
        said += ["", remarks.read_text(encoding="utf-8").strip()]
    if "table2" in frames:
        frame = frames["table2"]
        printed = {(d, m, k): mean for (d, m), cells in ICED_TABLE2.items() for k, (mean, _) in cells.items() if mean is not None}
        said += ["", "## Table 2", "", "    python -m benchmarks.iced_study --part=table2", "", table(frame, ("accuracy", "f1"), printed), ""]
        rivals = [name for name in frame["method"].unique() if name != "iced"]
        said += [text for dataset in frame["dataset"].unique() for other in rivals if (text := paired(frame, dataset, other))]
    if "figure2" in frames:
        columns = ("label_majority_vote", "label_original", "label_first", "label_final", "candidate_purity", "accuracy")
        said += ["", "## Figure 2: accuracy of inferred labels", "", "    python -m benchmarks.iced_study --part=figure2", ""]
        said += ["The paper, on Gisette-Syn: D&S-orig below .60, D&S-first above .80, D&S-final above .90; majority vote is drawn, not printed.", ""]
        said += [table(frames["figure2"], columns, {})]
    if "table3" in frames:
        printed = {(d, m, k): v[at] for (d, m), v in TABLE3.items() for at, k in enumerate(("accuracy", "f1"))}
        said += ["", "## Table 3: warm-up alone", "", "    python -m benchmarks.iced_study --part=table3", ""]
        said += [table(frames["table3"], ("samples", "accuracy", "f1"), printed)]
    if "ten_classes" in frames:
        said += ["", "## Ten classes", "", "    python -m benchmarks.iced_study --part=ten_classes --seeds=5", ""]
        said += [table(frames["ten_classes"], ("accuracy", "f1", "label_majority_vote", "label_original", "label_final", "permuted"), {})]
    write_text(folder / "iced.md", "\n".join(said) + "\n")
