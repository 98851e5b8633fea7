"""What generated annotations tell of the classifier's output, and what the auxiliary network makes
of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.crowding.crowd import fold
from neucrowd_tf.crowding.discriminative import DiscriminativeModule
from neucrowd_tf.crowding.generative import GenerativeModule

_LEAST = 1e-12
_SEED = (0x1F, 0x0D)  # of the noise, the same before and after a game


def mutual_information(joint: Any) -> Any:
    """Returns I(z; y) of joint distributions in nats, `[..., C (z), C (y)] -> [...]`."""
    joint = np.asarray(joint, np.float64)
    independent = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    ratio = np.log(np.maximum(joint, _LEAST)) - np.log(np.maximum(independent, _LEAST))
    return (joint * ratio).sum(axis=(-2, -1))


def information(
    generative: GenerativeModule, discriminative: DiscriminativeModule
) -> dict[str, float]:
    """Returns, of all pairs of instance and annotator:

    - `conditional_information`: the mean of I(z; y | x, e); 0 where the generator is fed z-hat,
      given which labels are drawn without regard to z;
    - `information`: the mean over annotators of I(z; y | e), instances taken together;
    - `bound`: E log Q(z | x, e, y) + H(z | x), which is at most `conditional_information`;
    - `score_variance`: the mean over pairs of the variance over y of E[log Q(z | x, e, y) | y].

    Args:
        generative, discriminative: as they are; the noise is drawn once.

    References:
        CrowdInG, eq. 3.
    """
    crowd, latent = generative.crowd, np.asarray(generative.classify_all(), np.float64)
    classes, sums, joint_sum = latent.shape[1], np.zeros(3), 0.0
    for index, first in enumerate(range(0, len(latent), generative.batch_rows)):
        rows = tf.range(first, min(first + generative.batch_rows, len(latent)))
        z, noise = latent[rows.numpy()], generative.noise(rows, fold(tf.constant(_SEED), index))
        fed = tf.constant(z, tf.float32)
        if generative.by_class:
            answers = tf.nn.softmax(generative.logits_by_class(rows, noise))
        else:
            answers = tf.nn.softmax(generative.logits(rows, fed, noise))
            answers = tf.repeat(answers[:, :, None, :], classes, axis=2)
        joint = z[:, None, :, None] * np.asarray(answers, np.float64)
        _, log_q = discriminative.all_signals(rows, generative.log_answers(rows, fed))
        log_q = np.swapaxes(np.asarray(log_q, np.float64), -1, -2)  # [B, R, C (z), C (y)]
        chances = joint.sum(axis=2)
        scores = (joint * log_q).sum(axis=2) / np.maximum(chances, _LEAST)
        spread = (chances * scores**2).sum(-1) - (chances * scores).sum(-1) ** 2
        entropy = -(z * np.log(np.maximum(z, _LEAST))).sum(axis=1)
        bound = (joint * log_q).sum(axis=(2, 3)) + entropy[:, None]
        each = mutual_information(joint), bound, spread
        sums += [value.sum() for value in each]
        joint_sum = joint_sum + joint.sum(axis=0)
    pairs = len(latent) * int(crowd.annotators.shape[0])
    conditional, bound, spread = sums / pairs
    return {
        "conditional_information": float(conditional),
        "information": float(mutual_information(joint_sum / len(latent)).mean()),
        "bound": float(bound),
        "score_variance": float(spread),
    }
