"""Hyper-parameters of CrowdInG by dataset, chosen on validation data, and what `--tune` may try."""

from __future__ import annotations

from typing import Any

PAPER = "Chu and Wang: Improve learning from crowds via generative augmentation, KDD 2021"

PRESETS: dict[str, dict[str, Any]] = {
    "labelme": {"square_root": True},
    "music": {
        "dropout": 0.0,
        "batch_norm": True,
        "pretrain_epochs": 80,
        "label_correlation": False,
    },
    "cifar10n": {"base": "small_cnn", "dropout": 0.3, "pretrain_batch": 128, "pretrain_epochs": 20},
    "cifar10h": {"base": "small_cnn", "dropout": 0.3, "pretrain_batch": 128, "pretrain_epochs": 20},
}
SPACE: dict[str, tuple[Any, ...]] = {
    "information": (0.1, 0.3, 0.5, 1.0),
    "threshold": (0.2, 0.4, 0.5, 0.6, 0.8),
    "classifier_learning_rate": (3e-5, 1e-4, 3e-4),
    "generator_learning_rate": (1e-4, 3e-4),
    "pretrain_epochs": (15, 25, 50),
    "noise_size": (4, 8, 16),
}
# Name, summary, and the arguments that make it.
VARIANTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "dl_cl",
        (
            "DL-CL: the crowd-layer classifier that CrowdInG starts from (same seed, same"
            " pre-training)"
        ),
        {"epochs": 0},
    ),
    (
        "crowding_no_lca",
        "CrowdInG without label-correlation aggregation",
        {"label_correlation": False},
    ),
    (
        "crowding_one_step",
        "CrowdInG with generator and classifier updated together (figure 2b)",
        {"two_step": False},
    ),
    (
        "crowdingr",
        "CrowdInG with generated annotations selected at random (table 2)",
        {"selection": "random"},
    ),
    (
        "crowdingi",
        "CrowdInG whose generator does not know the annotator (table 2)",
        {"annotator_identities": False},
    ),
    (
        "crowdingu",
        "CrowdInG whose generator does not see the instance (table 2)",
        {"instance_features": False},
    ),
    ("crowdg", "CrowdInG without the information loss (table 2)", {"information": 0.0}),
    (
        "crowding",
        (
            "CrowdInG: generated annotations, judged for authenticity and information, teach the"
            " classifier"
        ),
        {},
    ),
)
