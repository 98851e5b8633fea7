"""Label assurance (NeuCrowd, definition 2): how far an instance's annotators agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.declare.types import Floats32


def label_assurance(votes: ArrayLike, rule: str = "agreement") -> Floats32:
    """Returns the label assurance of each instance, `[N]` within [0, 1].

    With two classes this is definition 2, `|1 - 2 ||y||_1 / d|`, where d is the number of labels
    the instance has: 0 for a tie, 1 where all agree. With C classes it is `(C p - 1) / (C - 1)`, p
    being the share of the most frequent label, which equals definition 2 for C = 2 and keeps its
    ends: 0 where all classes are as frequent, 1 where all agree.

    Args:
        votes: `[N, C]` how often each class was given; an instance without labels has assurance 0.
        rule: "agreement" is definition 2; "share" is p itself, as in the released code, which never
            falls below 1 / C.

    References:
        NeuCrowd, definition 2.
    """
    # Deviation: NeuCrowd definition 2. Paper: d annotators, each labels everything; two classes.
    # Here: d is the number of labels of an instance; `(C p - 1) / (C - 1)` for C classes, p the
    # share of the most frequent label. Why: Crowds are sparse, data has more classes; for C = 2 it
    # is the published formula. Effect: none on complete crowds of two classes.
    counts = np.asarray(votes, dtype=np.float64)
    total = counts.sum(axis=1)
    classes = counts.shape[1]
    share = counts.max(axis=1) / np.maximum(total, 1.0)
    if rule == "share":
        return share.astype(np.float32)
    assurance = np.where(total > 0, (classes * share - 1.0) / (classes - 1.0), 0.0)
    return assurance.clip(0.0, 1.0).astype(np.float32)
