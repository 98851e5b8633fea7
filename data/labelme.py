"""LabelMe (Rodrigues and Pereira, 2018): images of eight kinds of scenes, 59 annotators.

The annotators are of Amazon Mechanical Turk.
"""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.io.files.npy import read_npy

from . import catalogue
from .arrays import as_codes, checked_features, read_numbers, row_names
from .download import locate

CLASSES = 8

SOURCE = catalogue.source("labelme")


@catalogue.register("labelme")
def load(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads the published split; `seed` changes nothing.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    folder = locate("labelme", list(SOURCE.files), data_dir, SOURCE)
    train = _read(folder, "train")
    validation = _read(folder, "valid")
    test = _read(folder, "test")
    path = folder / "answers.txt"
    answers = as_codes(read_numbers(path), CLASSES, path, least=-1)
    crowd = Annotations.from_dense(answers, num_classes=CLASSES, instance_names=train.names)
    return catalogue.dataset("labelme", train, crowd, test, validation=validation)


def _read(folder: Path, split: str) -> Split:
    path = folder / f"LabelMe_VGG_avg_{split}.npy"
    features = checked_features(read_npy(path), path)
    path = folder / f"LabelMe_Z_{split}.txt"
    labels = as_codes(read_numbers(path)[:, 0], CLASSES, path)
    return Split(features, labels, row_names(split, len(labels)))
