"""Batches by index, image bases and augmentation."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.crowd_layers.anno_reg import AnnoReg
from neucrowd_tf.methods.crowd_layers.common import mixing
from neucrowd_tf.methods.crowd_layers.common.bases import build_base
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel, InstanceBatches
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.crowd_layers.doctor_net import WeightedDoctorNet
from neucrowd_tf.training.networks import ResNet18
from tests.crowds import array_of, noisy_labels


def test_positions_cover_each_epoch():
    batches = InstanceBatches(10, 5)
    assert batches.steps == 2
    elements = [(s.numpy(), rows.numpy()) for s, rows in batches.make(0, 5).take(4)]
    first, second = (
        np.concatenate([elements[step][1] for step in pair]) for pair in [(0, 1), (2, 3)]
    )
    assert sorted(first) == sorted(second) == list(range(10)) and first.tolist() != second.tolist()
    expected = tf.random.experimental.index_shuffle(tf.range(10), tf.constant([5, 1], tf.uint32), 9)
    assert second.tolist() == expected.numpy().tolist()
    draw_seeds, numbers = np.array([seeds for seeds, _ in elements]).T
    assert draw_seeds.tolist() == [5, 5, 5, 5] and numbers.tolist() == [4, 9, 14, 19]
    assert_array_equal(next(iter(batches.make(3, 5)))[1].numpy(), elements[3][1])
    assert batches.make(0, 5) is batches.make(0, 6), "one pipeline for all rounds"
    assert (
        np.concatenate([b.numpy() for _, b in batches.make(0, 6).take(2)]).tolist()
        != first.tolist()
    )


def test_uneven_batches_repeat_the_first_positions():
    batches = InstanceBatches(10, 4)
    # Three steps of four take twelve instances: the epoch's first two stand once more.
    rows = np.concatenate([b.numpy() for _, b in batches.make(3, 0).take(batches.steps)])
    assert sorted(rows[:10]) == list(range(10)) and rows[10:].tolist() == rows[:2].tolist()
    batches = InstanceBatches(10, 4, replicas=3)
    assert batches.steps == 3 and all(len(b) == 4 for _, b in batches.make(0, 0).take(3))
    assert next(iter(batches.make(0, 0)))[1].shape == (4,), "as on one device"


def test_loss_is_the_sum_of_weighted_logs(crowd):
    features, _, annotations = crowd
    model = CrowdLayer(
        {"hidden_units": (8,), "dropout": 0.0, "l2": 0.0}, epochs=1, imbalance="reweighting"
    )
    with model.reused():
        model.fit(features, annotations)
        rows = array_of("3 50 7")
        trained = model.network.model
        taken = np.asarray(trained.features)[rows]  # standardised, which happens once a fit
        total, size = trained.batch_loss(rows, taken)
    mean, scale = features.mean(axis=0), features.std(axis=0)
    assert_allclose(taken, ((features - mean) / scale)[rows], rtol=1e-3, atol=1e-5)
    counts = np.bincount(annotations.labels)
    answers, dense = model.predict_annotators(features)[rows], annotations.to_dense()[rows]
    weights = (counts.max() / counts)[dense] * (dense >= 0)
    logs = np.log(np.take_along_axis(answers, dense[..., None], axis=2))[..., 0]
    assert float(total) == pytest.approx(-(weights * logs).sum(), rel=1e-4)
    assert float(size) == pytest.approx(weights.sum(), rel=1e-5)


@pytest.fixture
def wide():
    """Three labels an instance by 150 annotators: few of the cells, all in one class or another."""
    rng = default_rng(3)
    truth = rng.integers(2, size=60)
    features = rng.normal(size=(60, 3)).astype(np.float32)
    features[np.arange(60), truth] += 3.0
    dense = np.full((60, 150), -1)
    for i in range(60):
        who = rng.choice(150, size=3, replace=False)
        dense[i, who] = np.where(rng.random(3) < 0.8, truth[i], 1 - truth[i])
    return features, Annotations.from_dense(dense, num_classes=2)


@pytest.mark.parametrize(
    ("kind", "imbalance"),
    [
        pytest.param(CrowdLayer, "resampling", marks=pytest.mark.ci),
        pytest.param(WeightedDoctorNet, "cb_focal", marks=pytest.mark.ci),
        pytest.param(AnnoReg, "cb_focal", marks=pytest.mark.slow),
    ],
)
def test_single_annotations_train_as_the_matrix_does(wide, kind, imbalance, monkeypatch):
    features, annotations = wide
    model = kind(
        base={"hidden_units": (6,), "dropout": 0.0}, epochs=3, batch_size=25, learning_rate=0.02
    ).set_params(imbalance=imbalance)
    with model.reused():
        sparse = model.fit(features, annotations).predict_annotators(features)
        assert model.network.model.few_cells
    monkeypatch.setattr(kind, "_few_cells", staticmethod(lambda data: False))
    with model.reused():
        dense = model.fit(features, annotations).predict_annotators(features)
        assert not model.network.model.few_cells
    assert_allclose(sparse, dense, atol=1e-5)


def test_fits_of_other_numbers_of_annotations_and_instances_share_a_network(wide, monkeypatch):
    features, annotations = wide
    piece, traced = np.arange(0, 60, 2), []
    loss = AnnotationModel.batch_loss
    monkeypatch.setattr(
        AnnotationModel, "batch_loss", lambda *passed: traced.append(1) or loss(*passed)
    )
    fewer = annotations.select(np.arange(annotations.num_annotations) % 3 > 0)
    model = CrowdLayer(base={"hidden_units": (6,)}, epochs=2, batch_size=25)
    with model.reused():
        model.fit(features, annotations)
        network, before = model.network, len(traced)
        model.fit(features, fewer)
        half = model.fit(features[piece], fewer[piece]).predict_proba(features)
        assert model.network is network and len(traced) == before
    afresh = model.fit(features[piece], fewer[piece]).predict_proba(features)
    assert_array_equal(half, afresh)


def test_augmentation_is_a_function_of_the_seed(monkeypatch):
    crop_and_flip = mixing.crop_and_flip
    images = default_rng(0).normal(size=(6, 8, 8, 3)).astype(np.float32)
    one, two = np.asarray(crop_and_flip(images, [1, 2])), np.asarray(crop_and_flip(images, [1, 3]))
    assert_array_equal(one, np.asarray(crop_and_flip(images, [1, 2])))
    assert one.shape == images.shape and not np.array_equal(one, two)
    # Without room to shift, each image is itself or its mirror image.
    monkeypatch.setattr(mixing, "PADDING", 0)
    for image, created in zip(images, np.asarray(crop_and_flip(images, [1, 2])), strict=True):
        assert np.array_equal(created, image) or np.array_equal(created, image[:, ::-1])


@pytest.fixture(scope="module")
def images():
    rng = default_rng(0)
    truth = rng.integers(2, size=24)
    pixels = rng.integers(0, 60, size=(24, 16, 16, 3)).astype(np.float32)
    pixels[truth == 1, 4:12] += 150
    dense = noisy_labels(rng, truth, 3, 0.9)
    return pixels, truth, Annotations.from_dense(dense, num_classes=2)


def test_small_cnn(images):
    pixels, truth, annotations = images
    base = {"name": "small_cnn", "dropout": 0.0}
    model = CrowdLayer(base, epochs=8, batch_size=12, augment=True, learning_rate=1e-2)
    with model.reused():
        proba = model.fit(pixels, annotations).predict_proba(pixels)
        assert proba.shape == (24, 2)
        assert model.predict_annotators(pixels).shape == (24, 3, 2)
        assert (model.predict(pixels) == truth).mean() >= 0.75
        again = model.fit(pixels, annotations)
    assert_array_equal(again.predict_proba(pixels), proba)


def test_resnet18_has_its_sizes():
    model = build_base(ResNet18(), (32, 32, 3), 10)
    convolutions = [layer for layer in model.layers if type(layer).__name__ == "Conv2D"]
    # A stem, 16 in blocks and 3 on shortcuts; 11.17 million weights as in other implementations of
    # this form.
    assert len(convolutions) == 20 and model.count_params() == pytest.approx(11.18e6, rel=2e-3)


def test_several_labels_by_one_annotator_all_count():
    # Annotator 0 gave instance 0 both classes. Most cells have a label, so that one product would
    # serve all annotators; it has room for one label per cell.
    crowd = Annotations(
        [0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 0, 0], duplicates="all"
    )
    x = np.eye(3, dtype=np.float32)
    linear = {"hidden_units": (), "dropout": 0.0, "l2": 0.0}
    model = CrowdLayer(linear, epochs=1, optimizer="sgd", learning_rate=1e-9, restarts=0)
    answers = model.fit(x, crowd).predict_annotators(x)
    expected = -np.log(answers[crowd.instances, crowd.annotators, crowd.labels]).mean()
    assert model.history_["loss"] == pytest.approx([expected], rel=1e-5)
