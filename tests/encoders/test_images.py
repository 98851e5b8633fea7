"""Image encoders: pooled features, the cache, and models of images that contain the network."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.cli.commands.predict import Scorer
from neucrowd_tf.encoders import ImageEncoder, images, make_encoder
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.auto import Auto
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.methods.two_stage import TwoStageClassifier
from neucrowd_tf.saving.loading import load
from neucrowd_tf.saving.saved_model import export_saved_model
from tests.cases import raises

NAME = "MobileNetV3Small"


@pytest.mark.parametrize("method", ["mv_lr", "auto"])
def test_vectors_are_the_networks_pooled_features(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "SIDE", 32)
    monkeypatch.setenv("NEUCROWD_CACHE", str(tmp_path / "cache"))
    keras.utils.set_random_seed(1)
    network = keras.applications.MobileNetV3Small(
        include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg"
    )
    network.set_weights([2 * weight for weight in network.get_weights()])  # else features are tiny
    network.save_weights(weights := tmp_path / "random.weights.h5")
    source = f"keras:{NAME}:{weights}"
    rng = default_rng(0)
    labels = np.arange(24) % 2
    pictures = rng.uniform(0, 0.4, (24, 8, 8, 3)) + 0.5 * labels[:, None, None, None]
    pictures = pictures.astype(np.float32)
    encoder = make_encoder(source)
    assert isinstance(encoder, ImageEncoder)
    vectors = make_pipeline(encoder).fit_transform(pictures, labels)
    assert encoder.transform(pictures[:0]).shape == (0, vectors.shape[1])
    larger = keras.ops.image.resize(255 * pictures, (32, 32))
    assert_allclose(vectors, network(larger, training=False), rtol=1e-3, atol=1e-3)

    encoder.save(tmp_path / "saved")
    monkeypatch.setattr(images.ImageEncoder, "_encoded", None)  # all vectors are in the cache
    assert_array_equal(load(tmp_path / "saved").transform(pictures), vectors)
    assert_allclose(load(tmp_path / "saved").layer()(pictures), vectors, atol=1e-3)
    with pytest.raises(DataError, match=r"shape \(8, 8, 3\), received \(9, 9, 3\)"):
        encoder.transform(np.zeros((1, 9, 9, 3)).tolist())
    for wrong in (255 * pictures, np.uint8(255 * pictures), -pictures, pictures * np.nan):
        for use in (encoder.fit, encoder.transform):
            raises(DataError, "expected images of floats from 0 to 1", use, wrong)

    crowd = Annotations.from_dense(np.stack([labels, labels, labels ^ (np.arange(24) % 7 == 0)], 1))
    model = TextClassifier(encoder, estimator=TwoStageClassifier())
    if method == "auto":
        model = Auto(("ds_lr",), encoder=encoder)
    model.fit(pictures, crowd)
    expected = model.predict_proba(pictures)
    assert (expected.argmax(axis=1) == labels).all()
    scorer = Scorer(export_saved_model(model, tmp_path / "model"))
    assert scorer.shape == (8, 8, 3) and scorer.encoder is None
    assert_allclose(scorer.probabilities(pictures), expected, atol=1e-4)


def test_what_is_no_image_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = np.zeros((2, 8, 8, 3), np.float32)
    raises(UsageError, "Keras has no such network", ImageEncoder("keras:no").fit, pictures)
    with pytest.raises(DataError, match="expected colour images"):
        ImageEncoder(f"keras:{NAME}").fit(np.zeros((2, 3), np.float32))
    (tmp_path / "damaged.weights.h5").write_bytes(b"damaged")
    with pytest.raises(DataError, match=rf"no weights \(.*Name a file with keras:{NAME}:FILE"):
        ImageEncoder(f"keras:{NAME}:{tmp_path / 'damaged.weights.h5'}").fit(pictures)

    def offline(*_, **__) -> None:
        raise OSError("URL fetch failure")

    monkeypatch.setattr("keras.src.utils.file_utils.urlretrieve", offline)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(DataError, match=r"no weights .*URL fetch failure"):
        ImageEncoder(f"keras:{NAME}").fit(pictures)
