"""NeuCrowd, room by room as the paper names them: assurance, safety, robust anchor, embedding,
sampler, estimator.
"""

from neucrowd_tf.neucrowd.estimator import NeuCrowd

__all__ = ["NeuCrowd"]
