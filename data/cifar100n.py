"""CIFAR-100N (Wei et al., 2022): CIFAR-100's training images, one label each, 519 annotators.

The labels are published as a pickle, which is never read: `annotations.csv` (task,worker,label) is
made from it once by the user.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare.declarations import none, whole

from . import catalogue
from .cifar import as_features, read_batch, test_split
from .cifar10n import crowd_of
from .download import locate

CLASSES = 100


@catalogue.register("cifar100n", options=("size",))
def load(data_dir: Path | None = None, seed: int = 0, *, size: int | None = None) -> CrowdDataset:
    """Loads CIFAR-100N; `seed` changes nothing.

    Args:
        data_dir: a folder with `cifar100n/` that holds `annotations.csv`, and `train.bin` and
            `test.bin` in CIFAR-100's binary layout; or that folder.
        seed: not used.
        size: number of training images, the first ones; None for all.

    Raises:
        DataError: files that are missing or not of the layout.
    """
    (none | whole(1)).check("size", size)
    folder = locate("cifar100n", ["annotations.csv", "train.bin", "test.bin"], data_dir)
    images, truth = read_batch(folder / "train.bin", CLASSES)
    tasks = np.arange(len(truth[:size]))
    train = Split(as_features(images[tasks]), truth[tasks], tasks)
    crowd = crowd_of(folder / "annotations.csv", tasks, np.arange(CLASSES))
    return catalogue.dataset("cifar100n", train, crowd, test_split(folder / "test.bin", CLASSES))
