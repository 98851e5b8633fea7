"""The default method, which chooses among the others without true labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from neucrowd_tf.aggregation.annotator_offset import annotator_offsets
from neucrowd_tf.aggregation.base import (
    Aggregator,
    Codes,
    expected_counts,
    expected_skills,
    normalise_counts,
)
from neucrowd_tf.aggregation.blas import one_blas_thread
from neucrowd_tf.aggregation.bwa import BWA
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.ebcc import EBCC
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.ibcc import IBCC
from neucrowd_tf.aggregation.mace import Mace
from neucrowd_tf.aggregation.majority_vote import MajorityVote
from neucrowd_tf.aggregation.many_classes import sparse_one_coin
from neucrowd_tf.aggregation.symmetry import even_ties
from neucrowd_tf.aggregation.weighted_vote import (
    IterativeWeightedMajorityVote,
    Wawa,
    ZeroBasedSkill,
)
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, fitted, whole
from neucrowd_tf.declare.types import Floats as Array
from neucrowd_tf.errors import quietly

# Nats of EBCC's bound that indicate annotators who err together: a Bayes factor of 150, very strong
# evidence by Kass and Raftery.
DECISIVE = 5.0
# In a crowd of LARGE annotations or more EBCC is fitted only if a short look finds groups, and
# folds are held out only until they have ENOUGH annotations. Scores then are exact to thousandths
# of a nat, and methods that are closer than this are averaged anyway.
LARGE = 50_000
ENOUGH = 15_000
MANY_CLASSES = 30  # with more, error matrices are mostly empty and take minutes
STRENGTH = 5.0  # pseudo-labels per class of the average annotator, for each annotator
# If annotators have fewer labels than FEW_LABELS on average, methods may merge or exchange classes.
# Then they overturn more than this share of the unanimous instances, and move class shares by more
# than this (total variation).
FEW_LABELS = 10
MOST_OVERTURNED = 0.05
MOST_MOVED = 0.3
# GLAD is averaged too with at most SPARSE annotations per instance. With at most FEW_INSTANCES
# instances only the offsets count.
SPARSE = 3.5
FEW_INSTANCES = 100
# The methods to choose among if annotators err independently.
CANDIDATES: dict[str, Callable[..., Aggregator]] = {
    "wawa": Wawa,
    "zbs": partial(ZeroBasedSkill, max_iter=30),
    "iwmv": IterativeWeightedMajorityVote,
    "dawid_skene": partial(DawidSkene, tol=1e-5),
    "dawid_skene, smoothing 1": partial(DawidSkene, smoothing=1.0, tol=1e-5),
    "fast_dawid_skene": partial(DawidSkene, hard=True),
    "one_coin": partial(DawidSkene, one_coin=True, tol=1e-5),
    "one_coin, uniform": partial(DawidSkene, one_coin=True, prior="uniform", tol=1e-5),
    "glad": partial(Glad, tol=1e-4),
    "mace": partial(Mace, restarts=2, tol=1e-5),
    "mace, em": partial(Mace, restarts=2, method="em", tol=1e-5),
    "ibcc": partial(IBCC, tol=1e-5),
    "bwa": BWA,
}


def deal(annotations: Annotations, folds: int, seed: int) -> Codes:
    """Returns `[A]` the fold of each annotation; an instance's are dealt out evenly."""
    rng = np.random.default_rng([seed, 0])
    instances = annotations.instances
    size = len(instances)
    drawn = np.argsort(rng.random(size))
    first_fold = rng.integers(0, folds, annotations.num_instances)
    # Rows of a sparse matrix keep the order in which they were drawn; sorting takes thrice as long.
    cells = (np.ones(size, dtype=bool), (instances[drawn], np.arange(size)))
    rows = sparse.csr_matrix(cells, shape=(annotations.num_instances, size))
    order = drawn[rows.indices]
    grouped = instances[order]
    position = np.arange(size) - rows.indptr[grouped]
    fold_of = np.empty(size, dtype=np.int64)
    fold_of[order] = (position + first_fold[grouped]) % folds
    return fold_of


def read_out(annotations: Annotations, probas: Array, strength: float) -> Array:
    """Returns error matrices `[R, C observed, C true]` under beliefs `[N, C]`.

    Each is drawn towards that of all annotators by `strength` labels per class.
    """
    counts = expected_counts(annotations.one_hot().T, probas)
    of_all = counts.sum(axis=0) + 1e-3
    counts += strength * of_all / of_all.sum(axis=0) + 1e-3
    return normalise_counts(counts, axis=1)


