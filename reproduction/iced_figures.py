"""ICED's figure 2 from finished runs."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.harness.flags import Options
from reproduction import panels
from reproduction.collect import suite_runs
from reproduction.curves import figure_path
from reproduction.suite import Suite

BARS = {
    "label_majority_vote": "MV",
    "label_original": "D&S-orig",
    "label_first": "D&S-first",
    "label_final": "D&S-final",
}


def figure_2(suite: Suite, options: Options) -> list[Path]:
    """The accuracy of inferred labels: majority vote, and Dawid-Skene before, after the first and
    after the last round.
    """
    ours, by_round = [], []
    for run in suite_runs(suite, options.output_dir):
        found, name = run.evaluation, run.case.row_name(run.method)
        for key, shown in BARS.items():
            if found.get(key) is not None:
                ours.append(panels.Point(f"{run.dataset}: {name}", shown, 0, run.seed, found[key]))
        for number, value in enumerate(found.get("rounds", {}).get("label_accuracy", [])):
            by_round.append(panels.Point(run.dataset, name, number, run.seed, value))
    made = panels.write(
        figure_path(suite, options, "labels"),
        ours,
        suite.title,
        "MV, D&S-orig, D&S-first, D&S-final",
        "label accuracy",
        draw="bars",
    )
    return made + panels.write(
        figure_path(suite, options, "rounds"), by_round, suite.title, "round", "label accuracy"
    )
