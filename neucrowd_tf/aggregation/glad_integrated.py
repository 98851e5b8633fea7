"""GLAD over sums: an instance's easiness is integrated out on a grid.

So its E-step needs one instance at a time, and its M-step is one number per annotator.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from neucrowd_tf.aggregation.base import Array, coin_errors, normalise_log
from neucrowd_tf.aggregation.sums import TINY, LatentModel, Shard, Sums, keep_gold_only

# Deviation: difficulties are averaged over, in the paper they are parameters.
POINTS = 9
# Mean of the abilities and of the easiness, which have standard deviation 1.
MEAN = 1.0
CLIMBS = 10


@dataclasses.dataclass(frozen=True)
class Abilities:
    """Parameters: abilities `[R]` and class priors `[C]`."""

    abilities: Array
    priors: Array


@dataclasses.dataclass(frozen=True)
class IntegratedGladModel(LatentModel[Abilities]):
    """EM over sums; the beliefs `[n, C * G]` are of the class and of the easiness' grid point.

    Attributes:
        num_classes: C.
        prior: `[C]` class prior to hold, or None to estimate it.
    """

    num_classes: int
    prior: Array | None = None
    parameters_type = Abilities

    def grid(self) -> tuple[Array, Array]:
        """Returns Gauss and Hermite's points `[G]` of the easiness b, and their weights."""
        points, weights = np.polynomial.hermite_e.hermegauss(POINTS)
        return MEAN + points, weights / weights.sum()

    def start(self, shard: Shard) -> Array:
        """Returns the beliefs under the prior's mean ability, as GLAD begins."""
        even = np.full(self.num_classes, 1.0 / self.num_classes)
        abilities = np.full(shard.num_annotators, MEAN)
        priors = even if self.prior is None else self.prior
        return self.e_step(shard, Abilities(abilities, priors))[0]

    def e_step(self, shard: Shard, parameters: Abilities) -> tuple[Array, Sums]:
        """Returns beliefs and log evidence (equation 3 of the paper, at each grid point)."""
        size = self.num_classes
        points, weights = self.grid()
        x = parameters.abilities[:, None] * np.exp(points)
        others = np.log(max(size - 1, 1))
        wrong = -np.logaddexp(0.0, x) - others
        table = np.repeat(np.repeat(wrong[:, None, None, :], size, 1), size, 2)
        classes = np.arange(size)
        table[:, classes, classes, :] += (x + others)[:, None, :]
        scores = shard.one_hot @ table.reshape(-1, size * POINTS)
        keep_gold_only(scores, shard.gold, np.repeat(classes, POINTS))
        prior = np.log(np.maximum(parameters.priors, TINY))[:, None] + np.log(weights)
        evidence = normalise_log(scores, prior.reshape(-1), 1024)
        return scores, {"evidence": evidence.sum()}

    def sums(self, shard: Shard, beliefs: Array) -> Sums:
        """Returns the numbers of right labels and of labels at each grid point, and class mass."""
        size = self.num_classes
        counts = np.asarray(shard.transposed @ beliefs).reshape(-1, size, size, POINTS)
        return {
            "right": np.einsum("rccg->rg", counts),
            "labels": counts.sum(axis=(1, 2)),
            "mass": (shard.used @ beliefs).reshape(size, POINTS).sum(axis=1),
            "instances": shard.used.sum(),
        }

    def m_step(self, sums: Sums, parameters: Abilities | None) -> Abilities:
        """Climbs the expected log likelihood of each ability (equation 4 of the paper).

        It is concave; its curvature is at most a quarter, which makes the steps safe.
        """
        slope = np.exp(self.grid()[0])
        right, labels = sums["right"], sums["labels"]
        abilities = np.full(len(right), MEAN) if parameters is None else parameters.abilities.copy()
        curvature = 0.25 * labels @ slope**2 + 1.0
        for _ in range(CLIMBS):
            chance = 0.5 * (1.0 + np.tanh(0.5 * abilities[:, None] * slope))
            gradient = (right - labels * chance) @ slope - (abilities - MEAN)
            abilities += gradient / curvature
        priors = self.prior if self.prior is not None else sums["mass"] / sums["instances"]
        return Abilities(abilities, priors)

    def objective(self, sums: Sums, parameters: Abilities) -> float:
        """Returns the log likelihood, easiness integrated out, plus the abilities' log prior."""
        return float(sums["evidence"] - 0.5 * ((parameters.abilities - MEAN) ** 2).sum())

    def probas(self, beliefs: Array, parameters: Abilities) -> Array:
        """Returns `[n, C]`, the beliefs summed over the grid."""
        return np.asarray(beliefs.reshape(len(beliefs), self.num_classes, -1).sum(axis=2))

    def errors(self, parameters: Abilities) -> Array:
        """Returns `[R, C true, C observed]`, means over the prior of the easiness."""
        points, weights = self.grid()
        chances = 1.0 / (1.0 + np.exp(-parameters.abilities[:, None] * np.exp(points)))
        size = self.num_classes
        return coin_errors(chances @ weights if size > 1 else np.ones(len(chances)), size)
