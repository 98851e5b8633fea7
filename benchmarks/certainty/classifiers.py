"""Crowds beside a classifier that learned from their labels, or from others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.certainty.crowds import read_outside_truth, thinned
from benchmarks.certainty.models import real
from data import labelme, music
from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.aggregation.families import labels_of
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Calibration, Certainty
from neucrowd_tf.certainty.inference import infer

Array = NDArray[Any]
Featured = tuple[str, Annotations, Array, Array]
SIMULATED = {"own": "independent classifier", "lean": "shared lean", "region": "shared mistakes"}
ITEMS, PEOPLE, APART = 300, 15, 2.0
REGION = 0.3  # share of the items whose features mislead annotators
MISLED = 0.4  # by so much
RADIOGRAPHS = "xray_effusion"
PENALTY = 0.03  # C of the regression
LEAST_OF_CLASS = 5  # items; rarer classes are not learned


def taught_classifiers(seeds: int) -> Iterator[tuple[str, Certainty, Array, Array]]:
    """Yields family, the certainty of the crowd's labels, held-out predictions and true labels.

    Annotators lean towards the first class by 0 or .25. A classifier predicts by features that are
    normal around each class. It knows each class' chances ("own"), or has learned the crowd's
    labels and with them the lean ("lean"), also where features mislead annotators ("region").
    """
    cells = itertools.product(
        SIMULATED, (0.0, 0.25), (1, 3, 5), ((0.55, 0.85), (0.75, 0.95)), (2, 4)
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


def real_classifiers(data_dir: Path) -> Iterator[tuple[str, Certainty, Array, Array]]:
    """Yields what `taught_classifiers` does, of people's labels of items that have features.

    A regression learns the inferred labels of other items. Crowds are whole, and thinned to one and
    two labels per item.

    Args:
        data_dir: has the crowds.
    """
    for name, whole, truth, features in _featured(data_dir):
        mean = whole.num_annotations / whole.annotated.sum()
        for crowd in (whole, *(thinned(whole, count) for count in (2, 1) if mean > count + 0.4)):
            rows = np.flatnonzero(crowd.annotated & (truth >= 0))
            certainty = infer(crowd[rows], skills=False).certainty
            labels = certainty.probas.argmax(axis=1)
            predicted = _held_out(features[rows], labels, crowd.num_classes)
            yield name, certainty, predicted, truth[rows]


def _featured(data_dir: Path) -> Iterator[Featured]:
    """Yields name, people's labels, true labels and features `[N, D]`."""
    for name, crowd, truth in read_outside_truth(data_dir):
        if name == RADIOGRAPHS:  # features are findings by ten image models
            path = data_dir / "outside_truth" / name / "features.csv"
            findings = pd.read_csv(path, index_col="task").loc[crowd.instance_names.tolist()]
            yield name, crowd, truth, findings.to_numpy(float)
    for folder in sorted((data_dir / "people_and_models").glob("*/")):  # models' labels
        crowd, truth, models = real(folder)
        is_model = np.isin(crowd.annotator_names.astype(str), models)
        features = labels_of(crowd, is_model).one_hot().toarray()
        yield folder.name, labels_of(crowd, ~is_model), truth, features[:, features.any(axis=0)]
    for dataset in (music.load(data_dir), labelme.load(data_dir)):
        flat = np.reshape(dataset.features, (len(dataset.features), -1))
        yield dataset.name, dataset.annotations, np.asarray(dataset.truth), flat


def _held_out(features: Array, labels: Array, size: int) -> Array:
    """Returns `[N, C]` a regression's probabilities of labels `[N]` that it has not learned."""
    common = np.bincount(labels, minlength=size) >= LEAST_OF_CLASS
    known = common[labels]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=PENALTY, max_iter=300))
    predicted = np.full((len(labels), size), 1.0 / size)
    predicted[known] = 1e-6
    predicted[np.ix_(known, common)] = cross_val_predict(
        model, features[known], labels[known], cv=LEAST_OF_CLASS, method="predict_proba"
    )
    return predicted / predicted.sum(axis=1, keepdims=True)
