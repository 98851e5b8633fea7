"""MD-Agreement (Leonardelli et al., 2021): tweets, offensive or not, five labels each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from data import catalogue
from data.download import locate
from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.registry import register_dataset

FILES = tuple(f"MD-Agreement_{split}.json" for split in ("train", "dev", "test"))


@register_dataset(
    "md_agreement", summary="6,592 tweets, offensive or not, 5 labels each, 670 annotators"
)
def load(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads LeWiDi's files of 2023 as texts; `seed` changes nothing.

    True labels are the majority of a tweet's five labels, also those of the training tweets.

    Raises:
        DataError: a file is missing, or it is not LeWiDi's.
    """
    folder = locate("md_agreement", FILES, data_dir, catalogue.source("md_agreement"))
    crowd, train = _part(folder / FILES[0])
    _, validation = _part(folder / FILES[1])
    _, test = _part(folder / FILES[2])
    return CrowdDataset(
        name="md_agreement",
        features=train.features,
        annotations=crowd,
        truth=train.labels,
        validation=validation,
        test=test,
        validation_is_truth=False,
        test_is_truth=False,
        card=catalogue.card("md_agreement"),
    )


def _part(path: Path) -> tuple[Annotations, Split]:
    """Returns a file's annotations, and its tweets with the majority of these."""
    crowd = read_annotations(path, TableOptions(duplicates="first"), report=lambda _: None)
    names = crowd.annotations.instance_names
    entries = json.loads(path.read_text("utf-8"))
    try:
        tweets = [entries[str(name)] for name in names.tolist()]
        texts = np.array([tweet["text"] for tweet in tweets], dtype=object)
        labels = np.array([int(tweet["hard_label"]) for tweet in tweets])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a file of LeWiDi ({error}). Download it again.") from None
    codes = encode_labels(labels, crowd.annotations.class_names, f"{path}: hard_label")
    unique = np.array([f"{tweets[0]['split']}-{name}" for name in names.tolist()], dtype=object)
    return crowd.annotations, Split(texts, codes, unique)
