"""NeuCrowd, part by part as the paper names them.

Assurance, safety, robust anchor, joint learning, sampler and estimator; and the released code's
settings.

The method in one file: examples/neucrowd.py.
"""

from neucrowd_tf.methods.neucrowd.estimator import NeuCrowd

__all__ = ["NeuCrowd"]
