"""Simulated crowds beside a classifier that learned from their labels, or from others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Calibration, Certainty

Array = NDArray[Any]
ITEMS, PEOPLE, APART = 300, 15, 2.0
REGION = 0.3  # share of the items whose features mislead annotators
MISLED = 0.4  # by so much


def taught_classifiers(seeds: int) -> Iterator[tuple[str, Certainty, Array, Array]]:
    """Yields family, the certainty of the crowd's labels, held-out predictions and true labels.

    Annotators lean towards the first class by 0 or .25. A classifier predicts by features that are
    normal around each class. It knows each class' chances ("own"), or has learned the crowd's
    labels and with them the lean ("lean"), also where features mislead annotators ("region").
    """
    cells = itertools.product(
        ("own", "lean", "region"), (0.0, 0.25), (1, 3, 5), ((0.55, 0.85), (0.75, 0.95)), (2, 4)
    )
    for (kind, lean, each, skills, size), seed in itertools.product(cells, range(seeds)):
        rng = np.random.default_rng([seed, len(kind), int(100 * lean), each, size])
        truth = np.where(rng.random(ITEMS) < 0.5, 0, rng.integers(1, size, ITEMS))
        features = APART * np.eye(size)[truth] + rng.standard_normal((ITEMS, size))
        prior = np.log([0.5, *[0.5 / (size - 1)] * (size - 1)])
        predicted = softmax(APART * features + prior, axis=1)
        misled = (rng.random(ITEMS) < REGION) & (kind == "region")
        chance = rng.uniform(*skills, PEOPLE) + np.where(truth == 0, lean, -lean)[:, None]
        chance -= MISLED * (misled & (truth != 0))[:, None]
        right = rng.random((ITEMS, PEOPLE)) < np.clip(chance, 0.05, 0.97)
        other = (truth[:, None] + rng.integers(1, size, (ITEMS, PEOPLE))) % size
        other[misled & (truth != 0)] = 0
        labels = np.where(right, truth[:, None], other)
        hidden = np.argsort(rng.random((ITEMS, PEOPLE)), axis=1)[:, each:]
        np.put_along_axis(labels, hidden, -1, axis=1)
        crowd = Annotations.from_dense(labels, num_classes=size)
        probas = DawidSkene(one_coin=True).fit(crowd).probas_
        certainty = Calibration.learned().apply(probas, crowd.vote_counts())
        if kind != "own":
            for rows in (misled, ~misled):
                counts = np.full((size, size), 0.5)
                np.add.at(counts, (truth[rows], probas[rows].argmax(axis=1)), 1.0)
                predicted[rows] @= counts / counts.sum(axis=1, keepdims=True)
        yield kind, certainty, predicted, truth
