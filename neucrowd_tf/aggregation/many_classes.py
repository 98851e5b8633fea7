"""One-coin Dawid-Skene over the classes that each item's labels name, for hundreds of classes."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.aggregation.base import Codes, apply_gold
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats

PSEUDO_LABELS = 2.0  # of each annotator, as accurate as the crowd's majority
MOST_ITER = 100
TOLERANCE = 1e-6


def sparse_one_coin(crowd: Annotations, gold: Codes | None = None) -> tuple[Floats, Floats]:
    """Returns `[N, C]` posteriors and `[R]` skills in time and memory of the annotations.

    An annotator is right with one probability; wrong labels and true classes are evenly spread. All
    classes that nobody named for an item are then equally probable, and one number stands for them.

    Args:
        crowd: with identities.
        gold: `[N]` class codes, -1 if unknown, or None.
    """
    size = crowd.num_classes
    who = crowd.annotators
    items = crowd.instances
    cells, cell = np.unique(items.astype(np.int64) * size + crowd.labels, return_inverse=True)
    cell = cell.reshape(-1)
    row = cells // size
    unnamed = size - np.bincount(row, minlength=crowd.num_instances)
    votes = np.bincount(cell, minlength=len(cells)).astype(np.float64)
    belief = votes / np.bincount(row, votes, minlength=crowd.num_instances)[row]
    total = crowd.labels_per_annotator()
    others = (votes[cell] > 1).mean()  # labels that somebody confirms
    typical = float(np.clip(others, 2.0 / (size + 1), 0.99))
    if gold is None:
        gold = np.full(crowd.num_instances, -1)
    named = gold[row]
    skills = np.full(crowd.num_annotators, typical)
    rest = np.zeros(crowd.num_instances)
    for _ in range(MOST_ITER):
        right = np.bincount(who, belief[cell], minlength=crowd.num_annotators)
        before = skills
        skills = (right + PSEUDO_LABELS * typical) / (total + PSEUDO_LABELS)
        skills = np.clip(skills, 1e-6, 1 - 1e-6)
        odds = np.log(skills * (size - 1) / (1 - skills))
        scores = np.bincount(cell, odds[who], minlength=len(cells))
        top = np.zeros(crowd.num_instances)
        np.maximum.at(top, row, scores)
        weights = np.exp(scores - top[row])
        nobody = unnamed * np.exp(-top)
        mass = np.bincount(row, weights, minlength=crowd.num_instances) + nobody
        belief = weights / mass[row]
        rest = nobody / mass
        belief = np.where(named < 0, belief, cells % size == named)
        if np.abs(skills - before).max() < TOLERANCE:
            break
    probas = np.repeat((rest / np.maximum(unnamed, 1))[:, None], size, axis=1)
    probas[row, cells % size] = belief
    return apply_gold(probas, gold), skills