def held_out_logs(
    annotations: Annotations, held_out: Annotations, probas: Array, strength: float
) -> Array:
    """Returns log probabilities `[H]` of held-out annotations under beliefs `[N, C]`.

    The beliefs and the annotators' error matrices follow from the other annotations.
    """
    shares = read_out(annotations, probas, strength)[held_out.annotators, held_out.labels]
    return np.log(np.maximum((probas[held_out.instances] * shares).sum(axis=1), 1e-12))


def geometric_mean(*probas: Array, weights: Sequence[float] | None = None) -> Array:
    """Returns the normalised geometric mean `[N, C]` of several methods' probabilities."""
    logs = [np.log(np.maximum(member, 1e-12)) for member in probas]
    return softmax(np.average(logs, axis=0, weights=weights), axis=1)


def overturned(votes: NDArray[np.integer[Any]], labels: Codes) -> float:
    """Returns the share of instances with two unanimous votes or more that have another label.

    Args:
        votes: `[N, C]` vote counts.
        labels: `[N]` class codes; -1 if unknown, which does not count.
    """
    total = votes.sum(axis=1)
    top = votes.max(axis=1)
    unanimous = (total > 1) & (top == total) & (labels >= 0)
    others = unanimous & (votes.argmax(axis=1) != labels)
    return float(others.sum() / max(unanimous.sum(), 1))


def moved(votes: NDArray[np.integer[Any]], labels: Codes) -> float:
    """Returns by how much class shares of labels `[N]` differ from those of votes `[N, C]`."""
    rows = np.flatnonzero(votes.any(axis=1))
    shares = (votes[rows] / votes[rows].sum(axis=1, keepdims=True)).sum(axis=0)
    counts = np.bincount(labels[rows], minlength=votes.shape[1])
    return float(np.abs(shares - counts).sum() / max(2 * len(rows), 1))


