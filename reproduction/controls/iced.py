"""ICED with the factors of our studies: balancing by weights, other inferences, other warm-ups."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.aggregation.base import count_votes, vote_shares
from neucrowd_tf.aggregation.dawid_skene import dawid_skene_em
from neucrowd_tf.arguments import argument, estimator, flag, one_of
from neucrowd_tf.iced import ICED
from neucrowd_tf.iced.estimator import LITERAL, PRESETS, TOP_GROUPS, RoundHistory
from neucrowd_tf.iced.inference import PRIORS, Inference, in_place, infer_labels
from neucrowd_tf.iced.synthesis import Generated, Generator
from neucrowd_tf.registry import register_method

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

# What is drawn to even the rows of a warm-up's epoch is a function of (seed, this, epoch, 1).
_WARM_UP = 0x3A


@register_method(
    "iced_literal_control",
    summary="ICED as published with the factors of our studies",
    defaults=LITERAL,
    requires_identities=True,
    presets=PRESETS,
)
@register_method(
    "iced_control",
    summary="ICED with the factors of our studies",
    requires_identities=True,
    presets=PRESETS,
)
@estimator
class ControlledICED(ICED):
    """ICED whose modules can be replaced by controls; see `ICED`."""

    balance: str = argument(
        "synthesis",
        one_of("synthesis", "weights", "none"),
        'what balances the classes in the rounds: "synthesis", class "weights" (the inferred'
        ' labels\' inverse shares) or "none"; the latter two synthesise nothing.',
    )
    prior: str = argument(
        "uniform",
        one_of(*PRIORS, "separate"),
        'see `ICED`; "separate" estimates one of the real and one of the synthetic instances, by'
        " soft EM.",
    )
    em: str = argument(
        "soft",
        one_of("soft", "hard", "majority"),
        'see `ICED`; "majority" takes the majority vote in place of EM.',
    )
    first_labels: str = argument(
        "majority",
        one_of("majority", "inferred"),
        'the labels of the first round\'s candidates with `candidates="inferred"`: the "majority"'
        ' vote, or those "inferred" by EM.',
    )
    warm_up: str = argument(
        "all",
        one_of("groups", "cumulative", "all", "top", "none"),
        'see `ICED`; "cumulative" is each group together with those before it.',
    )
    warm_up_evened: bool = argument(
        False, flag, "whether rows of rarer majority labels are repeated until classes are equal."
    )

    def _warm_up_rows(
        self, groups: NDArray[np.int64], majority: NDArray[np.int64]
    ) -> list[NDArray[np.int64]]:
        if self.warm_up == "cumulative":
            schedule = cumulative_schedule(groups, self.warm_up_epochs)
        else:
            schedule = super()._warm_up_rows(groups, majority)
        if not self.warm_up_evened:
            return schedule
        return [
            evened_rows(rows, majority, np.random.default_rng([self.seed, _WARM_UP, epoch, 1]))
            for epoch, rows in enumerate(schedule)
        ]

    def _first_labels(
        self, majority: NDArray[np.int64], inferred: NDArray[np.int16]
    ) -> NDArray[np.integer[Any]]:
        return majority if self.first_labels == "majority" else inferred

    def _generator(self, crowd: Annotations, kind: type[Generator] = Generator) -> Generator:
        return super()._generator(crowd, kind if self.balance == "synthesis" else NoSynthesis)

    def _infer(self, one_hot: sparse.csr_matrix, num_classes: int, num_real: int) -> Inference:
        if self.em == "majority":
            return infer_by_votes(one_hot, num_classes, self.smoothing, self.seed)
        if self.prior == "separate" and num_real < one_hot.shape[0]:
            return infer_with_two_priors(
                one_hot, num_classes, num_real, self.smoothing, self.em_iterations
            )
        if self.prior == "separate":
            return infer_labels(
                one_hot,
                num_classes,
                prior="update",
                smoothing=self.smoothing,
                max_iter=self.em_iterations,
            )
        return super()._infer(one_hot, num_classes, num_real)

    def _targets(self, inference: Inference) -> NDArray[np.float64]:
        targets = super()._targets(inference)
        return targets * balancing_weights(targets) if self.balance == "weights" else targets

    def _problems(self, history: RoundHistory, used: NDArray[np.bool_]) -> list[str]:
        return super()._problems(history, used) if self.balance == "synthesis" else []


class NoSynthesis(Generator):
    """A generator that leaves the real instances as they are."""

    def __call__(
        self, embeddings: NDArray[np.float32], candidates: NDArray[np.int64], index: int
    ) -> Generated:
        """Returns a round without synthetic instances."""
        return self.nothing(embeddings)


def infer_by_votes(
    one_hot: sparse.csr_matrix, num_classes: int, smoothing: float, seed: int
) -> Inference:
    """Returns majority votes as labels, and the confusion matrices counted from them."""
    votes = count_votes(one_hot, num_classes)
    labels = np.eye(num_classes)[majority_labels(votes, "random", seed)]
    counted = dawid_skene_em(one_hot, labels, smoothing=smoothing, max_iter=1)
    return Inference(labels, labels.mean(axis=0), counted.errors, np.arange(num_classes))


def infer_with_two_priors(
    one_hot: sparse.csr_matrix,
    num_classes: int,
    num_real: int,
    smoothing: float,
    max_iter: int = 100,
) -> Inference:
    """Runs soft EM with one class prior of the real and one of the synthetic instances.

    A further annotator labels each row as real (class 0) or synthetic (class 1). Its "confusion
    matrix" is p(origin | class), so p(class) p(origin | class) is a class prior of each origin, and
    EM estimates both.

    Returns:
        the inference, with the prior of the real instances.
    """
    rows = one_hot.shape[0]
    origin = (np.arange(rows) >= num_real).astype(np.int64)
    cells = sparse.csr_matrix((np.ones(rows), (np.arange(rows), origin)), shape=(rows, num_classes))
    annotators = one_hot.shape[1] // num_classes
    # The origin of a row is certain: no pseudo-counts.
    pseudo = np.append(np.full(annotators, smoothing), 0.0)[:, None, None]
    result = dawid_skene_em(
        sparse.hstack([one_hot, cells], format="csr"),
        vote_shares(one_hot, num_classes),
        smoothing=pseudo,
        max_iter=max_iter,
    )
    of_real = result.priors * result.errors[-1, :, 0]
    result = dataclasses.replace(result, priors=of_real / of_real.sum(), errors=result.errors[:-1])
    return in_place(result, count_votes(one_hot, num_classes))


def balancing_weights(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns weights of rows, with mean 1, by which all classes that occur count alike.

    Args:
        targets: `[N, C]` class probabilities.

    Returns:
        `[N, 1]`.
    """
    counts = targets.sum(axis=0)
    present = int((counts > 0).sum())
    by_class = np.divide(
        len(targets) / max(present, 1), counts, out=np.zeros_like(counts), where=counts > 0
    )
    return (targets @ by_class)[:, None]


def cumulative_schedule(groups: NDArray[np.int64], epochs: int) -> list[NDArray[np.int64]]:
    """Returns the rows of each epoch: each certainty group together with those before it."""
    rows = np.arange(len(groups))
    present = [
        members for group in range(TOP_GROUPS, 0, -1) if len(members := rows[groups == group])
    ]
    shares = [len(share) for share in np.array_split(np.arange(epochs), len(present))]
    return [
        np.concatenate(present[: index + 1])
        for index, share in enumerate(shares)
        for _ in range(share)
    ]


def evened_rows(
    rows: NDArray[np.int64], labels: NDArray[np.integer[Any]], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Returns rows with as many more, of the rarer classes, as make those that occur equally large.

    Args:
        rows: of one epoch.
        labels: `[N]` of all instances.
        rng: draws which rows are repeated.
    """
    classes, counts = np.unique(labels[rows], return_counts=True)
    more = [
        rng.choice(rows[labels[rows] == code], int(counts.max() - count))
        for code, count in zip(classes, counts, strict=True)
    ]
    return np.concatenate([rows, *more])
