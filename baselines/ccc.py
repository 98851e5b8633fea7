"""Coupled Confusion Correction: two crowd layers that correct each other's confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import registered
from neucrowd_tf.declare import estimator, number, share, whole
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.features import in_blocks
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray

MEMBERS = ("first", "second")
_EPOCH_SEEDS = 6151


@registered(
    "ccc",
    "Coupled Confusion Correction: two crowd layers that correct each other's confusion matrices",
)
@estimator
class CCC(AnnotatorEstimator):
    """Two classifiers behind crowd layers that correct each other's confusion matrices.

    After a warm-up, each epoch chooses the instances that each classifier is surest of and groups
    annotators by their matrices. Each step changes the matrices of a group so that the classifier,
    once it has learnt from them, does better on the other one's instances. Predictions are the mean
    of both.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the mean of both members' softmax rows.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Zhang et al. (2024), Coupled confusion correction.
    """

    # Between epochs it predicts raw features with what is trained.
    standardised_once: ClassVar[bool] = False
    reads_datasets: ClassVar[bool] = False

    warm_up: Annotated[
        float, number(least=0, most=1), "share of the epochs before corrections begin."
    ] = 0.2
    # Deviation: a thousand of CIFAR-10N's 50,000 instances are printed; a fiftieth of 700 songs is
    # one a class.
    meta_share: Annotated[
        float, share, "the meta set's size as a share of the instances, the same for each class."
    ] = 0.1
    groups: Annotated[int, whole(1), "groups of annotators that are corrected together."] = 30
    correction_rate: Annotated[
        float,
        number(least=0),
        "the largest correction of a step, as a share of the matrices' largest entry.",
    ] = 0.5

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.coupled import CoupledHead

        return CoupledHead(num_annotators, name="coupled")

    def _make_base(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Returns both classifiers as one model with two outputs."""
        import keras

        inputs = keras.Input(input_shape)
        members = [super(CCC, self)._make_base(input_shape, num_classes) for _ in range(2)]
        outputs = [
            keras.Model(member.input, member.output, name=name)(inputs)
            for name, member in zip(MEMBERS, members, strict=True)
        ]
        return keras.Model(inputs, outputs, name="base")

    def _graph(self, base: keras.Model, standardised: Any, head: Any) -> tuple[Any, Any]:
        import keras

        first, second = base(standardised)
        return head([first, second]), keras.layers.Average(dtype="float32")([first, second])

    def _annotation_model(self, data: TrainingData) -> tuple[Any, dict[str, Any]]:
        import keras

        from baselines.ccc_model import CoupledModel

        def coupled(network: Any, *parts: Any, **options: Any) -> Any:
            layers = [network.get_layer(name) for name in ("standardise", "base")]
            members = [layers[1].get_layer(name)(layers[0](network.input)) for name in MEMBERS]
            alone = [keras.Model(network.input, member) for member in members]
            return CoupledModel(network, *parts, members=alone, **options)

        groups = min(self.groups, data.annotations.num_annotators)
        rates = {"rate": self.correction_rate, "meta_batch": self.batch_size}
        return coupled, {"groups": groups, **rates}

    # Deviation: the authors' code has SGD with a rate that falls, and prints the epoch of the best
    # test accuracy; here are the crowd layers' optimizer and presets, and the last epoch.
    def _train(self, network: Any, data: TrainingData, run: Run) -> Any:
        from baselines.ccc_model import distilled, expertise_groups

        model, crowd = network.model, data.annotations.observed()
        size = round(self.meta_share * len(data.features))

        def prepare(epoch: int) -> Mapping[str, float]:
            if epoch < int(self.warm_up * self.epochs):
                model.stop_correcting()
                return {}
            outputs = in_blocks(
                lambda rows: np.stack(model.network(rows, training=False), axis=1),
                data.features,
                self._rows_at_once(),
            )
            first, second = (distilled(outputs[:, member], crowd, size) for member in range(2))
            seed = self.seed + _EPOCH_SEEDS * epoch
            groups = [
                expertise_groups(np.asarray(matrices), self.groups, seed)
                for matrices in network.model.head.matrices
            ]
            model.start_correcting([second, first], groups)  # each has the other's
            return {}

        return self._train_phase(network, model, self.epochs, data, run, epoch_start=prepare)

    def _confusion_matrices(self, network: Any, data: TrainingData) -> NDArray[np.float32]:
        corners = np.eye(len(self.classes_), dtype=np.float32)
        logs = np.asarray(network.model.head([corners, corners]), dtype=np.float32)
        return np.ascontiguousarray(np.exp(logs).transpose(1, 0, 2))
