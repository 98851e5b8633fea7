"""A dataset's card as a table: its statistics, computed, beside those that a paper prints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.harness.work import data_statistics


def dataset_statistics(dataset: CrowdDataset) -> dict[str, Any]:
    """Returns the sizes of a dataset's splits and statistics of its annotations by name.

    With truth, the sizes of the largest and smallest class are included.
    """
    features = int(np.prod(dataset.features.shape[1:]))
    statistics = {"num_features": features, **data_statistics(dataset)}
    if dataset.truth is not None:
        sizes = np.bincount(dataset.truth[dataset.truth >= 0], minlength=dataset.num_classes)
        statistics["majority_size"] = int(sizes.max())
        statistics["minority_size"] = int(sizes.min())
    return statistics


def card_table(dataset: CrowdDataset) -> pd.DataFrame:
    """Returns one row per statistic: `statistic`, `computed`, `paper`.

    `paper` is NaN if the paper has none; `computed` is NaN if it cannot be computed.
    """
    computed = {
        key: value
        for key, value in dataset_statistics(dataset).items()
        if not isinstance(value, list)
    }
    names = [*computed, *(name for name in dataset.card.paper if name not in computed)]
    return pd.DataFrame(
        {
            "statistic": names,
            "computed": [float(computed.get(name, np.nan)) for name in names],
            "paper": [float(dataset.card.paper.get(name, np.nan)) for name in names],
        }
    )


def card_text(dataset: CrowdDataset) -> str:
    """Returns the card in Markdown: provenance, notes, and the table of statistics."""
    card = dataset.card
    lines = [f"# {card.title}", ""]
    provenance = {"source": card.source, "licence": card.licence, "citation": card.citation}
    lines += [f"- {title}: {text}" for title, text in provenance.items() if text]
    lines += ["", card.notes, ""] if card.notes else [""]
    lines += ["| statistic | computed | paper |", "|---|---|---|"]
    for row in card_table(dataset).to_dict("records"):
        shown = ["" if np.isnan(row[key]) else f"{row[key]:.6g}" for key in ("computed", "paper")]
        lines.append(f"| {row['statistic']} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines) + "\n"
