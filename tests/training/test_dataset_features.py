"""Features that are read anew in each pass give what features in memory give."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf import DASC, CrowdLayer, Run
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.tables import as_single
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.images import image_folder
from neucrowd_tf.methods.crowd_layers.doctor_net import WeightedDoctorNet
from neucrowd_tf.methods.two_stage import TwoStageClassifier
from neucrowd_tf.methods.two_stage.deep_labels import DeepLabels
from neucrowd_tf.training.dataset_features import DatasetFeatures
from neucrowd_tf.training.features import in_blocks, standardise
from tests.cases import raises
from tests.crowds import array_of, blobs

QUICK = {
    "base": {"hidden_units": (), "dropout": 0.0},
    "epochs": 8,
    "batch_size": 16,
    "learning_rate": 0.05,
}


@pytest.fixture(scope="module")
def crowd():
    """Features, labels of four annotators, the truth, and the features as a shuffled dataset."""
    x, dense, truth = blobs(90, 3, apart=4.0, annotators=4)
    x += 2.0
    order = default_rng(1).permutation(90)
    return x, dense, truth, tf.data.Dataset.from_tensor_slices((x[order], order))


def test_each_pass_gives_what_arrays_give(crowd):
    x, _, _, dataset = crowd
    lazy = DatasetFeatures(dataset.batch(7))
    assert lazy.shape == x.shape
    assert_array_equal(in_blocks(lambda block: 2 * block, lazy, 16), 2 * x)
    assert_allclose(standardise(lazy), standardise(x), rtol=1e-12)
    rows = array_of("3 50 8")
    assert_array_equal(in_blocks(np.asarray, lazy[rows]), x[rows])
    batches = lazy.batches(32)
    steps = batches.steps
    elements = list(batches.make(0, 1).take(2 * steps).as_numpy_iterator())
    assert [seeds.tolist() for seeds, *_ in elements] == [[1, step] for step in range(6)]
    later = next(batches.make(4, 1).as_numpy_iterator())
    assert_array_equal(later[2], elements[4][2], "as if from the beginning")
    for epoch in (elements[:steps], elements[steps:]):
        assert sorted(np.concatenate([places for *_, places in epoch])) == list(range(90))
    _, features, places = elements[-1]
    assert_array_equal(features, x[places])


@pytest.mark.parametrize(
    "kind", [CrowdLayer, pytest.param(WeightedDoctorNet, marks=pytest.mark.slow), DeepLabels]
)
def test_methods_that_train_by_batches_take_a_dataset(crowd, kind):
    x, dense, truth, dataset = crowd
    dense = dense.copy()
    dense[4] = -1
    with pytest.warns(UserWarning, match="1 instances have no annotations"):
        model = kind(**QUICK, monitor="accuracy").fit(dataset, dense)
    assert model.score(dataset, truth) > 0.9
    # A row per label names its tasks by the numbers of the rows, also of a dataset.
    frame = Annotations.from_dense(truth[:, None]).to_frame().sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="task k is row k"):
        assert model.score(dataset, frame) == model.score(dataset, truth)
    assert_allclose(model.predict_proba(dataset), model.predict_proba(x), atol=1e-6)


def test_float32_is_made_of_a_dataset_as_of_an_array(crowd):
    x, dense, truth, _ = crowd
    seconds = x.astype(np.float64) + 1.7e9
    dataset = tf.data.Dataset.from_tensor_slices((seconds, np.arange(90)))
    expected = TwoStageClassifier(Cs=(1e-3, 1.0)).fit(seconds, dense, (seconds, truth))
    model = TwoStageClassifier(Cs=(1e-3, 1.0)).fit(dataset, dense, (dataset, truth))
    assert_array_equal(model.rescaling_, expected.rescaling_)
    probabilities = expected.predict_proba(seconds)
    assert_array_equal(expected.predict_proba(dataset), probabilities)
    assert_allclose(model.predict_proba(dataset), probabilities, atol=1e-6)
    rescaled = DatasetFeatures(dataset).changed(
        lambda block: as_single(block, "", model.rescaling_)
    )
    _, batch, places = next(rescaled.batches(32).make(0, 1).as_numpy_iterator())
    assert_array_equal(batch, as_single(seconds, "", model.rescaling_)[places])
    beyond = dataset.map(lambda x, i: (x * 1e200, i))
    raises(DataError, "row 0, column 0: expected a finite number", model.predict, beyond)


def test_a_resumed_fit_ends_with_the_same_bytes(crowd, tmp_path):
    x, dense, truth, dataset = crowd

    class Stops:
        """Ends the fifth epoch as Ctrl-C does."""

        epochs = 0

        def is_set(self):
            self.epochs += 1
            return self.epochs > 4

    held = (x[:9], truth[:9])
    model = CrowdLayer(**QUICK)
    with model.reused():
        model.fit(dataset, dense, held, run=Run(tensorboard=tmp_path / "logs"))
        whole = model.predict_proba(x)
        assert len(model.history_["val_accuracy"]) == 8, "curves in TensorBoard, without a monitor"
        with pytest.raises(KeyboardInterrupt):
            run = Run(checkpoints=tmp_path, checkpoint_seconds=0, stop=Stops())
            model.fit(dataset, dense, held, run=run)
        model.set_params(seed=1).fit(dataset, dense, held)  # the network holds something else
        model.set_params(seed=0).fit(dataset, dense, held, run=Run(checkpoints=tmp_path))
        assert_array_equal(model.predict_proba(x), whole)


def test_errors_say_what_to_pass(crowd):
    x, dense, _, dataset = crowd
    raises(UsageError, "DASC needs all features in memory", DASC().fit, dataset, dense)
    with pytest.raises(DataError, match="adds the index"):
        CrowdLayer().fit(tf.data.Dataset.from_tensor_slices(x), dense)
    twice = dataset.concatenate(dataset)
    raises(DataError, "expected each index from 0 to 179 once", CrowdLayer().fit, twice, dense)
    raises(DataError, "the dataset has no end", CrowdLayer().fit, dataset.repeat(), dense)
    texts = dataset.map(lambda x, i: (tf.strings.as_string(x), i))
    raises(DataError, "expected numbers, received dtype string", CrowdLayer().fit, texts, dense)


def test_a_folder_of_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    values = np.arange(6, dtype=np.uint8) * 40
    for number, value in enumerate(values):
        ending = "jpg" if number % 2 else "png"
        image.new("RGB", (9, 7), (int(value),) * 3).save(tmp_path / f"b{number}.{ending}")
    names = np.array([f"b{number}" + ".png" * (number == 2) for number in (5, 2, 0, 1)])
    lazy = DatasetFeatures(image_folder(tmp_path, names, 4))
    assert lazy.shape == (4, 4, 4, 3)
    means = in_blocks(np.asarray, lazy).mean(axis=(1, 2, 3))
    assert_allclose(means, values[[5, 2, 0, 1]] / 255, atol=0.01)
    crowd = Annotations.from_dense(array_of("0 0; 1 1; 1 1; 1 0"))
    model = CrowdLayer(base="small_cnn", epochs=1, batch_size=2).fit(
        image_folder(tmp_path, names, 8), crowd
    )
    assert model.predict_proba(image_folder(tmp_path, names[:3], 8)).shape == (3, 2)
    raises(DataError, "there is no image named 'b9'", image_folder, tmp_path, ["b9"], 4)
