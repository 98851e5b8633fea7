"""What the papers compare with. Importing this package registers every method in it."""

from baselines import (
    aggnet,
    augmentation,
    cpc,
    crowd_gan,
    dasc_crowding,
    dasc_ensemble,
    ds_mixup,
    max_mig,
    mbem,
    metric_learning,
    neucrowd_joint,
    raykar,
    smote_two_stage,
)
