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
    if data.validation_kind == "truth":
        true = labels
    else:
        true = np.full_like(labels, -1)
    crowd = data.annotations
    size = len(labels)
    if crowd.has_identities:
        annotations = Annotations(
            np.concatenate([crowd.instances, crowd.num_instances + np.arange(size)]),
            np.concatenate([crowd.annotators, np.full(size, crowd.num_annotators)]),
            np.concatenate([crowd.labels, labels]),
            class_names=crowd.class_names,
        )
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
        gold: labels by task. Tasks without annotations (for example the test split's) are left
            out.
        annotations: of N instances.

    Raises:
        DataError: a label that is not a class, or no task in common.
    """
    if gold is None:
        return np.full(annotations.num_instances, -1)
    labels = {str(task): label for task, label in gold.items()}
    tasks = annotations.instance_names.tolist()
    true = {task: labels[str(task)] for task in tasks if str(task) in labels}
    if not true:
        raise DataError("gold: no task with a label has annotations and is trained on.")
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
    # With a row or two less, one compiled network serves all folds.
    size = min(len(train) for train, _ in splits)
    rng = np.random.default_rng([seed, 0xF01D])
    rows = [np.sort(np.append(common[rng.permutation(x)[:size]], single)) for x, _ in splits]
    return [(train, common[test]) for train, (_, test) in zip(rows, splits, strict=True)]
