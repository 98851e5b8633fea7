"""DL-CL+Self, DL-CL+GCN and DL-CL+InG, which CrowdInG is compared with in table 1.

They fill in missing annotations in other ways before DL-CL is trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import keras
import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, number, one_of, whole
from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Array, Fields, Floats32, Tensor
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.crowding import CrowdInG
from neucrowd_tf.methods.crowding.estimator import ClassifierArguments, completed
from neucrowd_tf.training.batches import step_numbers
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.features import in_blocks
from neucrowd_tf.training.learner import in_batches
from neucrowd_tf.training.loop import train
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import hold_out

from .graph_completion import GraphCompletion

_SETTINGS = settings_in(Path(__file__).with_suffix(".toml"))
DL_CL_PRESETS: dict[str, Fields] = _SETTINGS["presets"]
DL_CL_SPACE: dict[str, tuple[Tensor, ...]] = _SETTINGS["space"]


def _further(variant: str) -> dict[str, Fields]:
    """Returns DL-CL's presets with what a variant adds to them."""
    added = _SETTINGS["further"][variant]
    return {name: {**preset, **added.get(name, {})} for name, preset in DL_CL_PRESETS.items()}


@estimator
class AugmentedDLCL(ClassifierArguments, CrowdEstimator):
    """Base of DL-CL that is trained again on annotations which a subclass completed.

    The second training begins with fresh weights.

    Attributes:
        classifier_: the fitted `CrowdLayer`.
        completed_: `Annotations` of the training instances, with generated ones marked, that it was
            trained on at last.
        confusion_matrices_, history_, n_iter_: those of `classifier_`.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
    """

    requires_identities: ClassVar[bool] = True

    learning_rate: Annotated[float, number(above=0), "Adam's learning rate."] = 1e-3
    batch_size: Annotated[int, whole(1), "instances per step, each with all of its labels."] = 64
    epochs: Annotated[int, whole(1), "epochs of each training of DL-CL."] = 15
    monitor: Annotated[
        str | None,
        one_of("accuracy", "log_loss"),
        "None trains all epochs of DL-CL; else it keeps the best by validation data, or by the"
        " majority votes of a fifth that is held out where `fit` gets none.",
    ] = None

    def _dl_cl(self) -> CrowdLayer:
        """Returns an unfitted DL-CL."""
        shared = ("epochs", "batch_size", "learning_rate", "seed", "monitor")
        return self.dl_cl(**attributes_of(self, shared))

    def _complete(self, data: TrainingData, run: Run) -> Annotations:
        """Returns the training annotations with generated ones in their empty cells."""
        raise NotImplementedError

    def _fit(self, data: TrainingData, run: Run) -> None:
        self.classifier_ = self._dl_cl()
        if self.monitor is not None:
            data, _ = hold_out(data, self.seed)
        with self.classifier_.reused():
            self.completed_ = self._complete(data, run)
            self._train_classifier(data, self.completed_, run.stage("completed"))

    def _train_classifier(self, data: TrainingData, annotations: Annotations, run: Run) -> None:
        """Trains DL-CL from fresh weights; validation data choose the epoch, with `monitor`."""
        classifier = self.classifier_
        validation = None if self.monitor is None else data.named_validation
        classifier.fit(data.features, annotations, validation, run=run)
        self.rows_ = data.rows
        self.confusion_matrices_ = classifier.confusion_matrices_
        self.history_ = classifier.history_
        self.n_iter_ = classifier.n_iter_

    def _predict_proba(self, features: Floats32) -> Array:
        return self.classifier_.predict_proba(features)

    def _inference_model(self) -> keras.Model:
        return self.classifier_.inference_model()


@register_method(
    "dl_cl_self",
    summary="DL-CL+Self: DL-CL on annotations that another DL-CL completed",
    presets=DL_CL_PRESETS,
    space=DL_CL_SPACE,
)
@estimator
class DLCLSelf(AugmentedDLCL):
    """DL-CL+Self: DL-CL trained on annotations that another DL-CL completed.

    The predicted labels of the first model fill the empty cells.

    References:
        CrowdInG, section 4.4.1.
    """

    def _complete(self, data: TrainingData, run: Run) -> Annotations:
        self._train_classifier(data, data.annotations, run.stage("observed"))
        predict = self.classifier_.predict_annotators
        labels = in_blocks(lambda block: predict(block).argmax(axis=2), data.features)
        return completed(data.annotations, labels)


@register_method(
    "dl_cl_gcn",
    summary="DL-CL+GCN: DL-CL on what a graph convolution completed",
    presets=_further("gcn"),
    space=DL_CL_SPACE,
)
@estimator
class DLCLGCN(AugmentedDLCL):
    """DL-CL+GCN: DL-CL trained on annotations that a graph autoencoder completed.

    The graph is bipartite: annotators and instances.

    References:
        CrowdInG, section 4.4.1; van den Berg, Kipf, Welling (2017), Graph convolutional matrix
        completion.
    """

    graph_epochs: Annotated[
        int, whole(1), "training steps of the graph network, each on the whole graph."
    ] = 100

    def _complete(self, data: TrainingData, run: Run) -> Annotations:
        self._train_classifier(data, data.annotations, run.stage("observed"))
        standardise = self.classifier_.model_.get_layer("standardise")
        features = np.asarray(standardise(data.features)).reshape(len(data.features), -1)
        graph = GraphCompletion(features, data.annotations, seed=self.seed)
        stage = run.stage("graph")
        train(graph, in_batches(graph, step_numbers, 1, stage), epochs=self.graph_epochs, run=stage)
        return completed(data.annotations, graph.most_probable())


@register_method(
    "dl_cl_ing",
    summary="DL-CL+InG: DL-CL on what CrowdInG's generator completed",
    presets=_further("ing"),
    space=DL_CL_SPACE,
)
@estimator
class DLCLInG(AugmentedDLCL):
    """DL-CL+InG: DL-CL trained on annotations that CrowdInG's generator completed.

    References:
        CrowdInG, section 4.4.1.
    """

    crowding_epochs: Annotated[
        int,
        whole(1),
        "of CrowdInG's game; its other arguments are the defaults, and those of the classifier the"
        " same as DL-CL's.",
    ] = 12
    label_correlation: Annotated[bool, "CrowdInG's."] = True

    def _complete(self, data: TrainingData, run: Run) -> Annotations:
        crowding = CrowdInG(
            self.base,
            standardise=self.standardise,
            pretrain_epochs=self.epochs,
            pretrain_batch=self.batch_size,
            pretrain_learning_rate=self.learning_rate,
            label_correlation=self.label_correlation,
            epochs=self.crowding_epochs,
            seed=self.seed,
        )
        stage = run.stage("crowding")
        crowding.fit(data.features, data.annotations, data.named_validation, run=stage)
        return crowding.generate(data.features, data.annotations)
