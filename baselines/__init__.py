"""What the papers compare with. Importing this package registers every method in it."""

from baselines import (
    aggnet,
    augmentation,
    conal,
    cpc,
    crowd_gan,
    doctor_net,
    max_mig,
    mbem,
    metric_learning,
    raykar,
    smote_two_stage,
)

__all__ = [
    "aggnet",
    "augmentation",
    "cpc",
    "crowd_gan",
    "doctor_net",
    "max_mig",
    "mbem",
    "metric_learning",
    "raykar",
    "smote_two_stage",
    "conal",
]