@estimator
class Consensus(Aggregator):
    """Chooses among methods and combines them, without true labels.

    EBCC is fitted first. If more than one group per class raises its bound by more than `DECISIVE`,
    annotators err together, and EBCC's labels are used: methods that assume independent annotators
    are misled, and so are their scores on held-out annotations.

    Otherwise annotations are held out in turn (see `folds`), and the `best` methods that predict
    them best from the rest are averaged. The result is the normalised geometric mean of these
    probabilities and those of `neucrowd_tf.aggregation.annotator_offset`. GLAD joins them if there
    are few annotations per instance, and votes weighted by agreement (Wawa) if annotators have
    fewer than `FEW_LABELS` labels on average.

    In a crowd of few instances groups and matrices follow chance, and the offsets count more.
    If annotators have fewer than `FEW_LABELS` labels on average, a method that overturns more than
    `MOST_OVERTURNED` of unanimous labels and moves class shares by more than `MOST_MOVED` is left
    out. Gold labels that contradict unanimous votes raise the first limit.

    Classes that tie, and that nothing in the crowd distinguishes, are equally probable.

    Vote counts alone get the majority vote. Crowds of more than `MANY_CLASSES` classes get one-coin
    Dawid-Skene over the classes that each item's labels name, without error matrices.

    Attributes: see `Aggregator`, and
        chosen_: the names of the methods that were chosen.
        gain_: by how many nats EBCC's bound rises with more groups; 0 where a short look at a large
            crowd finds no groups.
        scores_: each method's mean log probability of a held-out annotation; empty where EBCC was
            chosen.
    """

    needs_identities: ClassVar[bool] = False

    best: Annotated[int, whole(1), "number of methods to average."] = 3
    folds: Annotated[
        int,
        whole(2),
        "number of parts in which annotations are held out. Of a crowd with 50,000 annotations or"
        " more, only as many parts are held out as have 15,000 annotations together.",
    ] = 5
    restarts: Annotated[int, whole(2), "EBCC's starts, the first with one group per class."] = 10
    chosen_: tuple[str, ...] = fitted()
    gain_: float = fitted()
    scores_: dict[str, float] = fitted()

    @one_blas_thread()  # a second one costs more than it gives
    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        self.scores_ = {}
        self.gain_ = 0.0
        if crowd.has_identities and crowd.num_classes > MANY_CLASSES:
            self._fit_many_classes(crowd, gold)
            return
        with quietly():
            members = self._members(crowd, gold)
            self.chosen_ = tuple(members)
            fits = list(members.values())
            self.probas_ = np.mean([method.probas_ for method in fits], axis=0)
            self.priors_ = np.mean([method.priors_ for method in fits], axis=0)
            matrices = [method.errors_ for method in fits if method.errors_ is not None]
            if crowd.has_identities:
                matrices += self._with_offsets(crowd, gold)
        self.errors_ = self.skills_ = None
        if matrices:
            self.errors_ = np.mean(matrices, axis=0)
            self.skills_ = expected_skills(self.errors_, self.priors_)
        self._conclude(gold)

    def _with_offsets(self, crowd: Annotations, gold: Codes | None) -> list[Array]:
        """Combines the chosen methods with annotators' offsets; returns these as error matrices."""
        offsets = annotator_offsets(crowd, gold)
        trusted = not self._contradicts(offsets.probas, crowd, gold)
        members = [self.probas_]
        if self.chosen_ != ("ebcc",):
            if trusted:
                members.append(offsets.probas)
            if crowd.num_annotations <= SPARSE * self.annotated_.sum():
                glad = Glad(seed=self.seed, tol=1e-4).fit(crowd, gold).probas_
                if not self._contradicts(glad, crowd, gold):
                    members.append(glad)
            if _few_labels(crowd):
                members.append(Wawa(seed=self.seed).fit(crowd, gold).probas_)
            self.probas_ = geometric_mean(*members)
        if trusted:
            share = min(1.0, FEW_INSTANCES / float(self.annotated_.sum()))
            both = self.probas_, offsets.probas
            self.probas_ = geometric_mean(*both, weights=(1.0 - share, share))
        self.probas_ = even_ties(crowd, self.probas_, gold)
        if trusted:
            return [offsets.errors]
        return []

    def _fit_many_classes(self, crowd: Annotations, gold: Codes | None) -> None:
        self.chosen_ = ("one_coin, sparse",)
        self.probas_, self.skills_ = sparse_one_coin(crowd, gold)
        self.priors_ = normalise_counts(self.probas_[self.annotated_].sum(axis=0))
        self.errors_ = None
        self._conclude(gold)

    def _members(self, crowd: Annotations, gold: Codes | None) -> dict[str, Aggregator]:
        """Returns the chosen methods, fitted."""
        if not crowd.has_identities:
            return self._majority(crowd, gold)
        joint = EBCC(seed=self.seed, restarts=self.restarts, tol=1e-5)
        if crowd.num_annotations < LARGE or not joint.looks_independent(crowd, gold):
            joint.fit(crowd, gold)
            self.gain_ = float(joint.bounds_.max() - joint.bounds_[0])
            if self.gain_ > DECISIVE and not self._contradicts(joint.probas_, crowd, gold):
                return {"ebcc": joint}
        self.scores_ = self._scores(crowd, gold)
        members = {}
        for name in _best_first(self.scores_):
            method = CANDIDATES[name](seed=self.seed).fit(crowd, gold)
            if not self._contradicts(method.probas_, crowd, gold):
                members[name] = method
            if len(members) == self.best:
                break
        return members or self._majority(crowd, gold)

    def _majority(self, crowd: Annotations, gold: Codes | None) -> dict[str, Aggregator]:
        return {"majority_vote": MajorityVote(ties=self.ties, seed=self.seed).fit(crowd, gold)}

    def _contradicts(self, probas: Array, crowd: Annotations, gold: Codes | None) -> bool:
        """Returns whether a method's labels contradict votes as merged classes do."""
        if not _few_labels(crowd):
            return False
        votes = crowd.vote_counts()
        limit = MOST_OVERTURNED
        if gold is not None:
            limit += overturned(votes, gold)
            votes = np.where(gold[:, None] < 0, votes, 0)
        labels = probas.argmax(axis=1)
        return overturned(votes, labels) > limit and moved(votes, labels) > MOST_MOVED

    def _scores(self, crowd: Annotations, gold: Codes | None) -> dict[str, float]:
        folds = deal(crowd, self.folds, self.seed)
        scores = dict.fromkeys(CANDIDATES, 0.0)
        scored = 0
        for fold in range(self.folds):
            in_fold = folds == fold
            if in_fold.all() or not in_fold.any():
                continue
            training = crowd.select(~in_fold)
            held_out = crowd.select(in_fold)
            for name, candidate in CANDIDATES.items():
                probas = candidate(seed=self.seed).fit(training, gold).probas_
                scores[name] += float(held_out_logs(training, held_out, probas, STRENGTH).sum())
            scored += held_out.num_annotations
            if crowd.num_annotations >= LARGE and scored >= ENOUGH:
                break
        return {name: score / max(scored, 1) for name, score in scores.items()}


def _best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda name: -scores[name])


def _few_labels(crowd: Annotations) -> bool:
    """Returns whether annotators have fewer than `FEW_LABELS` labels on average."""
    return bool(crowd.num_annotations < FEW_LABELS * (crowd.labels_per_annotator() > 0).sum())
