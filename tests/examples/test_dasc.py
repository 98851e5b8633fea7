"""examples/dasc.py against the package: entropy, numbers, selections and a step of CrowdLayer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng

from examples import dasc
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdConnection, CrowdLayer
from neucrowd_tf.methods.dasc.estimator import latest_good
from neucrowd_tf.methods.dasc.over_layers import schedule_presets
from neucrowd_tf.methods.dasc.quotas import allocate, fractions, generated_counts
from neucrowd_tf.methods.dasc.selection import Candidates, entropy, select_dasc

Compare = Callable[[Any, Any], None]


@pytest.fixture(scope="module")
def table():
    """Labels of 60 instances by seven annotators, a fifth of the cells."""
    rng = default_rng(2)
    return np.where(rng.random((60, 7)) < 0.2, rng.integers(dasc.C, size=(60, 7)), -1)


def test_its_defaults_are_the_packages() -> None:
    preset = schedule_presets("crowd_layer")["labelme"]
    assert (preset["epochs"], preset["batch_size"]) == (dasc.epochs, dasc.batch)
    assert (preset["rounds"], preset["quota"], preset["dropout"]) == (dasc.T, 10_000, dasc.dropout)
    assert preset["hidden_units"] == (dasc.hidden,) and preset["standardise"] == "square_root"
    assert preset["annotator_learning_rate"] == dasc.annotator_rate
    assert CrowdLayer().learning_rate == dasc.learning_rate


def test_a_step_has_the_packages_loss_and_gradients(table, alike: Compare) -> None:
    x = default_rng(1).normal(size=(60, 9)).astype(np.float32)
    (f, W), (network, start) = (
        (keras.utils.set_random_seed(3), dasc.make_model(9, 7))[1] for _ in range(2)
    )
    head = CrowdConnection(7)
    package = AnnotationModel(network, head, x, few_cells=False)
    alike(
        [head(network(x)), *f.get_weights()[::2]],
        [dasc.logits(f, W, x), *network.get_weights()[::2]],
    )
    alike([head.matrix], [start])
    crowd = Annotations.from_dense(table, num_classes=dasc.C)
    package.set_annotations(crowd, np.ones(crowd.num_annotations, np.float32))
    rows = np.arange(40, dtype=np.int32)
    loss, gradients = dasc.loss_and_gradients(f, W, x[:40], table[:40])
    with tf.GradientTape() as tape:
        total, size = package.batch_loss(tf.constant(rows), tf.constant(x[:40]))
        theirs = total / size + package.penalty()
    variables = [*network.trainable_variables, head.matrix]
    alike(
        [loss, *gradients], [theirs, *map(tf.convert_to_tensor, tape.gradient(theirs, variables))]
    )


def test_numbers() -> None:
    rng = default_rng(0)
    for M in (1, 10, 100, 5_000):
        generated = rng.integers(0, 300, size=dasc.C)
        available = rng.integers(0, generated + 1)
        theirs = allocate(fractions(generated), available, M)
        assert dasc.selection_numbers(generated, available, M).tolist() == theirs.tolist()
        assert theirs.sum() == min(M, available.sum())


def test_a_selection_is_the_packages(table, alike: Compare) -> None:
    rng = default_rng(5)
    p = rng.dirichlet(np.linspace(0.2, 2, dasc.C), size=table.shape)
    p[::3] = np.eye(dasc.C)[p[::3].argmax(axis=-1)]  # many of entropy 0
    alike([dasc.entropy(p)], [entropy(p)])
    observed = table >= 0
    taken = observed | (rng.random(table.shape) < 0.3)
    labels, free = p.argmax(axis=-1), np.flatnonzero(~taken)
    generated = generated_counts(labels, observed, dasc.C)
    candidates = Candidates(free, labels.ravel()[free], entropy(p).ravel()[free], generated)
    cells = free[select_dasc(candidates, 80, default_rng(9))]
    n, k, chosen = dasc.select(default_rng(9), p, observed, taken, 80)
    assert (n * 7 + k).tolist() == cells.tolist() and len(n) == 80
    assert (chosen == labels[n, k]).all()


def test_imbalance_and_the_round(table) -> None:
    counts = np.bincount(table[table >= 0])
    assert dasc.imbalance(table) == imbalance_ratio(counts)
    for valid in ([0.5, 0.6, 0.59], [0.5, 0.6, 0.5], [0.7, 0.6, 0.5]):
        assert dasc.chosen_round(valid, 200) == latest_good(valid, 200)


def test_it_runs_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dasc, "T", 2)
    accuracy, selected = dasc.run(dasc.simulate(seed=0), seed=0)
    assert accuracy > 0.85 and selected.sum(axis=1).tolist() == [1_207, 1_000, 1_000]
