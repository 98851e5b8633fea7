"""BWA: a Bayesian weighted average of one-hot labels."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf.aggregation.base import apply_gold, coin_errors
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import Fit, LatentModel, Shard, Sums, agreement
from neucrowd_tf.arguments import argument, estimator, fitted, flag, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A crowd that never disagrees leaves neither distances nor a rate: precisions stay finite.
SMALL = 1e-9


@dataclasses.dataclass(frozen=True)
class Weights:
    """Parameters.

    Attributes:
        precisions: `[R, C]` of each annotator about each class.
        means: `[C]` of the instances' values.
        rate: `[C]` half of this is the rate of the precisions' gamma prior.
    """

    precisions: NDArray[np.float64]
    means: NDArray[np.float64]
    rate: NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class BwaModel(LatentModel[Weights]):
    """Coordinate ascent over sums.

    An instance's value of a class is z ~ N(mean, 1 / pull); an annotator's label, as a zero or a
    one, is ~ N(z, 1 / v) with v ~ Gamma(shape / 2, rate / 2). The classes are inferred apart.
    """

    shape: float
    pull: float
    corrected: bool

    def e_step(self, shard: Shard, parameters: Weights) -> tuple[NDArray[np.float64], Sums]:
        """Returns the values `[n, C]`, each a weighted mean of labels and the mean."""
        v, size = parameters.precisions, shard.num_classes
        weights = np.zeros((*v.shape, size))
        weights[:, np.arange(size), np.arange(size)] = v
        values = shard.one_hot @ weights.reshape(-1, size)
        values += self.pull * parameters.means
        values /= self.pull + shard.who @ v
        return apply_gold(values, shard.gold), {}

    def sums(self, shard: Shard, beliefs: NDArray[np.float64]) -> Sums:
        """Returns the squared distances `[R, C]` of labels from values, how many labels each
        annotator gave, and what the class means and the prior's rate depend on.
        """
        size = shard.num_classes
        given = np.asarray(shard.transposed @ beliefs).reshape(-1, size, size)
        ones = np.asarray(shard.one_hot.sum(axis=0)).reshape(-1, size)
        squared = beliefs**2
        squares = np.asarray(shard.who.T @ squared)
        squares += ones - 2.0 * np.einsum("rcc->rc", given)
        labels = np.asarray(shard.who.sum(axis=1)).reshape(-1)
        return {
            "squares": squares,
            "labels": ones.sum(axis=1),
            "mass": np.einsum("nc,n->c", beliefs, shard.used),
            "squared": np.einsum("nc,n->c", squared, shard.used),
            "instances": shard.used.sum(),
            "variance": labels @ (beliefs * (1.0 - beliefs)),
        }

    def m_step(self, sums: Sums, parameters: Weights | None) -> Weights:
        """Returns the annotators' expected precisions and the mean values; the prior's rate is
        that of the vote's variance.
        """
        if parameters is None:
            size = len(sums["mass"])
            scale = 4.0 * (1.0 - 1.0 / size) if self.corrected and size > 1 else 1.0
            rate = self.shape * sums["variance"] / sums["labels"].sum() * scale
        else:
            rate = parameters.rate
        above = self.shape + sums["labels"][:, None]
        precisions = above / np.maximum(rate + sums["squares"], SMALL)
        return Weights(precisions, sums["mass"] / sums["instances"], rate)

    def objective(self, sums: Sums, parameters: Weights) -> float:
        """Returns the log posterior of values and means, the precisions integrated out, up to a
        constant.
        """
        distances = np.maximum(parameters.rate + sums["squares"], SMALL)
        fit = ((self.shape + sums["labels"][:, None]) * np.log(distances)).sum()
        means = parameters.means
        spread = sums["squared"] - 2.0 * means * sums["mass"] + sums["instances"] * means**2
        return -0.5 * float(fit + self.pull * spread.sum())


@estimator
class BWA(IterativeAggregator):
    """Bayesian weighted average: labels as zeros and ones with normal noise, whose precision is the
    annotator's weight.

    Attributes: see `IterativeAggregator`, and
        weights_: `[R, C]` each annotator's precision about each class.
    `probas_` are the values, scaled to sum to one; `skills_` the shares of an annotator's labels
    that are `labels_`.

    References:
        Li, Rubinstein and Cohn (2019), Truth inference at scale: a Bayesian model for adjudicating
        highly redundant crowd annotations, section 3.
    """

    shape: float = argument(15.0, number(above=0), "shape of the precisions' gamma prior, a_v.")
    pull: float = argument(1.0, number(above=0), "precision of an instance's value, lambda.")
    corrected: bool = argument(
        True, flag, "scale the prior's rate by 4 (1 - 1 / C), so that it serves any C."
    )
    weights_: NDArray[np.float64] = fitted()

    def _model(self, shard: Shard) -> BwaModel:
        return BwaModel(self.shape, self.pull, self.corrected)

    def _store(self, found: Fit[Weights], shard: Shard) -> None:
        values = np.maximum(found.beliefs, 0.0)
        mass = values.sum(axis=1, keepdims=True)
        size = shard.num_classes
        self.probas_ = np.divide(values, mass, out=np.full_like(values, 1 / size), where=mass > 0)
        self.priors_ = np.maximum(found.parameters.means, 0.0)
        self.priors_ /= self.priors_.sum()
        self.weights_ = found.parameters.precisions
        chosen = np.eye(size)[found.beliefs.argmax(axis=1)]
        self.skills_ = agreement(shard, chosen)
        self.errors_ = coin_errors(self.skills_, size)
