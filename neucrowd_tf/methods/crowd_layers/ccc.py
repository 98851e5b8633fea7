"""Coupled Confusion Correction: two crowd layers that correct each other's confusion matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import keras
import numpy as np
from keras import ops
from sklearn.cluster import KMeans

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, number, share, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import (
    Array,
    Codes32,
    Fields,
    Floats32,
    Indices,
    Layer,
    Network,
    Shape,
    Tensor,
)
from neucrowd_tf.errors import one_at_a_time
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    of_annotators,
    product,
    stacked_identity,
)
from neucrowd_tf.methods.crowd_layers.common.meta_correction import CoupledModel
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.prediction import rows_at_once
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.features import in_blocks
from neucrowd_tf.training.run import Run


@keras.saving.register_keras_serializable("neucrowd_tf")
class CoupledHead(AnnotatorHead):
    """Log answers from what two classifiers say, `[p [B, C], q [B, C]]`.

    They are the logarithm of the mean of `softmax(p W_k)` and `softmax(q V_k)`.

    References:
        Zhang et al. (2024), Coupled confusion correction: learning from crowds with sparse
        annotations.
    """

    log_probabilities = True
    first: Tensor
    second: Tensor

    def build(self, input_shape: Shape) -> None:
        classes = int(input_shape[0][-1])
        self.annotator_weight("first", (classes, classes), stacked_identity(classes))
        self.annotator_weight("second", (classes, classes), stacked_identity(classes))

    @property
    def matrices(self) -> tuple[Tensor, Tensor]:
        """Both classifiers' matrices, `[R, C, C]` each."""
        return self.first, self.second

    def member_logits(
        self, inputs: Tensor, matrices: Sequence[Tensor], cells: Cells | None
    ) -> list[Tensor]:
        """Returns both members' logits `[B, R, C]`, or `[K, C]` of K cells.

        Args:
            inputs: `[p [B, C], q [B, C]]`.
            matrices: `[R, C, C]` of each member.
            cells: those whose logits are needed, or None for all.
        """
        logits = []
        for p, member in zip(inputs, matrices, strict=True):
            p = ops.cast(p, self.compute_dtype)
            logits.append(product(p, of_annotators(member, cells), cells))
        return logits

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        first, second = self.member_logits(inputs, self.matrices, cells)
        return ops.logaddexp(ops.log_softmax(first), ops.log_softmax(second)) - math.log(2.0)


