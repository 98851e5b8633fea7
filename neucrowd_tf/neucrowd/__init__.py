"""NeuCrowd, part by part as the paper names them.

Assurance, safety, robust anchor, joint learning, sampler and estimator; and the released code's
settings.
"""

from neucrowd_tf.neucrowd.estimator import NeuCrowd
from neucrowd_tf.neucrowd.released import ReleasedNeuCrowd

__all__ = ["NeuCrowd", "ReleasedNeuCrowd"]
