"""A compiled network with its pipeline and its features, and layers that networks share."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import numpy as np

from neucrowd_tf.declare.types import Array, Features, Floats32, Layer, Network, Tensor
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.crowd_layers.common.model import InstanceBatches
from neucrowd_tf.nn.standardise import Standardise
from neucrowd_tf.training.dataset_features import DatasetFeatures
from neucrowd_tf.training.features import ArrayFeatures, LazyFeatures, standardise
from neucrowd_tf.training.reuse import NetworkCache
from neucrowd_tf.training.run import Run


def standardise_layer(scaling: bool | str) -> Standardise:
    """Returns the layer of an estimator's argument `standardise`; each fit sets its constants."""
    return Standardise(square_root=scaling == "square_root", name="standardise")


def float32_output(name: str, values: Tensor) -> Tensor:
    """Returns symbolic values in float32, as the output of a layer of this name."""
    return keras.layers.Activation("linear", dtype="float32", name=name)(values)


@dataclasses.dataclass
class CompiledNetwork:
    """A compiled network.

    Attributes:
        model: what is trained, an `InstanceModel`.
        second: what a second phase trains, or None.
        whole: raw features to a dict of outputs, "probabilities" among them; it shares the trained
            weights.
        base: the base classifier, whose Keras losses (weight penalties) `model` counts.
        standardise: the layer that holds the features' mean and scale.
        standardised: whether `model` takes what that layer makes of the features.
        batches, steps: the latest fit's pipeline and its steps per epoch; `pipelines` has those
            of all fits, by the number of instances.
        start: variables and the values that every fit starts them from: the base's state and its
            frozen weights, all of its weights if they are pretrained, and weights that cannot be
            drawn anew.
        features: those whose mean, scale and standardised values the network holds.
        functions: what predictions compiled, for all fits that share the network.
    """

    model: Network
    whole: Network
    base: Network
    standardise: Layer
    standardised: bool = False
    second: Network = None
    batches: Any = None
    steps: int = 0
    pipelines: dict[int, InstanceBatches] = dataclasses.field(default_factory=dict)
    start: list[tuple[Any, Array]] = dataclasses.field(default_factory=list)
    features: Floats32 | None = None
    functions: NetworkCache = dataclasses.field(default_factory=NetworkCache)

    def set_batches(self, features: Features, size: int, run: Run) -> None:
        """Sets the pipeline of so many instances, or of a dataset, in batches of this size."""
        replicas = 1 if run.strategy is None else run.strategy.num_replicas_in_sync
        if replicas > 1 and isinstance(features, LazyFeatures):
            raise UsageError("features: those that are not in memory train on one device only")
        if isinstance(features, DatasetFeatures):
            batches: Any = features.batches(size)
        elif isinstance(features, ArrayFeatures):
            batches = InstanceBatches(len(features), size, features=features)
        else:
            instances = len(features)
            if instances not in self.pipelines:
                self.pipelines[instances] = InstanceBatches(instances, size, replicas)
            batches = self.pipelines[instances]
        self.batches = batches.make
        self.steps = batches.steps

    def set_features(self, features: Floats32, scaling: bool | str) -> None:
        """Sets the features, and their mean and scale."""
        self.features = features
        mean, scale = standardise(features, scaling)
        self.standardise.mean.assign(mean.astype(np.float32))
        self.standardise.scale.assign(scale.astype(np.float32))
        if not isinstance(features, LazyFeatures):
            change = self.standardise if self.standardised else np.asarray
            self.model.set_features(features, change)
