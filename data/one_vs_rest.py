"""Heavily imbalanced two-class tasks: one class of a dataset against all others.

Test and validation sets are balanced.

They stand in, under their own names, for the two image sets of Li et al. (2019) that DASC's section
4.5 uses and that are not public.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare import registry


def one_vs_rest(dataset: CrowdDataset, positive: int, seed: int = 0) -> CrowdDataset:
    """Turns a dataset of C classes into "class `positive`" (1) against "any other" (0).

    Every annotation is turned into a vote for one of the two. Test and validation keep as many
    instances of either, drawn with the seed by the labels that the split holds; training stays as
    imbalanced as it is.

    Args:
        dataset: with annotations whose annotators are known.
        positive: a class code.
        seed: of the draw.
    """
    crowd = dataset.annotations
    card = dataset.card
    name = str(crowd.class_names[positive])
    test, validation = (
        None if split is None else _balanced(split, positive, seed, stream)
        for stream, split in enumerate((dataset.test, dataset.validation))
    )
    truth = dataset.truth
    return dataset.replace(
        name=f"{dataset.name}_ovr_{positive}",
        annotations=_two_classes(crowd, positive),
        truth=None if truth is None else np.where(truth < 0, -1, truth == positive),
        test=test,
        validation=validation,
        card=dataclasses.replace(
            card,
            title=f"{card.title}: class {name} against the rest",
            paper={},
            notes=f"{card.notes} Two classes: {name} (1) and any other (0); test and validation are"
            " balanced, training is not.",
        ),
    )


def _two_classes(crowd: Annotations, positive: int) -> Annotations:
    return Annotations(
        crowd.instances,
        crowd.annotators,
        (crowd.labels == positive).astype(np.int32),
        num_classes=2,
        instance_names=crowd.instance_names,
        annotator_names=crowd.annotator_names,
    )


def _balanced(split: Split, positive: int, seed: int, stream: int) -> Split:
    labels = (split.labels == positive).astype(np.int64)
    generator = np.random.default_rng([seed, 0x0F4, positive, stream])
    size = np.bincount(labels, minlength=2).min()
    rows = []
    for code in (0, 1):
        rows.append(generator.permutation(np.flatnonzero(labels == code))[:size])
    chosen = np.sort(np.concatenate(rows))
    crowd = split.annotations
    if crowd is not None:
        crowd = _two_classes(crowd[chosen], positive)
    return Split(split.features[chosen], labels[chosen], split.names[chosen], crowd)


def register_one_vs_rest(name: str, num_classes: int) -> None:
    """Registers `<name>_ovr_<c>` for each class of a registered dataset, with the same options."""
    multiclass = registry.dataset(name)

    def load(
        positive: int, data_dir: Path | None = None, seed: int = 0, **options: object
    ) -> CrowdDataset:
        dataset = multiclass.load(data_dir, seed, **options)
        return one_vs_rest(dataset, positive, seed if multiclass.simulated else 0)

    for positive in range(num_classes):
        registry.register_dataset(
            f"{name}_ovr_{positive}",
            summary=f"class {positive} of {name} against the rest, balanced test set",
            simulated=multiclass.simulated,
            options=multiclass.options,
            module=__name__,
        )(functools.partial(load, positive))


register_one_vs_rest("labelme", 8)
register_one_vs_rest("digits", 10)
register_one_vs_rest("cifar10n", 10)
