"""Which datasets have presets."""

from __future__ import annotations

import pytest

import data  # noqa: F401  (registers the datasets)
import neucrowd_tf.dasc  # noqa: F401  (registers the methods)
from neucrowd_tf import registry
from neucrowd_tf.crowd_layers.presets import PRESETS


@pytest.mark.parametrize("method", ["anno_reg", "crowd_layer", "wdn"])
def test_every_dataset_of_images_has_the_small_cnn(method):
    images = [dataset.name for dataset in registry.datasets() if dataset.name.startswith("cifar10")]
    assert {"cifar10n", "cifar10n_lt", "cifar10h", "cifar10h_lt"} <= set(images)
    assert {name: PRESETS[method].get(name, {}).get("base") for name in images} == dict.fromkeys(
        images, "small_cnn"
    )
    for name in images:
        assert registry.method(f"dasc_{method}").presets[name]["quota"] == (
            500 if "_ovr_" in name else 2000
        )
