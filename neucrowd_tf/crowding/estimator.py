"""CrowdInG: a classifier that learns from the annotations there are and from generated ones."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from neucrowd_tf.annotations import Annotations, factorize
from neucrowd_tf.arguments import (
    argument,
    estimator,
    fitted,
    flag,
    none,
    number,
    one_of,
    share,
    whole,
)
from neucrowd_tf.crowding.dl_cl import ClassifierArguments, PretrainedClassifier
from neucrowd_tf.crowding.playing import Game, best_of, held_out, play
from neucrowd_tf.crowding.presets import PAPER, PRESETS, SPACE, VARIANTS
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.blocks import ROWS, in_blocks
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.network_cache import NetworkCache
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.snapshots import Snapshots
from neucrowd_tf.training.validation import validation_figures

if TYPE_CHECKING:
    import keras
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.crowding.generation import TrainedGenerator
    from neucrowd_tf.crowding.networks import NetworkSpec

_rate = number(above=0)


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
class CrowdInG(Snapshots, ClassifierArguments, CrowdEstimator):
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
        information_: with `measured`, see `neucrowd_tf.crowding.measures.information`, "before" and
            "after" the game.
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

    pretrain_epochs: int = argument(15, whole(1), "of DL-CL.")
    pretrain_batch: int = argument(64, whole(1), "instances in a batch of DL-CL.")
    pretrain_learning_rate: float = argument(1e-3, _rate, "Adam's for DL-CL.")
    generator_pretrain_epochs: int = argument(
        10, whole(0), "passes of the generator over the authentic annotations before the game."
    )
    generator_pretrain_batch: int = argument(64, whole(1), "annotations in a batch of them.")
    generator_pretrain_learning_rate: float = argument(1e-3, _rate, "Adam's for them.")
    discriminator_pretrain_passes: int = argument(
        10,
        whole(0),
        "passes of the discriminative module before the game, each with a fresh selection.",
    )
    embedding_size: int = argument(
        32, whole(1), "length of all embeddings of instances, annotators and labels."
    )
    generator_units: int = argument(64, whole(1), "hidden units of g.")
    auxiliary_units: int = argument(128, whole(1), "hidden units of h.")
    noise_size: int = argument(8, whole(1), "length of the noise vector.")
    information: float = argument(
        0.5, number(least=0), "lambda, the weight of the information loss (eq. 4); 0 is CrowdG."
    )
    threshold: float = argument(
        0.5,
        share,
        "t, the share of instances, those with the lowest entropy, that update the generator.",
    )
    passes: int = argument(5, whole(1), "inner passes of each turn.")
    discriminator_passes: int | None = argument(
        None, none | whole(1), "of the discriminative module's turn; None is `passes`."
    )
    generator_passes: int | None = argument(
        None, none | whole(1), "of the generator's turn; None is `passes`."
    )
    classifier_passes: int | None = argument(
        None,
        none | whole(1),
        "of the classifier's turn; None is `passes`. A turn of both together has the larger of the"
        " two counts, and twice the batches of one of them.",
    )
    latent: Literal["soft", "class"] = argument(
        "soft",
        one_of("soft", "class"),
        'what the generator is fed of the classifier: "soft", its probabilities, given which a'
        ' label tells nothing of z beyond the instance; or "class", a class drawn from them, as in'
        " InfoGAN.",
    )
    risk: Literal["counterfactual", "exact"] = argument(
        "counterfactual",
        one_of("counterfactual", "exact"),
        '"counterfactual" learns from logged draws, as the paper does; "exact" sums over all labels'
        " (and classes): no draws, mu, ratios or replay.",
    )
    likelihood: float = argument(
        0.0,
        number(least=0),
        "weight of -log G of the authentic annotations in the generator's turn, which keeps it near"
        " them.",
    )
    equal_inputs: bool = argument(
        False,
        flag,
        "whether the generator's first layer starts with as much of the instance, the annotator,"
        " the classifier's output and the noise.",
    )
    penalised: bool = argument(
        False, flag, "whether the classifier keeps its weight penalty `l2` in the game."
    )
    taught_by: Literal["generator", "crowd_layer"] = argument(
        "generator",
        one_of("generator", "crowd_layer"),
        'who teaches the classifier after DL-CL: the "generator", or, as a control, the'
        ' "crowd_layer" again, with as many steps, the same rate, average and choice of the epoch.',
    )
    multiplier: float | Literal["mean", "search"] = argument(
        "mean",
        one_of("mean", "search") | number(),
        'mu of eqs. 5 and 6: a number, "mean" (of the losses at hand) or "search" (the best of'
        " several).",
    )
    ratio_cap: float = argument(10.0, number(above=0), "the largest importance ratio.")
    probability_floor: float = argument(
        1e-3, number(above=0), "the least probability under the logging policy."
    )
    selection: Literal["entropy", "random", "observed"] = argument(
        "entropy",
        one_of("entropy", "random", "observed"),
        'which cells the discriminator sees generated annotations of: empty ones by "entropy"'
        ' (section 3.3.1) or at "random" (CrowdInGR), or those "observed", whose instance and'
        " annotator do not give them away.",
    )
    instance_features: bool = argument(
        True, flag, "whether the generator sees the instance; False is CrowdInGU."
    )
    annotator_identities: bool = argument(
        True, flag, "whether the generator knows the annotator; False is CrowdInGI."
    )
    annotator_features: ArrayLike | None = argument(
        None, None, "`[R, e]` numbers in the order of the annotators, in place of one-hot vectors."
    )
    label_correlation: bool = argument(True, flag, "whether the discriminator has the LCA decoder.")
    output_penalty: float = argument(
        1.0, number(least=0), "weight of the discriminator's mean squared output."
    )
    discriminator_loss: Literal["multi_label", "literal", "density_ratio"] = argument(
        "multi_label",
        one_of("multi_label", "literal", "density_ratio"),
        '"multi_label", "literal" for eq. 4 entry by entry, which gains less and decays sooner, or'
        ' "density_ratio", eq. 4 with log p(y) - log G(y) as the logit of D(y), p a softmax of'
        ' eq. 2; it is a test of authenticity with `selection="observed"` and `output_penalty=0`.',
    )
    generated_term: float = argument(
        1.0,
        number(least=0),
        "weight of generated annotations in the discriminator's loss; 0, a control, leaves a model"
        " of the authentic ones alone.",
    )
    two_step: bool = argument(
        True, flag, "False updates generator and classifier together, on all instances."
    )
    generator_learning_rate: float = argument(3e-4, _rate, "Adam's for the generator.")
    classifier_learning_rate: float = argument(1e-4, _rate, "Adam's for the classifier.")
    discriminator_learning_rate: float = argument(
        1e-3, _rate, "Adam's for the discriminative module."
    )
    batch_size: int = argument(
        100, whole(1), "instances in a batch of the generative module, each with all annotators."
    )
    pair_batch_size: int = argument(
        512, whole(1), "annotations in a batch of the discriminative module."
    )
    averaging: float = argument(
        0.8,
        number(least=0, below=1),
        "what predicts is a running average of the classifier's weights over epochs, which keeps"
        " this share of itself each epoch; 0 predicts with the classifier as it stands, as in the"
        " paper. It is only read: the game goes on with the present one.",
    )
    epochs: int = argument(12, whole(0), "of the game; 0 stops after DL-CL.")
    monitor: Literal["accuracy", "log_loss"] = argument(
        "accuracy",
        one_of("accuracy", "log_loss"),
        'which validation figure chooses the epoch, "accuracy" or "log_loss"; the start is a'
        " candidate too.",
    )
    collapse_drop: float = argument(
        0.1,
        number(above=0),
        "the guard stops when validation accuracy falls so far below the best one, or when the"
        " entropy of the predicted classes falls below half of what it was.",
    )
    refit: bool = argument(
        True,
        flag,
        "where `fit` gets no validation data, train again on all instances for the number of"
        " epochs that held-out instances chose.",
    )
    validation_fraction: float = argument(0.2, share, "the share held out for that choice.")
    measured: bool = argument(
        False,
        flag,
        "whether `information_` tells how much labels say of classes before and after the game.",
    )
    seed: int = argument(0, whole(0), "draws everything that is random.")

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
        self.annotator_table_ = annotator_table(data.annotations, self.annotator_features)
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
        """Trains DL-CL, the generator and the discriminative module, and plays the game for so many
        epochs.

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
        spec = self._spec()
        self._classifier = classifier = self._caches.classifiers.get(
            (
                data.features.shape,
                data.annotations.num_annotators,
                spec.num_classes,
                spec.classifier,
            ),
            self._make_classifier,
        )
        classifier.fit(data, self.seed, run.stage("classifier"))
        self.model_, self.pretraining_history_ = classifier.inference, classifier.estimator.history_
        self.mean_ = np.array(classifier.standardise.mean.numpy())
        self.scale_ = np.array(classifier.standardise.scale.numpy())
        self.confusion_matrices_ = classifier.estimator.confusion_matrices_
        self.generator_weights_ = []
        if not self.epochs:
            return Game()
        if self.taught_by == "crowd_layer":
            return self._go_on(data, run, epochs)

        from neucrowd_tf.crowding.generation import expected_confusions
        from neucrowd_tf.crowding.networks import Rates, build_networks
        from neucrowd_tf.training.state import read_variables

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
        self.confusion_matrices_ = expected_confusions(networks.game.generative)
        return game

    def _go_on(self, data: TrainingData, run: Run, epochs: int) -> Game:
        """Trains DL-CL further in place of the game: the control."""
        from neucrowd_tf.crowding.continued import ContinuedClassifier

        passes = self.passes if self.classifier_passes is None else self.classifier_passes
        given = (self._classifier, self.batch_size, passes, self.threshold, self.averaging)
        model = self._caches.networks.get(
            given,
            lambda: ContinuedClassifier(
                self._classifier,
                self.feature_shape_,
                batch_size=self.batch_size,
                passes=passes,
                threshold=self.threshold,
                averaging=self.averaging,
            ),
        )
        model.restart(data, self.classifier_learning_rate, self.seed)
        self.model_ = model.inference
        return best_of(
            model,
            model.counter,
            epochs=epochs,
            evaluate=self._evaluator(data),
            monitor=self.monitor,
            collapse_drop=self.collapse_drop,
            run=run.stage("game"),
        )

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
        return PretrainedClassifier(
            self.dl_cl(
                epochs=self.pretrain_epochs,
                batch_size=self.pretrain_batch,
                learning_rate=self.pretrain_learning_rate,
                seed=self.seed,
            )
        )

    def _spec(self) -> NetworkSpec:
        """Returns what the networks of this fit depend on."""
        from neucrowd_tf.crowding.networks import NetworkSpec

        given: dict[str, Any] = {
            "feature_shape": self.feature_shape_,
            "annotator_size": self.annotator_table_.shape[1],
            "num_classes": len(self.classes_),
            "classifier": (
                *(
                    tuple(value) if isinstance(value, list | np.ndarray) else value
                    for value in (
                        getattr(self, field.name)
                        for field in dataclasses.fields(ClassifierArguments)
                    )
                ),
                self.pretrain_epochs,
                self.pretrain_batch,
                self.pretrain_learning_rate,
            ),
        }
        named = (field.name for field in dataclasses.fields(NetworkSpec))
        return NetworkSpec(
            **given, **{name: getattr(self, name) for name in named if name not in given}
        )

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
                lambda x: model(x, training=False)["probabilities"], input_signature=signature
            )

        predict = self._caches.predictions.get(self.model_, compiled)
        return in_blocks(predict, features, ROWS if len(self.feature_shape_) == 1 else 256)

    def predict_annotators(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns how likely each annotator gives each label to each instance, `[M, R, C]`, at the
        noise's mean.
        """
        x = self._check_fitted(features)
        return self._generator().probabilities(x, len(self.classes_))

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
        x = self._check_fitted(features)
        generator = self._generator()
        names, classes = self.annotator_names_, self.classes_
        if annotations is None:
            empty = np.zeros(0, np.int32)
            annotations = Annotations(
                empty,
                empty,
                empty,
                num_instances=len(x),
                annotator_names=names,
                class_names=classes,
            )
        if annotations.num_instances != len(x):
            raise DataError(
                f"generate: expected annotations of {len(x)} instances, received"
                f" {annotations.num_instances}"
            )
        if (
            annotations.annotator_names.tolist() != names.tolist()
            or annotations.class_names.tolist() != classes.tolist()
        ):
            raise DataError(
                "generate: expected annotations by the annotators and with the classes that fit"
                " was given, received others"
            )
        columns = (
            np.arange(len(names))
            if annotators is None
            else np.unique(factorize(annotators, names, "annotator", sort=False)[0])
        )
        return generator.fill(x, annotations, columns, self.seed if seed is None else seed)

    def _generator(self) -> TrainedGenerator:
        """Returns the trained generator, rebuilt from its weights."""
        if not self.generator_weights_:
            raise UsageError(
                "CrowdInG: expected a fit with epochs of the game, received one of DL-CL alone,"
                " which has no generator"
            )
        from neucrowd_tf.crowding.generation import TrainedGenerator
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


def annotator_table(annotations: Annotations, features: ArrayLike | None) -> NDArray[np.float32]:
    """Returns what stands for the annotators `[R, e]`: their features, or one-hot vectors where
    there are none.

    Raises:
        DataError: not finite numbers with a row for each annotator.

    References:
        CrowdInG, section 3.2 (e_r).
    """
    if features is None:
        return np.eye(annotations.num_annotators, dtype=np.float32)
    try:
        table = np.asarray(features, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(
            f"annotator_features: expected numbers, received {features!r}"[:200]
        ) from None
    if table.ndim != 2 or len(table) != annotations.num_annotators or not np.isfinite(table).all():
        raise DataError(
            f"annotator_features: expected finite numbers of shape [{annotations.num_annotators},"
            f" *], received shape {table.shape}"
        )
    return table
