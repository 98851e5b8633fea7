"""Statistics of annotations.

These are sparsity, imbalance and, if true labels are available, accuracy.

Everything is computed from the vote counts `[N, C]` or from the sparse triples; nothing of size
`[N, R]` is built.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations.agreement import agreement_coefficients, counts_of
from neucrowd_tf.annotations.codes import unmasked
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.declare.types import Array, Fields, Floats, Indices, Mask
from neucrowd_tf.errors import DataError

EQUAL = 1e-9  # probabilities that differ by less tie
NEARLY = 0.95  # of the largest probability: so much ties if the votes tie


def known_codes(annotations: Annotations, truth: ArrayLike, title: str = "truth") -> Indices:
    """Returns `[N]` class codes with -1 for unknown, checked against the annotations.

    Raises:
        DataError: the values are not such codes.
    """
    codes = np.asarray(unmasked(truth, -1))
    if codes.shape != (annotations.num_instances,) or codes.dtype.kind not in "iu":
        raise DataError(
            f"{title}: expected {annotations.num_instances} class codes, received {codes.dtype} of"
            f" shape {codes.shape}"
        )
    if codes.size and (codes.min() < -1 or codes.max() >= annotations.num_classes):
        row = int(np.flatnonzero((codes < -1) | (codes >= annotations.num_classes))[0])
        raise DataError(
            f"{title}: row {row}: expected a class code from 0 to {annotations.num_classes - 1} or"
            f" -1 for unknown, received {codes[row]}"
        )
    return codes.astype(np.int64)


def sparsity(annotations: Annotations) -> float:
    """Returns the share of the `N x R` cells that hold no label; NaN when there are no cells."""
    cells = annotations.num_instances * annotations.num_annotators
    if cells:
        return 1.0 - annotations.num_annotations / cells
    return float("nan")


def majority_shares(annotations: Annotations | ArrayLike) -> Floats:
    """Returns `[N, C]`: 1 at the class with most votes.

    Classes that tie share it evenly; instances without votes have zeros.
    """
    counts = counts_of(annotations)
    top = counts == counts.max(axis=1, keepdims=True, initial=0)
    top &= counts.sum(axis=1, keepdims=True) > 0
    return top / np.maximum(top.sum(axis=1, keepdims=True), 1)


def top_classes(probas: Array, votes: Array | None = None) -> Mask:
    """Returns `[N, C]` which classes are the most probable ones of their row, several if they tie.

    Args:
        probas: `[N, C]`.
        votes: `[N, C]`; classes that have the most votes also tie if they are nearly as probable,
            because methods that draw random numbers leave small differences between them.
    """
    top = probas.max(axis=1, keepdims=True)
    tied = probas >= top - EQUAL
    if votes is not None:
        most = (votes == votes.max(axis=1, keepdims=True)) & (votes > 0)
        tied |= most & (probas >= NEARLY * top) & (most & tied).any(axis=1, keepdims=True)
    return np.asarray(tied)


def class_shares(annotations: Annotations | ArrayLike, truth: ArrayLike | None = None) -> Floats:
    """Returns each class's share of the instances, `[C]`.

    The shares are by true labels if these are passed, otherwise by majority vote (ties shared).

    Instances without truth, or without a label, are left out.
    """
    counts = counts_of(annotations)
    if truth is None:
        totals = majority_shares(counts).sum(axis=0)
    else:
        codes = np.asarray(truth)
        totals = np.bincount(codes[codes >= 0], minlength=counts.shape[1]).astype(np.float64)
    if totals.sum():
        return totals / totals.sum()
    return np.full(counts.shape[1], np.nan)


def class_ratio(
    annotations: Annotations | ArrayLike, truth: ArrayLike | None = None, positive: int = 1
) -> float:
    """Returns the share of positive instances (NeuCrowd, table 1), by truth or by majority vote."""
    return float(class_shares(annotations, truth)[positive])


def imbalance_ratio(class_counts: ArrayLike) -> float:
    """Returns R = max / max(1, min) of class counts `[C]`.

    The paper divides by the smallest count, which is undefined when a class has none; 1
    stands in for 0.

    References:
        DASC, eq. 1 and section 4.2 (figure 4).
    """
    # Deviation: DASC eq. 1. Paper: R = max N_c / min N_c. Here: R = max / max(1, min). Why: A class
    # may have no annotation. Effect: results/dataset_tables.csv.
    counts = np.asarray(class_counts, dtype=np.float64)
    if counts.size:
        return float(counts.max() / max(1.0, counts.min()))
    return float("nan")


def annotator_accuracy(annotations: Annotations, truth: ArrayLike) -> tuple[Floats, Indices]:
    """Scores each annotator against given class codes.

    Args:
        annotations: with identities.
        truth: `[N]` class codes, -1 where unknown; those instances are left out.

    Returns:
        accuracy `[R]` (NaN for an annotator with nothing to score) and the number of labels it
        rests on `[R]`.

    Raises:
        IdentitiesError: vote counts only.
        DataError: truth of another length, or codes out of range.
    """
    annotations.require_identities("the accuracy of annotators")
    codes = known_codes(annotations, truth)[annotations.instances]
    size = annotations.num_annotators
    labels = np.bincount(annotations.annotators[codes >= 0], minlength=size)
    correct = np.bincount(annotations.annotators[annotations.labels == codes], minlength=size)
    with np.errstate(invalid="ignore"):
        return np.where(labels > 0, correct / labels, np.nan), labels


def leave_one_out_agreement(annotations: Annotations) -> Floats:
    """Returns `[R]` the share of the others' labels on an annotator's instances that equal its own.

    NaN if there is no label of another annotator.
    """
    votes = annotations.vote_counts()
    size = annotations.num_annotators
    # An annotator may have labelled an instance several times.
    pairs = annotations.instances.astype(np.int64) * size + annotations.annotators
    cells = pairs * annotations.num_classes + annotations.labels
    same = votes[annotations.instances, annotations.labels] - _frequencies(cells)
    others = votes.sum(axis=1)[annotations.instances] - _frequencies(pairs)
    agreed = np.bincount(annotations.annotators, weights=same, minlength=size)
    pairs = np.bincount(annotations.annotators, weights=others, minlength=size)
    return np.divide(agreed, pairs, out=np.full(size, np.nan), where=pairs > 0)


def _frequencies(keys: Indices) -> Indices:
    """Returns how often each key occurs."""
    _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[places]


def annotator_confusion(annotations: Annotations, truth: ArrayLike) -> Indices:
    """Returns counts `[R, C, C]` with axes (annotator, true class, observed class).

    Instances without a true label are left out.
    """
    annotations.require_identities("the accuracy of annotators")
    codes = known_codes(annotations, truth)[annotations.instances]
    scored = codes >= 0
    classes = annotations.num_classes
    rows = annotations.annotators[scored].astype(np.int64) * classes + codes[scored]
    keys = rows * classes + annotations.labels[scored]
    counts = np.bincount(keys, minlength=annotations.num_annotators * classes**2)
    return counts.reshape(-1, classes, classes)


def _mean(values: Array) -> float:
    if len(values):
        return float(values.mean())
    return float("nan")


def describe(annotations: Annotations, truth: ArrayLike | None = None) -> Fields:
    """Returns a crowd's statistics by name.

    The values can be written as JSON; undefined ones are NaN.

    Args:
        annotations: with or without identities; what needs them is left out without.
        truth: `[N]` class codes, -1 where unknown, or None.

    Returns:
        `num_instances, num_annotators, num_classes, num_annotations, unannotated, sparsity,
        annotations_per_instance, annotations_per_annotator, kappa, alpha, class_shares,
        class_ratio` (two classes), `imbalance_ratio` (of the annotations, DASC's R), and with truth
        `truth_class_shares, truth_class_ratio, truth_imbalance_ratio, majority_accuracy,
        mean_annotator_accuracy, std_annotator_accuracy` (over annotators with something to score).
    """
    counts = counts_of(annotations)
    per_instance = counts.sum(axis=1)
    total = int(per_instance.sum())
    annotators = annotations.num_annotators
    agreement = agreement_coefficients(counts)
    described: Fields = {
        "num_instances": annotations.num_instances,
        "num_annotators": annotators,
        "num_classes": annotations.num_classes,
        "num_annotations": total,
        "unannotated": int((per_instance == 0).sum()),
        "sparsity": sparsity(annotations),
        "annotations_per_instance": _mean(per_instance),
        "annotations_per_annotator": total / annotators if annotators else float("nan"),
        "kappa": agreement["fleiss"],
        "alpha": agreement["krippendorff"],
        "class_shares": class_shares(counts).tolist(),
        "imbalance_ratio": imbalance_ratio(counts.sum(axis=0)),
    }
    if annotations.num_classes == 2:
        described["class_ratio"] = class_ratio(counts)
    if truth is not None:
        codes = known_codes(annotations, truth)
        scored = (codes >= 0) & (per_instance > 0)
        described["truth_class_shares"] = class_shares(counts, codes).tolist()
        described["truth_imbalance_ratio"] = imbalance_ratio(
            np.bincount(codes[codes >= 0], minlength=annotations.num_classes)
        )
        if annotations.num_classes == 2:
            described["truth_class_ratio"] = class_ratio(counts, codes)
        agreeing = majority_shares(counts)[scored, codes[scored]]
        described["majority_accuracy"] = _mean(agreeing)
        if annotations.has_identities:
            accuracy, labels = annotator_accuracy(annotations, codes)
            scored = accuracy[labels > 0]
            described["mean_annotator_accuracy"] = _mean(scored)
            if len(scored):
                described["std_annotator_accuracy"] = float(scored.std())
            else:
                described["std_annotator_accuracy"] = np.nan
    return described
