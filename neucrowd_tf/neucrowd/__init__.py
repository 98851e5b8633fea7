"""NeuCrowd, room by room as the paper names them: assurance, safety, robust anchor, joint learning,
sampler, estimator; and, ours, `neucrowd_joint`: posterior, joint model, joint.
"""

from neucrowd_tf.neucrowd.estimator import NeuCrowd
from neucrowd_tf.neucrowd.joint import NeuCrowdJoint

__all__ = ["NeuCrowd", "NeuCrowdJoint"]
