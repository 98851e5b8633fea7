"""What CrowdLayer, Anno-Reg and Weighted Doctor Net share: a classifier with annotator heads as an
estimator.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from neucrowd_tf.crowd_layers.network import ClassifierEstimator, Network
from neucrowd_tf.errors import UsageError
from neucrowd_tf.training.arguments import check_number
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras
    from numpy.typing import ArrayLike, NDArray

_CELLS_AT_ONCE = 1 << 23


@dataclasses.dataclass
class CrowdNetwork(Network):
    """A compiled network with annotator heads; see `Network`.

    Attributes:
        head: the annotator head.
    """

    head: Any = None


class AnnotatorEstimator(ClassifierEstimator):
    """A classifier trained through annotator heads; a subclass makes the head in `_head`.

    Attributes:
        model_: Keras model from raw features to {"probabilities" `[None, C]`, "annotators" `[None,
            R, C]`}.
        confusion_matrices_: `[R, C true, C observed]` float32, each row a distribution.
        history_: a dict with a list for each logged value, one entry an epoch.
        n_iter_: epochs trained; `best_epoch_` (from 0) is the one that was kept where `monitor`
            chose it, else None.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
    """

    requires_identities: ClassVar[bool] = True

    imbalance: str
    gamma: float
    beta: float
    confusion_matrices_: NDArray[np.float32]

    # ----------------------------------------------------------------- what a subclass provides

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        """Returns the annotator head: class probabilities `[B, C]` to logits `[B, R, C]`."""
        raise NotImplementedError

    def _graph(
        self, base: keras.Model, inputs: Any, standardised: Any, num_annotators: int
    ) -> tuple[Any, Any, Any]:
        """Returns the head, its logits and the class probabilities as functions of the inputs."""
        probabilities = base(standardised)
        head = self._head(num_annotators, len(self.classes_))
        return head, head(probabilities), probabilities

    # ----------------------------------------------------------------- fit

    def _check_arguments(self) -> None:
        from neucrowd_tf.crowd_layers.losses import IMBALANCE

        super()._check_arguments()
        if self.imbalance not in IMBALANCE:
            raise UsageError(
                f"imbalance: expected one of {', '.join(IMBALANCE)}, received {self.imbalance!r}"
            )
        check_number("gamma", self.gamma, least=0)
        check_number("beta", self.beta, least=0, below=1)

    def _build(self, data: TrainingData) -> CrowdNetwork:
        import keras

        from neucrowd_tf.crowd_layers.layers import Standardise
        from neucrowd_tf.crowd_layers.model import CrowdModel

        annotators, classes = data.annotations.num_annotators, len(self.classes_)
        base = self._make_base(data.features.shape[1:], classes)
        inputs = keras.Input(data.features.shape[1:], name="features")
        layer = Standardise(self.square_root, name="standardise")
        head, logits, probabilities = self._graph(base, inputs, layer(inputs), annotators)
        logits = keras.layers.Activation("linear", dtype="float32", name="annotator_logits")(logits)
        answers = keras.layers.Softmax(dtype="float32", name="annotators")(logits)
        probabilities = keras.layers.Activation("linear", dtype="float32", name="probabilities")(
            probabilities
        )
        model = CrowdModel(
            keras.Model(inputs, logits, name="network"),
            head,
            data.features,
            annotators,
            classes,
            gamma=self.gamma if self.imbalance in ("focal", "cb_focal") else 0.0,
            weighted=self.imbalance == "resampling",
            augment=self._augmentation(),
        )
        whole = keras.Model(
            inputs,
            {"probabilities": probabilities, "annotators": answers},
            name=type(self).__name__.lower(),
        )
        return CrowdNetwork(model=model, whole=whole, base=base, standardise=layer, head=head)

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        from neucrowd_tf.crowd_layers.losses import class_weights, resampled_multiplicities

        crowd = data.annotations
        weights = class_weights(
            np.bincount(crowd.labels, minlength=crowd.num_classes), self.imbalance, self.beta
        )
        copies = None
        if self.imbalance == "resampling":
            copies = np.ones(crowd.shape, dtype=np.uint8)
            copies[crowd.instances, crowd.annotators] = resampled_multiplicities(
                crowd.labels, weights, self.seed
            )
            weights = np.ones_like(weights)
        network.model.set_labels(
            crowd.to_dense(np.int8 if crowd.num_classes <= 127 else np.int32), weights, copies
        )

    def _finish(self, network: Any, data: TrainingData, run: Run) -> None:
        self.confusion_matrices_ = self._confusion_matrices(network, data)

    def _confusion_matrices(self, network: Any, data: TrainingData) -> NDArray[np.float32]:
        """Returns what each annotator would answer, were the class known: the head at the corners
        of the simplex.
        """
        import keras

        corners = np.eye(len(self.classes_), dtype=np.float32)
        answers = keras.ops.softmax(network.head(corners), axis=-1)
        return np.ascontiguousarray(
            np.asarray(keras.ops.convert_to_numpy(answers), dtype=np.float32).transpose(1, 0, 2)
        )

    # ----------------------------------------------------------------- use

    def predict_annotators(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns how likely each annotator gives each label to each instance, `[M, R, C]` float32
        that sums to one over C.

        It is computed in blocks of instances; for many annotators pass a part of the instances at a
        time and reduce it.
        """
        x = self._check_fitted(features)
        _, annotators, classes = self.model_.output["annotators"].shape
        result = np.empty((len(x), annotators, classes), dtype=np.float32)
        rows = max(1, min(self._rows_at_once(), _CELLS_AT_ONCE // (annotators * classes)))
        for start in range(0, len(x), rows):
            result[start : start + rows] = self._outputs("annotators", x[start : start + rows])
        return result

    # ------------------------------------------------------- for methods that refit in rounds

    def _snapshot(self) -> dict[str, Any]:
        """Returns the fitted state as arrays and plain values, so that the estimator may be
        refitted in place.
        """
        import copy

        from neucrowd_tf.training.state import read_variables

        state = {
            name: copy.copy(value)
            for name, value in vars(self).items()
            if name.endswith("_") and name != "model_" and not name.startswith("_")
        }
        return {"state": state, "weights": read_variables(self.model_.variables)}

    def _from_snapshot(self, snapshot: dict[str, Any]) -> Self:
        """Returns a fitted estimator of its own that is as this one was then."""
        import keras
        from sklearn.base import clone

        made = clone(self)
        made.model_ = keras.models.clone_model(self.model_)
        return made._load_snapshot(snapshot)

    def _load_snapshot(self, snapshot: dict[str, Any]) -> Self:
        """Takes a snapshot's state in place; `model_` must be this estimator's own."""
        from neucrowd_tf.training.state import write_variables

        for name, value in snapshot["state"].items():
            setattr(self, name, value)
        write_variables(self.model_.variables, snapshot["weights"])
        return self
