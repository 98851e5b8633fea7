"""Real data that comes with scikit-learn, labelled by simulated crowds.

Nothing has to be downloaded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from neucrowd_tf.annotations import simulation
from neucrowd_tf.datasets.core import Card, CrowdDataset
from neucrowd_tf.datasets.crowds import stratified_parts, with_simulated_crowd
from neucrowd_tf.declare.dataset_registration import register_dataset
from neucrowd_tf.declare.settings import settings_in

_SETTINGS = settings_in(Path(__file__).with_suffix(".toml"))
SHARES: tuple[float, ...] = _SETTINGS["shares"]
CANCER, DIGITS = _SETTINGS["breast_cancer"], _SETTINGS["digits"]


@register_dataset("breast_cancer", summary=CANCER["summary"], simulated=True)
def load_cancer(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads scikit-learn's breast cancer data with a crowd drawn from the seed.

    `data_dir` is not used.

    The positive class is "malignant".
    """
    bunch = load_breast_cancer()
    names = np.array(["benign", "malignant"], dtype=object)
    truth = (bunch.target == list(bunch.target_names).index("malignant")).astype(np.int64)
    rates, (low, high) = CANCER["rates"], CANCER["skill"]
    skilled = simulation.class_skill_annotators(len(rates) - 1, 2, seed, low=low, high=high)
    annotators = np.concatenate([skilled, simulation.spammers(1, 2, seed, kind="uniform")])
    crowd = simulation.simulate(truth, annotators, seed, rates=rates, class_names=names)
    card = Card(**CANCER["card"], notes=_SETTINGS["notes"])
    parts = stratified_parts(truth, SHARES, seed)
    return with_simulated_crowd(
        "breast_cancer", bunch.data, truth, crowd, parts, seed=seed, card=card
    )


@register_dataset("digits", summary=DIGITS["summary"], simulated=True)
def load_digit_images(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads scikit-learn's digits with a crowd drawn from the seed; `data_dir` is not used."""
    bunch = load_digits()
    truth = bunch.target.astype(np.int64)
    annotators = [
        simulation.confusion_annotators(9, 10, seed, accuracy=0.75),
        simulation.spammers(1, 10, seed, kind="uniform"),
        simulation.spammers(1, 10, seed, kind="constant"),
        simulation.adversaries(1, 10, seed),
    ]
    crowd = simulation.simulate(truth, np.concatenate(annotators), seed, rates=DIGITS["rates"])
    card = Card(**DIGITS["card"], notes=_SETTINGS["notes"])
    parts = stratified_parts(truth, SHARES, seed)
    return with_simulated_crowd("digits", bunch.data, truth, crowd, parts, seed=seed, card=card)
