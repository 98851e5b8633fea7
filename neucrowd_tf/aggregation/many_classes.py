"""One-coin Dawid-Skene over the classes that each item's labels name, for hundreds of classes."""

from __future__ import annotations

from functools import partial

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
    annotators = crowd.annotators
    items = crowd.instances
    cells, cell = np.unique(items.astype(np.int64) * size + crowd.labels, return_inverse=True)
    cell = cell.reshape(-1)
    row = cells // size
    by_item = partial(np.bincount, row, minlength=crowd.num_instances)
    by_cell = partial(np.bincount, cell, minlength=len(cells))
    unnamed = size - by_item()
    votes = by_cell().astype(np.float64)
    belief = votes / by_item(votes)[row]
    total = crowd.labels_per_annotator()
    confirmed = (votes[cell] > 1).mean()  # labels that somebody confirms
    typical = float(np.clip(confirmed, 2.0 / (size + 1), 0.99))
    gold_of_row = np.full(len(row), -1) if gold is None else gold[row]
    skills = np.full(crowd.num_annotators, typical)
    unnamed_mass = np.zeros(crowd.num_instances)
    for _ in range(MOST_ITER):
        right = np.bincount(annotators, belief[cell], minlength=crowd.num_annotators)
        before = skills
        skills = (right + PSEUDO_LABELS * typical) / (total + PSEUDO_LABELS)
        skills = np.clip(skills, 1e-6, 1 - 1e-6)
        odds = np.log(skills * (size - 1) / (1 - skills))
        scores = by_cell(odds[annotators])
        top = np.zeros(crowd.num_instances)
        np.maximum.at(top, row, scores)
        weights = np.exp(scores - top[row])
        nobody = unnamed * np.exp(-top)
        mass = by_item(weights) + nobody
        belief = weights / mass[row]
        unnamed_mass = nobody / mass
        belief = np.where(gold_of_row < 0, belief, cells % size == gold_of_row)
        if np.abs(skills - before).max() < TOLERANCE:
            break
    probas = np.repeat((unnamed_mass / np.maximum(unnamed, 1))[:, None], size, axis=1)
    probas[row, cells % size] = belief
    return apply_gold(probas, gold), skills
