"""CrowdInG, a classifier that learns from authentic annotations and from generated ones."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import keras
import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, fitted, number, one_of, share, whole
from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.declare.types import Array, Fields, Floats32, Integers, Network, Tensor
from neucrowd_tf.errors import DataError, UsageError, warn
from neucrowd_tf.methods.crowd_layers.common.network import (
    CompiledNetwork,
    float32_output,
    standardise_layer,
)
from neucrowd_tf.methods.crowd_layers.common.prediction import compiled_output, rows_at_once
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.crowding.game import Game
from neucrowd_tf.methods.crowding.networks import fold
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.features import blocks_of, in_blocks
from neucrowd_tf.training.learner import in_turns
from neucrowd_tf.training.loop import train
from neucrowd_tf.training.networks import BASES, Kinds, configuration, network_of
from neucrowd_tf.training.reuse import NetworkCache, arguments_of
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import (
    from_snapshot,
    load_snapshot,
    read_variables,
    snapshot,
    write_variables,
)
from neucrowd_tf.training.validation import hold_out, validation_figures

if TYPE_CHECKING:
    from neucrowd_tf.datasets import CrowdDataset

_PAIRS_AT_ONCE = 1 << 17
# Pairs up to which a turn stores parts of the generator's hidden layer (64 MB) for all its passes.
PRECOMPUTED = 1 << 18
_GENERATED = 0x6E  # the number of the draws of `generate`
# Arguments of which the generator is made.
_GENERATOR = ("embedding_size", "noise_size", "instance_features", "annotator_identities")
# Attributes that a refit keeps from the choice of its epoch.
_CHOICE = ("history_", "start_", "n_iter_", "best_epoch_", "collapsed_")
_rate = number(above=0)


@estimator
class ClassifierArguments:
    """The arguments of DL-CL's network."""

    nested: ClassVar[Mapping[str, Kinds]] = {"base": BASES}

    base: Annotated[Any, network_of(BASES), "the classifier, as for `CrowdLayer`."] = (
        dataclasses.field(default="dense", kw_only=False)
    )
    standardise: Annotated[
        bool | Literal["square_root"], "scaling of the features, as for `CrowdLayer`."
    ] = True

    def dl_cl(self, **training: Any) -> CrowdLayer:
        """Returns the untrained DL-CL, with arguments of `CrowdLayer` for its training."""
        return CrowdLayer(self.base, standardise=self.standardise, **training)

    def _check_together(self) -> None:
        if not callable(self.base):
            configuration("base", self.base, BASES)


