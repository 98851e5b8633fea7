"""BWA: a Bayesian weighted average of one-hot labels."""

from __future__ import annotations

import dataclasses

import numpy as np

from neucrowd_tf.aggregation.base import apply_gold, coin_errors, expected_counts, normalise_counts
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import Fit, LatentModel, Shard, Sums, skills_against
from neucrowd_tf.declare.declarations import estimator, fitted
from neucrowd_tf.declare.types import Floats

SHAPE = 15.0  # of the precisions' gamma prior, a_v
PULL = 1.0  # precision of an instance's value, lambda
# A crowd that never disagrees leaves neither distances nor a rate: precisions stay finite.
SMALL = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """Parameters.

    Attributes:
        precisions: `[R, C]` of each annotator about each class.
        means: `[C]` of the instances' values.
        rate: `[C]` half of this is the rate of the precisions' gamma prior.
    """

    precisions: Floats
    means: Floats
    rate: Floats


class BwaModel(LatentModel[Weights]):
    """Coordinate ascent over sums.

    An instance's value of a class is z ~ N(mean, 1 / pull); an annotator's label, as a zero or a
    one, is ~ N(z, 1 / v) with v ~ Gamma(shape / 2, rate / 2). The classes are inferred apart.
    """

    parameters_type = Weights

    def e_step(self, shard: Shard, parameters: Weights) -> tuple[Floats, Sums]:
        """Returns the values `[n, C]`, each a weighted mean of labels and the mean."""
        v = parameters.precisions
        size = shard.num_classes
        weights = np.zeros((*v.shape, size))
        weights[:, np.arange(size), np.arange(size)] = v
        values = shard.one_hot @ weights.reshape(-1, size)
        values += PULL * parameters.means
        values /= PULL + shard.annotator_weights @ v
        return apply_gold(values, shard.gold), {}

    def sums(self, shard: Shard, beliefs: Floats) -> Sums:
        """Returns the annotators' squared distances from the values, and sums over instances.

        The squared distances are `[R, C]`; beside them are the numbers of labels `[R]` and what the
        class means and the prior's rate depend on.
        """
        size = shard.num_classes
        products = expected_counts(shard.transposed, beliefs)
        ones = np.asarray(shard.one_hot.sum(axis=0)).reshape(-1, size)
        squared = beliefs**2
        squares = shard.annotator_weights.T @ squared
        squares += ones - 2.0 * np.einsum("rcc->rc", products)
        labels = np.asarray(shard.annotator_weights.sum(axis=1)).reshape(-1)
        return {
            "squares": squares,
            "labels": ones.sum(axis=1),
            "mass": np.einsum("nc,n->c", beliefs, shard.used),
            "squared": np.einsum("nc,n->c", squared, shard.used),
            "instances": shard.used.sum(),
            "variance": labels @ (beliefs * (1.0 - beliefs)),
        }

    def m_step(self, sums: Sums, parameters: Weights | None) -> Weights:
        """Returns the annotators' expected precisions, the mean values and the prior's rate."""
        if parameters is None:
            # The rate is scaled by 4 (1 - 1 / C), so that it serves any C.
            size = len(sums["mass"])
            scale = 4.0 * (1.0 - 1.0 / size) if size > 1 else 1.0
            rate = SHAPE * sums["variance"] / sums["labels"].sum() * scale
        else:
            rate = parameters.rate
        shape = SHAPE + sums["labels"][:, None]
        precisions = shape / np.maximum(rate + sums["squares"], SMALL)
        return Weights(precisions, sums["mass"] / sums["instances"], rate)

    def objective(self, sums: Sums, parameters: Weights) -> float:
        """Returns the log posterior of values and means up to a constant.

        The precisions are integrated out.
        """
        distances = np.maximum(parameters.rate + sums["squares"], SMALL)
        fit = ((SHAPE + sums["labels"][:, None]) * np.log(distances)).sum()
        means = parameters.means
        spread = sums["squared"] - 2.0 * means * sums["mass"] + sums["instances"] * means**2
        return -0.5 * float(fit + PULL * spread.sum())

    def probas(self, beliefs: Floats, parameters: Weights) -> Floats:
        """Returns the values `[n, C]`, scaled to sum to one."""
        return normalise_counts(np.maximum(beliefs, 0.0))

    def priors(self, parameters: Weights) -> Floats:
        """Returns the mean values `[C]`, scaled to sum to one."""
        return normalise_counts(np.maximum(parameters.means, 0.0))


@estimator
class BWA(IterativeAggregator):
    """Bayesian weighted average of labels as zeros and ones.

    Labels have normal noise whose precision is the annotator's weight.

    Attributes: see `IterativeAggregator`, and
        weights_: `[R, C]` each annotator's precision about each class.
    `probas_` are the values, scaled to sum to one; `skills_` the shares of an annotator's labels
    that are `labels_`.

    References:
        Li, Rubinstein and Cohn (2019), Truth inference at scale: a Bayesian model for adjudicating
        highly redundant crowd annotations, section 3.
    """

    weights_: Floats = fitted()

    def latent_model(self, num_classes: int) -> BwaModel:
        """Returns BWA as sums."""
        return BwaModel()

    def _store(self, result: Fit[Weights], shard: Shard, model: LatentModel) -> None:
        super()._store(result, shard, model)
        size = shard.num_classes
        self.weights_ = result.parameters.precisions
        self.skills_ = skills_against(shard, result.beliefs.argmax(axis=1))
        self.errors_ = coin_errors(self.skills_, size)
