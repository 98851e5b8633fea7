"""DASC, room by room as the paper names them: confidence (eq. 2), quotas (eqs. 3 and 4), selection,
estimator (algorithm 1).
"""

from neucrowd_tf.dasc import methods
from neucrowd_tf.dasc.estimator import DASC
from neucrowd_tf.dasc.quality import majority_classes, selection_quality

__all__ = ["DASC", "majority_classes", "methods", "selection_quality"]
