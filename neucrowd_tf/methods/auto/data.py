"""The instances that methods are compared on: with validation instances, gold labels, folds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from sklearn.model_selection import StratifiedKFold

from neucrowd_tf.aggregation import base
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Indices
from neucrowd_tf.errors import DataError, one_at_a_time
from neucrowd_tf.training.estimator import TrainingData


def with_validation(data: TrainingData, gold: Indices) -> tuple[TrainingData, Indices]:
    """Returns the training instances and, after them, the validation instances; and gold codes.

    A validation instance has one label, its true one, from an annotator of its own. Vote counts
    have no annotators: there it has one vote.

    Args:
        data: N instances.
        gold: `[N]` class codes, -1 if unknown. Of validation instances, true labels are gold too.
    """
    if data.validation is None:
        return data, gold
    more, labels = data.validation
    true = labels
    if data.validation_kind != "truth":
        true = np.full_like(labels, -1)
    crowd = data.annotations
    size = len(labels)
    if crowd.has_identities:
        instances = crowd.num_instances + np.arange(size)
        annotators = np.full(size, crowd.num_annotators)
        annotations = crowd._extended((instances, annotators, labels))
    else:
        votes = np.eye(crowd.num_classes, dtype=np.int32)[labels]
        annotations = Annotations.from_votes(
            np.concatenate([crowd.vote_counts(), votes]), class_names=crowd.class_names
        )
    features = np.concatenate([data.features, more])
    both = TrainingData(features, annotations, None, np.arange(len(features)))
    return both, np.concatenate([gold, true])


def gold_codes(gold: Mapping[Hashable, object] | None, annotations: Annotations) -> Indices:
    """Returns `[N]` class codes of gold labels, -1 for the other instances.

    Args:
        gold: labels by item. Items without annotations (for example the test split's) are left
            out.
        annotations: of N instances.

    Raises:
        DataError: a label that is not a class, or no item in common.
    """
    if gold is None:
        return np.full(annotations.num_instances, -1)
    label_of = {str(item): label for item, label in gold.items()}
    true = {}
    for item in annotations.instance_names.tolist():
        if str(item) in label_of:
            true[item] = label_of[str(item)]
    if not true:
        raise DataError(
            "gold: no item with a gold label has annotations and is trained on. Compare their ids."
        )
    return np.asarray(base.gold_codes(true, annotations))


def folds(consensus: Indices, count: int, seed: int) -> list[tuple[Indices, Indices]]:
    """Returns the training and held-out rows of stratified folds.

    The only instance of a class is in all training rows and never held out.

    Args:
        consensus: `[N]` class codes.
        count: of folds, at most; no more than the smallest class has instances.
        seed: draws them.

    Raises:
        DataError: fewer than four instances of classes that occur again.
    """
    counts = np.bincount(consensus)
    common = np.flatnonzero(counts[consensus] >= 2)
    if len(common) < 4:
        raise DataError(
            "auto: expected at least 4 annotated instances of classes that occur again, to"
            f" hold some out, received {len(common)}"
        )
    single = np.setdiff1d(np.arange(len(consensus)), common)
    least = min(count, int(counts[counts >= 2].min()))
    splitter = StratifiedKFold(least, shuffle=True, random_state=seed)
    with one_at_a_time():
        splits = list(splitter.split(common, consensus[common]))
    # Folds train on equally many rows, so that one compiled network serves all of them.
    size = min(len(train) for train, _ in splits)
    rng = np.random.default_rng([seed, 0xF01D])
    rows = []
    for train, test in splits:
        chosen = common[rng.permutation(train)[:size]]
        rows.append((np.sort(np.append(chosen, single)), common[test]))
    return rows
