"""LabelMe (Rodrigues and Pereira, 2018): images of eight kinds of scenes, labelled by 59 annotators
of Amazon Mechanical Turk.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data.arrays import as_codes, read_npy, read_numbers, same_length
from data.download import Source, locate
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import Card, CrowdDataset, Split
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES = 8
SPLITS = ("train", "valid", "test")

SOURCE = Source(
    "fmenat/PyLearningCrowds",
    "0edf617d0357a43b48dc53f10f4181ec0163d4db",
    "data/LabelMe",
    {
        "LabelMe_VGG_avg_train.npy": (
            "0ddfbcbd722aab70e81525a459cc37d47c1d344322b401ee35a3e9b158a209e8"
        ),
        "LabelMe_VGG_avg_valid.npy": (
            "cb80ce99ef9fc80c666e6b9c43259ee0aac4e0cf82f8ac654b8bb309fb28953d"
        ),
        "LabelMe_VGG_avg_test.npy": (
            "af407538f702f98e775f233652152cdcb58583c9d4668492308151c126ce7873"
        ),
        "LabelMe_Z_train.txt": "229556bdc5da327dd7d4e4154ba180969091c83f43cf8cbee3727131c5a062f6",
        "LabelMe_Z_valid.txt": "40aba43f903a539b38243c411e214da1f8c696cc47aa59811cc3388cc6899892",
        "LabelMe_Z_test.txt": "6d508b638d41fa84b2628615270456df96a49dce18054d201ac6261b03ea77bc",
        "answers.txt": "354c282e10835a59962494acb1d180fe997b65a0aa1e27f870cdb4ef51ef3e2b",
    },
)
PREPARED = (
    "answers.npy",
    *(f"data_{split}_vgg16.npy" for split in SPLITS),
    *(f"labels_{split}.npy" for split in SPLITS),
)

CARD = Card(
    title="LabelMe",
    source=(
        "https://github.com/fmenat/PyLearningCrowds (data/LabelMe), from"
        " http://fprodrigues.com/publications/deep-crowds/"
    ),
    licence="none stated",
    citation=(
        "Rodrigues, Pereira: Deep Learning from Crowds, AAAI 2018; Rodrigues, Lourenco, Ribeiro,"
        " Pereira: Learning Supervised Topic Models for Classification and Regression from Crowds,"
        " TPAMI 2017"
    ),
    paper={
        "train_size": 1000,
        "test_size": 1188,
        "imbalance_ratio": 2.479,
        "truth_imbalance_ratio": 1.730,
        "mean_annotator_accuracy": 0.692,
        "std_annotator_accuracy": 0.181,
        "annotations_per_annotator": 43.2,
    },
    notes=(
        "Classes 0 to 7: highway, insidecity, tallbuilding, street, forest, coast, mountain,"
        " opencountry. Features are VGG-16 convolution features, average-pooled to 512. Validation"
        " labels are ground truth, as published. The papers train on 10,000 augmented images"
        " un-pooled: with a `prepared/` folder of that layout, `pooled=False` reads those."
    ),
)


@register_dataset(
    "labelme",
    summary=(
        "1,000 images of 8 kinds of scenes, 512 VGG-16 features, 59 annotators, 2.5 labels an image"
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
