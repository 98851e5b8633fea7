"""Syn1 and Syn2 (NeuCrowd, section 4.1): simulated data with 7 and 11 annotators.

The features are from Guyon's generator. Each annotator mislabels at a rate of their own. In
`syn1_dependent` and `syn2_dependent` hard instances are mislabelled by many, as in the authors' own
file of Syn1, which `neucrowd_syn` (data/hotel.py) reads.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

from neucrowd_tf.annotations import simulation
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.datasets.crowds import sklearn_seed, with_simulated_crowd

from . import catalogue

FEATURES = 1200
TRAIN = 800
VALIDATION = 200
TEST = 500
# The paper's words give annotators whose errors are independent. In the authors' file they are not:
# the numbers of wrong votes vary more, and fewer majority votes are right. The correlation of the
# annotators' normal scores is the maximum likelihood estimate from the file's vote histogram. A
# mean rate is that of the file (Syn1), or gives the published kappa (Syn2).
DEPENDENCE = 0.26
MEAN_RATE = {7: 0.171, 11: 0.195}


def _generate(
    name: str, annotators: int, dependent: bool, data_dir: Path | None = None, seed: int = 0
) -> CrowdDataset:
    """Draws a data set from the seed; `data_dir` is not used."""
    size = TRAIN + VALIDATION + TEST
    # Deviation: the paper gives the hypercube and the clusters, not the number of informative
    # features; all of them matches the spread of the authors' published sample.
    features, truth = make_classification(
        n_samples=size,
        n_features=FEATURES,
        n_informative=FEATURES,
        n_redundant=0,
        n_repeated=0,
        n_clusters_per_class=2,
        class_sep=1.0,
        random_state=sklearn_seed(seed, 0),
    )
    rate = MEAN_RATE[annotators] if dependent else None
    skills = simulation.mislabelling_annotators(annotators, 2, seed, mean_rate=rate)
    crowd = simulation.simulate(truth, skills, seed, dependence=DEPENDENCE * dependent)
    parts = np.split(np.arange(size), [TRAIN, TRAIN + VALIDATION])
    return with_simulated_crowd(
        name, features, truth, crowd, parts, seed=seed, card=catalogue.card(name)
    )


for _name, _annotators in (("syn1", 7), ("syn2", 11)):
    for _suffix in ("", "_dependent"):
        catalogue.register(_name + _suffix, simulated=True, module=__name__)(
            functools.partial(_generate, _name + _suffix, _annotators, bool(_suffix))
        )
