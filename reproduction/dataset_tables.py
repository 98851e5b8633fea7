"""The papers' tables of datasets, recomputed beside the published values.

These are table 1 of NeuCrowd, DASC and ICED, and table 3 of DASC.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from data import cards
from neucrowd_tf.annotations import agreement, statistics
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.cross_validation import whole_crowd
from neucrowd_tf.io.tables.writing import number_cell, rounded_cell
from reproduction import printed
from reproduction.panels import write_rows
from reproduction.suite import FIRST_SEED, Suite

DATASETS = {
    "NeuCrowd": ("syn1", "syn2", "hotel"),
    "DASC": ("labelme", "music", "cifar10h_lt"),
    "ICED": ("usps_syn", "gsad_syn", "gisette_syn"),
}
SEEDS = 5  # of simulated data, whose statistics vary
AGREES = "agrees"
DIFFERS = "differs"
ABSENT = "not recomputed: not in data_dir"
COLUMNS = ("paper", "dataset", "statistic", "published", "ours", "least", "most", "outcome")
_TWO_DIGITS = ("kappa", "class_ratio")


def dataset_statistics(dataset: CrowdDataset) -> Fields:
    """Returns a dataset's sizes and the statistics of its annotations.

    The names are those of the papers' tables.

    Kappa and the class ratio are those of all rows that the crowd labelled, as in NeuCrowd, whose
    values for hotel do not fit the training rows alone.
    """
    figures = cards.dataset_statistics(dataset)
    votes = whole_crowd(dataset).vote_counts()
    figures["kappa"] = agreement.fleiss_kappa(votes)
    if dataset.num_classes == 2:
        figures["class_ratio"] = statistics.class_ratio(votes)
    return figures


def agrees(name: str, printed: float, ours: float) -> bool:
    """Whether a figure is the printed one, to half of its last digit."""
    _, _, decimals = f"{float(printed)!r}".removesuffix(".0").partition(".")
    digits = 2 if name in _TWO_DIGITS else len(decimals)
    return abs(ours - printed) <= 0.5 * 10.0**-digits + 1e-9


def _rows(options: Options, paper: str, name: str) -> list[list[str]]:
    entry = registry.dataset(name)
    try:
        draws = range(SEEDS if entry.simulated else 1)
        datasets = [entry.load(options.data_dir, FIRST_SEED + i) for i in draws]
    except (DataError, OSError):
        return [[paper, name, "", "", "", "", "", ABSENT]]
    computed = list(map(dataset_statistics, datasets))
    rows = []
    for statistic, figure in datasets[0].card.paper.items():
        values = [float(figures.get(statistic, math.nan)) for figures in computed]
        mean = float(np.mean(values))
        outcome = DIFFERS
        if math.isnan(mean):
            outcome = "not computed"
        elif min(values) <= figure <= max(values) or any(
            agrees(statistic, figure, x) for x in values
        ):
            outcome = AGREES
        cells = map(rounded_cell, (figure, mean, min(values), max(values)))
        rows.append([paper, name, statistic, *cells, outcome])
    return rows


def write(suite: Suite, options: Options) -> list[Path]:
    """Writes the tables as CSV and Markdown."""
    rows = []
    for paper, names in DATASETS.items():
        for name in names:
            rows += _rows(options, paper, name)
        for name, figures in printed.DATASETS[paper].items():
            for statistic, value in figures.items():
                cells = (number_cell(value), "", "", "", "not recomputed: private data")
                rows.append([paper, name, statistic, *cells])
    return write_rows(suite, options, COLUMNS, rows)
