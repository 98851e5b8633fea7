"""The networks of one CrowdInG fit, built and compiled once for a specification and used by every
fit of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import TYPE_CHECKING

import keras
import numpy as np

from neucrowd_tf.crowd_layers.layers import Standardise
from neucrowd_tf.crowding.classifier import PretrainedClassifier, averaged_classifier
from neucrowd_tf.crowding.crowd import Counter, Crowd
from neucrowd_tf.crowding.discriminative import Auxiliary, DiscriminativeModule
from neucrowd_tf.crowding.discriminator import Discriminator, label_cooccurrence, label_correlation
from neucrowd_tf.crowding.game import CrowdInGModel, DiscriminativePretraining, GeneratorPretraining
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.crowding.generator import Generator
from neucrowd_tf.crowding.learning import Settings
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.state import (
    read_variables,
    reinitialise,
    reset_optimizer,
    write_variables,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkSpec(Settings):
    """What compiled networks depend on: the data's shapes, and arguments of `CrowdInG` by its
    names. The number of instances is not in it, nor are seeds and learning rates, which each fit
    sets.

    Attributes:
        classifier: what the classifier depends on.
    """

    feature_shape: tuple[int, ...]
    annotator_size: int
    num_classes: int
    classifier: Hashable
    square_root: bool
    embedding_size: int
    generator_units: int
    noise_size: int
    instance_features: bool
    annotator_identities: bool
    equal_inputs: bool
    latent: str
    auxiliary_units: int
    label_correlation: bool
    information: float
    output_penalty: float
    discriminator_loss: str
    generated_term: float
    batch_size: int
    ratio_cap: float
    probability_floor: float
    generator_pretrain_batch: int


@dataclasses.dataclass(frozen=True)
class Rates:
    """Adam's learning rates."""

    generator_pretrain: float
    generator: float
    classifier: float
    discriminator: float


@dataclasses.dataclass(frozen=True)
class Networks:
    """All networks of a fit and what trains them; none of it depends on how many instances there
    are.

    Attributes:
        standardise: the layer that holds the features' mean and scale.
        inference: raw features to {"probabilities"} by the averaged classifier.
        game, generator_pretraining, discriminative_pretraining: compiled models that share their
            layers.
        counter: the pipeline of epoch numbers.
        equal_inputs: whether the generator's kernels are scaled to its inputs.
    """

    standardise: Standardise
    inference: keras.Model
    game: CrowdInGModel
    generator_pretraining: GeneratorPretraining
    discriminative_pretraining: DiscriminativePretraining
    counter: Counter
    equal_inputs: bool

    @property
    def generator(self) -> Generator:
        return self.game.generative.generator

    def restart(
        self,
        classifier: PretrainedClassifier,
        data: TrainingData,
        annotators: NDArray[np.float32],
        rates: Rates,
        seed: int,
    ) -> None:
        """Takes over DL-CL's classifier, and gives the other networks fresh weights, their learning
        rates and this fit's data.
        """
        game = self.game
        reinitialise(game, seed)
        for mine, theirs in (
            (game.generative.classifier, classifier.base),
            (game.averaged, classifier.base),
            (self.standardise, classifier.standardise),
        ):
            write_variables(mine.variables, read_variables(theirs.variables))
        for optimizer, rate in (
            (game.optimizer, rates.discriminator),
            (game.generator_optimizer, rates.generator),
            (game.classifier_optimizer, rates.classifier),
            (self.generator_pretraining.optimizer, rates.generator_pretrain),
        ):
            reset_optimizer(optimizer)
            optimizer.learning_rate.assign(rate)
        discriminator = game.discriminative.discriminator
        if discriminator.aggregate_labels:
            counts = label_cooccurrence(data.annotations)
            discriminator.correlation.assign(label_correlation(counts))
        game.crowd.set(classifier.standardised(data.features), data.annotations, annotators, seed)
        if self.equal_inputs:
            crowd, latent = game.crowd, game.generative.classify_all()
            self.generator.equalise(crowd.flat, crowd.annotators, latent)


def build_generator(spec: NetworkSpec) -> Generator:
    """Returns the generator of a specification, with weights that are still to be set."""
    return Generator(
        int(np.prod(spec.feature_shape)),
        spec.annotator_size,
        spec.num_classes,
        embedding_size=spec.embedding_size,
        hidden_units=spec.generator_units,
        noise_size=spec.noise_size,
        use_instances=spec.instance_features,
        use_annotators=spec.annotator_identities,
    )


def build_networks(spec: NetworkSpec, base: keras.Model) -> Networks:
    """Builds and compiles everything around copies of DL-CL's classifier."""
    classifier = keras.models.clone_model(base)
    averaged, standardise, inference = averaged_classifier(
        base, spec.feature_shape, spec.square_root
    )
    crowd = Crowd(spec.feature_shape, spec.annotator_size)
    discriminator = Discriminator(
        crowd.feature_size,
        spec.annotator_size,
        spec.num_classes,
        embedding_size=spec.embedding_size,
        aggregate_labels=spec.label_correlation,
    )
    auxiliary = Auxiliary(
        spec.num_classes,
        hidden_units=spec.auxiliary_units,
        label_size=spec.embedding_size,
        embedding_size=spec.embedding_size,
    )
    generative = GenerativeModule(
        classifier,
        build_generator(spec),
        crowd,
        batch_rows=spec.batch_size,
        ratio_cap=spec.ratio_cap,
        probability_floor=spec.probability_floor,
        by_class=spec.latent == "class",
    )
    discriminative = DiscriminativeModule(
        discriminator,
        auxiliary,
        crowd,
        information=spec.information,
        output_penalty=spec.output_penalty,
        literal=spec.discriminator_loss == "literal",
        density_ratio=spec.discriminator_loss == "density_ratio",
        generated_term=spec.generated_term,
    )
    game = CrowdInGModel(generative, discriminative, averaged, crowd, spec)
    # `restart` sets the learning rates.
    game.compile_networks(1e-3, 1e-3, 1e-3)
    return Networks(
        standardise=standardise,
        inference=inference,
        game=game,
        generator_pretraining=GeneratorPretraining(generative, spec.generator_pretrain_batch, 1e-3),
        discriminative_pretraining=DiscriminativePretraining(game),
        counter=Counter(),
        equal_inputs=spec.equal_inputs,
    )
