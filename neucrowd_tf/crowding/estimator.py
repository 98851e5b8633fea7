"""CrowdInG: a classifier that learns from the annotations there are and from generated ones."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neucrowd_tf.arguments import declared, estimator, fitted
from neucrowd_tf.crowding.arguments import (
    PAPER,
    PRESETS,
    SPACE,
    VARIANTS,
    ClassifierArguments,
    GameArguments,
)
from neucrowd_tf.crowding.generation import GeneratesAnnotations, TrainedGenerator
from neucrowd_tf.crowding.playing import Game, best_of, held_out, play
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.network_cache import NetworkCache, Snapshots
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.standardise import ROWS, in_blocks
from neucrowd_tf.training.validation import validation_figures

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray

    from neucrowd_tf.crowding.classifier import PretrainedClassifier
    from neucrowd_tf.crowding.networks import NetworkSpec
_PRETRAINING = ("pretrain_epochs", "pretrain_batch", "pretrain_learning_rate")


@dataclasses.dataclass(frozen=True)
class _Caches:
    """What an estimator compiles once and keeps for further fits and predictions."""

    # A fit that holds instances out and then trains on all has two shapes.
    classifiers: NetworkCache = dataclasses.field(default_factory=lambda: NetworkCache(2))
    networks: NetworkCache = dataclasses.field(default_factory=NetworkCache)
    generators: NetworkCache = dataclasses.field(default_factory=NetworkCache)
    predictions: NetworkCache = dataclasses.field(default_factory=NetworkCache)


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
@estimator
class CrowdInG(Snapshots, GameArguments, ClassifierArguments, GeneratesAnnotations):
    """A classifier and a generator of annotations against a discriminator and an auxiliary network.

    Annotations that are marked as generated train DL-CL alone; for the other networks only
    authentic ones are authentic.

    The classifier is first trained through a crowd layer (DL-CL), the generator on the authentic
    annotations, the discriminative module against that generator. Then each epoch trains the
    discriminative module on authentic and selected generated annotations, the generator on
    instances of which the classifier is sure, and the classifier on the others.

    Attributes:
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_: a dict with a list for each logged value of the game, one entry an epoch;
            `pretraining_history_` has DL-CL's.
        n_iter_: epochs of the game; `best_epoch_` (from 0) is the one that was kept, None where it
            is the start.
        start_: the start's validation figures, or None without validation data.
        collapsed_: whether the guard stopped training.
        information_: with `measured`, "before" and "after" the game; see
            `neucrowd_tf.crowding.discriminative.information`.
        confusion_matrices_: `[R, C true, C observed]`: what the generator answers in each
            annotator's name on training instances after the game, weighted by the classifier's
            probability of each class. The game drives the generator from the annotations, so they
            say little of how good an annotator is. Without a game, the crowd layer's, which do.
        mean_, scale_, annotator_table_, annotator_names_, generator_weights_: what `generate`
            needs.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.

    References:
        Chu and Wang (2021), Improve learning from crowds via generative augmentation, KDD.
    """

    requires_identities: ClassVar[bool] = True

    model_: Any = fitted()
    history_: dict[str, list[float]] = fitted()
    pretraining_history_: dict[str, list[float]] = fitted()
    start_: dict[str, float] | None = fitted()
    n_iter_: int = fitted()
    best_epoch_: int | None = fitted()
    collapsed_: bool = fitted()
    information_: dict[str, dict[str, float]] = fitted()
    generator_weights_: list[NDArray[Any]] = fitted()
    confusion_matrices_: NDArray[np.float32] = fitted()
    mean_: NDArray[np.float32] = fitted()
    scale_: NDArray[np.float32] = fitted()

    # ----------------------------------------------------------------- fit

    def _check_together(self) -> None:
        if self.risk == "exact" and not self.two_step:
            raise UsageError(
                'CrowdInG: expected risk="counterfactual" with two_step=False, received "exact"'
            )

    def _fit(self, data: TrainingData, run: Run) -> None:
        if not data.annotations.observed().num_annotations:
            raise DataError("annotations: expected authentic ones, received generated ones alone")
        self.annotator_table_ = self.annotator_table(data.annotations)
        self.rows_, self.annotator_names_ = data.rows, data.annotations.annotator_names
        if self.epochs and data.validation is None:
            part = held_out(data, self.validation_fraction, self.seed)
            game = self._train(part, run.stage("choice") if self.refit else run, self.epochs)
            if self.refit:
                epochs = 0 if game.best_epoch is None else game.best_epoch + 1
                again = self._train(data, run.stage("refit"), epochs)
                # What is told of the fit is how held-out instances chose the epoch. A refit that
                # collapses has no validation data, and the start is all there is to go back to.
                if again.collapsed:
                    game = dataclasses.replace(game, collapsed=True, best_epoch=None)
        else:
            game = self._train(data, run, self.epochs)
        self.history_, self.start_, self.n_iter_ = game.history, game.start, game.n_iter
        self.best_epoch_, self.collapsed_ = game.best_epoch, game.collapsed
        self.information_ = game.information
        if game.collapsed:
            warnings.warn(
                "CrowdInG collapsed while training; the best epoch before that was kept",
                UserWarning,
                stacklevel=4,
            )
        run.flush()

    def _train(self, data: TrainingData, run: Run, epochs: int) -> Game:
        """Trains DL-CL, and plays so many epochs of the game, or of what stands in its place.

        Raises:
            DataError: a single instance, which cannot teach both the generator and the classifier.

        References:
            CrowdInG, section 3.3.3.
        """
        if self.epochs and len(data.features) < 2:
            raise DataError(
                "CrowdInG: expected two instances or more to train on, received"
                f" {len(data.features)}"
            )
        classifier = self._pretrained(data, run)
        if not self.epochs:
            return Game()
        if self.taught_by == "crowd_layer":
            return self._go_on(classifier, data, run, epochs)
        return self._play(classifier, data, run, epochs)

    def _pretrained(self, data: TrainingData, run: Run) -> PretrainedClassifier:
        """Trains DL-CL, which predicts until a game has begun."""
        shape = data.features.shape, data.annotations.num_annotators, len(self.classes_)
        classifier = self._caches.classifiers.get(
            (*shape, self._classifier_arguments()), self._make_classifier
        )
        self._classifier = classifier
        classifier.fit(data, self.seed, run.stage("classifier"))
        self.model_, self.pretraining_history_ = classifier.inference, classifier.estimator.history_
        self.mean_ = np.array(classifier.standardise.mean.numpy())
        self.scale_ = np.array(classifier.standardise.scale.numpy())
        self.confusion_matrices_ = classifier.estimator.confusion_matrices_
        self.generator_weights_ = []
        return classifier

    def _play(
        self, classifier: PretrainedClassifier, data: TrainingData, run: Run, epochs: int
    ) -> Game:
        """Trains the generator and the discriminative module, and plays the game."""
        from neucrowd_tf.crowding.networks import Rates, build_networks
        from neucrowd_tf.training.state import read_variables

        spec = dataclasses.replace(self._spec(), kept=self._room(data))
        networks = self._caches.networks.get(spec, lambda: build_networks(spec, classifier.base))
        rates = Rates(
            self.generator_pretrain_learning_rate,
            self.generator_learning_rate,
            self.classifier_learning_rate,
            self.discriminator_learning_rate,
        )
        networks.restart(classifier, data, self.annotator_table_, rates, self.seed)
        self.model_ = networks.inference
        game = play(
            networks,
            generator_epochs=self.generator_pretrain_epochs,
            discriminator_passes=self.discriminator_pretrain_passes,
            epochs=epochs,
            evaluate=self._evaluator(data),
            monitor=self.monitor,
            collapse_drop=self.collapse_drop,
            run=run,
            measured=self.measured,
        )
        self.generator_weights_ = read_variables(networks.generator.variables)
        self.confusion_matrices_ = networks.game.generative.expected_confusions()
        return game

    def _go_on(
        self, classifier: PretrainedClassifier, data: TrainingData, run: Run, epochs: int
    ) -> Game:
        """Trains DL-CL further in place of the game: the control."""
        from neucrowd_tf.crowding.classifier import ContinuedClassifier

        passes = self.passes if self.classifier_passes is None else self.classifier_passes
        given = (classifier, self.batch_size, passes, self.threshold, self.averaging)
        model = self._caches.networks.get(
            given,
            lambda: ContinuedClassifier(
                classifier,
                self.feature_shape_,
                batch_size=self.batch_size,
                passes=passes,
                threshold=self.threshold,
                averaging=self.averaging,
            ),
        )
        model.restart(data, self.classifier_learning_rate, self.seed)
        self.model_ = model.inference
        game = best_of(
            model,
            model.counter,
            epochs=epochs,
            evaluate=self._evaluator(data),
            monitor=self.monitor,
            collapse_drop=self.collapse_drop,
            run=run.stage("game"),
        )
        layer = classifier.estimator
        self.confusion_matrices_ = layer._confusion_matrices(layer.network, data)
        return game

    def _evaluator(self, data: TrainingData) -> Callable[[], dict[str, float]] | None:
        if data.validation is None:
            return None
        features, labels = data.validation

        return lambda: validation_figures(self._predict_proba(features), labels)

    def watched(self, stage: str) -> Any:
        """Returns what predicts the classes while a stage of the fit is being trained; None in
        stages that train other networks.
        """
        name = stage.rpartition("/")[2]
        if name == "classifier":
            return self._classifier.estimator
        return self if name == "game" else None

    # ----------------------------------------------------------------- what is compiled

    @functools.cached_property
    def _caches(self) -> _Caches:
        return _Caches()

    def _make_classifier(self) -> PretrainedClassifier:
        from neucrowd_tf.crowding.classifier import PretrainedClassifier

        return PretrainedClassifier(
            self.dl_cl(
                epochs=self.pretrain_epochs,
                batch_size=self.pretrain_batch,
                learning_rate=self.pretrain_learning_rate,
                seed=self.seed,
            )
        )

    def _classifier_arguments(self) -> tuple[Any, ...]:
        """Returns what DL-CL's network depends on beside the data's shape."""
        names = (*(field.name for field in declared(ClassifierArguments)), *_PRETRAINING)
        values = (getattr(self, name) for name in names)
        return tuple(
            tuple(value) if isinstance(value, list | np.ndarray) else value for value in values
        )

    def _spec(self) -> NetworkSpec:
        """Returns what the networks of this fit depend on."""
        from neucrowd_tf.crowding.networks import NetworkSpec

        given: dict[str, Any] = {
            "feature_shape": self.feature_shape_,
            "annotator_size": self.annotator_table_.shape[1],
            "num_classes": len(self.classes_),
            "classifier": self._classifier_arguments(),
            "kept": NetworkSpec.kept,
        }
        named = (field.name for field in dataclasses.fields(NetworkSpec))
        return NetworkSpec(
            **given, **{name: getattr(self, name) for name in named if name not in given}
        )

    def _room(self, data: TrainingData) -> frozenset[str]:
        """Returns what a turn keeps from its first pass."""
        from neucrowd_tf.crowding.learning import what_is_kept

        annotators = data.annotations.num_annotators
        widths = {
            "features": int(np.prod(self.feature_shape_)),
            "noise": annotators * self.noise_size,
            "hidden": annotators * self.generator_units,
        }
        return what_is_kept(len(data.features), widths)

    def __getstate__(self) -> dict[str, Any]:
        """Caches (compiled functions and networks) are left out of copies."""
        return {
            name: value
            for name, value in super().__getstate__().items()
            if not name.startswith("_")
        }

    # ----------------------------------------------------------------- use

    def inference_model(self) -> keras.Model:
        return self.model_

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        import tensorflow as tf

        def compiled() -> Any:
            model = self.model_
            signature = [tf.TensorSpec([None, *self.feature_shape_], tf.float32)]
            return tf.function(
                lambda x: model(x, training=False)["probabilities"],
                input_signature=signature,
                autograph=False,
            )

        predict = self._caches.predictions.get(self.model_, compiled)
        return in_blocks(predict, features, ROWS if len(self.feature_shape_) == 1 else 256)

    def _trained_generator(self) -> TrainedGenerator:
        """Returns the trained generator, rebuilt from its weights."""
        if not self.generator_weights_:
            raise UsageError(
                "CrowdInG: expected a fit with epochs of the game, received one of DL-CL alone,"
                " which has no generator"
            )
        from neucrowd_tf.crowding.networks import build_generator
        from neucrowd_tf.training.state import write_variables

        spec = self._spec()
        made = self._caches.generators.get(spec, lambda: build_generator(spec))
        write_variables(made.variables, self.generator_weights_)
        by_class = self.latent == "class"
        return TrainedGenerator(
            made, self.annotator_table_, self._flat, self._predict_proba, by_class
        )

    def _flat(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns features as the generator takes them, `[M, d]`."""
        if self.square_root:
            features = np.sign(features) * np.sqrt(np.abs(features))
        return ((features - self.mean_) / self.scale_).reshape(len(features), -1)
