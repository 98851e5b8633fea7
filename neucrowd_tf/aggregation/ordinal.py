"""Ordered classes: latent normal scores, cut by thresholds, with annotators' bias and spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from neucrowd_tf.aggregation.base import (
    Aggregator,
    Codes,
    apply_gold,
    normalise_counts,
    normalise_log,
)
from neucrowd_tf.aggregation.consensus import Consensus, deal
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.optimisation import minimize
from neucrowd_tf.aggregation.shrunk_dawid_skene import ShrunkDawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.votes import medians
from neucrowd_tf.declare.declarations import estimator, fitted, one_of
from neucrowd_tf.declare.types import Floats

NODES = np.linspace(-3.5, 3.5, 71)  # of the latent scores, which are standard normal
PRIOR = 0.5  # standard deviation of biases and of log spreads
SPREAD = 0.7  # typical noise of an annotator
STEPS = 4
MOST_ITER = 60
TOLERANCE = 1e-4
LEAST = 1e-9
FOLDS = 3
MEMBERS = ("median", "latent score", "consensus")
BY_GOLD = (*MEMBERS, "dawid skene")  # gold labels choose among these
SURE = 3.0  # standard errors by which a method must be nearer to be chosen
SURE_BY_GOLD = 1.0
FEW = 100.0  # unbiased labels of usual spread, added to each annotator's


def latent_score(crowd: Annotations, gold: Codes | None = None) -> Floats:
    """Returns `[N, C]` posteriors of ordered classes.

    An item has a score t from a standard normal distribution. Annotator r sees t + bias_r + noise
    of spread_r, and names the class between whose thresholds that lies. Biases and log spreads have
    normal priors. EM on a grid of scores estimates them and the thresholds; the class is where the
    score lies without bias and noise.

    Args:
        crowd: with identities; its classes are in their order.
        gold: `[N]` class codes, -1 if unknown, or None.

    References:
        Johnson (1996), On Bayesian analysis of multirater ordinal data, JASA 91.
    """
    size = crowd.num_classes
    num_annotators = crowd.num_annotators
    one_hot = crowd.one_hot()
    shares = normalise_counts(crowd.vote_counts().sum(axis=0) + 0.5)
    cuts = ndtri(np.cumsum(shares)[:-1]) * np.sqrt(1 + SPREAD**2)
    theta = np.concatenate(
        [cuts[:1], np.log(np.maximum(np.diff(cuts), 0.05)), np.zeros(2 * num_annotators)]
    )
    log_prior = -(NODES**2) / 2
    before = -np.inf
    for _ in range(MOST_ITER):
        chances, _, _, _ = _chances(theta, size)
        scores = one_hot @ np.log(chances).reshape(-1, len(NODES))
        classes = np.searchsorted(_cuts(theta, size), NODES)
        if gold is not None:
            marked = np.flatnonzero(gold >= 0)
            inside = classes == gold[marked, None]
            scores[marked] += np.where(inside | ~inside.any(axis=1, keepdims=True), 0, -1e3)
        evidence = normalise_log(scores, log_prior).sum()
        if evidence - before < TOLERANCE * crowd.num_annotations:
            break
        before = evidence
        counts = (one_hot.T @ scores).reshape(num_annotators, size, -1)
        theta = minimize(
            _loss, theta, (counts,), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
        ).x
    return apply_gold(scores @ np.eye(size)[classes], gold)


def _cuts(theta: Floats, size: int) -> Floats:
    """Returns the `[C - 1]` thresholds."""
    return np.cumsum(np.concatenate([theta[:1], np.exp(theta[1 : size - 1])]))


def _chances(theta: Floats, size: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Returns `[R, C, G]` label probabilities, distances to thresholds, spreads and biases."""
    biases, logs = np.split(theta[size - 1 :], 2)
    spreads = SPREAD * np.exp(np.clip(logs, -3, 3))
    distance = _cuts(theta, size)[None, :, None] - NODES - biases[:, None, None]
    distance /= spreads[:, None, None]
    below = np.pad(ndtr(distance), ((0, 0), (1, 0), (0, 0)))
    below = np.concatenate([below, np.ones_like(below[:, :1])], axis=1)
    return np.maximum(np.diff(below, axis=1), LEAST), distance, spreads, biases


