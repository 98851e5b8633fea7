"""Labels taken away or changed at random, of known annotators or as vote counts.

Every draw comes from a seed that is passed.
"""

from __future__ import annotations

import numpy as np

from neucrowd_tf.annotations import simulation
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.errors import DataError


def keep_share(
    annotations: Annotations, share: float, seed: int, *, at_least_one: bool = True
) -> Annotations:
    """Keeps a random share of the labels; see `simulation.remove_annotations`.

    Args:
        annotations: of known annotators, or vote counts.
        share: above 0 and at most 1.
        seed: of the draw.
        at_least_one: whether every instance that has a label keeps one.
    """
    if annotations.has_identities:
        return simulation.remove_annotations(annotations, share, seed, at_least_one=at_least_one)
    numbered = _numbered_labels(annotations)
    return _votes_of(keep_share(numbered, share, seed, at_least_one=at_least_one))


def limit_labels(annotations: Annotations, most: int, seed: int) -> Annotations:
    """Keeps up to a number of labels of each instance, at random, for studies of sparsity.

    Args:
        annotations: of known annotators, or vote counts.
        most: at least 1.
        seed: of the draw. With one seed, what a smaller number keeps is a part of what a larger
            number keeps.
    """
    if most < 1:
        raise DataError(f"labels_per_item: expected a number from 1, received {most}")
    if not annotations.has_identities:
        return _votes_of(limit_labels(_numbered_labels(annotations), most, seed))
    generator = simulation.random_stream(seed, simulation.REMOVE)
    order = generator.permutation(annotations.num_annotations)
    order = order[np.argsort(annotations.instances[order], kind="stable")]
    instances = annotations.instances[order]
    earlier = np.arange(len(order)) - np.searchsorted(instances, instances)
    return annotations.select(np.sort(order[earlier < most]))


def flip_labels(annotations: Annotations, share: float, seed: int) -> Annotations:
    """Replaces labels at random, for studies of noise.

    Args:
        annotations: of known annotators, or vote counts.
        share: the probability, from 0 to 1, that a label becomes one of the other classes, each of
            which is equally probable.
        seed: of the draw. With one seed, what a smaller share flips is a part of what a larger
            share flips.

    Raises:
        DataError: a share outside its bounds, or a single class.
    """
    if not 0 <= share <= 1:
        raise DataError(f"flip_labels: expected a share from 0 to 1, received {share}")
    if annotations.num_classes < 2:
        raise DataError(
            "flip_labels: all labels are of one class, and there is no other class to flip them to."
            " Name all classes with --classes or class_names=."
        )
    if not annotations.has_identities:
        return _votes_of(flip_labels(_numbered_labels(annotations), share, seed))
    generator = simulation.random_stream(seed, simulation.FLIP)
    flipped = generator.random(annotations.num_annotations) < share
    steps = generator.integers(1, annotations.num_classes, size=annotations.num_annotations)
    labels = (annotations.labels + flipped * steps) % annotations.num_classes
    result = Annotations(
        annotations.instances,
        annotations.annotators,
        labels,
        instance_names=annotations.instance_names,
        annotator_names=annotations.annotator_names,
        class_names=annotations.class_names,
        generated=annotations.generated if annotations.generated.any() else None,
        duplicates="all",
    )
    result.named = annotations.named
    return result


def _numbered_labels(annotations: Annotations) -> Annotations:
    """Returns vote counts as labels, an instance's votes as those of annotators 0, 1, 2 ..."""
    votes = annotations.vote_counts()
    instances, classes = np.nonzero(votes)
    counts = votes[instances, classes]
    instances = np.repeat(instances, counts)
    labels = np.repeat(classes, counts)
    first = np.searchsorted(instances, instances)
    result = Annotations(
        instances,
        np.arange(len(instances)) - first,
        labels,
        num_annotators=annotations.num_annotators,
        instance_names=annotations.instance_names,
        class_names=annotations.class_names,
    )
    result.named = annotations.named
    return result


def _votes_of(annotations: Annotations) -> Annotations:
    """Returns the vote counts of labels."""
    result = Annotations.from_votes(
        annotations.vote_counts(),
        instance_names=annotations.instance_names,
        class_names=annotations.class_names,
    )
    result.named = annotations.named
    return result
