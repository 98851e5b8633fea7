"""What a crowd method gains over majority vote if it knows the confusion matrices.

The same logistic regression is trained on majority votes, on the posterior of these matrices, and
on the true labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neucrowd_tf import registry
from neucrowd_tf.aggregation.crowd_and_classifier import combine, error_matrices, log_likelihoods
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.simulation import remove_annotations
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import paired_interval
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from neucrowd_tf.training.linear import fit_logistic
from neucrowd_tf.training.standardise import standardise
from neucrowd_tf.training.validation import validation_figures
from reproduction.suite import Suite

FIRST_SEED, SEEDS = 10_200, 5
DATASETS = {"syn1": 7, "syn2": 11}
LABELS = (1, 3, 5)
COLUMNS = (
    *("dataset", "labels_each", "trained_on", "metric", "mean", "gain_over_majority_vote"),
    *("low", "high", "seeds"),
)
_PSEUDO = 0.5  # an answer never given is rare, not impossible


def figures(data: CrowdDataset, left: Annotations) -> dict[str, dict[str, float]]:
    """Returns accuracy and AUC of each kind of training label.

    Args:
        data: with truth, and all annotations, which the matrices are counted on.
        left: the annotations that are trained on.

    Raises:
        DataError: a dataset without truth or validation.
    """
    if data.truth is None or data.validation is None:
        raise DataError(f"{data.name}: expected truth and a validation split, received neither")
    votes = left.vote_counts()
    classes = np.eye(votes.shape[1])
    matrices = error_matrices(data.annotations.one_hot(), classes[data.truth], _PSEUDO)
    ties = votes == votes.max(axis=1, keepdims=True)
    targets = {
        "majority vote": ties / ties.sum(axis=1, keepdims=True),
        "known annotators": combine(
            log_likelihoods(left.one_hot(), matrices), np.ones(len(classes))
        ),
        "truth": classes[data.truth],
    }
    mean, scale = standardise(data.features, True)
    parts = [data.features, data.validation.features, data.test.features]
    parts = [(block - mean) / scale for block in parts]
    # The same regression in fewer dimensions: its weights lie in the span of the instances.
    basis = np.linalg.svd(parts[0], full_matrices=False)[2].T
    x, held, test = (block @ basis for block in parts)
    scores = {}
    for name, target in targets.items():
        rows, codes = np.nonzero(target > 1e-3)
        validation = held, data.validation.labels
        weight = target[rows, codes]
        head = fit_logistic(
            x[rows], codes, votes.shape[1], validation=validation, sample_weight=weight,
            standardise=False,
        )  # fmt: skip
        scores[name] = validation_figures(head.predict_proba(test), data.test.labels)
    return scores


def _rows(options: Options) -> Iterator[list[str]]:
    for dataset, annotators in DATASETS.items():
        for each in LABELS:
            keep = 0.01 if each == 1 else each / annotators
            runs = []
            for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
                data = registry.dataset(dataset).load(options.data_dir, seed)
                left = remove_annotations(data.annotations, keep, seed, at_least_one=True)
                runs.append(figures(data, left))
            for metric in ("accuracy", "auc"):
                first = [run["majority vote"][metric] for run in runs]
                for name in runs[0]:
                    values = [run[name][metric] for run in runs]
                    gain = paired_interval(values, first)
                    cells = [float(np.mean(values)), gain.estimate, gain.low, gain.high]
                    shown = [number_cell(round(cell, 6)) for cell in cells]
                    yield [dataset, str(each), name, metric, *shown, str(len(runs))]


def write(suite: Suite, options: Options) -> list[Path]:
    """Writes the table as CSV."""
    path = options.output_dir / "results" / f"{suite.name}_gains.csv"
    write_text(path, to_csv(COLUMNS, list(_rows(options))))
    return [path]
