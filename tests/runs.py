"""Files of finished runs, written without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def write_run(folder: Path, right: Iterable[bool], labels: str, **metrics) -> Path:
    """Writes predictions of items labelled "a" or "b" that are right where `right` says so.

    A label "?" is unknown; such an item is predicted as one of class a.
    """
    lines = ["task,true_label,predicted,p_a,p_b"]
    for task, (is_right, label) in enumerate(zip(right, labels, strict=True)):
        predicted = "ab"[bool(is_right) == (label == "b")]
        first = 0.9 if predicted == "a" else 0.1
        lines.append(f"{task},{label.strip('?')},{predicted},{first},{1 - first}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "predictions.csv").write_text("\n".join(lines) + "\n")
    (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder
