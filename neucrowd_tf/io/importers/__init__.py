"""Exports of annotation tools, one module per tool, as columns of labels.

Each module has `NAME`, `matches(head)` and `read(head, options)`.
"""

from __future__ import annotations

from types import ModuleType

from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers import (
    annotator_lists,
    argilla,
    doccano,
    figure_eight,
    label_studio,
    labelbox,
    lewidi,
    mturk,
    peerannot,
    potato,
    prodigy,
    sagemaker,
    toloka,
    zooniverse,
)

# In the order in which they are asked.
IMPORTERS: tuple[ModuleType, ...] = (
    label_studio,
    prodigy,
    sagemaker,
    doccano,
    argilla,
    labelbox,
    figure_eight,
    lewidi,
    toloka,
    mturk,
    zooniverse,
    potato,
    annotator_lists,
    peerannot,
)


def find(head: Head) -> ModuleType | None:
    """Returns the importer of the tool that wrote a file, None for any other file."""
    return next((module for module in IMPORTERS if module.matches(head)), None)
