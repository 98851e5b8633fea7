"""Max-MIG: a classifier and an aggregator of annotations with maximal shared information."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from scipy.special import softmax

from neucrowd_tf.aggregation.base import vote_shares
from neucrowd_tf.aggregation.crowd_and_classifier import error_matrices
from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Network
from neucrowd_tf.methods.crowd_layers.common.classifier import NetworkClassifier
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import CLASSIFIER_PRESETS, SPACE
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

from .max_mig_model import MaxMIGModel


@register_method(
    "max_mig",
    summary="Max-MIG: a classifier and an aggregation network that maximise the information gained"
    " on each other",
    presets=CLASSIFIER_PRESETS,
    space=SPACE,
)
@estimator
class MaxMIG(NetworkClassifier):
    """A classifier h(x) and an aggregator g(y) that maximise their f-mutual information gain.

    The aggregator is softmax(sum of W_r[:, y_r] + b), the divergence is KL. Both have one
    optimizer.

    Attributes:
        probas_: `[N, C]` what the aggregator makes of the training instances' annotations, and
            labels_ `[N]` its class codes.
        confusion_matrices_: `[R, C true, C observed]`: softmax over an annotator's labels of the
            aggregator's weights.
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_, n_iter_, best_epoch_, rows_: see `NetworkClassifier`.

    References:
        Cao et al. (2019), section 3.
    """

    requires_identities = True

    smoothing: Annotated[
        float,
        number(above=0),
        "pseudo-count of the confusion matrices, by vote shares, whose logarithms are the"
        " aggregator's first weights.",
    ] = 0.1

    def _model(self, classifier: Network, data: TrainingData) -> Network:
        return MaxMIGModel(
            classifier,
            data.features,
            data.annotations.num_annotators,
            len(self.classes_),
            augment=self._augmentation(),
        )

    def _set_targets(self, network: CompiledNetwork, data: TrainingData) -> None:
        crowd = data.annotations
        classes = len(self.classes_)
        one_hot = crowd.one_hot()
        shares = vote_shares(one_hot, classes)
        errors = error_matrices(one_hot, shares, self.smoothing)
        prior = (shares.mean(axis=0) + 1e-3) / (1.0 + classes * 1e-3)
        network.model.set_crowd(crowd.to_dense(np.int32), np.log(errors), prior)

    def _train(self, network: CompiledNetwork, data: TrainingData, run: Run) -> Network:
        history = super()._train(network, data, run)
        aggregator = network.model.aggregator
        self.probas_ = np.asarray(aggregator(data.annotations.to_dense(np.int32)), dtype=np.float32)
        self.labels_ = self.probas_.argmax(axis=1)
        logs = np.asarray(aggregator.weight.numpy(), dtype=np.float64)
        self.confusion_matrices_ = softmax(logs, axis=2).astype(np.float32)
        return history
