"""LabelMe (Rodrigues and Pereira, 2018): images of eight kinds of scenes, 59 annotators.

The annotators are of Amazon Mechanical Turk.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data import catalogue
from data.arrays import as_codes, read_npy, read_numbers, same_length
from data.download import locate
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES = 8
SPLITS = ("train", "valid", "test")

SOURCE = catalogue.source("labelme")
PREPARED = (
    "answers.npy",
    *(f"data_{split}_vgg16.npy" for split in SPLITS),
    *(f"labels_{split}.npy" for split in SPLITS),
)

CARD = catalogue.card("labelme")


@register_dataset(
    "labelme",
    summary=(
        "1,000 images of 8 kinds of scenes, 512 VGG-16 features, 59 annotators,"
        " 2.5 labels per image"
    ),
    options=("pooled",),
)
def load(
    data_dir: Path | None = None, seed: int = 0, *, pooled: bool | None = None
) -> CrowdDataset:
    """Loads the published split; `seed` changes nothing.

    Args:
        data_dir: a folder with `labelme/`, or that folder.
        seed: not used.
        pooled: True for the 512 average-pooled features, False for `[4, 4, 512]` from a folder
            `prepared/` as Rodrigues and Pereira publish it; by default the former where they are
            there.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    prepared = None if data_dir is None else _prepared(data_dir)
    pooled_there = data_dir is None or any(
        (folder / "answers.txt").is_file() for folder in (data_dir / "labelme", data_dir)
    )
    if pooled is False and prepared is None:
        raise DataError(
            f"labelme: expected a folder prepared/ with {PREPARED[1]} for pooled=False, received"
            f" none in --data_dir={data_dir}"
        )
    if prepared is not None and (pooled is False or (pooled is None and not pooled_there)):
        return _dataset(*_read_prepared(prepared))
    return _dataset(*_read_pooled(locate("labelme", list(SOURCE.files), data_dir, SOURCE)))


def _prepared(data_dir: Path) -> Path | None:
    for folder in (data_dir / "labelme" / "prepared", data_dir / "prepared", data_dir):
        if all((folder / name).is_file() for name in PREPARED):
            return folder
    return None


Parts = tuple[dict[str, "NDArray[np.float32]"], dict[str, "NDArray[np.int64]"], Annotations]


def _read_pooled(folder: Path) -> Parts:
    features = {
        split: read_npy(folder / f"LabelMe_VGG_avg_{split}.npy", rank=2) for split in SPLITS
    }
    labels = {}
    for split in SPLITS:
        path = folder / f"LabelMe_Z_{split}.txt"
        labels[split] = as_codes(read_numbers(path)[:, 0], CLASSES, path)
        same_length(path, len(labels[split]), len(features[split]), "labels, one an image")
    path = folder / "answers.txt"
    return features, labels, _crowd(read_numbers(path), path, len(features["train"]))


def _read_prepared(folder: Path) -> Parts:
    features = {split: read_npy(folder / f"data_{split}_vgg16.npy", rank=4) for split in SPLITS}
    labels = {}
    for split in SPLITS:
        path = folder / f"labels_{split}.npy"
        labels[split] = as_codes(read_npy(path, rank=1), CLASSES, path)
        same_length(path, len(labels[split]), len(features[split]), "labels, one an image")
    path = folder / "answers.npy"
    return features, labels, _crowd(read_npy(path, rank=2), path, len(features["train"]))


def _crowd(answers: NDArray[np.generic], path: Path, images: int) -> Annotations:
    same_length(path, len(answers), images, "rows of answers, one an image")
    names = np.array([f"train-{row}" for row in range(images)], dtype=object)
    return Annotations.from_dense(
        as_codes(answers, CLASSES, path, missing=True), num_classes=CLASSES, instance_names=names
    )


def _dataset(
    features: dict[str, NDArray[np.float32]],
    labels: dict[str, NDArray[np.int64]],
    annotations: Annotations,
) -> CrowdDataset:
    splits = {
        split: Split(
            features[split].astype(np.float32, copy=False),
            labels[split],
            np.array([f"{split}-{row}" for row in range(len(labels[split]))], dtype=object),
        )
        for split in ("valid", "test")
    }
    return CrowdDataset(
        name="labelme",
        features=features["train"].astype(np.float32, copy=False),
        annotations=annotations,
        truth=labels["train"],
        validation=splits["valid"],
        test=splits["test"],
        card=CARD,
    )
