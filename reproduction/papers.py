"""What the papers print: `TABLES[table][(dataset, method)]` maps a metric to (mean, standard
deviation or None).

Datasets and methods have this project's names; a dataset that nobody published keeps the paper's.
Settings of a table (k, d) precede the method as "k=3/". Accuracies are shares, not per cent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Figure = tuple[float, float | None]
Table = dict[tuple[str, str], dict[str, Figure]]

# Datasets that the papers describe and nobody published.
PRIVATE = frozenset({"pre_k", "oral", "class", "emotion"})
# Published, but not part of the usual data folder: a table shows them when a user has them.
ELSEWHERE = frozenset({"cifar10h", "cifar10h_lt", "gisette_syn"})


def _wide(
    datasets: Sequence[str], metrics: Sequence[str], rows: Mapping[str, Sequence[float | None]]
) -> Table:
    """Makes a table whose rows are methods and whose columns run over datasets and, within each,
    metrics.
    """
    found: Table = {}
    for method, values in rows.items():
        for i, dataset in enumerate(datasets):
            cells = values[i * len(metrics) : (i + 1) * len(metrics)]
            figures: dict[str, Figure] = {
                metric: (value, None)
                for metric, value in zip(metrics, cells, strict=True)
                if value is not None
            }
            if figures:
                found[dataset, method] = figures
    return found


def _with_deviations(dataset: str, rows: Mapping[str, Sequence[float]]) -> Table:
    """Makes one dataset's part of a table of accuracies in per cent, each followed by its standard
    deviation.
    """
    return {
        (dataset, method): {"accuracy": (mean / 100, deviation / 100)}
        for method, (mean, deviation) in rows.items()
    }


_NEUCROWD = ("syn1", "syn2", "pre_k", "hotel", "oral")
# Hao, Ding, Liu: NeuCrowd, table 2. Softprob is printed as not converging on Pre-K.
NEUCROWD_TABLE2 = _wide(
    _NEUCROWD,
    ("accuracy", "auc"),
    {
        "softprob": (0.666, 0.720, 0.664, 0.734, None, None, 0.850, 0.921, 0.825, 0.940),
        "ds_lr": (0.652, 0.717, 0.666, 0.732, 0.830, 0.923, 0.857, 0.918, 0.815, 0.949),
        "glad_lr": (0.614, 0.664, 0.636, 0.701, 0.830, 0.923, 0.850, 0.911, 0.805, 0.948),
        "contrastive": (0.580, 0.590, 0.600, 0.579, 0.82, 0.873, 0.850, 0.908, 0.855, 0.905),
        "triplet": (0.654, 0.695, 0.644, 0.683, 0.850, 0.883, 0.864, 0.916, 0.795, 0.927),
        "triplet_semi": (0.638, 0.678, 0.626, 0.641, 0.650, 0.628, 0.771, 0.795, 0.84, 0.920),
        "center": (0.594, 0.612, 0.594, 0.605, 0.760, 0.801, 0.843, 0.912, 0.850, 0.957),
        "lifted": (0.588, 0.596, 0.598, 0.614, 0.740, 0.784, 0.836, 0.887, 0.860, 0.940),
        "contrastive_ds": (0.596, 0.605, 0.612, 0.622, 0.800, 0.855, 0.850, 0.906, 0.865, 0.950),
        "triplet_ds": (0.650, 0.661, 0.672, 0.772, 0.860, 0.918, 0.864, 0.918, 0.865, 0.954),
        "triplet_semi_ds": (0.616, 0.653, 0.640, 0.685, 0.745, 0.725, 0.750, 0.792, 0.850, 0.908),
        "center_ds": (0.594, 0.600, 0.592, 0.620, 0.790, 0.794, 0.850, 0.918, 0.865, 0.948),
        "lifted_ds": (0.588, 0.600, 0.600, 0.616, 0.720, 0.740, 0.857, 0.911, 0.860, 0.944),
        "neucrowd": (0.678, 0.729, 0.688, 0.751, 0.870, 0.898, 0.871, 0.928, 0.865, 0.927),
    },
)
# NeuCrowd, table 3.
NEUCROWD_TABLE3 = _wide(
    _NEUCROWD,
    ("accuracy", "auc"),
    {
        "neucrowd_no_sa_ra_sn": (0.65, 0.712, 0.674, 0.662, 0.806, 0.87, 0.77, 0.838, 0.837, 0.908),
        "neucrowd_no_sa_ra": (0.665, 0.713, 0.664, 0.72, 0.806, 0.882, 0.850, 0.921, 0.81, 0.904),
        "neucrowd_no_sa": (0.67, 0.714, 0.68, 0.723, 0.822, 0.869, 0.857, 0.823, 0.884, 0.948),
        "neucrowd": (0.678, 0.729, 0.688, 0.751, 0.870, 0.898, 0.871, 0.928, 0.865, 0.927),
    },
)
# Xu et al.: RLL, table I. Both datasets are private.
RLL_TABLE1 = _wide(
    ("oral", "class"),
    ("accuracy", "f1_positive"),
    {
        "softprob": (0.815, 0.869, 0.758, 0.810),
        "ds_lr": (0.843, 0.887, 0.606, 0.698),
        "glad_lr": (0.831, 0.881, 0.697, 0.773),
        "contrastive": (0.802, 0.859, 0.719, 0.836),
        "triplet": (0.847, 0.889, 0.750, 0.857),
        "relation_net": (0.843, 0.890, 0.730, 0.842),
        "contrastive_ds": (0.798, 0.856, 0.727, 0.842),
        "contrastive_glad": (0.815, 0.871, 0.727, 0.842),
        "triplet_ds": (0.843, 0.887, 0.727, 0.842),
        "triplet_glad": (0.843, 0.890, 0.667, 0.792),
        "relation_net_ds": (0.860, 0.899, 0.727, 0.842),
        "relation_net_glad": (0.854, 0.889, 0.730, 0.842),
        "rll": (0.871, 0.901, 0.818, 0.880),
        "rll_mle": (0.871, 0.903, 0.848, 0.902),
        "rll_bayesian": (0.888, 0.915, 0.879, 0.920),
    },
)
# RLL, tables II (k negatives) and III (d annotators).
RLL_TABLE2 = _wide(
    ("oral", "class"),
    ("accuracy", "f1_positive"),
    {
        "k=2/rll_bayesian": (0.809, 0.852, 0.699, 0.813),
        "k=3/rll_bayesian": (0.888, 0.915, 0.879, 0.920),
        "k=4/rll_bayesian": (0.831, 0.875, 0.757, 0.855),
        "k=5/rll_bayesian": (0.803, 0.851, 0.750, 0.846),
    },
)
RLL_TABLE3 = _wide(
    ("oral", "class"),
    ("accuracy", "f1_positive"),
    {
        "d=1/rll_bayesian": (0.826, 0.873, 0.727, 0.842),
        "d=3/rll_bayesian": (0.876, 0.922, 0.758, 0.840),
        "d=5/rll_bayesian": (0.888, 0.915, 0.879, 0.920),
    },
)
# DASC, table 2 (mean and standard deviation over 5 repetitions).
DASC_TABLE2 = {
    **_with_deviations(
        "labelme",
        {
            "mv_dl": (81.3, 0.4),
            "ds_dl": (82.2, 0.4),
            "anno_reg": (82.3, 0.3),
            "crowd_layer": (84.0, 0.3),
            "wdn": (77.1, 2.6),
            "resampling_anno_reg": (83.2, 0.5),
            "resampling_crowd_layer": (85.6, 0.7),
            "resampling_wdn": (80.6, 1.0),
            "reweighting_anno_reg": (83.6, 0.4),
            "reweighting_crowd_layer": (85.6, 0.3),
            "reweighting_wdn": (78.8, 1.6),
            "focal_anno_reg": (81.7, 0.4),
            "focal_crowd_layer": (84.2, 0.2),
            "focal_wdn": (78.4, 1.5),
            "confidence_anno_reg": (82.4, 0.2),
            "confidence_crowd_layer": (71.4, 7.3),
            "confidence_wdn": (77.7, 1.7),
            "random_anno_reg": (83.3, 1.2),
            "random_crowd_layer": (77.3, 0.3),
            "random_wdn": (74.3, 1.2),
            "dasc_anno_reg": (85.6, 0.3),
            "dasc_crowd_layer": (87.6, 0.4),
            "dasc_wdn": (82.3, 0.9),
        },
    ),
    **_with_deviations(
        "music",
        {
            "mv_dl": (59.3, 1.7),
            "ds_dl": (65.2, 0.8),
            "anno_reg": (65.8, 0.7),
            "crowd_layer": (66.3, 1.5),
            "wdn": (55.1, 4.0),
            "resampling_anno_reg": (66.3, 2.0),
            "resampling_crowd_layer": (68.3, 1.1),
            "resampling_wdn": (51.6, 1.3),
            "reweighting_anno_reg": (67.1, 1.1),
            "reweighting_crowd_layer": (66.7, 0.6),
            "reweighting_wdn": (56.2, 1.4),
            "focal_anno_reg": (63.4, 1.2),
            "focal_crowd_layer": (65.0, 0.6),
            "focal_wdn": (57.5, 2.4),
            "confidence_anno_reg": (65.8, 0.9),
            "confidence_crowd_layer": (57.6, 0.8),
            "confidence_wdn": (61.5, 1.7),
            "random_anno_reg": (66.7, 1.0),
            "random_crowd_layer": (63.2, 1.5),
            "random_wdn": (60.1, 1.8),
            "dasc_anno_reg": (68.0, 1.1),
            "dasc_crowd_layer": (68.5, 0.5),
            "dasc_wdn": (65.7, 1.4),
        },
    ),
    **_with_deviations(
        "cifar10h_lt",
        {
            "mv_dl": (44.9, 0.7),
            "ds_dl": (43.4, 0.8),
            "anno_reg": (40.9, 1.0),
            "crowd_layer": (45.6, 0.5),
            "wdn": (17.3, 1.1),
            "resampling_anno_reg": (43.9, 1.8),
            "resampling_crowd_layer": (48.6, 1.7),
            "resampling_wdn": (18.2, 0.5),
            "reweighting_anno_reg": (41.4, 1.0),
            "reweighting_crowd_layer": (47.7, 0.8),
            "reweighting_wdn": (17.6, 1.3),
            "focal_anno_reg": (39.7, 0.4),
            "focal_crowd_layer": (47.6, 1.2),
            "focal_wdn": (17.9, 1.3),
            "confidence_anno_reg": (49.4, 1.2),
            "confidence_crowd_layer": (48.8, 1.0),
            "confidence_wdn": (31.9, 1.7),
            "random_anno_reg": (49.0, 1.5),
            "random_crowd_layer": (51.2, 3.5),
            "random_wdn": (14.7, 0.6),
            "dasc_anno_reg": (51.0, 1.3),
            "dasc_crowd_layer": (55.3, 0.6),
            "dasc_wdn": (36.9, 1.7),
        },
    ),
}
# Self-training's figures are those of its last round, which is what the paper predicts with.
DASC_TABLE2 = {
    (dataset, method): {
        (
            "last_round_accuracy"
            if method.startswith(("confidence_", "random_", "dasc_"))
            else "accuracy"
        ): row["accuracy"]
    }
    for (dataset, method), row in DASC_TABLE2.items()
}
# Chu and Wang: CrowdInG, tables 1 and 2.
CROWDING_TABLE1 = {
    **_with_deviations(
        "labelme",
        {
            "doctor_net": (82.12, 0.43),
            "dl_cl_self": (85.24, 0.51),
            "dl_cl_gcn": (82.74, 0.34),
            "dl_cl_gan": (85.16, 0.26),
            "dl_cl_ing": (85.42, 0.57),
            "crowding": (87.03, 0.55),
        },
    ),
    **_with_deviations(
        "music",
        {
            "doctor_net": (75.41, 0.42),
            "dl_cl_self": (82.56, 0.49),
            "dl_cl_gcn": (81.42, 0.74),
            "dl_cl_gan": (83.17, 0.48),
            "dl_cl_ing": (83.38, 0.59),
            "crowding": (83.73, 0.62),
        },
    ),
    **_with_deviations(
        "cifar10h",
        {
            "doctor_net": (67.23, 0.54),
            "dl_cl_self": (64.94, 0.84),
            "dl_cl_gcn": (65.02, 0.61),
            "dl_cl_gan": (65.34, 0.32),
            "dl_cl_ing": (66.17, 0.35),
            "crowding": (68.85, 0.47),
        },
    ),
}
CROWDING_TABLE2 = {
    **_with_deviations(
        "labelme",
        {
            "crowdg": (85.89, 0.47),
            "crowdingu": (83.12, 0.39),
            "crowdingi": (84.34, 0.72),
            "crowdingr": (86.17, 0.44),
            "crowding": (87.03, 0.55),
        },
    ),
    **_with_deviations(
        "music",
        {
            "crowdg": (83.14, 0.28),
            "crowdingu": (81.28, 0.51),
            "crowdingi": (82.24, 0.47),
            "crowdingr": (82.74, 0.58),
            "crowding": (83.73, 0.62),
        },
    ),
    **_with_deviations(
        "cifar10h",
        {
            "crowdg": (66.15, 0.34),
            "crowdingu": (67.12, 0.59),
            "crowdingi": (66.90, 0.31),
            "crowdingr": (67.88, 0.62),
            "crowding": (68.85, 0.47),
        },
    ),
}
# Wang et al.: ICED, table 2.
ICED_TABLE2 = _wide(
    ("gisette_syn", "usps_syn", "gsad_syn", "emotion"),
    ("accuracy", "f1"),
    {
        "mv_lr": (0.8179, 0.8175, 0.8494, 0.8480, 0.7094, 0.6872, 0.8289, 0.8277),
        "mv_dnn": (0.8000, 0.7979, 0.8735, 0.8732, 0.8333, 0.8327, 0.7944, 0.7901),
        "ds_lr": (0.7671, 0.7592, 0.8193, 0.8136, 0.6974, 0.6716, 0.8311, 0.8294),
        "ds_dnn": (0.7636, 0.7562, 0.7530, 0.7386, 0.8085, 0.8082, 0.7811, 0.7749),
        "crowd_layer": (0.8200, 0.8167, 0.9006, 0.8998, 0.8342, 0.8295, 0.8300, 0.8273),
        "mbem": (0.6967, 0.4211, 0.7813, 0.5334, 0.6826, 0.5577, 0.6344, 0.5324),
        "cpc": (0.8021, 0.8020, 0.8313, 0.8311, 0.6154, 0.5917, None, None),
        "iced": (0.8521, 0.8512, 0.9036, 0.9030, 0.8872, 0.8865, 0.8644, 0.8640),
    },
)
# ICED, table 3 (warm-up alone): Trad-I, Trad-II, ICED-w.
ICED_TABLE3: Table = {
    (dataset, f"warm_up={name},{epochs}_epochs/iced"): {
        "accuracy": (accuracy, None),
        "f1": (f1, None),
    }
    for dataset, epochs, rows in (
        (
            "gisette_syn",
            15,
            {"all": (0.8014, 0.7989), "top": (0.6079, 0.5372), "groups": (0.8186, 0.8126)},
        ),
        (
            "usps_syn",
            6,
            {"all": (0.7500, 0.7333), "top": (0.7922, 0.7828), "groups": (0.8373, 0.8329)},
        ),
        (
            "gsad_syn",
            6,
            {"all": (0.4581, 0.3142), "top": (0.4504, 0.3105), "groups": (0.8376, 0.8332)},
        ),
    )
    for name, (accuracy, f1) in rows.items()
}
TABLES: dict[str, Table] = {
    "neucrowd_table2": NEUCROWD_TABLE2,
    "neucrowd_table3": NEUCROWD_TABLE3,
    "rll_table1": RLL_TABLE1,
    "rll_table2": RLL_TABLE2,
    "rll_table3": RLL_TABLE3,
    "dasc_table2": DASC_TABLE2,
    "crowding_table1": CROWDING_TABLE1,
    "crowding_table2": CROWDING_TABLE2,
    "iced_table2": ICED_TABLE2,
    "iced_table3": ICED_TABLE3,
}
