"""MACE: an annotator either knows the label or guesses by a habit."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import numpy as np

from neucrowd_tf.aggregation.base import normalise_counts
from neucrowd_tf.aggregation.dirichlet import divergence, expected_log
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import TINY, ConfusionModel, Fit, LatentModel, Shard, Sums, run
from neucrowd_tf.declare.declarations import estimator, fitted, whole
from neucrowd_tf.declare.types import Floats

# Variational Bayes: both counts of theta's beta prior, the Dirichlet count of a guessed label.
KNOWING = 0.5
SAYING = 10.0


@dataclasses.dataclass(frozen=True, eq=False)
class Habits:
    """Parameters of MACE, with the logarithms of their probabilities.

    Attributes:
        knowing: `[R, 2]` pseudo-counts of guessing and knowing.
        saying: `[R, C]` pseudo-counts of the labels that are guessed.
        log_knowing, log_saying: log shares of these, or their expectations.
    """

    knowing: Floats
    saying: Floats
    log_knowing: Floats
    log_saying: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class MaceModel(ConfusionModel[Habits]):
    """EM or variational Bayes over sums; the class prior is uniform.

    Attributes:
        knowing_prior: `[2]` (guessing, knowing) and
        saying_prior: Dirichlet counts of the parameters; for EM pseudo-counts.
        bayes: variational Bayes.
        num_classes: C.
        seed: of the random start.
    """

    knowing_prior: Floats
    saying_prior: float
    bayes: bool
    num_classes: int
    seed: int
    parameters_type = Habits

    def begin(self, num_annotators: int) -> Habits:
        """Returns parameters drawn near even ones."""
        rng = np.random.default_rng([self.seed, 1])
        knowing = rng.uniform(1.0, 1.5, (num_annotators, 2))
        saying = rng.uniform(1.0, 1.5, (num_annotators, self.num_classes))
        return Habits(knowing, saying, _log_shares(knowing), _log_shares(saying))

    def start(self, shard: Shard) -> Floats:
        """Returns the posteriors `[n, C]` under `begin`."""
        return self.e_step(shard, self.begin(shard.num_annotators))[0]

    def m_step(self, sums: Sums, parameters: Habits | None) -> Habits:
        """Divides the counts of right labels into known and guessed ones by the last parameters."""
        counts = sums["counts"]
        previous = parameters or self.begin(len(counts))
        right = np.einsum("rcc->rc", counts)
        knows = np.exp(previous.log_knowing[:, 1:])
        guesses = np.exp(previous.log_knowing[:, :1] + previous.log_saying)
        both = knows + guesses
        from_knowledge = right * np.divide(knows, both, out=np.zeros_like(both), where=both > 0)
        guessed = counts.sum(axis=2) - from_knowledge
        knowing = np.stack([guessed.sum(axis=1), from_knowledge.sum(axis=1)], axis=1)
        knowing += self.knowing_prior
        saying = guessed + self.saying_prior
        logs = expected_log if self.bayes else _log_shares
        return Habits(knowing, saying, logs(knowing), logs(saying))

    def log_errors(self, parameters: Habits) -> Floats:
        """Returns `[R * C observed, C true]`."""
        q = parameters
        guesses = np.exp(q.log_knowing[:, :1] + q.log_saying)
        chances = np.repeat(guesses[:, :, None], self.num_classes, axis=2)
        classes = np.arange(self.num_classes)
        chances[:, classes, classes] += np.exp(q.log_knowing[:, 1:])
        return np.log(np.maximum(chances, TINY)).reshape(-1, self.num_classes)

    def log_priors(self, parameters: Habits) -> Floats:
        """Returns `[C]`."""
        return np.full(self.num_classes, -np.log(self.num_classes))

    def objective(self, sums: Sums, parameters: Habits) -> float:
        """Returns the evidence lower bound, or the log posterior where EM."""
        q = parameters
        if not self.bayes:
            smoothed = (self.knowing_prior * q.log_knowing).sum()
            smoothed += (self.saying_prior * q.log_saying).sum()
            return float(sums["evidence"] + smoothed)
        knowing = np.broadcast_to(self.knowing_prior, q.knowing.shape)
        saying = np.full_like(q.saying, self.saying_prior)
        distance = divergence(q.knowing, knowing, q.log_knowing)
        return float(sums["evidence"]) - distance - divergence(q.saying, saying, q.log_saying)

    def priors(self, parameters: Habits) -> Floats:
        """Returns even shares `[C]`."""
        return np.full(self.num_classes, 1.0 / self.num_classes)

    def errors(self, parameters: Habits) -> Floats:
        """Returns `[R, C true, C observed]`, theta of the identity and the rest of the habits."""
        competences, habits = shares_of_habits(parameters)
        guesses = np.repeat(habits[:, None, :], self.num_classes, axis=1)
        knows = competences[:, None, None]
        return (1.0 - knows) * guesses + knows * np.eye(self.num_classes)


def shares_of_habits(parameters: Habits) -> tuple[Floats, Floats]:
    """Returns theta `[R]` and `[R, C]` shares of the classes among guesses."""
    theta = normalise_counts(parameters.knowing)[:, 1]
    return theta, normalise_counts(parameters.saying)


def _log_shares(counts: Floats) -> Floats:
    total = counts.sum(axis=-1, keepdims=True)
    return np.log(np.maximum(counts, TINY)) - np.log(np.maximum(total, TINY))


@estimator
class Mace(IterativeAggregator):
    """Multi-annotator competence estimation.

    With probability theta an annotator knows the label, otherwise the label is drawn from the
    annotator's habits.

    Attributes: see `IterativeAggregator` (`history_` is the best start's: the evidence lower bound,
    or EM's log posterior), and
        competences_: `[R]` theta, the probability of knowing.
        habits_: `[R, C]` shares of the classes among guesses.

    References:
        Hovy et al. (2013), "Learning whom to trust with MACE", sections 2 and 3.
    """

    method: Annotated[
        Literal["vb", "em"], '"vb" (variational Bayes), or "em" with pseudo-counts of 0.01 / C.'
    ] = "vb"
    restarts: Annotated[int, whole(1), "number of random starts; the best one is used."] = 10
    max_iter: int = 200
    competences_: Floats = fitted()
    habits_: Floats = fitted()

    def latent_model(self, num_classes: int) -> MaceModel:
        """Returns MACE as sums, with the first start's seed."""
        if self.method == "vb":
            return MaceModel(np.full(2, KNOWING), SAYING, True, num_classes, self.seed)
        small = 0.01 / num_classes
        return MaceModel(np.full(2, small), small, False, num_classes, self.seed)

    def _run(self, shard: Shard, model: Any) -> Fit[Habits]:
        starts = (dataclasses.replace(model, seed=self.seed + i) for i in range(self.restarts))
        fits = [run(start, shard, max_iter=self.max_iter, tol=self.tol) for start in starts]
        return max(fits, key=lambda fit: float(fit.history[-1]))

    def _store(self, result: Fit[Habits], shard: Shard, model: LatentModel) -> None:
        super()._store(result, shard, model)
        self.competences_, self.habits_ = shares_of_habits(result.parameters)
