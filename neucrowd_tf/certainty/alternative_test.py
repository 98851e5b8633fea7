"""The alternative annotator test: whether a model may replace people who annotate."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError

FEWEST_PEOPLE = 2
FEWEST_ITEMS = 30
FALSE_DISCOVERIES = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class AlternativeTest:
    """What the test says about one model.

    Attributes:
        winning_rate: the share of people whom the model may replace; it passes from 0.5 on.
        advantage: the mean probability that the model agrees with the other people at least as
            well as the person who is left out.
        p_values: `[P]` of "the person is better than the model by epsilon or more".
        advantages: `[P]` the probability for each person who was compared.
    """

    winning_rate: float
    advantage: float
    p_values: NDArray[np.float64]
    advantages: NDArray[np.float64]

    @property
    def passed(self) -> bool:
        """Whether the model may replace at least half of the people."""
        return self.winning_rate >= 0.5


def alternative_test(
    crowd: Annotations, model: int, *, models: NDArray[np.bool_] | None = None, epsilon: float = 0.1
) -> AlternativeTest:
    """Compares a model with each person, by how well both agree with the other people.

    Args:
        crowd: with identities; the model is one of the annotators.
        model: its code.
        models: `[R]` which annotators are models; by default this one.
        epsilon: how much worse than a person a cheaper model may be: 0.2 for experts as people,
            0.15 for skilled annotators, 0.1 for crowd workers.

    Raises:
        DataError: nobody has 30 items that the model and another person labelled, too.

    References:
        Calderon, Reichart and Dror (2025), The alternative annotator test for LLM-as-a-judge,
        section 3; Benjamini and Yekutieli (2001) for several tests at once.
    """
    if models is None:
        others = np.arange(crowd.num_annotators) == model
    else:
        others = models
    people = crowd.select(~others[crowd.annotators])
    predicted = labels_of(crowd, model)
    votes = people.vote_counts()
    usable = (predicted >= 0) & (votes.sum(axis=1) >= FEWEST_PEOPLE)
    rows = np.flatnonzero(usable[people.instances])
    items, annotators, labels = (
        codes[rows] for codes in (people.instances, people.annotators, people.labels)
    )
    # Agreement with the others: with all votes, less that with the person's vote.
    guesses = predicted[items]
    by_model = votes[items, guesses] - (labels == guesses)
    by_person = votes[items, labels] - 1
    p_values = []
    advantages = []
    for person in np.unique(annotators):
        mine = annotators == person
        if mine.sum() < FEWEST_ITEMS:
            continue
        wins = by_model[mine] >= by_person[mine]
        losses = by_person[mine] >= by_model[mine]
        p_values.append(_p_value(losses.astype(float) - wins, epsilon))
        advantages.append(wins.mean())
    if not p_values:
        raise DataError(
            f"alternative test: no human annotator has {FEWEST_ITEMS} items that the model and"
            " another human annotator labelled. Collect more labels of the model's items."
        )
    rejected = stats.false_discovery_control(p_values, method="by") <= FALSE_DISCOVERIES
    return AlternativeTest(
        float(rejected.mean()), float(np.mean(advantages)), np.array(p_values), np.array(advantages)
    )


def labels_of(crowd: Annotations, annotator: int) -> NDArray[np.int64]:
    """Returns `[N]` the class codes that an annotator gave, -1 where there is no label."""
    labels = np.full(crowd.num_instances, -1)
    mine = crowd.annotators == annotator
    labels[crowd.instances[mine]] = crowd.labels[mine]
    return labels


def _p_value(differences: NDArray[Any], epsilon: float) -> float:
    """Returns the p-value of "the mean is epsilon or more", by Student's one-sided test."""
    if np.ptp(differences) == 0:
        return float(differences[0] >= epsilon)
    return float(stats.ttest_1samp(differences, epsilon, alternative="less").pvalue)
