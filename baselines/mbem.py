"""MBEM: a network and the annotators' errors estimated in turn.

The network's predictions serve as the true labels.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from neucrowd_tf.aggregation.base import normalise_counts, normalise_log
from neucrowd_tf.aggregation.crowd_and_classifier import log_likelihoods
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import annotator_confusion
from neucrowd_tf.declare.declarations import estimator, fitted, number, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Floats, Integers, Network
from neucrowd_tf.methods.crowd_layers.common.classifier import NetworkClassifier
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import CLASSIFIER_PRESETS, SPACE
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

_TINY = 1e-300


def bootstrapped_posterior(
    annotations: Annotations, predicted: Integers, smoothing: float
) -> tuple[Floats, Floats, Floats]:
    """Returns posteriors of the true labels, with errors counted by predicted labels.

    The predicted labels are treated as true to count errors and classes.

    Args:
        annotations: N instances.
        predicted: `[N]` class codes.
        smoothing: pseudo-count of every cell of the confusion matrices.

    Returns:
        posteriors `[N, C]`, class prior `[C]`, and errors `[R, C true, C observed]`.

    References:
        Khetan, Lipton and Anandkumar (2018), equations 2 to 4 (algorithm 1).
    """
    errors = normalise_counts(annotator_confusion(annotations, predicted), smoothing)
    counts = np.bincount(predicted, minlength=annotations.num_classes).astype(np.float64)
    prior = counts / counts.sum()
    posterior = log_likelihoods(annotations.one_hot(), np.maximum(errors, _TINY))
    normalise_log(posterior, np.log(np.maximum(prior, _TINY)))
    return posterior, prior, errors


@register_method(
    "mbem",
    summary="MBEM: a network trained on posteriors that its own predictions bootstrap",
    presets=CLASSIFIER_PRESETS,
    space={**SPACE, "rounds": (2, 3, 5)},
)
@estimator
class MBEM(NetworkClassifier):
    """Model bootstrapped EM: a network and soft labels that improve each other.

    Each round trains the network on soft labels, takes its predictions as true, estimates the
    annotators' errors by them, and computes new soft labels. The first ones are vote shares.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]` and priors_: `[C]`, by the last network's
            predictions.
        probas_: `[N, C]` posteriors and labels_: `[N]` class codes of the training instances,
            likewise.
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_: of the last round; n_iter_: its epochs; best_epoch_, rows_: see
            `NetworkClassifier`.

    References:
        Khetan, Lipton, Anandkumar (2018), algorithm 1.
    """

    requires_identities = True

    rounds: Annotated[
        int, whole(1), "number of trainings of the network, each from new weights; 2 in the paper."
    ] = 2
    smoothing: Annotated[
        float, number(least=0), "pseudo-count of every cell of the confusion matrices."
    ] = 0.01

    probas_: Floats = fitted()

    def _train(self, network: CompiledNetwork, data: TrainingData, run: Run) -> Network:
        for index in range(self.rounds):
            if index:
                self._start(network, data, self.seed)
                network.model.set_targets(self.probas_)
            stage = run.stage(f"round-{index + 1}")
            history = self._train_phase(network, network.model, self.epochs, data, stage)
            predicted = self._predict_proba(data.features).argmax(axis=1)
            self.probas_, self.priors_, self.confusion_matrices_ = bootstrapped_posterior(
                data.annotations, predicted, self.smoothing
            )
        self.labels_ = self.probas_.argmax(axis=1)
        return history
