"""The registered names of CrowdInG: the method, the ablations of its tables, and DL-CL."""

from __future__ import annotations

from typing import Any

from neucrowd_tf.crowding.estimator import CrowdInG
from neucrowd_tf.registration import register_method

# Chosen on validation data.
PRESETS: dict[str, dict[str, Any]] = {
    "labelme": {"standardise": "square_root"},
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


def register(name: str, summary: str, kind: type[CrowdInG] = CrowdInG, **defaults: Any) -> None:
    """Registers a variant of CrowdInG.

    Args:
        name: as in `--method`.
        summary: one line for `--list`.
        kind: the class.
        defaults: the arguments that differ.
    """
    register_method(name, summary=summary, defaults=defaults, presets=PRESETS, space=SPACE)(kind)


register("crowding", "CrowdInG: authentic and generated annotations teach the classifier")
register("crowdg", "CrowdInG without the information loss (table 2)", information=0.0)
register("crowdingu", "CrowdInG, generator without instance (table 2)", instance_features=False)
register(
    "crowdingi", "CrowdInG, generator without annotators (table 2)", annotator_identities=False
)
register("crowdingr", "CrowdInG, cells selected at random (table 2)", selection="random")
register("crowding_one_step", "CrowdInG, both networks in one step (figure 2b)", two_step=False)
register("crowding_no_lca", "CrowdInG without label correlations", label_correlation=False)
register("dl_cl", "DL-CL: the crowd layer that CrowdInG starts from", epochs=0)
