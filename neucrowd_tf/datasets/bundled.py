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
from neucrowd_tf.registry import register_dataset

SHARES = (0.6, 0.2, 0.2)  # training, validation, test

# Seven uneven annotators: six whose skill differs by class, and one who guesses. The busiest label
# most instances, the laziest one in six; about three labels an instance.
CANCER_RATES = (0.70, 0.60, 0.50, 0.40, 0.30, 0.16, 0.40)
CANCER_SKILL = (0.6, 0.95)

# Twelve annotators of ten classes: nine with a confusion matrix of their own, one who guesses, one
# who always says the same and one who confuses each class with the same wrong one.
DIGITS_RATES = (0.50, 0.45, 0.40, 0.35, 0.30, 0.25, 0.20, 0.15, 0.10, 0.20, 0.10, 0.10)

_NOTES = (
    "The crowd and the splits are drawn from the seed. Validation labels are the crowd's majority"
    " votes; test labels are the truth."
)


@register_dataset(
    "breast_cancer",
    summary="569 breast masses, benign or malignant, 30 features, 7 uneven and sparse simulated"
    " annotators (bundled)",
    simulated=True,
)
def load_cancer(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads scikit-learn's breast cancer data with a crowd drawn from the seed.

    `data_dir` is not used.

    The positive class is "malignant".
    """
    bunch = load_breast_cancer()
    names = np.array(["benign", "malignant"], dtype=object)
    truth = (bunch.target == list(bunch.target_names).index("malignant")).astype(np.int64)
    low, high = CANCER_SKILL
    annotators = np.concatenate(
        [
            simulation.class_skill_annotators(len(CANCER_RATES) - 1, 2, seed, low=low, high=high),
            simulation.spammers(1, 2, seed, kind="uniform"),
        ]
    )
    crowd = simulation.simulate(truth, annotators, seed, rates=CANCER_RATES, class_names=names)
    card = Card(
        title="Breast cancer (diagnostic), simulated crowd",
        source="sklearn.datasets.load_breast_cancer (UCI 17)",
        licence="CC BY 4.0",
        citation="Wolberg, Mangasarian, Street, Street: Breast Cancer Wisconsin (Diagnostic), UCI"
        " Machine Learning Repository, 1993",
        notes=_NOTES,
    )
    parts = stratified_parts(truth, SHARES, seed)
    return with_simulated_crowd(
        "breast_cancer", bunch.data, truth, crowd, parts, seed=seed, card=card
    )


@register_dataset(
    "digits",
    summary="1,797 handwritten digits, 64 features, 10 classes, 12 simulated annotators (bundled)",
    simulated=True,
)
def load_digit_images(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads scikit-learn's digits with a crowd drawn from the seed; `data_dir` is not used."""
    bunch = load_digits()
    truth = bunch.target.astype(np.int64)
    annotators = np.concatenate(
        [
            simulation.confusion_annotators(9, 10, seed, accuracy=0.75),
            simulation.spammers(1, 10, seed, kind="uniform"),
            simulation.spammers(1, 10, seed, kind="constant"),
            simulation.adversaries(1, 10, seed),
        ]
    )
    crowd = simulation.simulate(truth, annotators, seed, rates=DIGITS_RATES)
    card = Card(
        title="Handwritten digits, simulated crowd",
        source="sklearn.datasets.load_digits (UCI 80)",
        licence="CC BY 4.0",
        citation="Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning"
        " Repository, 1998",
        notes=_NOTES,
    )
    parts = stratified_parts(truth, SHARES, seed)
    return with_simulated_crowd("digits", bunch.data, truth, crowd, parts, seed=seed, card=card)
