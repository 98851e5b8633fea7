"""The networks of one CrowdInG fit, built and compiled once for a shape and used by every fit of
it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.crowd_layers.layers import Standardise
from neucrowd_tf.crowding.auxiliary import Auxiliary
from neucrowd_tf.crowding.crowd import Crowd, observed_cells
from neucrowd_tf.crowding.discriminative import DiscriminativeModule
from neucrowd_tf.crowding.discriminator import Discriminator, label_cooccurrence, label_correlation
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.crowding.generator import Generator
from neucrowd_tf.crowding.model import CrowdInGModel, Settings
from neucrowd_tf.crowding.pretraining import (
    Counter,
    DiscriminativePretraining,
    GeneratorPretraining,
)
from neucrowd_tf.crowding.selection import selection_counts
from neucrowd_tf.training.network_cache import NetworkCache
from neucrowd_tf.training.state import (
    read_variables,
    reinitialise,
    reset_optimizer,
    write_variables,
)

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray

    from neucrowd_tf.crowding.estimator import CrowdInG
    from neucrowd_tf.training.estimator import TrainingData
    from neucrowd_tf.training.run import Run


@dataclasses.dataclass
class Players:
    """All networks of a fit and what trains them; none of it depends on how many instances there
    are.

    Attributes:
        classifier: standardised features to probabilities; a copy of DL-CL's base.
        standardise: the layer that holds the features' mean and scale.
        inference: raw features to {"probabilities"} by the averaged classifier.
        game, generator_pretraining, discriminative_pretraining: compiled models that share their
            layers.
        crowd: the data.
        counter: the pipeline of epoch numbers.
    """

    classifier: keras.Model
    standardise: Standardise
    inference: keras.Model
    game: CrowdInGModel
    generator_pretraining: GeneratorPretraining
    discriminative_pretraining: DiscriminativePretraining
    crowd: Crowd
    counter: Counter

    @property
    def generator(self) -> Generator:
        return self.game.generative.generator

    def start(self, estimator: CrowdInG, start: Start, data: TrainingData) -> None:
        """Takes over DL-CL's classifier, and gives the other players fresh weights, their learning
        rates and this fit's data.
        """
        game = self.game
        reinitialise(game, estimator.seed)
        for classifier in (self.classifier, game.averaged):
            write_variables(classifier.variables, read_variables(start.network.base.variables))
        write_variables(
            self.standardise.variables, read_variables(start.network.standardise.variables)
        )
        for optimizer, rate in (
            (game.optimizer, estimator.discriminator_learning_rate),
            (game.generator_optimizer, estimator.generator_learning_rate),
            (game.classifier_optimizer, estimator.classifier_learning_rate),
            (self.generator_pretraining.optimizer, estimator.generator_pretrain_learning_rate),
        ):
            reset_optimizer(optimizer)
            optimizer.learning_rate = rate
        authentic = data.annotations.observed()
        discriminator = game.discriminative.discriminator
        if discriminator.aggregate_labels:
            discriminator.correlation.assign(label_correlation(label_cooccurrence(authentic)))
        counts = selection_counts(observed_cells(authentic))
        self.crowd.set(
            start.standardised(data.features),
            authentic,
            estimator.annotator_table_,
            counts,
            estimator.seed,
        )


def build_generator(
    estimator: CrowdInG, num_classes: int, feature_size: int, annotator_size: int
) -> Generator:
    """Returns the generator that an estimator's arguments describe."""
    made = Generator(
        num_classes,
        embedding_size=estimator.embedding_size,
        hidden_units=estimator.generator_units,
        noise_size=estimator.noise_size,
        use_instances=estimator.instance_features,
        use_annotators=estimator.annotator_identities,
        seed=estimator.seed,
    )
    made.build(feature_size, annotator_size)
    return made