@estimator
class CrowdInG(ClassifierArguments, CrowdEstimator):
    """A classifier and a generator of annotations against a discriminator and an auxiliary network.

    The classifier is first trained through a crowd layer (DL-CL), the generator on the authentic
    annotations, the discriminative module against that generator. Then each epoch of the game
    trains the discriminative module on authentic and selected generated annotations, the generator
    on instances of which the classifier is sure, and the classifier on the others.

    Annotations that are marked as generated are left out.

    Attributes:
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_: a dict with a list for each logged value of the game, one entry per epoch.
        n_iter_: epochs of the game; `best_epoch_` (from 0) is the selected one, None if the start
            is at least as good.
        start_: validation figures of the start, or None without validation data.
        collapsed_: whether the guard stopped training.
        confusion_matrices_: `[R, C true, C observed]`: the generator's mean answers on training
            instances after the game, weighted by the classifier's probability of each class. With
            our loss the game moves the generator away from the annotations, so these matrices do
            not measure annotators. Without a game they are the crowd layer's, which do.
        informed_: measures of the auxiliary network after the game, see `Game.informed`.
        annotator_names_, generator_weights_, generator_arguments_: inputs of `generate`.
        rows_: `[N]` positions of the instances trained on among those passed to `fit`.

    References:
        Chu and Wang (2021), Improve learning from crowds via generative augmentation, KDD.
    """

    requires_identities: ClassVar[bool] = True
    learns_from_generated: ClassVar[bool] = False

    snapshot = snapshot
    from_snapshot = from_snapshot
    load_snapshot = load_snapshot

    pretrain_epochs: Annotated[int, whole(1), "epochs of DL-CL."] = 15
    pretrain_batch: Annotated[int, whole(1), "DL-CL's batch size."] = 64
    pretrain_learning_rate: Annotated[float, _rate, "DL-CL's learning rate."] = 1e-3
    game_pretrain_epochs: Annotated[
        int, whole(0), "epochs of the generator, then of discriminator and Q, before the game."
    ] = 10
    embedding_size: Annotated[int, whole(1), "length of all embeddings."] = 32
    noise_size: Annotated[int, whole(1), "length of the noise vector."] = 8
    information: Annotated[float, number(least=0), "lambda of eq. 4; 0 is CrowdG."] = 0.5
    threshold: Annotated[float, share, "t, the share of instances for the generator's turn."] = 0.5
    passes: Annotated[int, whole(1), "number of inner passes per turn."] = 5
    multiplier: Annotated[
        float | Literal["mean", "search"],
        one_of("mean", "search") | number(),
        'mu of eqs. 5 and 6: a number, "mean" (of the losses) or "search" (the best of five).',
    ] = "mean"
    selection: Annotated[
        Literal["entropy", "random"],
        'choice of cells for the discriminator: "entropy" (section 3.3.1) or "random" (CrowdInGR).',
    ] = "entropy"
    instance_features: Annotated[bool, "input of the generator; False is CrowdInGU."] = True
    annotator_identities: Annotated[bool, "input of the generator; False is CrowdInGI."] = True
    label_correlation: Annotated[bool, "whether the discriminator has the LCA decoder."] = True
    two_step: Annotated[bool, "False updates generator and classifier together."] = True
    generator_learning_rate: Annotated[float, _rate, "the generator's learning rate."] = 3e-4
    classifier_learning_rate: Annotated[float, _rate, "the classifier's learning rate."] = 1e-4
    discriminator_learning_rate: Annotated[float, _rate, "discriminator and Q's rate."] = 1e-3
    batch_size: Annotated[int, whole(1), "batch size of generator and classifier."] = 100
    averaging: Annotated[
        float,
        number(least=0, below=1),
        "decay per epoch of the running average of the classifier's weights that predicts; 0"
        " predicts with the current weights.",
    ] = 0.8
    epochs: Annotated[int, whole(0), "number of epochs of the game; 0 stops after DL-CL."] = 12
    collapse_drop: Annotated[
        float,
        number(above=0),
        "training stops if validation accuracy falls this far below the best one. It also stops"
        " if the entropy of the predicted classes falls below half of its first value. 1 switches"
        " both rules off.",
    ] = 0.1
    refit: Annotated[
        bool,
        "whether a fit without validation data trains again on all instances, for the number of"
        " epochs that held-out instances chose.",
    ] = True

    history_: dict[str, list[float]] = fitted()
    start_: dict[str, float] | None = fitted()
    best_epoch_: int | None = fitted()
    generator_weights_: list[Array] = fitted()
    generator_arguments_: Fields = fitted()
    informed_: dict[str, float] = fitted()

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        if data.annotations.generated.any():
            data = authentic_data(data)
        self.rows_ = data.rows
        self.annotator_names_ = data.annotations.annotator_names
        if data.validation is not None or not self.epochs:
            self._train(data, run, self.epochs)
        elif self.refit:
            self._choose_and_refit(data, run)
        else:
            self._train(hold_out(data, self.seed)[0], run, self.epochs)
        if self.collapsed_:
            problem = "CrowdInG collapsed in training. The best epoch before is used."
            warn(problem, UserWarning, stacklevel=4)

    def _choose_and_refit(self, data: TrainingData, run: Run) -> None:
        """Chooses the epoch on held-out instances and trains on all; keeps the choice's history."""
        self._train(hold_out(data, self.seed)[0], run.stage("choice"), self.epochs)
        choice = {name: getattr(self, name) for name in _CHOICE}
        epochs = 0
        if self.best_epoch_ is not None:
            epochs = self.best_epoch_ + 1
        self._train(data, run.stage("refit"), epochs)
        if self.collapsed_:  # without validation data only the start is left
            choice |= {"best_epoch_": None, "collapsed_": True}
        for name, value in choice.items():
            setattr(self, name, value)

    def _train(self, data: TrainingData, run: Run, epochs: int) -> None:
        """Trains DL-CL, then the other networks, and plays so many epochs of the game.

        References:
            CrowdInG, section 3.3.3.
        """
        if self.epochs and len(data.features) < 2:
            raise DataError(
                f"CrowdInG: expected two instances or more to train on, received {len(data.rows)}"
            )
        network = self._pretrain(data, run.stage("classifier"))
        self.history_ = {}
        self.start_ = None
        self.n_iter_ = 0
        self.best_epoch_ = None
        self.collapsed_ = False
        if not self.epochs:
            self.model_ = self._classifier.inference_model()
            return
        game = self._game(network, data)
        for stage in ("generator", "discriminator"):
            game.begin(stage)
            epochs_before = self.game_pretrain_epochs
            train(game, in_turns(game.play), epochs=epochs_before, run=run.stage(stage))
        self._play(game, epochs, data, run.stage("game"))
        self.generator_weights_ = read_variables(game.generator.variables)
        self.generator_arguments_ = attributes_of(self, _GENERATOR)
        self.informed_ = game.informed()
        self.confusion_matrices_ = game.confusion_matrices()

    def _dl_cl(self) -> CrowdLayer:
        """Returns the untrained DL-CL that the game starts from."""
        return self.dl_cl(
            epochs=self.pretrain_epochs,
            batch_size=self.pretrain_batch,
            learning_rate=self.pretrain_learning_rate,
            seed=self.seed,
        )

    def _pretrain(self, data: TrainingData, run: Run) -> Network:
        """Trains DL-CL and returns its network."""
        self._classifier = classifier = self._dl_cl()
        with classifier.reused(self._caches["classifier"]):
            classifier.fit(data.features, data.annotations, run=run)
            network = classifier.network
        self.confusion_matrices_ = classifier.confusion_matrices_
        self.generator_weights_ = []
        self.informed_ = {}
        return network

    def _play(self, game: Network, epochs: int, data: TrainingData, run: Run) -> None:
        """Plays the game and leaves it at its best epoch, or at its start if none is better."""
        game.begin("game")

        def evaluate() -> dict[str, float]:
            features, labels = data.validation  # type: ignore[misc]
            return validation_figures(self._predict_proba(features), labels, auc=False)

        def stop(logs: Mapping[str, list[float]]) -> bool:
            return collapsed(logs, self.start_, self.collapse_drop)

        options: Fields = {}
        if data.validation is not None:
            self.start_ = evaluate()
            options = {"evaluate": evaluate, "monitor": "accuracy", "tie_break": "log_loss"}
        before = read_variables(game.variables)
        history = train(
            game, in_turns(game.play), epochs=epochs, run=run, stop_when=stop, **options
        )
        self.history_ = history.logs
        self.n_iter_ = history.epochs
        self.collapsed_ = stop(history.logs)
        if self.start_ is None:
            is_better = not self.collapsed_
        else:
            is_better = history.best_value > self.start_["accuracy"]
        if is_better:
            self.best_epoch_ = history.best_epoch
        else:
            write_variables(game.variables, before)

    def evaluation(self, dataset: CrowdDataset) -> Fields:
        """Returns measures of the generated labels after the game, for evaluation.json.

        Returns:
            `information_loss` and `auxiliary_accuracy`, see `Game.informed`; with true labels of
                training instances also `generated_accuracy`, the share of right labels among those
                that the generator draws for them. Empty without a game.
        """
        if not self.generator_weights_:
            return {}
        figures = dict(self.informed_)
        if dataset.truth is not None and (rows := np.flatnonzero(dataset.truth >= 0)).size:
            drawn = self.generate(dataset.features[rows])
            right = drawn.labels == dataset.truth[rows][drawn.instances]
            figures["generated_accuracy"] = float(right.mean())
        return figures

    def watched(self, stage: str) -> Tensor:
        """Returns what predicts the classes during a stage of the fit, None in other stages."""
        name = stage.rpartition("/")[2]
        if name == "classifier":
            return self._classifier
        if name == "game":
            return self
        return None

    # ----------------------------------------------------------------- compiled networks

    @functools.cached_property
    def _caches(self) -> dict[str, NetworkCache]:
        return defaultdict(NetworkCache)

    @contextlib.contextmanager
    def reused(self, cache: NetworkCache | None = None) -> Iterator[None]:
        """Lets fits of several estimators share compiled networks; those of one always do.

        See `neucrowd_tf.training.reuse.reused`.
        """
        if cache is not None:
            name = type(self).__name__
            self._caches = cache.get((name,), lambda: defaultdict(NetworkCache))
        yield

    def _game_class(self) -> type[Game]:
        """Returns the class of the game, which a subclass may change."""
        return Game

    def _spec(self) -> tuple[Hashable, ...]:
        """Returns what compiled networks may depend on: the data's shape, all but the seed."""
        shape = (self.feature_shape_, len(self.annotator_names_), len(self.classes_))
        return shape + arguments_of(self)

    def _game(self, network: CompiledNetwork, data: TrainingData) -> Network:
        """Returns the game of this fit, which starts from DL-CL's network."""
        precompute = math.prod(data.annotations.shape) <= PRECOMPUTED

        def build() -> tuple[Tensor, Tensor, keras.Model]:
            """Returns the game, the layer that standardises, and the model that predicts."""
            averaged = keras.models.clone_model(network.base)
            standardise = standardise_layer(self.standardise)
            inputs = keras.Input(self.feature_shape_, name="features")
            outputs = float32_output("probabilities", averaged(standardise(inputs)))
            model = keras.Model(inputs, {"probabilities": outputs}, name="crowding")
            game = self._game_class()(
                self,
                network.base,
                averaged,
                self.feature_shape_,
                len(self.annotator_names_),
                precompute=precompute,
            )
            return game, standardise, model

        spec = (*self._spec(), precompute)
        game, standardise, self.model_ = self._caches["game"].get(spec, build)
        write_variables(standardise.variables, read_variables(network.standardise.variables))
        hparams = type(self)(**self.get_params(deep=False))
        features = in_blocks(network.standardise, data.features)
        game.restart(hparams, network.base, features, data.annotations)
        return game

    def _inference_model(self) -> Network:
        """Returns a copy of `model_`, because a later fit trains the same networks."""
        model = keras.models.clone_model(self.model_)
        write_variables(model.variables, read_variables(self.model_.variables))
        return model

    def _generator(self) -> Network:
        """Returns the generator of the latest fit, rebuilt from its weights."""
        if not self.generator_weights_:
            raise UsageError(
                "CrowdInG: epochs=0 trains DL-CL only, which has no generator. Fit with epochs of"
                " at least 1."
            )
        arguments = SimpleNamespace(**self.generator_arguments_)  # others may be set by now
        sizes = (math.prod(self.feature_shape_), len(self.annotator_names_), len(self.classes_))
        generator = self._game_class().make_generator(arguments, *sizes)
        write_variables(generator.variables, self.generator_weights_)
        return generator

    # ----------------------------------------------------------------- use

    def _predict_proba(self, features: Floats32) -> Array:
        shape = self.feature_shape_
        make = functools.partial(compiled_output, self.model_, "probabilities", shape)
        predict = self._caches["predictions"].get(self.model_, make)
        return in_blocks(predict, features, rows_at_once(shape))

    @property
    def _rows_at_once(self) -> int:
        return max(1, _PAIRS_AT_ONCE // len(self.annotator_names_))

    def _generator_inputs(self, block: Floats32) -> tuple[Floats32, Array, Floats32]:
        """Returns what the generator takes of a block of raw features.

        These are features `[B, d]`, z-hat `[B, C]` and the annotators' one-hot vectors `[R, R]`.
        """
        flat = np.asarray(self.model_.get_layer("standardise")(block))
        flat = flat.reshape(len(block), math.prod(self.feature_shape_))
        annotators = np.eye(len(self.annotator_names_), dtype=np.float32)
        return flat, self._predict_proba(block), annotators

    def predict_annotators(self, features: ArrayLike) -> Floats32:
        """Returns the probability of each annotator's labels at the noise's mean, `[M, R, C]`.

        Args:
            features: `[M, ...]` raw features.
        """
        x = self._check_fitted(features)
        generator = self._generator()

        def answers(block: Floats32) -> Tensor:
            return generator.answers(*self._generator_inputs(block))

        return in_blocks(answers, x, self._rows_at_once)

    def generate(self, features: ArrayLike, annotations: Annotations | None = None) -> Annotations:
        """Draws annotations from the generator, marked as generated (`Annotations.generated`).

        Args:
            features: `[M, ...]` raw features.
            annotations: of these M instances, by the annotators and classes of `fit`: they stay,
                and only empty cells are filled. By default there are no such labels.

        Returns:
            `Annotations` of M instances; any method can train on them.

        Raises:
            DataError: annotations of other instances, annotators or classes.
        """
        x = self._check_fitted(features)
        generator = self._generator()
        no_codes = np.zeros(0, np.int32)
        unlabelled = Annotations(
            no_codes,
            no_codes,
            no_codes,
            num_instances=len(x),
            annotator_names=self.annotator_names_,
            class_names=self.classes_,
        )
        if annotations is None:
            annotations = unlabelled
        names = (annotations.annotator_names, annotations.class_names)
        fitted_names = (self.annotator_names_, self.classes_)
        same_names = all(map(np.array_equal, names, fitted_names))
        if annotations.num_instances != len(x) or not same_names:
            raise DataError(
                f"generate: expected annotations of {len(x)} instances, by the annotators and with"
                " the classes that fit was given, received others"
            )
        labels = np.empty(annotations.shape, np.int32)
        for places, block in blocks_of(x, self._rows_at_once):
            seed = fold([self.seed % 2**31, _GENERATED], places.start)
            labels[places] = generator.draw(*self._generator_inputs(block), seed).labels
        return completed(annotations, labels)


def completed(annotations: Annotations, labels: Integers) -> Annotations:
    """Returns annotations whose empty cells have generated labels, those of a matrix `[N, R]`."""
    rows, columns = np.nonzero(~annotations.cells())
    return annotations.with_generated(rows, columns, labels[rows, columns])


def authentic_data(data: TrainingData) -> TrainingData:
    """Returns the data without generated annotations and without instances of only these."""
    authentic = data.annotations.observed()
    rows = np.flatnonzero(authentic.annotated)
    if not len(rows):
        raise DataError("annotations: expected authentic ones, received only generated ones")
    return dataclasses.replace(
        data, features=data.features[rows], annotations=authentic[rows], rows=data.rows[rows]
    )


def collapsed(
    logs: Mapping[str, list[float]], start: Mapping[str, float] | None, drop: float
) -> bool:
    """Returns whether the classifier lost its accuracy, or predicts ever fewer classes.

    Args:
        logs: of the game so far.
        start: validation figures before it, or None.
        drop: largest fall of accuracy below the best one. The entropy of the predicted classes may
            fall to half of its first value. From 1 on only an entropy that is not finite counts.
    """
    spread = logs.get("predicted_class_entropy", [])
    if drop >= 1:
        return bool(spread) and not np.isfinite(spread[-1])
    accuracies = logs.get("val_accuracy", [])
    if start is not None and accuracies:
        best = max(start["accuracy"], *accuracies)
        if accuracies[-1] < best - drop:
            return True
    return bool(spread) and not spread[-1] >= 0.5 * spread[0]
