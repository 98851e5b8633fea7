"""Every Keras object of this package; importing this module registers them all with Keras.

`keras.models.load_model` finds a class by its registered name. Annotator heads and the loss of a
matrix of labels with gaps are for Keras models of one's own, too.
"""

from __future__ import annotations

import importlib
import re
import zipfile
from pathlib import Path
from typing import Any

import keras

from neucrowd_tf.declare.types import Fields, Network
from neucrowd_tf.errors import DataError
from neucrowd_tf.methods.crowd_layers.anno_reg import ConfusionHead
from neucrowd_tf.methods.crowd_layers.annot_mix import AnnotMixHead
from neucrowd_tf.methods.crowd_layers.ccc import CoupledHead
from neucrowd_tf.methods.crowd_layers.common.given_labels import (
    AnnotationAccuracy,
    AnnotationLogLoss,
    AnnotationLoss,
)
from neucrowd_tf.methods.crowd_layers.common.head import AnnotatorHead, HeadsUniform
from neucrowd_tf.methods.crowd_layers.conal import ConalHead
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdConnection
from neucrowd_tf.methods.crowd_layers.crowdar import ReliabilityHead
from neucrowd_tf.methods.crowd_layers.doctor_net import AnnotatorAverage, DoctorHeads
from neucrowd_tf.methods.crowd_layers.geocrowdnet import GeoCrowdNetHead
from neucrowd_tf.methods.crowd_layers.madl import MaDLHead
from neucrowd_tf.methods.crowd_layers.trace_reg import SoftplusConfusionHead
from neucrowd_tf.methods.crowd_layers.unionnet import UnionHead
from neucrowd_tf.nn.losses import ClassCenters
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.standardise import Standardise
from neucrowd_tf.training.state import why_not_made

__all__ = [
    "AnnotMixHead",
    "AnnotationAccuracy",
    "AnnotationLogLoss",
    "AnnotationLoss",
    "AnnotatorAverage",
    "AnnotatorHead",
    "ClassCenters",
    "ConalHead",
    "ConfusionHead",
    "CoupledHead",
    "CrowdConnection",
    "DoctorHeads",
    "FusedAdam",
    "GeoCrowdNetHead",
    "HeadsUniform",
    "MaDLHead",
    "ReliabilityHead",
    "SoftplusConfusionHead",
    "Standardise",
    "UnionHead",
]


def load_network(path: Path, packages: tuple[str, ...]) -> Network:
    """Loads a `.keras` file.

    Args:
        path: of the file.
        packages: the modules that the file names are imported if their names begin with one of
            these.

    Raises:
        DataError: the file cannot be read, or Keras cannot make a layer; which one.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            config = archive.read("config.json").decode("utf-8")
        for module in re.findall(r'"module": "([\w.]+)"', config):
            if module.startswith(packages):
                importlib.import_module(module)
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: cannot be read ({error}). Copy the folder again.") from error
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: {why_not_made(error)}") from error


def object_of(config: Fields) -> Any:
    """Returns an optimizer or a schedule.

    Raises:
        DataError: Keras cannot make it.
    """
    try:
        return keras.saving.deserialize_keras_object(config, safe_mode=True)
    except (TypeError, ValueError) as error:
        raise DataError(why_not_made(error)) from error
