"""DL-CL+GAN: a crowd-layer classifier that generates annotations against a discriminator.

The generator is trained by policy gradient.
"""

from __future__ import annotations

import functools
from typing import Annotated

from neucrowd_tf.declare.declarations import estimator, fitted, number, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Floats32, Indices
from neucrowd_tf.methods.crowd_layers.common.head import certain_answers
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.training.batches import pipelines
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.learner import in_batches
from neucrowd_tf.training.loop import train
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import read_variables, write_variables
from neucrowd_tf.training.validation import hold_out

from .augmentation import DL_CL_PRESETS, DL_CL_SPACE, AugmentedDLCL
from .crowd_gan_model import CrowdGANModel


@register_method(
    "dl_cl_gan",
    summary="DL-CL+GAN: DL-CL as the generator of annotations against a discriminator",
    presets=DL_CL_PRESETS,
    space={**DL_CL_SPACE, "gan_learning_rate": (3e-5, 1e-4, 3e-4)},
)
@estimator
class DLCLGAN(AugmentedDLCL):
    """DL-CL+GAN: DL-CL trained further as a generator against a discriminator.

    The reward is the discriminator's probability that an annotation is authentic.

    Attributes:
        best_epoch_: the epoch of the game that was kept, by validation accuracy; None is the start.
        completed_: the training annotations; this method generates while it trains and keeps none.
        classifier_, confusion_matrices_, history_, n_iter_, rows_: see `AugmentedDLCL`; the history
            is the game's.

    References:
        CrowdInG, section 4.4.1; Wang et al. (2017), IRGAN, section 2.
    """

    gan_epochs: Annotated[int, whole(1), "epochs of the game."] = 10
    gan_learning_rate: Annotated[
        float, number(above=0), "of the generator, that is of the classifier and its crowd layer."
    ] = 1e-4
    passes: Annotated[int, whole(1), "of each of the two in an epoch."] = 5

    best_epoch_: int | None = fitted()

    def _fit(self, data: TrainingData, run: Run) -> None:
        self.completed_ = data.annotations
        if data.validation is not None:
            self._play(data, run, self.gan_epochs)
            return
        split, _ = hold_out(data, self.seed)
        self._play(split, run.stage("choice"), self.gan_epochs)
        history = self.history_
        best = self.best_epoch_
        self._play(data, run.stage("refit"), 0 if best is None else best + 1)
        self.history_ = history
        self.best_epoch_ = best

    def _play(self, data: TrainingData, run: Run, epochs: int) -> None:
        classifier = self._dl_cl()
        self.classifier_ = classifier
        self.best_epoch_ = None
        with classifier.reused():
            self._train_classifier(data, data.annotations, run.stage("observed"))
            model = CrowdGANModel(
                classifier.model_,
                data,
                passes=self.passes,
                learning_rate=self.gan_learning_rate,
                seed=self.seed,
            )
            game = in_batches(model, pipelines(model.orders), 1, run)
            stage = run.stage("game")
            if data.validation is None:
                history = train(model, game, epochs=epochs, run=stage)
            else:
                evaluate = functools.partial(_accuracy, classifier, *data.validation)
                start = evaluate()["accuracy"]
                before = read_variables(model.variables)
                history = train(
                    model, game, epochs=epochs, run=stage, evaluate=evaluate, monitor="accuracy"
                )
                if history.best_value > start:
                    self.best_epoch_ = history.best_epoch
                else:
                    write_variables(model.variables, before)
            self.history_ = history.logs
            self.n_iter_ = history.epochs
            self.confusion_matrices_ = certain_answers(model.head, len(self.classes_))


def _accuracy(classifier: CrowdLayer, features: Floats32, labels: Indices) -> dict[str, float]:
    predicted = classifier.predict_proba(features).argmax(axis=1)
    return {"accuracy": float((predicted == labels).mean())}
