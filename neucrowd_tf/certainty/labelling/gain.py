"""The expected value of one more label.

It is the expected rise in the probability that the consensus is right, and the information about
the item's class.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from neucrowd_tf.declare.types import Floats, Indices

# Bounds of gains are computed on a grid of STEPS steps. With more than MOST_CLASSES classes they
# take longer than they save.
STEPS = 64
MOST_CLASSES = 10


class Answers(NamedTuple):
    """What annotators may say of a task. The classes come first: sums over a few are then fast.

    Attributes:
        chances: `[C true class, C observed class, 1, R]`.
        noise: `[C, 1, R]` the entropy of an annotator's label of an item of each class.
    """

    chances: Floats
    noise: Floats

    @classmethod
    def of(cls, errors: Floats) -> Answers:
        """Returns the answers of annotators with these matrices `[R, C true, C observed]`."""
        chances = np.ascontiguousarray(errors.transpose(1, 2, 0)[:, :, None])
        return cls(chances, entr(chances).sum(axis=1))

    def at(self, annotators: Indices) -> Answers:
        """Returns those of some annotators."""
        return Answers(self.chances[..., annotators], self.noise[..., annotators])

    def values(self, probas: Floats) -> tuple[Floats, Floats]:
        """Returns the expected gain and information `[N, R]` if an annotator labels a task.

        The consensus is right with probability max_c P(c). The annotator will give label l with
        probability sum_c P(c) E(c, l), after which the consensus is right with probability
        max_c P(c) E(c, l) / sum_c P(c) E(c, l). So the gain in the consensus' accuracy is
        sum_l max_c P(c) E(c, l) - max_c P(c), which is 0 where no label could change the consensus.

        The information is that of an item's class and an annotator's label about each other, in
        nats: H(sum_c P(c) E(c, .)) - sum_c P(c) H(E(c, .)). It is above 0 where the gain is 0
        because one label cannot change the consensus, but two could.

        Args:
            probas: `[N, C]` of each task's class now.
        """
        by_class = np.ascontiguousarray(probas.T)[:, :, None]
        label = by_class[0] * self.chances[0]
        after = label.copy()
        noise = by_class[0] * self.noise[0]
        for share, chances, entropy in zip(
            by_class[1:], self.chances[1:], self.noise[1:], strict=True
        ):
            joint = share * chances
            np.maximum(after, joint, out=after)
            label += joint
            noise += share * entropy
        gain = np.maximum(after.sum(axis=0) - by_class.max(axis=0), 0.0)
        return gain, np.maximum(entr(label).sum(axis=0) - noise, 0.0)


def most_gain(probas: Floats, errors: Floats) -> Floats:
    """Returns `[N]` bounds of the gain of any annotator's label of a task, see `Answers.values`.

    Let s be the most probable class. The gain is sum_l max_c (P(c) E(c, l) - P(s) E(s, l)), at most
    P(s) times the sum over the other classes of sum_l max(0, q E(c, l) - E(s, l)), q = P(c) / P(s).
    The largest of these sums of any annotator rises with q, so the next q of a grid bounds it.

    Args:
        probas: `[N, C]` of each task's class.
        errors: `[R, C true, C observed]`.
    """
    top = probas.max(axis=1)
    size = probas.shape[1]
    if size > MOST_CLASSES:
        return 1.0 - top
    best = probas.argmax(axis=1)
    bounds = np.zeros(len(probas))
    for likely, other in itertools.permutations(range(size), 2):
        rows = np.flatnonzero(best == likely)
        shares = np.ceil(probas[rows, other] / top[rows] * STEPS)
        steps, places = np.unique(shares, return_inverse=True)
        gains = np.zeros(len(steps))
        for place, step in enumerate(steps):
            against = step / STEPS * errors[:, other] - errors[:, likely]
            gains[place] = np.maximum(against, 0.0).sum(axis=1).max(initial=0.0)
        bounds[rows] += top[rows] * gains[places]
    return np.minimum(bounds, 1.0 - top)
