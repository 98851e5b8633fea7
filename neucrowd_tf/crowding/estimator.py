"""CrowdInG: a classifier that learns from the annotations there are and from generated ones."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowding.arguments import annotator_table, check_arguments
from neucrowd_tf.crowding.holding_out import held_out
from neucrowd_tf.crowding.playing import play
from neucrowd_tf.crowding.presets import PAPER, PRESETS, SPACE, VARIANTS
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras
    from numpy.typing import ArrayLike, NDArray


def _registered(factory: type[CrowdInG]) -> type[CrowdInG]:
    for name, summary, defaults in VARIANTS:
        register_method(
            name,
            summary=summary,
            defaults=defaults,
            requires_identities=True,
            presets=PRESETS,
            space=SPACE,
            paper=PAPER,
        )(factory)
    return factory


@_registered
class CrowdInG(CrowdEstimator):
    """A classifier and a generator of annotations against a discriminator and an auxiliary network.

    Annotations that are marked as generated train DL-CL alone; for the other players only authentic
    ones are authentic.

    The classifier is first trained through a crowd layer (DL-CL), the generator on the authentic
    annotations, the discriminative module against that generator. Then each epoch trains the
    discriminative module on authentic and selected generated annotations, the generator on
    instances of which the classifier is sure, and the classifier on the others.

    Args:
        base, hidden_units, activation, dropout, batch_norm, l2: the classifier, as for
            `CrowdLayer`.
        square_root: take the signed square root of features before standardising.
        standardise: scale features to mean 0 and standard deviation 1 on the training instances.
        pretrain_epochs, pretrain_batch, pretrain_learning_rate: DL-CL's training.
        generator_pretrain_epochs, generator_pretrain_batch, generator_pretrain_learning_rate:
        passes over the authentic annotations.
        discriminator_pretrain_passes: passes of the discriminative module before the game, each
            with a fresh selection.
        embedding_size: length of all embeddings of instances, annotators and labels.
        generator_units, auxiliary_units: hidden units of g and h.
        noise_size: length of the noise vector.
        information: lambda, the weight of the information loss (eq. 4); 0 is CrowdG.
        threshold: t, the share of instances, those with the lowest entropy, that update the
            generator.
        passes: inner passes of each turn.
        multiplier: mu of eqs. 5 and 6: a number, "mean" (of the losses at hand) or "search" (the
            best of several).
        ratio_cap, probability_floor: bounds of the importance ratios and the logging policy's
            probabilities.
        selection: "entropy" (section 3.3.1) or "random" (CrowdInGR).
        instance_features: whether the generator sees the instance; False is CrowdInGU.
        annotator_identities: whether the generator knows the annotator; False is CrowdInGI.
        annotator_features: `[R, e]` numbers in the order of the annotators, in place of one-hot
            vectors.
        label_correlation: whether the discriminator has the LCA decoder.
        output_penalty: weight of the discriminator's mean squared output.
        discriminator_loss: "multi_label", or "literal" for eq. 4 entry by entry, which gains less
            and decays sooner.
        two_step: False updates generator and classifier together, on all instances.
        generator_learning_rate, classifier_learning_rate, discriminator_learning_rate: Adam's.
        batch_size: instances in a batch of the generative module, each with all annotators.
        pair_batch_size: annotations in a batch of the discriminative module.
        averaging: what predicts is a running average of the classifier's weights over epochs, which
            keeps this share of itself each epoch; 0 predicts with the classifier as it stands, as
            in the paper. It is only read: the game goes on with the present one.
        epochs: of the game; 0 stops after DL-CL.
        monitor: which validation figure chooses the epoch, "accuracy" or "log_loss"; the start is a
            candidate too.
        collapse_drop: the guard stops when validation accuracy falls so far below the best one, or
            when the entropy of the predicted classes falls below half of what it was.
        refit: where `fit` gets no validation data, train again on all instances for the number of
            epochs that held-out instances chose.
        validation_fraction: the share held out for that choice.
        seed: draws everything that is random.

    Attributes:
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_: a dict with a list for each logged value of the game, one entry an epoch;
            `pretraining_history_` has DL-CL's.
        n_iter_: epochs of the game; `best_epoch_` (from 0) is the one that was kept, None where it
            is the start.
        start_: the start's validation figures, or None without validation data.
        collapsed_: whether the guard stopped training.
        confusion_matrices_: `[R, C true, C observed]`: what the generator answers for each
            annotator on training instances, weighted by the classifier's probability of each class
            (without a game, the crowd layer's).
        mean_, scale_, annotator_table_, annotator_names_, generator_weights_: what `generate`
        needs.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.

    References:
        Chu and Wang (2021), Improve learning from crowds via generative augmentation, KDD.
    """

    requires_identities: ClassVar[bool] = True

    model_: Any
    history_: dict[str, list[float]]
    pretraining_history_: dict[str, list[float]]
    start_: dict[str, float] | None
    n_iter_: int
    best_epoch_: int | None
    collapsed_: bool
    generator_weights_: list[NDArray[Any]]
    confusion_matrices_: NDArray[np.float32]
    mean_: NDArray[np.float32]
    scale_: NDArray[np.float32]

    def __init__(
        self,
        base: Any = "dense",
        *,
        hidden_units: Sequence[int] = (128,),
        activation: str = "relu",
        dropout: float = 0.5,
        batch_norm: bool = False,
        l2: float = 5e-4,
        square_root: bool = False,
        standardise: bool = True,
        pretrain_epochs: int = 15,
        pretrain_batch: int = 64,
        pretrain_learning_rate: float = 1e-3,
        generator_pretrain_epochs: int = 10,
        generator_pretrain_batch: int = 64,
        generator_pretrain_learning_rate: float = 1e-3,
        discriminator_pretrain_passes: int = 10,
        embedding_size: int = 32,
        generator_units: int = 64,
        auxiliary_units: int = 128,
        noise_size: int = 8,
        information: float = 0.5,
        threshold: float = 0.5,
        passes: int = 5,
        multiplier: float | Literal["mean", "search"] = "mean",
        ratio_cap: float = 10.0,
        probability_floor: float = 1e-3,
        selection: Literal["entropy", "random"] = "entropy",
        instance_features: bool = True,
        annotator_identities: bool = True,
        annotator_features: ArrayLike | None = None,
        label_correlation: bool = True,
        output_penalty: float = 1.0,
        discriminator_loss: Literal["multi_label", "literal"] = "multi_label",
        two_step: bool = True,
        generator_learning_rate: float = 3e-4,
        classifier_learning_rate: float = 1e-4,
        discriminator_learning_rate: float = 1e-3,
        batch_size: int = 100,
        pair_batch_size: int = 512,
        averaging: float = 0.8,
        epochs: int = 12,
        monitor: Literal["accuracy", "log_loss"] = "accuracy",
        collapse_drop: float = 0.1,
        refit: bool = True,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.base = base
        self.hidden_units = hidden_units
        self.activation = activation
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.l2 = l2
        self.square_root = square_root
        self.standardise = standardise
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch = pretrain_batch
        self.pretrain_learning_rate = pretrain_learning_rate
        self.generator_pretrain_epochs = generator_pretrain_epochs
        self.generator_pretrain_batch = generator_pretrain_batch
        self.generator_pretrain_learning_rate = generator_pretrain_learning_rate
        self.discriminator_pretrain_passes = discriminator_pretrain_passes
        self.embedding_size = embedding_size
        self.generator_units = generator_units
        self.auxiliary_units = auxiliary_units
        self.noise_size = noise_size
        self.information = information
        self.threshold = threshold
        self.passes = passes
        self.multiplier = multiplier
        self.ratio_cap = ratio_cap
        self.probability_floor = probability_floor
        self.selection = selection
        self.instance_features = instance_features
        self.annotator_identities = annotator_identities
        self.annotator_features = annotator_features
        self.label_correlation = label_correlation
        self.output_penalty = output_penalty
        self.discriminator_loss = discriminator_loss
        self.two_step = two_step
        self.generator_learning_rate = generator_learning_rate
        self.classifier_learning_rate = classifier_learning_rate
        self.discriminator_learning_rate = discriminator_learning_rate
        self.batch_size = batch_size
        self.pair_batch_size = pair_batch_size
        self.averaging = averaging
        self.epochs = epochs
        self.monitor = monitor
        self.collapse_drop = collapse_drop
        self.refit = refit
        self.validation_fraction = validation_fraction
        self.seed = seed

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        check_arguments(self)
        # The game is one process: replicas would each play it whole.
        run = dataclasses.replace(run, strategy=None)
        if not data.annotations.observed().num_annotations:
            raise DataError("annotations: expected authentic ones, received generated ones alone")
        self.annotator_table_ = annotator_table(data.annotations, self.annotator_features)
        self.rows_, self.annotator_names_ = data.rows, data.annotations.annotator_names
        if self.epochs and data.validation is None:
            play(
                self,
                held_out(data, self.validation_fraction, self.seed),
                run.stage("choice") if self.refit else run,
                self.epochs,
            )
            if self.refit:
                self._refit(data, run.stage("refit"))
        else:
            play(self, data, run, self.epochs)
        if self.collapsed_:
            warnings.warn(
                "CrowdInG collapsed while training; the best epoch before that was kept",
                UserWarning,
                stacklevel=4,
            )
        run.flush()

    def _refit(self, data: TrainingData, run: Run) -> None:
        """Trains again on all instances for as many epochs as held-out ones chose; what is told of
        the fit is how they were chosen.
        """
        chosen = {
            name: getattr(self, name)
            for name in ("history_", "start_", "n_iter_", "best_epoch_", "collapsed_")
        }
        play(self, data, run, 0 if self.best_epoch_ is None else self.best_epoch_ + 1)
        if self.collapsed_:
            chosen |= {
                "collapsed_": True,
                "best_epoch_": None,
            }  # without validation data the start is all there is to go back to
        for name, value in chosen.items():
            setattr(self, name, value)

    def _better(self, value: float | None, start: float) -> bool:
        return value is not None and (
            value < start if self.monitor == "log_loss" else value > start
        )

    def _collapsed(self, logs: Mapping[str, list[float]]) -> bool:
        """Whether the classifier has lost its accuracy, or predicts ever fewer classes."""
        accuracies = logs.get("val_accuracy", [])
        if accuracies and self.start_ is not None:
            best = max(self.start_["accuracy"], *accuracies)
            if accuracies[-1] < best - self.collapse_drop:
                return True
        spread = logs.get("predicted_class_entropy", [])
        return bool(spread) and not spread[-1] >= 0.5 * spread[0]

    def watched(self, stage: str) -> Any:
        """Returns what predicts the classes while a stage of the fit is being trained; None in
        stages that train other players.
        """
        player = stage.rpartition("/")[2]
        if player == "classifier":
            return next(reversed(self._starts.values())).estimator
        return self if player == "game" else None

    # ----------------------------------------------------------------- use

    def inference_model(self) -> keras.Model:
        return self.model_

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        import tensorflow as tf

        cached: tuple[Any, Any] = self.__dict__.get("_predict", (None, None))
        if cached[0] is not self.model_:
            model = self.model_
            signature = [tf.TensorSpec([None, *self.feature_shape_], tf.float32)]
            cached = (
                model,
                tf.function(
                    lambda x: model(x, training=False)["probabilities"], input_signature=signature
                ),
            )
            self._predict = cached
        rows = 4096 if len(self.feature_shape_) == 1 else 256
        parts = [
            np.asarray(cached[1](features[row : row + rows]))
            for row in range(0, len(features), rows)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes_)), np.float32)

    def predict_annotators(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns how likely each annotator gives each label to each instance, `[M, R, C]`, at the
        noise's mean.
        """
        from neucrowd_tf.crowding.generation import annotator_probabilities

        return annotator_probabilities(self, self._check_played(features))

    def generate(
        self,
        features: ArrayLike,
        annotators: ArrayLike | None = None,
        *,
        annotations: Annotations | None = None,
        seed: int | None = None,
    ) -> Annotations:
        """Draws annotations from the generator; each is marked as generated
        (`Annotations.generated`).

        Args:
            features: `[M, ...]` raw features.
            annotators: names of the annotators to generate for; by default all.
            annotations: of these M instances, by the annotators and classes of `fit`: they are
                kept, and only empty cells are filled. By default there are none.
            seed: of the draws; by default the estimator's.

        Returns:
            `Annotations` of M instances, any method can train on them.

        Raises:
            DataError: an annotator that was not there in `fit`, or annotations that do not fit.
        """
        from neucrowd_tf.crowding.generation import generated_annotations

        return generated_annotations(
            self,
            self._check_played(features),
            annotators,
            annotations,
            self.seed if seed is None else seed,
        )

    def _check_played(self, features: ArrayLike) -> NDArray[np.float32]:
        x = self._check_fitted(features)
        if not self.generator_weights_:
            raise UsageError(
                "CrowdInG: expected a fit with epochs of the game, received one that stopped at"
                " DL-CL and has no generator"
            )
        return x

    def __getstate__(self) -> dict[str, Any]:
        """Caches (compiled functions and networks) are left out of copies."""
        caches = ("_starts", "_players", "_predict", "_generator")
        return {name: value for name, value in super().__getstate__().items() if name not in caches}
