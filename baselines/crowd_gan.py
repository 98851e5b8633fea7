"""DL-CL+GAN: a crowd-layer classifier as the generator of annotations against a discriminator, by
policy gradient.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from baselines.augmentation import DL_CL_PRESETS, DL_CL_SPACE, AugmentedDLCL, check_numbers
from neucrowd_tf.crowding.holding_out import held_out
from neucrowd_tf.crowding.presets import PAPER
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from neucrowd_tf.crowd_layers import CrowdLayer


@register_method(
    "dl_cl_gan",
    summary=(
        "DL-CL+GAN: DL-CL as the generator of annotations against a discriminator, without"
        " information loss"
    ),
    requires_identities=True,
    presets=DL_CL_PRESETS,
    space={**DL_CL_SPACE, "gan_learning_rate": (3e-5, 1e-4, 3e-4)},
    paper=PAPER,
)
class DLCLGAN(AugmentedDLCL):
    """DL-CL+GAN: DL-CL, trained on the annotations, goes on as a generator whose reward is the
    discriminator's belief.

    Args:
        gan_epochs: of the game; 0 stops after DL-CL.
        gan_learning_rate: of the generator, that is of the classifier and its crowd layer.
        discriminator_learning_rate: of the discriminator, which is CrowdInG's without label
            correlation and auxiliary network.
        passes: of each of the two in an epoch.
        embedding_size: the discriminator's.
        pair_batch_size: annotations in a batch of the discriminator.
        validation_fraction: the share held out to choose the epoch where `fit` gets no validation
            data.
        base, ...: see `AugmentedDLCL`.

    Attributes:
        best_epoch_: the epoch of the game that was kept, by validation accuracy; None is the start.
        completed_: the training annotations; this method generates while it trains and keeps none.
        classifier_, confusion_matrices_, history_, n_iter_, rows_: see `AugmentedDLCL`; the history
            is the game's.

    References:
        CrowdInG, section 4.4.1; Wang et al. (2017), IRGAN, section 2.
    """

    best_epoch_: int | None

    def __init__(
        self,
        base: Any = "dense",
        *,
        gan_epochs: int = 10,
        gan_learning_rate: float = 1e-4,
        discriminator_learning_rate: float = 1e-3,
        passes: int = 5,
        embedding_size: int = 32,
        pair_batch_size: int = 512,
        validation_fraction: float = 0.2,
        hidden_units: Sequence[int] = (128,),
        activation: str = "relu",
        dropout: float = 0.5,
        batch_norm: bool = False,
        l2: float = 5e-4,
        square_root: bool = False,
        standardise: bool = True,
        learning_rate: float = 1e-3,
        batch_size: int = 64,
        epochs: int = 15,
        seed: int = 0,
    ) -> None:
        super().__init__(
            base,
            hidden_units=hidden_units,
            activation=activation,
            dropout=dropout,
            batch_norm=batch_norm,
            l2=l2,
            square_root=square_root,
            standardise=standardise,
            learning_rate=learning_rate,
            batch_size=batch_size,
            epochs=epochs,
            seed=seed,
        )
        self.gan_epochs = gan_epochs
        self.gan_learning_rate = gan_learning_rate
        self.discriminator_learning_rate = discriminator_learning_rate
        self.passes = passes
        self.embedding_size = embedding_size
        self.pair_batch_size = pair_batch_size
        self.validation_fraction = validation_fraction

    def _fit(self, data: TrainingData, run: Run) -> None:
        if self.gan_epochs != 0:  # none stops after DL-CL
            check_numbers(self, counts=("gan_epochs",))
        check_numbers(
            self,
            counts=("passes", "embedding_size", "pair_batch_size"),
            rates=("gan_learning_rate", "discriminator_learning_rate"),
            shares=("validation_fraction",),
        )
        # The game is one process: replicas would each play it whole.
        run = dataclasses.replace(run, strategy=None)
        epochs = self.gan_epochs
        if epochs and data.validation is None:
            self._play(
                held_out(data, self.validation_fraction, self.seed), run.stage("choice"), epochs
            )
            history, best = self.history_, self.best_epoch_
            self._play(data, run.stage("refit"), 0 if best is None else best + 1)
            self.history_, self.best_epoch_ = history, best
        else:
            self._play(data, run, epochs)
        self.completed_ = data.annotations

    def _play(self, data: TrainingData, run: Run, epochs: int) -> None:
        from baselines.crowd_gan_model import make_gan
        from neucrowd_tf.crowding.pretraining import Counter
        from neucrowd_tf.training.loop import train
        from neucrowd_tf.training.state import read_variables, write_variables

        classifier = self._dl_cl()
        self.best_epoch_ = None
        with classifier.reused():
            classifier._fit(data, run.stage("observed"))
            self._keep(classifier, data)
            if not epochs:
                return
            model = make_gan(self, classifier, data)
            before = read_variables(model.variables)
            start = (
                None if data.validation is None else self._accuracy(classifier, data)["accuracy"]
            )
            history = train(
                model,
                Counter(),
                epochs=epochs,
                steps_per_epoch=1,
                run=run.stage("game"),
                evaluate=None if start is None else lambda: self._accuracy(classifier, data),
                monitor=None if start is None else "accuracy",
            )
            if start is not None and (history.best_value is None or history.best_value <= start):
                write_variables(model.variables, before)
            elif start is not None:
                self.best_epoch_ = history.best_epoch
            self.history_, self.n_iter_ = history.logs, history.epochs
            self.confusion_matrices_ = classifier.confusion_matrices_ = (
                classifier._confusion_matrices(classifier._network, data)
            )

    def _accuracy(self, classifier: CrowdLayer, data: TrainingData) -> dict[str, float]:
        features, labels = data.validation  # type: ignore[misc]
        return {
            "accuracy": float((classifier._predict_proba(features).argmax(axis=1) == labels).mean())
        }
