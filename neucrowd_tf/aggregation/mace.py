"""MACE: an annotator either knows the label, or says something of a habit of their own."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np

from neucrowd_tf.aggregation.base import expected_skills
from neucrowd_tf.aggregation.dirichlet import divergence, expected_log
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import TINY, ConfusionModel, Fit, Shard, Sums, run
from neucrowd_tf.arguments import argument, estimator, fitted, number, one_of, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Habits:
    """Parameters: pseudo-counts of guessing and knowing `[R, 2]` and of what is said when guessing
    `[R, C]`, with the logarithms that stand for their probabilities.
    """

    knowing: NDArray[np.float64]
    saying: NDArray[np.float64]
    log_knowing: NDArray[np.float64]
    log_saying: NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class MaceModel(ConfusionModel[Habits]):
    """EM or variational Bayes over sums; the class prior is uniform.

    Attributes:
        knowing_prior: `[2]` (guessing, knowing) and
        saying_prior: Dirichlet counts of the parameters; for EM pseudo-counts.
        bayes: variational Bayes.
        num_classes: C.
        seed: of the random start.
    """

    knowing_prior: NDArray[np.float64]
    saying_prior: float
    bayes: bool
    num_classes: int
    seed: int

    def begin(self, num_annotators: int) -> Habits:
        """Returns parameters drawn near even ones."""
        rng = np.random.default_rng([self.seed, 1])
        knowing = rng.uniform(1.0, 1.5, (num_annotators, 2))
        saying = rng.uniform(1.0, 1.5, (num_annotators, self.num_classes))
        return Habits(knowing, saying, _log_shares(knowing), _log_shares(saying))

    def start(self, shard: Shard) -> NDArray[np.float64]:
        """Returns the posteriors `[n, C]` under `begin`."""
        return self.e_step(shard, self.begin(shard.num_annotators))[0]

    def m_step(self, sums: Sums, parameters: Habits | None) -> Habits:
        """Divides the counts of right labels into known and guessed ones by the last parameters."""
        counts = sums["counts"]
        last = self.begin(len(counts)) if parameters is None else parameters
        right = np.einsum("rcc->rc", counts)
        known = np.exp(last.log_knowing[:, 1:])
        guessed = np.exp(last.log_knowing[:, :1] + last.log_saying)
        both = known + guessed
        known = right * np.divide(known, both, out=np.zeros_like(guessed), where=both > 0)
        said = counts.sum(axis=2) - known
        knowing = np.stack([said.sum(axis=1), known.sum(axis=1)], axis=1) + self.knowing_prior
        saying = said + self.saying_prior
        logs = expected_log if self.bayes else _log_shares
        return Habits(knowing, saying, logs(knowing), logs(saying))

    def log_errors(self, parameters: Habits) -> NDArray[np.float64]:
        """Returns `[R * C observed, C true]`."""
        q = parameters
        guessed = np.exp(q.log_knowing[:, :1] + q.log_saying)
        found = np.repeat(guessed[:, :, None], self.num_classes, axis=2)
        places = np.arange(self.num_classes)
        found[:, places, places] += np.exp(q.log_knowing[:, 1:])
        return np.log(np.maximum(found, TINY)).reshape(-1, self.num_classes)

    def log_priors(self, parameters: Habits) -> NDArray[np.float64]:
        """Returns `[C]`."""
        return np.full(self.num_classes, -np.log(self.num_classes))

    def objective(self, sums: Sums, parameters: Habits) -> float:
        """Returns the evidence lower bound, or the log posterior where EM."""
        q = parameters
        if not self.bayes:
            smoothed = (self.knowing_prior * q.log_knowing).sum() + (
                self.saying_prior * q.log_saying
            ).sum()
            return float(sums["evidence"] + smoothed)
        knowing = np.broadcast_to(self.knowing_prior, q.knowing.shape)
        saying = np.full_like(q.saying, self.saying_prior)
        return (
            float(sums["evidence"])
            - divergence(q.knowing, knowing, q.log_knowing)
            - divergence(q.saying, saying, q.log_saying)
        )


def _log_shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = np.log(np.maximum(counts, TINY)) - np.log(
        np.maximum(counts.sum(axis=-1, keepdims=True), TINY)
    )
    return shares


@estimator
class Mace(IterativeAggregator):
    """Multi-annotator competence estimation: with probability theta an annotator knows the label,
    else draws one from a distribution of their own.

    Attributes: see `IterativeAggregator` (`history_` is the best start's: the evidence lower bound,
    or EM's log posterior), and
        competences_: `[R]` theta, the probability of knowing.
        habits_: `[R, C]` what is said when guessing.

    References:
        Hovy et al. (2013), Learning whom to trust with MACE, sections 2 and 3.
    """

    method: Literal["vb", "em"] = argument(
        "vb", one_of("vb", "em"), "variational Bayes, or EM with pseudo-counts of .01 / C."
    )
    knowing_prior: float = argument(
        0.5, number(above=0), "both counts of theta's beta prior (variational Bayes)."
    )
    saying_prior: float = argument(
        10.0, number(above=0), "Dirichlet count of each label when guessing (variational Bayes)."
    )
    restarts: int = argument(10, whole(1), "random starts; the best objective is kept.")
    max_iter: int = 200
    competences_: NDArray[np.float64] = fitted()
    habits_: NDArray[np.float64] = fitted()

    def _model(self, shard: Shard) -> MaceModel:
        bayes = self.method == "vb"
        small = 0.01 / shard.num_classes
        return MaceModel(
            np.full(2, self.knowing_prior if bayes else small),
            self.saying_prior if bayes else small,
            bayes,
            shard.num_classes,
            self.seed,
        )

    def _best(self, shard: Shard) -> Fit[Habits]:
        model = self._model(shard)
        starts = (dataclasses.replace(model, seed=self.seed + i) for i in range(self.restarts))
        fits = [run(one, shard, max_iter=self.max_iter, tol=self.tol) for one in starts]
        return max(fits, key=lambda fit: float(fit.history[-1]))

    def _store(self, found: Fit[Habits], shard: Shard) -> None:
        q, size = found.parameters, shard.num_classes
        self.probas_ = found.beliefs
        self.priors_ = np.full(size, 1.0 / size)
        theta = q.knowing[:, 1] / q.knowing.sum(axis=1)
        self.competences_, self.habits_ = theta, q.saying / q.saying.sum(axis=1, keepdims=True)
        self.errors_ = (1.0 - theta)[:, None, None] * np.repeat(
            self.habits_[:, None, :], size, axis=1
        )
        self.errors_ += theta[:, None, None] * np.eye(size)
        self.skills_ = expected_skills(self.errors_, self.priors_)
