"""LeWiDi's tweets of 2023: MD-Agreement, HS-Brexit and ArMIS, with all labels of each text."""

from __future__ import annotations

import functools
import json
import operator
from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions

from . import catalogue
from .download import locate

SPLITS = ("train", "dev", "test")
TITLES = {"md_agreement": "MD-Agreement", "hs_brexit": "HS-Brexit", "armis": "ArMIS"}


def _load(name: str, title: str, data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads LeWiDi's files of 2023 as texts; `seed` changes nothing.

    True labels are the majority of a text's labels, also those of the training texts.

    Raises:
        DataError: a file is missing, or it is not LeWiDi's.
    """
    files = [f"{title}_{split}.json" for split in SPLITS]
    folder = locate(name, files, data_dir, catalogue.source(name))
    (crowd, train), (_, validation), (_, test) = map(_read_split, map(folder.joinpath, files))
    votes = {"validation_is_truth": False, "test_is_truth": False}
    return catalogue.dataset(name, train, crowd, test, validation=validation, **votes)


def _read_split(path: Path) -> tuple[Annotations, Split]:
    """Returns a file's annotations, and its texts with the majority of these."""
    crowd = read_annotations(path, TableOptions(duplicates="first"), report=lambda _: None)
    names = crowd.annotations.instance_names
    entries = json.loads(path.read_text("utf-8"))
    try:
        tweets = list(map(entries.__getitem__, map(str, names.tolist())))
        texts = np.array(list(map(operator.itemgetter("text"), tweets)), dtype=object)
        labels = np.array([int(tweet["hard_label"]) for tweet in tweets])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a file of LeWiDi ({error}). Download it again.") from None
    codes = encode_labels(labels, crowd.annotations.class_names, f"{path}: hard_label")
    unique = np.array([f"{tweets[0]['split']}-{name}" for name in names.tolist()], dtype=object)
    return crowd.annotations, Split(texts, codes, unique)


for _name, _title in TITLES.items():
    catalogue.register(_name, module=__name__)(functools.partial(_load, _name, _title))