def _loss(theta: Floats, counts: Floats) -> tuple[float, Floats]:
    """Returns minus the expected log posterior, and its gradient, from counts `[R, C, G]`."""
    size = counts.shape[1]
    chances, distance, spreads, biases = _chances(theta, size)
    logs = theta[size - 1 + len(biases) :]
    value = (counts * np.log(chances)).sum() - (biases @ biases + logs @ logs) / (2 * PRIOR**2)
    ratio = np.where(chances > LEAST, counts / chances, 0.0)
    density = np.exp(-(distance**2) / 2) / np.sqrt(2 * np.pi)
    pull = (ratio[:, :-1] - ratio[:, 1:]) * density
    by_cut = (pull / spreads[:, None, None]).sum(axis=(0, 2))
    later = np.cumsum(by_cut[::-1])[::-1]  # a gap moves all later thresholds
    gaps = later[1:] * np.exp(theta[1 : size - 1])
    on_bias = -pull.sum(axis=(1, 2)) / spreads - biases / PRIOR**2
    on_logs = -(pull * distance).sum(axis=(1, 2)) - logs / PRIOR**2
    gradient = np.concatenate([later[:1], gaps, on_bias, on_logs])
    return -float(value), -gradient


def unbiased_means(crowd: Annotations, values: Floats) -> Floats:
    """Returns `[N]` the mean label of each item, less annotators' biases; 0 without labels.

    Labels count by the precision of their annotator. `FEW` labels more of usual spread keep a few
    annotators from being followed alone: means that follow them make them look precise.

    Args:
        crowd: with identities.
        values: `[C]` of the classes.
    """
    items = crowd.instances
    annotators = crowd.annotators
    labels = values[crowd.labels]
    label_counts = crowd.labels_per_annotator() + FEW
    bias = np.zeros(crowd.num_annotators)
    weights = np.ones_like(bias)
    means = np.zeros(crowd.num_instances)
    for _ in range(MOST_ITER):
        before = means
        total = np.bincount(items, weights[annotators], crowd.num_instances)
        sums = np.bincount(items, weights[annotators] * (labels - bias[annotators]), len(total))
        means = sums / np.maximum(total, LEAST)
        if np.abs(means - before).max(initial=0.0) < TOLERANCE:
            break
        away = labels - means[items]
        bias = np.bincount(annotators, away, len(bias)) / label_counts
        squares = (away - bias[annotators]) ** 2
        usual = max(float(squares.mean()), LEAST)
        weights = label_counts / (np.bincount(annotators, squares, len(bias)) + FEW * usual)
    return means


