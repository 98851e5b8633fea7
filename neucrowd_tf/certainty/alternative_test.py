"""The alternative annotator test: whether a model may replace people who annotate."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import stats

from neucrowd_tf.aggregation.families import labels_of
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Floats, Indices, Mask
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
    p_values: Floats
    advantages: Floats

    @property
    def passed(self) -> bool:
        """Whether the model may replace at least half of the people."""
        return self.winning_rate >= 0.5


def alternative_test(
    crowd: Annotations, model: int, *, models: Mask | None = None, epsilon: float = 0.1
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
        models = np.arange(crowd.num_annotators) == model
    people = labels_of(crowd, ~models)
    predicted = labels_by(crowd, model)
    votes = people.vote_counts()
    usable = (predicted >= 0) & (votes.sum(axis=1) >= FEWEST_PEOPLE)
    people = people.select(usable[people.instances])
    items = people.instances
    guesses = predicted[items]
    # Agreement with the others: with all votes, less that with the person's vote.
    of_model = votes[items, guesses] - (people.labels == guesses)
    of_person = votes[items, people.labels] - 1
    wins = of_model >= of_person
    losses = of_person >= of_model
    differences = losses.astype(float) - wins
    p_values = []
    advantages = []
    for person in np.flatnonzero(people.labels_per_annotator() >= FEWEST_ITEMS):
        rows = people.annotators == person
        p_values.append(_p_value(differences[rows], epsilon))
        advantages.append(wins[rows].mean())
    if not p_values:
        raise DataError(
            f"alternative test: no human annotator has {FEWEST_ITEMS} items that the model and"
            " another human annotator labelled. Collect more labels of the model's items."
        )
    rejected = stats.false_discovery_control(p_values, method="by") <= FALSE_DISCOVERIES
    return AlternativeTest(
        float(rejected.mean()), float(np.mean(advantages)), np.array(p_values), np.array(advantages)
    )


def labels_by(crowd: Annotations, annotator: int) -> Indices:
    """Returns `[N]` the class codes that an annotator gave, -1 where there is no label."""
    labels = np.full(crowd.num_instances, -1)
    rows = crowd.annotators == annotator
    labels[crowd.instances[rows]] = crowd.labels[rows]
    return labels


def _p_value(differences: Array, epsilon: float) -> float:
    """Returns the p-value of "the mean is epsilon or more", by Student's one-sided test."""
    if np.ptp(differences) == 0:
        return float(differences[0] >= epsilon)
    return float(stats.ttest_1samp(differences, epsilon, alternative="less").pvalue)
