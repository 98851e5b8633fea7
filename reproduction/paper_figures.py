"""Test figures that the papers print for public datasets, to stand beside ours in summary.csv.

`FIGURES[dataset][method]` maps the names of results.csv's metric columns to the printed value.
"""

from __future__ import annotations

from collections.abc import Mapping

_NEUCROWD_TABLE_2 = {
    "softprob": (0.666, 0.720, 0.664, 0.734, 0.850, 0.921),
    "ds_lr": (0.652, 0.717, 0.666, 0.732, 0.857, 0.918),
    "glad_lr": (0.614, 0.664, 0.636, 0.701, 0.850, 0.911),
    "contrastive": (0.580, 0.590, 0.600, 0.579, 0.850, 0.908),
    "triplet": (0.654, 0.695, 0.644, 0.683, 0.864, 0.916),
    "triplet_semi": (0.638, 0.678, 0.626, 0.641, 0.771, 0.795),
    "center": (0.594, 0.612, 0.594, 0.605, 0.843, 0.912),
    "lifted": (0.588, 0.596, 0.598, 0.614, 0.836, 0.887),
    "contrastive_ds": (0.596, 0.605, 0.612, 0.622, 0.850, 0.906),
    "triplet_ds": (0.650, 0.661, 0.672, 0.772, 0.864, 0.918),
    "triplet_semi_ds": (0.616, 0.653, 0.640, 0.685, 0.750, 0.792),
    "center_ds": (0.594, 0.600, 0.592, 0.620, 0.850, 0.918),
    "lifted_ds": (0.588, 0.600, 0.600, 0.616, 0.857, 0.911),
    "neucrowd": (0.678, 0.729, 0.688, 0.751, 0.871, 0.928),
}
_NEUCROWD_TABLE_3 = {
    "neucrowd_no_sa_ra_sn": (0.650, 0.712, 0.674, 0.662, 0.770, 0.838),
    "neucrowd_no_sa_ra": (0.665, 0.713, 0.664, 0.720, 0.850, 0.921),
    "neucrowd_no_sa": (0.670, 0.714, 0.680, 0.723, 0.857, 0.823),
}

# Hao, Ding, Liu: NeuCrowd, tables 2 and 3 (accuracy and AUC on Syn1, Syn2 and Hotel).
FIGURES: dict[str, dict[str, dict[str, float]]] = {
    dataset: {
        method: {"accuracy": row[2 * i], "auc": row[2 * i + 1]}
        for method, row in {**_NEUCROWD_TABLE_2, **_NEUCROWD_TABLE_3}.items()
    }
    for i, dataset in enumerate(("syn1", "syn2", "hotel"))
}


def paper_figures(dataset: str, method: str) -> Mapping[str, float]:
    """Returns the printed figures by metric; empty where no paper prints any."""
    return FIGURES.get(dataset, {}).get(method, {})
