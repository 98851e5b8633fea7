"""Summaries, sources and cards of the datasets, read from catalogue.toml.

A section there is a dataset. "$name" in its notes is replaced by a note that several datasets
share.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import Card, CrowdDataset, Split
from neucrowd_tf.declare.dataset_registration import register_dataset
from neucrowd_tf.declare.types import Fields

from .download import Source


@functools.cache
def _sections() -> Fields:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def register(name: str, **fields: Any) -> Any:
    """Returns a decorator that registers a loader as the dataset of a section."""
    return register_dataset(name, summary=_sections()[name]["summary"], **fields)


def card(name: str) -> Card:
    """Returns the description of a dataset."""
    fields = dict(_sections()[name])
    del fields["summary"]
    fields.pop("published", None)
    shared = _sections()["notes"]
    notes = re.sub(r"\$(\w+)", lambda word: str(shared[word[1]]), fields.pop("notes", ""))
    return Card(**fields, notes=notes)


def dataset(
    name: str, train: Split, annotations: Annotations, test: Split, **fields: Any
) -> CrowdDataset:
    """Returns the dataset of a section; the labels of the training part are the truth."""
    splits = (train.features, annotations, test)
    return CrowdDataset(name, *splits, truth=train.labels, card=card(name), **fields)


def source(name: str) -> Source:
    """Returns where a dataset's files are published."""
    return Source(**_sections()[name]["published"])
