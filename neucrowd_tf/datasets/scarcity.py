"""Training data made scarcer, noisier or less balanced, for studies of where a method pays."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np

from neucrowd_tf.annotations.thinning import flip_labels, keep_share, limit_labels
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.datasets.core import UNKNOWN, CrowdDataset
from neucrowd_tf.datasets.splits import stratified_sample
from neucrowd_tf.declare.declarations import number, whole
from neucrowd_tf.declare.types import Indices
from neucrowd_tf.errors import DataError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scarcity:
    """What is taken from a dataset before a run; the test items stay as they are."""

    keep_items: Annotated[
        int | None, whole(1), "Number of training items to keep, at random; all if fewer."
    ] = None
    long_tail: Annotated[
        float | None,
        number(least=1),
        "Largest over smallest class: keeps training items whose class sizes, by their true"
        " labels, fall exponentially from the first class to the last.",
    ] = None
    keep_annotations: Annotated[
        float | None, number(above=0, most=1), "Share of the labels to keep, at random."
    ] = None
    keep_one: Annotated[bool, "Keeps a label of each item (with --keep_annotations)."] = False
    labels_per_item: Annotated[
        int | None, whole(1), "Most labels of a training item to keep, at random."
    ] = None
    flip_labels: Annotated[
        float | None,
        number(least=0, most=1),
        "Share of the training labels to replace by another class, at random.",
    ] = None
    drop_validation: Annotated[
        bool, "Uses no validation items; cross-validation trains on them."
    ] = False

    def applied(self, dataset: CrowdDataset, seed: int) -> CrowdDataset:
        """Returns what is left of a dataset.

        Raises:
            DataError: a long tail of training items without true labels, or of a class without any.
        """
        if self.long_tail is not None:
            dataset = _of_rows(dataset, _long_tailed(dataset, self.long_tail, seed))
        if self.keep_items is not None and self.keep_items < len(dataset.features):
            votes = dataset.annotations.vote_counts()
            labels = majority_labels(votes, "random", seed)
            dataset = _of_rows(dataset, stratified_sample(labels, self.keep_items, seed))
        crowd = dataset.annotations
        if self.keep_annotations is not None:
            crowd = keep_share(crowd, self.keep_annotations, seed, at_least_one=self.keep_one)
        if self.labels_per_item is not None:
            crowd = limit_labels(crowd, self.labels_per_item, seed)
        if self.flip_labels is not None:
            crowd = flip_labels(crowd, self.flip_labels, seed)
        validation = None if self.drop_validation else dataset.validation
        return dataset.replace(annotations=crowd, validation=validation)


def _of_rows(dataset: CrowdDataset, rows: Indices) -> CrowdDataset:
    truth = None if dataset.truth is None else dataset.truth[rows]
    crowd = dataset.annotations[rows]
    return dataset.replace(features=dataset.features[rows], annotations=crowd, truth=truth)


def long_tail_sizes(largest: int, num_classes: int, ratio: float) -> list[int]:
    """Returns `[C]` class sizes `largest * ratio ** (-c / (C - 1))`, rounded down, one at least.

    Raises:
        DataError: the rarest class, whose size the largest gets, has no instance.

    References:
        DASC, section 4.1 (CIFAR10-H with ratio 5).
    """
    if largest < 1:
        raise DataError(
            "a long tail needs an instance of every class, and one class has none. Name the classes"
            " that occur, or leave the long tail out."
        )
    sizes = largest * ratio ** (-np.arange(num_classes) / (num_classes - 1)) + 1e-9
    return np.maximum(1, sizes.astype(int)).tolist()


def _long_tailed(dataset: CrowdDataset, ratio: float, seed: int) -> Indices:
    """Returns the rows of a long tail whose largest class has the size of the rarest one."""
    truth = dataset.truth
    if truth is None or (truth == UNKNOWN).any():
        raise DataError(
            f"--long_tail: {dataset.name} has training items without true labels, which set the"
            " class sizes. Leave the flag out."
        )
    shuffled = np.random.default_rng([seed, 0xDA7A, 2]).permutation(len(truth))
    counts = np.bincount(truth, minlength=dataset.num_classes)
    sizes = long_tail_sizes(int(counts.min()), dataset.num_classes, ratio)
    rows = []
    for code, size in enumerate(sizes):
        rows.append(shuffled[truth[shuffled] == code][:size])
    return np.sort(np.concatenate(rows))