def build_players(
    estimator: CrowdInG, start: Start, num_classes: int, annotator_size: int
) -> Players:
    """Builds and compiles everything around a copy of DL-CL's classifier."""
    import keras

    shape = tuple(int(size) for size in estimator.feature_shape_)
    classifier, averaged = (keras.models.clone_model(start.network.base) for _ in range(2))
    standardise = Standardise(estimator.square_root, name="standardise")
    inputs = keras.Input(shape, name="features")
    outputs = keras.layers.Activation("linear", dtype="float32", name="probabilities")(
        averaged(standardise(inputs))
    )
    inference = keras.Model(inputs, {"probabilities": outputs}, name="crowding")
    crowd = Crowd(shape, annotator_size)
    size, k = crowd.feature_size, estimator.embedding_size
    discriminator = Discriminator(
        num_classes,
        embedding_size=k,
        aggregate_labels=estimator.label_correlation,
        seed=estimator.seed,
    )
    discriminator.build(size, annotator_size)
    auxiliary = Auxiliary(
        num_classes,
        hidden_units=estimator.auxiliary_units,
        label_size=k,
        embedding_size=k,
        seed=estimator.seed,
    )
    auxiliary.build()
    generative = GenerativeModule(
        classifier,
        build_generator(estimator, num_classes, size, annotator_size),
        crowd,
        batch_rows=estimator.batch_size,
        ratio_cap=estimator.ratio_cap,
        probability_floor=estimator.probability_floor,
    )
    discriminative = DiscriminativeModule(
        discriminator,
        auxiliary,
        crowd,
        information=estimator.information,
        output_penalty=estimator.output_penalty,
        literal=estimator.discriminator_loss == "literal",
    )
    settings = Settings(
        threshold=estimator.threshold,
        passes=estimator.passes,
        batch_pairs=estimator.pair_batch_size,
        multiplier=estimator.multiplier,
        by_entropy=estimator.selection == "entropy",
        two_step=estimator.two_step,
        averaging=estimator.averaging,
    )
    game = CrowdInGModel(generative, discriminative, averaged, crowd, settings)
    game.compile_players(
        estimator.generator_learning_rate,
        estimator.classifier_learning_rate,
        estimator.discriminator_learning_rate,
    )

    return Players(
        classifier=classifier,
        standardise=standardise,
        inference=inference,
        game=game,
        generator_pretraining=GeneratorPretraining(
            generative,
            estimator.generator_pretrain_batch,
            estimator.generator_pretrain_learning_rate,
        ),
        discriminative_pretraining=DiscriminativePretraining(game),
        crowd=crowd,
        counter=Counter(),
    )


@dataclasses.dataclass
class Start:
    """DL-CL, whose compiled network is kept for the fits of one shape of data.

    Attributes:
        estimator: the crowd-layer classifier.
        inference: raw features to {"probabilities"}.
    """

    estimator: CrowdLayer
    inference: keras.Model | None = None

    def fit(self, estimator: CrowdInG, data: TrainingData, run: Run) -> None:
        """Trains the classifier from fresh weights."""
        import keras

        self.estimator.seed = estimator.seed
        for name in ("classes_", "feature_shape_", "n_features_in_"):
            setattr(self.estimator, name, getattr(estimator, name))
        before = self.estimator.__dict__.get("_network")
        self.estimator._fit(data, run)
        if self.network is not before or self.inference is None:
            whole = self.network.whole
            self.inference = keras.Model(
                whole.input, {"probabilities": whole.output["probabilities"]}, name="dl_cl"
            )

    @property
    def network(self) -> Any:
        return self.estimator.__dict__["_network"]

    def standardised(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns features as the classifier and the other players take them."""
        rows = range(0, len(features), 4096)
        return np.concatenate(
            [np.asarray(self.network.standardise(features[row : row + 4096])) for row in rows]
        )


def make_start(estimator: CrowdInG) -> Start:
    """Returns the DL-CL that an estimator's arguments describe."""
    starter = CrowdLayer(
        estimator.base,
        hidden_units=estimator.hidden_units,
        activation=estimator.activation,
        dropout=estimator.dropout,
        batch_norm=estimator.batch_norm,
        l2=estimator.l2,
        square_root=estimator.square_root,
        standardise=estimator.standardise,
        learning_rate=estimator.pretrain_learning_rate,
        batch_size=estimator.pretrain_batch,
        epochs=estimator.pretrain_epochs,
        seed=estimator.seed,
    )
    starter._networks = NetworkCache()
    return Start(starter)
