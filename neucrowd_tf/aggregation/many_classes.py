"""One-coin Dawid-Skene over the classes that each item's labels name, for hundreds of classes."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.aggregation.base import Codes, apply_gold
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Floats, Integers

# Pseudo-labels that shrink each annotator's skill. They are right as often as a label of the crowd
# is confirmed by a second annotator.
PSEUDO_LABELS = 2.0
MOST_ITER = 100
TOLERANCE = 1e-6  # the iterations end when no skill moves by more, or after MOST_ITER
LEAST_SKILL = 1e-6  # the most is 1 less this, so that log odds are finite


def sparse_one_coin(crowd: Annotations, gold: Codes | None = None) -> tuple[Floats, Floats]:
    """Returns `[N, C]` posteriors and `[R]` skills.

    An annotator is right with one probability; wrong labels and true classes are evenly spread. All
    classes that nobody named for an item are then equally probable, and one number stands for them,
    so that an iteration takes the time and memory of the annotations. A cell is an item and a class
    that somebody named for it. An annotator's repeated label counts once.

    Args:
        crowd: with identities.
        gold: `[N]` class codes, -1 if unknown, or None.
    """
    num_classes = crowd.num_classes
    keys = crowd.instances.astype(np.int64) * num_classes + crowd.labels
    _, first = np.unique(keys * crowd.num_annotators + crowd.annotators, return_index=True)
    first.sort()  # sums are in the order of the labels
    crowd = crowd.select(first)
    keys = keys[first]
    cells, cell_of_label, votes = np.unique(keys, return_inverse=True, return_counts=True)
    items = cells // num_classes
    classes = cells % num_classes
    unnamed = num_classes - np.bincount(items, minlength=crowd.num_instances)
    belief = votes / np.bincount(items, votes, crowd.num_instances)[items]
    num_labels = crowd.labels_per_annotator()
    confirmed = float((votes[cell_of_label] > 1).mean())
    # Few labels prove neither chance nor certainty.
    typical = float(np.clip(confirmed, 2.0 / (num_classes + 1), 0.99))
    gold_of_cell = np.full(len(cells), -1) if gold is None else gold[items]
    skills = np.full(crowd.num_annotators, typical)
    unnamed_mass = np.zeros(crowd.num_instances)
    for _ in range(MOST_ITER):
        before = skills
        right = np.bincount(crowd.annotators, belief[cell_of_label], crowd.num_annotators)
        skills = (right + PSEUDO_LABELS * typical) / (num_labels + PSEUDO_LABELS)
        skills = np.clip(skills, LEAST_SKILL, 1 - LEAST_SKILL)
        odds = np.log(skills * (num_classes - 1) / (1 - skills))
        scores = np.bincount(cell_of_label, odds[crowd.annotators], len(cells))
        belief, unnamed_mass = _posteriors(scores, items, unnamed)
        belief = np.where(gold_of_cell < 0, belief, classes == gold_of_cell)
        if np.abs(skills - before).max() < TOLERANCE:
            break
    each_unnamed = unnamed_mass / np.maximum(unnamed, 1)
    probas = np.repeat(each_unnamed[:, None], num_classes, axis=1)
    probas[items, classes] = belief
    return apply_gold(probas, gold), skills


def _posteriors(scores: Array, items: Integers, unnamed: Integers) -> tuple[Floats, Floats]:
    """Returns the posterior of each cell, and `[N]` that of an item's unnamed classes together.

    Args:
        scores: of each cell, the log odds of its labels; an unnamed class has 0.
        items: of each cell.
        unnamed: `[N]` how many classes nobody named.
    """
    top = np.zeros(len(unnamed))
    np.maximum.at(top, items, scores)
    weights = np.exp(scores - top[items])
    nobody = unnamed * np.exp(-top)
    mass = np.bincount(items, weights, len(unnamed)) + nobody
    return weights / mass[items], nobody / mass
