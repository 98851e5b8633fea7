"""A dataset's card as a table: its statistics, computed, beside those that a paper prints."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.cli.runs.work import data_statistics
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare.types import Fields


def dataset_statistics(dataset: CrowdDataset) -> Fields:
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


def card_text(dataset: CrowdDataset) -> str:
    """Returns the card in Markdown: provenance, notes, and the table of statistics.

    The cell of a statistic that is not published, or cannot be computed, is empty.
    """
    card = dataset.card
    computed = dataset_statistics(dataset)
    lines = [f"# {card.title}", ""]
    provenance = {"source": card.source, "licence": card.licence, "citation": card.citation}
    lines += [f"- {title}: {text}" for title, text in provenance.items() if text]
    if card.notes:
        lines += ["", card.notes, ""]
    else:
        lines += [""]
    lines += ["| statistic | computed | paper |", "|---|---|---|"]
    for name in dict.fromkeys([*computed, *card.paper]):
        if not isinstance(computed.get(name), list):
            ours = _shown(computed.get(name))
            theirs = _shown(card.paper.get(name))
            lines.append(f"| {name} | {ours} | {theirs} |")
    return "\n".join(lines) + "\n"


def _shown(value: float | None) -> str:
    if value is None or np.isnan(value):
        return ""
    return f"{value:.6g}"