def distilled(probabilities: Array, annotations: Annotations, size: int) -> tuple[Indices, Indices]:
    """Returns the instances and labels of a meta set.

    These are, of each class, the `size // C` instances with the smallest cross-entropy among those
    that an annotator gave this class.

    Args:
        probabilities: `[N, C]` of one classifier.
        annotations: N instances.
        size: of the set; each class has at least one instance where it has any label.

    References:
        Zhang et al. (2024), the meta set, as in the authors' code.
    """
    # Deviation: Coupled Confusion Correction. Paper: An instance that several annotators gave a
    # class may be in the meta set as often. Here: Each instance is in it once a class. Why: Repeats
    # only weigh frequent labels more. Effect: not measured.
    classes = annotations.num_classes
    rows: list[Indices] = []
    for code in range(classes):
        named = np.unique(annotations.instances[annotations.labels == code]).astype(np.int64)
        order = np.argsort(-probabilities[named, code], kind="stable")
        rows.append(named[order[: max(1, size // classes)]])
    return np.concatenate(rows), np.repeat(np.arange(classes), list(map(len, rows)))


def expertise_groups(matrices: Array, groups: int, seed: int) -> Codes32:
    """Returns the group `[R]` of each annotator, from k-means over the matrices `[R, C, C]`."""
    flat = matrices.reshape(len(matrices), -1)
    distinct = len(np.unique(flat, axis=0))
    means = KMeans(min(groups, distinct), n_init=1, random_state=seed % 2**31)
    with one_at_a_time():
        return np.asarray(means.fit_predict(flat), dtype=np.int32)


MEMBERS = ("first", "second")
_EPOCH_SEEDS = 6151  # the seeds of the epochs' groups lie this far apart


@register_method(
    "ccc",
    summary="Coupled Confusion Correction: two crowd layers that correct each other's confusion"
    " matrices",
    **layer_fields(),
)
@estimator
class CCC(CrowdLayerBase):
    """Two classifiers behind crowd layers that correct each other's confusion matrices.

    After a warm-up, each epoch chooses the instances that each classifier is surest of and groups
    annotators by their matrices. Each step changes the matrices of a group so that the classifier,
    once it has learnt from them, does better on the other one's instances. Predictions are the mean
    of both.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the mean of both members' softmax rows.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Zhang et al. (2024), Coupled confusion correction.
    """

    # Between epochs it predicts raw features with what is trained.
    standardised_once: ClassVar[bool] = False
    reads_batches: ClassVar[bool] = False

    warm_up: Annotated[
        float, number(least=0, most=1), "share of the epochs before the first correction."
    ] = 0.2
    # Deviation: Coupled Confusion Correction. Paper: A meta set of 1,000 of the 50,000 instances of
    # CIFAR-10N. Here: A tenth of the instances (`meta_share`). Why: A fiftieth of 700 songs is one
    # a class. Effect: not measured.
    meta_share: Annotated[
        float, share, "the meta set's size as a share of the instances, the same for each class."
    ] = 0.1
    groups: Annotated[int, whole(1), "groups of annotators, corrected together."] = 30
    correction_rate: Annotated[
        float,
        number(least=0),
        "the largest correction of a step, as a share of the matrices' largest entry.",
    ] = 0.5

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return CoupledHead(num_annotators, name="coupled")

    def _make_base(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Returns both classifiers as one model with two outputs."""
        inputs = keras.Input(input_shape)
        outputs = []
        for name in MEMBERS:
            member = super()._make_base(input_shape, num_classes)
            outputs.append(keras.Model(member.input, member.output, name=name)(inputs))
        return keras.Model(inputs, outputs, name="base")

    def _graph(self, base: keras.Model, standardised: Tensor, head: Layer) -> tuple[Tensor, Tensor]:
        members = base(standardised)
        return head(members), keras.layers.Average(dtype="float32")(members)

    def _annotation_model(self, data: TrainingData) -> tuple[Tensor, Fields]:
        def coupled(network: Network, *arguments: Any, **options: Any) -> Tensor:
            base = network.get_layer("base")
            standardised = network.get_layer("standardise")(network.input)
            members = []
            for name in MEMBERS:
                members.append(keras.Model(network.input, base.get_layer(name)(standardised)))
            return CoupledModel(network, *arguments, members=members, **options)

        return coupled, {
            "groups": min(self.groups, data.annotations.num_annotators),
            "rate": self.correction_rate,
            "meta_batch": self.batch_size,
        }

    # Deviation: Coupled Confusion Correction. Paper: SGD with momentum, a rate divided by 10 at the
    # thirtieth of 60 epochs, 10 of them warm-up; the epoch with the best test accuracy is
    # published. Here: The crowd layers' optimizer and presets, a fifth of the epochs warm-up
    # (`warm_up`), the last epoch. Why: The same base and steps for every method; test labels choose
    # nothing. Effect: not measured.
    def _train(self, network: CompiledNetwork, data: TrainingData, run: Run) -> Network:
        model = network.model
        crowd = data.annotations.observed()
        size = round(self.meta_share * len(data.features))

        def prepare(epoch: int) -> Mapping[str, float]:
            if epoch < int(self.warm_up * self.epochs):
                model.stop_correcting()
                return {}
            outputs = in_blocks(
                lambda rows: np.stack(model.network(rows, training=False), axis=1),
                data.features,
                rows_at_once(self.feature_shape_),
            )
            first = distilled(outputs[:, 0], crowd, size)
            second = distilled(outputs[:, 1], crowd, size)
            seed = self.seed + _EPOCH_SEEDS * epoch
            groups = []
            for matrices in model.head.matrices:
                groups.append(expertise_groups(np.asarray(matrices), self.groups, seed))
            model.start_correcting([second, first], groups)  # each member has the other's meta set
            return {}

        return self._train_phase(network, model, self.epochs, data, run, epoch_start=prepare)

    def _confusion_matrices(self, network: CompiledNetwork, data: TrainingData) -> Floats32:
        corners = np.eye(len(self.classes_), dtype=np.float32)
        logs = np.asarray(network.model.head([corners, corners]), dtype=np.float32)
        return np.ascontiguousarray(np.exp(logs).transpose(1, 0, 2))
