"""CIFAR-10N (Wei et al., 2022): CIFAR-10's training images with 747 annotators.

Each image has three labels.

The labels are published as a pickle, which is never read: `annotations.csv` (task,worker,label) is
made from it once by the user.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare.declarations import none, number, whole
from neucrowd_tf.declare.types import Array, Indices
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions

from . import catalogue
from .cifar import BATCH, CLASS_NAMES, as_features, long_tail, read_batch, test_split
from .download import locate

BATCHES = 5
OPTIONS = ("size", "ratio")


@catalogue.register("cifar10n", options=OPTIONS)
def load(
    data_dir: Path | None = None, seed: int = 0, *, size: int | None = None, ratio: float = 1.0
) -> CrowdDataset:
    """Loads CIFAR-10N; `seed` changes nothing.

    Args:
        data_dir: a folder with `cifar10n/` that holds `annotations.csv`, `data_batch_<1 to 5>.bin`
            (those that are there are read) and `test_batch.bin` in CIFAR-10's binary layout; or
            that folder.
        seed: not used.
        size: take the first so many training images only, before any long tail.
        ratio: the sizes of the classes fall exponentially, this much from the first class to the
            last (DASC's is 5), by the true labels; 1 keeps them all.

    Raises:
        UsageError: a size or ratio below 1.
        DataError: files that are missing or not of the layout, or a long tail without an image of a
            class.
    """
    (none | whole(1)).check("size", size)
    number(least=1).check("ratio", ratio)
    folder = locate("cifar10n", ["annotations.csv", "data_batch_1.bin", "test_batch.bin"], data_dir)
    images, truth, tasks = (column[:size] for column in _training_images(folder))
    rows = long_tail(truth, ratio)
    train = Split(as_features(images[rows]), truth[rows], tasks[rows])
    crowd = crowd_of(folder / "annotations.csv", train.names, CLASS_NAMES)
    return catalogue.dataset("cifar10n", train, crowd, test_split(folder / "test_batch.bin"))


@catalogue.register("cifar10n_lt", options=OPTIONS)
def load_long_tailed(
    data_dir: Path | None = None, seed: int = 0, *, size: int | None = 10_000, ratio: float = 5.0
) -> CrowdDataset:
    """Loads the long-tailed variant; arguments as for `load`."""
    dataset = load(data_dir, seed, size=size, ratio=ratio)
    return dataset.replace(name="cifar10n_lt", card=catalogue.card("cifar10n_lt"))


def _training_images(folder: Path) -> tuple[Array, ...]:
    """Returns images, true classes and item numbers of the available batches."""
    batches = []
    for batch in range(BATCHES):
        path = folder / f"data_batch_{batch + 1}.bin"
        if path.is_file():
            images, labels = read_batch(path)
            batches.append((images, labels, batch * BATCH + np.arange(len(labels))))
    return tuple(np.concatenate(column) for column in zip(*batches, strict=True))


def crowd_of(path: Path, tasks: Indices, class_names: Array) -> Annotations:
    """Returns the labels of `tasks` (sorted) by the annotators who gave any."""
    options = TableOptions(classes=tuple(map(str, range(len(class_names)))))
    crowd = read_annotations(
        path, options, items=tasks, unmatched="drop", report=lambda line: None
    ).annotations
    annotators, codes = np.unique(crowd.annotators, return_inverse=True)
    return Annotations(
        crowd.instances,
        codes,
        crowd.labels,
        instance_names=tasks,
        annotator_names=crowd.annotator_names[annotators],
        class_names=class_names,
    )
