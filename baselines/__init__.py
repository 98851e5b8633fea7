"""What the papers compare with. Importing this package registers every method in it."""

from baselines import (
    aggnet,
    augmentation,
    auto,
    cpc,
    crowd_gan,
    deep_labels,
    doctor_net,
    max_mig,
    mbem,
    metric_learning,
    raykar,
    smote_two_stage,
    softprob,
    two_stage,
)

__all__ = [
    "aggnet",
    "augmentation",
    "auto",
    "cpc",
    "crowd_gan",
    "deep_labels",
    "doctor_net",
    "max_mig",
    "mbem",
    "metric_learning",
    "raykar",
    "smote_two_stage",
    "softprob",
    "two_stage",
]
