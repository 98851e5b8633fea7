"""AggNet: expectation-maximisation whose classifier is a deep network."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from neucrowd_tf.aggregation.base import vote_shares
from neucrowd_tf.aggregation.crowd_and_classifier import combine, error_matrices, log_likelihoods
from neucrowd_tf.declare.declarations import estimator, number, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Network
from neucrowd_tf.methods.crowd_layers.common.classifier import NetworkClassifier
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import CLASSIFIER_PRESETS, SPACE
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run


@register_method(
    "aggnet",
    summary="AggNet: EM over the classes, the annotators' confusion matrices and a deep classifier",
    presets=CLASSIFIER_PRESETS,
    space={**SPACE, "rounds": (3, 5, 10)},
)
@estimator
class AggNet(NetworkClassifier):
    """Trains a classifier on soft labels that it improves together with the annotations.

    After each round the classifier's predictions and the annotations give new soft labels, on which
    it is trained further.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`.
        probas_: `[N, C]` posteriors and labels_ `[N]` class codes of the training instances.
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_: of the last round; n_iter_: its epochs; best_epoch_, rows_: see
            `NetworkClassifier`.

    References:
        Albarqouni et al. (2016), section II, eqs. 4 (E-step), 5 and 6 (M-step).
    """

    requires_identities = True

    rounds: Annotated[
        int,
        whole(1),
        "rounds of EM. The network first trains `epochs` epochs on vote shares. Each further round"
        " continues for `epochs / rounds` epochs.",
    ] = 5
    smoothing: Annotated[
        float, number(above=0), "pseudo-count of every cell of the confusion matrices."
    ] = 0.1

    def _train(self, network: CompiledNetwork, data: TrainingData, run: Run) -> Network:
        epochs = self.epochs
        one_hot = data.annotations.one_hot()
        posterior = vote_shares(one_hot, len(self.classes_))
        for index in range(self.rounds):
            network.model.draw_seed = self.seed + 7907 * index
            stage = run.stage(f"round-{index + 1}")
            history = self._train_phase(network, network.model, epochs, data, stage)
            epochs = max(1, self.epochs // self.rounds)
            # The M-step uses the posterior that trained the network; the E-step combines both.
            errors = error_matrices(one_hot, posterior, self.smoothing)
            predicted = self._predict_proba(data.features).astype(np.float64)
            posterior = combine(log_likelihoods(one_hot, errors), predicted)
            network.model.set_targets(posterior)
        self.probas_ = posterior
        self.labels_ = posterior.argmax(axis=1)
        self.confusion_matrices_ = errors
        return history