@estimator
class OrdinalConsensus(Aggregator):
    """Infers ordered classes by the median of labels, latent scores, or the nominal consensus.

    Annotations are held out in turn. The method whose labels are nearest to them is chosen, but
    another one than the median only if it is nearer by `SURE` standard errors: held-out labels show
    what annotators say, not what is true. `fit` does not choose by gold labels; the command does.

    Attributes: see `Aggregator`, and
        chosen_: one of `BY_GOLD`.
        distances_: by method, the mean distance in classes of a held-out annotation; empty if
            `only` names the method.
    """

    needs_identities: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    only: Annotated[
        str | None, one_of(*BY_GOLD), 'the method to use; None chooses "median" or another.'
    ] = None

    chosen_: str = fitted()
    distances_: dict[str, float] = fitted()

    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        self.distances_ = {}
        self.chosen_ = self.only or self._choose(crowd)
        self.probas_ = self._posteriors(crowd, gold, [self.chosen_])[self.chosen_]
        self.priors_ = normalise_counts(self.probas_[self.annotated_].sum(axis=0))
        self._conclude(gold)
        self.errors_ = self.skills_ = None

    def decide(self, probas: Floats) -> Codes:
        """Returns `[N]` the medians of posteriors `[N, C]`."""
        return medians(probas)

    def _choose(self, crowd: Annotations) -> str:
        """Returns the method for this crowd, by its annotations alone; sets the distances."""
        folds = deal(crowd, FOLDS, self.seed)
        distances = np.zeros((len(MEMBERS), crowd.num_annotations))
        for fold in range(FOLDS):
            training = crowd.select(folds != fold)
            held_out = crowd.select(folds == fold)
            if not training.num_annotations or not held_out.num_annotations:
                continue
            fits = self._posteriors(training, None, MEMBERS[1:])
            fits["median"] = normalise_counts(training.vote_counts())
            for member, name in enumerate(MEMBERS):
                labels = medians(fits[name])[held_out.instances]
                away = np.abs(labels - held_out.labels) * training.annotated[held_out.instances]
                distances[member, folds == fold] = away
        means = distances.sum(axis=1) / max(crowd.num_annotations, 1)
        self.distances_ = dict(zip(MEMBERS, means.tolist(), strict=True))
        sums = np.zeros((crowd.num_instances, len(MEMBERS)))
        np.add.at(sums, crowd.instances, (distances - distances[0]).T)
        # Annotations of an item go together.
        nearer = sums.sum(axis=0) < -SURE * np.sqrt((sums**2).sum(axis=0))
        choice = [*MEMBERS[:1], *np.compress(nearer, MEMBERS).tolist()]
        return min(choice, key=self.distances_.__getitem__)

    def _posteriors(
        self, crowd: Annotations, gold: Codes | None, names: Sequence[str]
    ) -> dict[str, Floats]:
        """Returns the posteriors `[N, C]` of methods by their names.

        Of an even number of labels the middle may lie between two classes. So the median has one
        more label, dealt out by the other methods' posteriors.
        """
        fits = {}
        if crowd.num_classes < 2:
            return dict.fromkeys(names, apply_gold(np.ones((crowd.num_instances, 1)), gold))
        if {"latent score", "median"} & {*names}:
            fits["latent score"] = latent_score(crowd, gold)
        if {"consensus", "median"} & {*names}:
            # In comparisons one quick method stands for the consensus of many.
            method = Consensus if [*names] == ["consensus"] else ShrunkDawidSkene
            fits["consensus"] = method(seed=self.seed).fit(crowd, gold).probas_
        if "dawid skene" in names:
            fits["dawid skene"] = DawidSkene(seed=self.seed).fit(crowd, gold).probas_
        if "median" in names:
            extra = np.mean(list(fits.values()), axis=0) * crowd.annotated[:, None]
            fits["median"] = apply_gold(normalise_counts(crowd.vote_counts() + extra), gold)
        return fits


def nearest_to_gold(crowd: Annotations, gold: Codes, seed: int = 0) -> str:
    """Returns the method of `BY_GOLD` whose labels, inferred without gold, are nearest to gold.

    The method that `OrdinalConsensus` chooses stays unless another is nearer by `SURE_BY_GOLD`
    standard errors.

    Args:
        crowd: with identities.
        gold: `[N]` class codes, -1 if unknown.
        seed: of the methods.
    """
    rows = np.flatnonzero((gold >= 0) & crowd.annotated)
    usual = OrdinalConsensus(seed=seed).fit(crowd)
    choice = usual.chosen_
    if len(rows) < 2:
        return choice
    distance = np.abs(usual.labels_ - gold)[rows]
    least = 0.0
    fits = usual._posteriors(crowd, None, ["latent score", "median"])
    for name in BY_GOLD:
        if name not in fits or name == "consensus":  # alone, it is the consensus itself
            fits[name] = usual._posteriors(crowd, None, [name])[name]
        farther = np.abs(medians(fits[name]) - gold)[rows] - distance
        error = farther.std(ddof=1) / np.sqrt(len(rows))
        if farther.mean() < min(least, -SURE_BY_GOLD * error):
            choice = name
            least = float(farther.mean())
    return choice
