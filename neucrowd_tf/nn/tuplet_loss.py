"""The softmax over a tuplet that NeuCrowd and RLL share.

It is how likely the positive is, given the anchor.
"""

from __future__ import annotations

from keras import ops

from neucrowd_tf.declare.types import Tensor


def tuplet_log_likelihood(
    similarities: Tensor, confidence: Tensor, *, eta: float, weight_inside: bool
) -> Tensor:
    """Returns log p(positive | anchor) of each tuplet, `[..., n - 1] -> [...]`.

    Minus its sum over tuplets is the loss of both papers.

    Args:
        similarities: `[..., n - 1]` similarity to the anchor; the positive example comes first.
        confidence: `[..., n - 1]` in each example's label, within [0, 1]: RLL's delta, NeuCrowd's
            assurance.
        eta: the smoothing hyper-parameter, the inverse of a temperature.
        weight_inside: True multiplies the similarity inside the exponent, as both papers print it;
            False multiplies the exponential itself, as NeuCrowd's released code does, in which case
            an offset C cancels.

    References:
        NeuCrowd, section 3.3.3: the posterior p(e+ | e_r*), and L(Omega(Theta)).
        RLL, eq. (3); with a confidence of 1 the p(x_j | x_i) and L(Omega) of section III-A.
    """
    if weight_inside:
        logits = eta * confidence * similarities
    else:
        # Deviation: NeuCrowd section 3.3.3, an assurance of 0. Paper: A positive of assurance 0
        # pulls nothing (inside), or its posterior is 0 and the loss infinite (outside). Here:
        # Outside, an assurance below 1e-6 counts as 1e-6; a tied positive then has a loss of about
        # 14, and pulls as hard as any. Why: The loss has to be finite. Effect: not measured.
        logits = eta * similarities + ops.log(ops.maximum(confidence, 1e-6))
    return logits[..., 0] - ops.logsumexp(logits, axis=-1)
