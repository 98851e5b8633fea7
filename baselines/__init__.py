"""What the papers compare with. Importing this package registers every method in it."""

from baselines import (
    aggnet,
    annot_mix,
    augmentation,
    ccc,
    coinnet,
    conal,
    cpc,
    crowd_gan,
    crowdar,
    doctor_net,
    ds_mixup,
    geocrowdnet,
    madl,
    max_mig,
    mbem,
    metric_learning,
    raykar,
    smote_two_stage,
    trace_reg,
    unionnet,
)
