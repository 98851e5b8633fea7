"""ICED's figure 2 from finished runs."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.harness.flags import Options
from reproduction.collect import suite_runs
from reproduction.curves import write
from reproduction.panels import Point, draw_bars
from reproduction.suite import Suite

BARS = {
    "label_majority_vote": "MV",
    "label_original": "D&S-orig",
    "label_first": "D&S-first",
    "label_final": "D&S-final",
}


def figure_2(suite: Suite, options: Options) -> list[Path]:
    """ICED's figure 2: the accuracy of inferred labels.

    These are majority vote, and Dawid-Skene before, after the first and after the last round.
    """
    bars, by_round = [], []
    for run in suite_runs(suite, options.output_dir):
        figures, name = run.evaluation, run.case.row_name(run.method)
        bars += [
            Point(f"{run.dataset}: {name}", shown, 0, run.seed, figures[key])
            for key, shown in BARS.items()
            if figures.get(key) is not None
        ]
        by_round += [
            Point(run.dataset, name, number, run.seed, value)
            for number, value in enumerate(figures.get("rounds", {}).get("label_accuracy", []))
        ]
    title = "MV, D&S-orig, D&S-first, D&S-final"
    files = write(suite, options, "labels", bars, title, "label accuracy", draw_bars)
    return files + write(suite, options, "rounds", by_round, "round", "label accuracy")
