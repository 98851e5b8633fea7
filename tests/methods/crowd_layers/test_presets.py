"""Which datasets have presets."""

from __future__ import annotations

import pytest

import data  # noqa: F401  (registers the datasets)
import neucrowd_tf.methods.dasc  # noqa: F401  (registers the methods)
from neucrowd_tf.declare import registry
from neucrowd_tf.methods.crowd_layers.common.presets import PRESETS


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


def test_stronger_bases_are_chosen_outside_suites_only(tmp_path):
    from neucrowd_tf.cli.runs.options import DEFAULTS, Options
    from reproduction.run import case_options
    from reproduction.suite import Case

    crowd_layer = registry.method("crowd_layer")
    papers = crowd_layer.make(dataset="music")
    assert papers.base["hidden_units"] == (128,) and papers.schedule == "constant"
    stronger = crowd_layer.make(dataset="music", bases="stronger", dropout=0.1)
    assert stronger.base["hidden_units"] == (256, 128) and stronger.base["dropout"] == 0.1
    assert stronger.schedule == "cosine" and stronger.annotator_learning_rate is None
    assert registry.method("mv_dl").make(dataset="music", bases="stronger").learning_rate == 1e-2
    case = Case(datasets=("music",), methods=("crowd_layer",), seeds=1)
    assert case_options(Options(output_dir=tmp_path), case).bases == "papers"
    assert DEFAULTS["bases"] == "stronger"
