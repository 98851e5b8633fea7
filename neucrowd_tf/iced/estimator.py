"""ICED: the estimator that puts section 2 together."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.iced.arguments import check_arguments
from neucrowd_tf.iced.certainty import label_certainty
from neucrowd_tf.iced.history import shortages
from neucrowd_tf.iced.presets import PAPER, PRESETS, SPACE
from neucrowd_tf.iced.warm_up import WarmUp
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.datasets import CrowdDataset
    from neucrowd_tf.iced.network import ICEDModel
    from neucrowd_tf.iced.rounds import Rounds


@register_method(
    "iced_literal",
    summary=(
        "ICED as printed: candidates by inferred label, equation 2.5 and the warm-up by certainty"
        " groups to the letter"
    ),
    defaults={"candidates": "inferred", "interpolation": "literal", "warm_up": "groups"},
    requires_identities=True,
    presets=PRESETS,
    space=SPACE,
    paper=PAPER,
)
@register_method(
    "iced",
    summary="ICED: label inference and synthetic instances of rare classes that improve each other",
    requires_identities=True,
    presets=PRESETS,
    space=SPACE,
    paper=PAPER,
)
class ICED(CrowdEstimator):
    """True-label inference and synthetic minority data that improve each other, for two classes and
    more.

    An auto-encoder is trained first; its encoder starts the feature extractor. After a warm-up on
    majority votes, each round interpolates new instances of the rarer classes in the embedding
    space, lets the annotators label them as they labelled their neighbours, infers the labels of
    all instances (Dawid-Skene with a uniform prior) and trains the classifier on them.

    Args:
        rounds: how often (0 stops after the warm-up); with many of them the classifier begins to
            follow its own mistakes.
        epochs_per_round: passes over the augmented data in each.
        k: neighbours for the interpolation, among the class's own candidates.
        annotation_neighbours: real neighbours that annotators are copied from.
        epsilon: of equation 2.4; a tiny one makes unanimous points duplicates.
        eta: noise on the interpolation is uniform in (-eta, eta).
        interpolation: "certainty" (equation 2.5 mended), "literal" (as printed) or "uniform" (plain
            SMOTE).
        candidates: what says which class a real instance may stand for: "classifier" (its own
            prediction) or "inferred" (the label inferred in the round before, as printed).
        targets: what the classifier is trained on: the "hard" inferred labels, or the "soft"
            posteriors.
        prior: "uniform" holds the class prior of the inference, "update" estimates it.
        smoothing: pseudo-count of every cell of the confusion matrices.
        em_iterations: most iterations of EM in a round.
        warm_up: "groups" (ICED-w), "all" (Trad-I), "top" (Trad-II) or "none".
        warm_up_epochs: of the whole warm-up.
        autoencoder_epochs: before everything else.
        decoder_epochs: passes in each round that let the decoder follow the encoder.
        tol: stop when a round changes at most this share of the inferred labels; None does all
            rounds.
        encoder: a Keras model `[None, ...] -> [None, h]` to use as feature extractor; it is copied,
            not trained itself.
        classifier: likewise `[None, h] -> [None, C]` logits; one dense layer by default.
        decoder: likewise `[None, h] -> [None, ...]`; needed with `encoder` unless the default one
            for `[h]` fits.
        hidden_units, activation, dropout, l2: the default encoder, fully connected; for images
            `[height, width, channels]` it is convolutional, with an embedding of
            `hidden_units[-1]`.
        optimizer, learning_rate, batch_size: of all three trainings.
        standardise: whether features (the channels of images) are standardised on the training
            instances.
        seed: draws everything that is random.

    Attributes:
        model_: Keras model from raw features to {"probabilities", "embedding"}.
        decoder_: Keras model from an embedding to standardised features.
        labels_: `[N]` class codes inferred in the last round; `probas_` `[N, C]` their posteriors.
        priors_: `[C]` the prior that the inference held or found.
        confusion_matrices_: `[R, C true, C observed]` from the last round.
        certainty_: `[N]` label certainty.
        labels_history_: `[rounds + 1, N]` inferred labels: before any synthesis (D&S-orig), after
            the first (D&S-first), ...
        candidates_history_: `[rounds, N]` the class that each instance was a candidate of.
        synthetic_history_: `[rounds, C]` how many instances were made of each class.
        permutations_history_: `[rounds + 1, C]` how EM's classes were put back in place (the
            identity as a rule).
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
        history_: a dict with a list for each logged value, one entry a round.
        n_iter_: rounds done. converged_: whether `tol` stopped them.

    References:
        Wang et al.: Learning from Imbalanced Crowdsourced Labeled Data, section 2, algorithms 1 and
            2.
    """

    requires_identities = True

    def __init__(
        self,
        rounds: int = 15,
        epochs_per_round: int = 1,
        k: int = 5,
        annotation_neighbours: int = 20,
        epsilon: float = 0.01,
        eta: float = 0.1,
        interpolation: Literal["certainty", "literal", "uniform"] = "certainty",
        candidates: Literal["classifier", "inferred"] = "classifier",
        targets: Literal["hard", "soft"] = "hard",
        prior: Literal["uniform", "update"] = "uniform",
        smoothing: float = 1.0,
        em_iterations: int = 100,
        warm_up: WarmUp = "all",
        warm_up_epochs: int = 4,
        autoencoder_epochs: int = 20,
        decoder_epochs: int = 1,
        tol: float | None = None,
        encoder: Any = None,
        classifier: Any = None,
        decoder: Any = None,
        hidden_units: Sequence[int] = (128, 64),
        activation: str = "relu",
        dropout: float = 0.3,
        l2: float = 0.0,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        standardise: bool = True,
        seed: int = 0,
    ) -> None:
        self.rounds = rounds
        self.epochs_per_round = epochs_per_round
        self.k = k
        self.annotation_neighbours = annotation_neighbours
        self.epsilon = epsilon
        self.eta = eta
        self.interpolation = interpolation
        self.candidates = candidates
        self.targets = targets
        self.prior = prior
        self.smoothing = smoothing
        self.em_iterations = em_iterations
        self.warm_up = warm_up
        self.warm_up_epochs = warm_up_epochs
        self.autoencoder_epochs = autoencoder_epochs
        self.decoder_epochs = decoder_epochs
        self.tol = tol
        self.encoder = encoder
        self.classifier = classifier
        self.decoder = decoder
        self.hidden_units = hidden_units
        self.activation = activation
        self.dropout = dropout
        self.l2 = l2
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.standardise = standardise
        self.seed = seed

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        from neucrowd_tf.iced.build import fit_scaler, prediction_model
        from neucrowd_tf.iced.rounds import Rounds
        from neucrowd_tf.iced.stages import train_autoencoder, train_rounds, train_warm_up

        check_arguments(self)
        self.rows_ = data.rows
        self.certainty_ = label_certainty(data.annotations.vote_counts(), self.epsilon)
        self.mean_, self.scale_ = fit_scaler(data.features, self.standardise)
        scaled = np.asarray((data.features - self.mean_) / self.scale_, dtype=np.float32)
        if run.strategy is not None and run.strategy.num_replicas_in_sync > 1:
            # Replicas meet at every step, which a loop inside the graph cannot wait for; the
            # networks are small.
            warnings.warn(
                f"{type(self).__name__}: trains on one device, the strategy's others stay idle",
                UserWarning,
                stacklevel=3,
            )
        run = dataclasses.replace(run, strategy=None)
        model = self._networks(scaled)
        self.model_ = prediction_model(model, self.feature_shape_, self.mean_, self.scale_)
        self.decoder_ = model.decoder
        train_autoencoder(self, model, run)
        train_warm_up(self, model, data, run)
        rounds = Rounds(model, data.annotations, self.certainty_, self._round_options())
        self.history_ = train_rounds(self, model, rounds, data, run)
        self._keep(rounds)
        for problem in shortages(
            self.candidates_history_, self.permutations_history_, rounds.used, self.classes_, self.k
        ):
            warnings.warn(f"{type(self).__name__}: {problem}", UserWarning, stacklevel=3)
        run.flush()

    def _round_options(self) -> Any:
        from neucrowd_tf.iced.rounds import Options

        return Options(
            k=self.k,
            annotation_neighbours=self.annotation_neighbours,
            eta=self.eta,
            interpolation=self.interpolation,
            candidates=self.candidates,
            targets=self.targets,
            prior=self.prior,
            smoothing=self.smoothing,
            em_iterations=self.em_iterations,
            epochs_per_round=self.epochs_per_round,
            decoder_epochs=self.decoder_epochs,
            tol=self.tol,
            seed=self.seed,
        )

    def _networks(self, features: NDArray[np.float32]) -> ICEDModel:
        from neucrowd_tf.iced.build import build_networks
        from neucrowd_tf.nn.encoders import make_optimizer

        return build_networks(
            features,
            len(self.classes_),
            encoder=self.encoder,
            classifier=self.classifier,
            decoder=self.decoder,
            hidden_units=self.hidden_units,
            activation=self.activation,
            dropout=self.dropout,
            l2=self.l2,
            batch_size=self.batch_size,
            make_optimizer=lambda: make_optimizer(self.optimizer, self.learning_rate),
            seed=self.seed,
        )

    def _keep(self, rounds: Rounds) -> None:
        size = len(self.rows_)
        state = rounds.get_state()
        self.labels_history_, self.permutations_history_ = state["labels"], state["permutations"]
        self.candidates_history_, self.synthetic_history_ = state["candidates"], state["synthetic"]
        self.labels_ = self.labels_history_[-1].astype(np.int64)
        self.probas_ = rounds.inference.probas[:size]
        self.priors_, self.confusion_matrices_ = rounds.inference.priors, rounds.inference.errors
        self.n_iter_, self.converged_ = (
            len(rounds.candidates),
            rounds.settled(self.history_.get("changed", [])),
        )

    # ----------------------------------------------------------------- use

    def evaluation(self, dataset: CrowdDataset) -> dict[str, Any]:
        """Returns how the rounds went, from the truth: see `round_scores`."""
        from neucrowd_tf.iced.history import round_scores

        return round_scores(self, dataset)

    def inference_model(self) -> keras.Model:
        return self.model_

    def _outputs(self, features: NDArray[np.float32], name: str) -> NDArray[Any]:
        import tensorflow as tf

        starts = range(0, max(len(features), 1), 4096)
        return np.concatenate(
            [
                np.asarray(
                    self.model_(tf.convert_to_tensor(features[i : i + 4096]), training=False)[name]
                )
                for i in starts
            ]
        )

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return self._outputs(features, "probabilities")

    def transform(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns the embedding `[M, h]` of raw features."""
        return self._outputs(self._check_fitted(features), "embedding")
