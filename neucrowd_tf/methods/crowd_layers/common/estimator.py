"""A classifier with annotator heads as an estimator: what every crowd layer extends."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Annotated, Any, ClassVar

import keras
import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.declare.declarations import estimator, number, one_of, whole
from neucrowd_tf.declare.types import Array, Fields, Floats32, Layer, Mask, Network, Tensor
from neucrowd_tf.errors import warn
from neucrowd_tf.methods.crowd_layers.common.bases import shared_features
from neucrowd_tf.methods.crowd_layers.common.classifier import NetworkClassifier
from neucrowd_tf.methods.crowd_layers.common.head import certain_answers
from neucrowd_tf.methods.crowd_layers.common.imbalance import (
    CLASS_WEIGHT,
    GAMMA,
    IMBALANCES,
    class_weight_of,
    class_weights,
    resampled_multiplicities,
)
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel
from neucrowd_tf.methods.crowd_layers.common.network import (
    CompiledNetwork,
    float32_output,
    standardise_layer,
)
from neucrowd_tf.methods.crowd_layers.common.prediction import rows_at_once
from neucrowd_tf.nn.embedding_networks import make_optimizer
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.features import LazyFeatures, blocks_of, in_blocks
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import from_snapshot, load_snapshot, snapshot

_CELLS_AT_ONCE = 1 << 23
# Cost of gathering the weights of one annotation, in cells of a matrix product.
_GATHERING = 20
# A class is lost if a fit predicts it for fewer than this share of the instances whose annotators
# agree on it: a lost class may keep one or two of them by chance.
_LOST = 0.2
# A lost class restarts a fit if annotators agree on it for this share of N / C instances.
_WORTH_A_RESTART = 0.1


def lost_classes(agreed: Array, predicted: Array, num_classes: int) -> Mask:
    """Returns, by class, whether a fit loses it.

    A fit loses a class that it hardly ever predicts. It also loses one that it predicts mostly as
    one other class where annotators agree on it, if that other class is missed more often than not.

    Args:
        agreed: `[N]` class codes on which annotators agree for the training instances.
        predicted: `[N]` those that the fit predicts.
        num_classes: C.
    """
    table = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(table, (agreed, predicted), 1)
    named = table.sum(axis=1)
    right = np.diagonal(table).copy()
    never = table.sum(axis=0) < _LOST * named
    np.fill_diagonal(table, 0)
    taker = table.argmax(axis=1)
    swapped = (right < _LOST * named) & (table.max(axis=1) > named / 2)
    swapped &= right[taker] < named[taker] / 2
    return never | swapped


@estimator
class CrowdLayerBase(NetworkClassifier):
    """A classifier trained end to end on annotators' labels.

    A head predicts each annotator's label. A subclass makes the head in `_head`.

    Attributes:
        model_: Keras model from raw features to {"probabilities" `[None, C]`, "annotators" `[None,
            R, C]`}.
        confusion_matrices_: `[R, C true, C observed]` float32, each row a distribution.
    """

    requires_identities: ClassVar[bool] = True
    reads_batches: ClassVar[bool] = True

    imbalance: Annotated[
        str,
        one_of(*IMBALANCES),
        '"none" (cross-entropy), "resampling", "reweighting", "focal" or "cb_focal".',
    ] = "none"
    class_weight: Annotated[
        Any, CLASS_WEIGHT, 'weights of annotations by class, such as {"cat": 2.0}; others weigh 1.'
    ] = None
    restarts: Annotated[
        int,
        whole(0),
        "number of new starts of a fit that almost never predicts a class that annotators agree"
        " on. Each has another seed, and a crowd layer starts nearer to the identity. If all"
        " fail, a warning says so.",
    ] = 2
    annotator_learning_rate: Annotated[
        float | None,
        number(least=0),
        "learning rate of the annotators' weights; None uses `learning_rate`, 0 does not train"
        " them.",
    ] = None

    # Whether the trained network takes standardised features, which are made once per fit and not
    # in each step. If features are augmented or mixed, it takes them raw.
    standardised_once: ClassVar[bool] = True

    # Whether an annotator's labels depend on the instance as well as on its class, so that the
    # head's outputs at the corners of the simplex do not describe the annotator.
    sees_instances: ClassVar[bool] = False
    # Whether the head also takes the features before the base's last dense layer; the loss is then
    # computed for single annotations.
    shares_features: ClassVar[bool] = False

    snapshot = snapshot
    from_snapshot = from_snapshot
    load_snapshot = load_snapshot

    # Annotations that later fits within `reused()` may have, which share the first one's network.
    annotations_expected = 0

    # ----------------------------------------------------------------- what a subclass provides

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        """Returns the annotator head.

        It is an `AnnotatorHead`, from class probabilities `[B, C]` to logits `[B, R, C]`.
        """
        raise NotImplementedError

    def _graph(self, base: keras.Model, standardised: Tensor, head: Layer) -> tuple[Tensor, Tensor]:
        """Returns annotators' logits and class probabilities of standardised features."""
        if self.shares_features:
            probabilities, features = shared_features(base, standardised)
            return head([probabilities, features]), probabilities
        probabilities = base(standardised)
        return head(probabilities), probabilities

    def _annotation_model(self, data: TrainingData) -> tuple[Tensor, Fields]:
        """Returns the class of the `AnnotationModel` that trains, and arguments of its own."""
        return AnnotationModel, {}

    # ----------------------------------------------------------------- fit

    def _spec(self, data: TrainingData, run: Run) -> tuple[Hashable, ...]:
        # A model of annotations may have a weight for each of them.
        options = self._annotation_model(data)[1].values()
        return (*super()._spec(data, run), self._few_cells(data), *options)

    def _build(self, data: TrainingData) -> CompiledNetwork:
        classes = len(self.classes_)
        base = self._make_base(data.features.shape[1:], classes)
        inputs = keras.Input(data.features.shape[1:], name="features")
        layer = standardise_layer(self.standardise)
        head = self._head(data.annotations.num_annotators, classes)
        standardised = layer(inputs)
        lazy = isinstance(data.features, LazyFeatures)
        once = self.standardised_once and not self.augment and not lazy
        logits, probabilities = self._graph(base, standardised, head)
        logits = float32_output("annotator_logits", logits)
        outputs = {
            "annotators": keras.layers.Softmax(dtype="float32", name="annotators")(logits),
            "probabilities": float32_output("probabilities", probabilities),
        }
        network = keras.Model(standardised if once else inputs, head.input, name="network")
        model_class, options = self._annotation_model(data)
        model = model_class(
            network,
            head,
            data.features,
            few_cells=self._few_cells(data),
            gamma=GAMMA if "focal" in self.imbalance else 0.0,
            augment=self._augmentation(),
            **options,
        )
        whole = keras.Model(inputs, outputs, name=type(self).__name__.lower())
        return CompiledNetwork(model, whole, base, layer, standardised=once)

    def _compile(self, network: CompiledNetwork, run: Run) -> None:
        super()._compile(network, run)
        if self.annotator_learning_rate is not None:
            network.model.set_annotator_optimizer(
                make_optimizer(self.optimizer, self.annotator_learning_rate, always=True)
            )

    def _rates(self, model: Network) -> list[tuple[Tensor, float]]:
        rates = super()._rates(model)
        if self.annotator_learning_rate is not None:
            rates.append((model.annotator_optimizer, self.annotator_learning_rate))
        return rates

    def _set_targets(self, network: CompiledNetwork, data: TrainingData) -> None:
        crowd = data.annotations
        # With pseudo-annotations a balanced selection would undo the weights.
        counts = np.bincount(crowd.observed().labels, minlength=crowd.num_classes)
        weights = class_weights(counts, self.imbalance)
        strengths: Array = weights[crowd.labels]
        if self.imbalance == "resampling":
            strengths = resampled_multiplicities(crowd.labels, weights, self.seed)
        by_class = class_weight_of(self.class_weight, self.classes_)
        network.model.set_annotations(crowd, strengths * by_class[crowd.labels])

    def _fails(self, data: TrainingData, *, last: bool) -> bool:
        """Returns whether a fit has lost a class that annotators agree on; the last one warns."""
        votes = data.annotations.observed().vote_counts()
        labelled = votes.any(axis=1)  # others have pseudo-annotations only
        agreed = votes[labelled].argmax(axis=1)
        named = np.bincount(agreed, minlength=votes.shape[1])
        enough = max(1.0, _WORTH_A_RESTART * named.sum() / len(named))
        predicted = self._predict_proba(data.features).argmax(axis=1)[labelled]
        lost = np.flatnonzero(lost_classes(agreed, predicted, len(named)))
        fails = bool((named[lost] >= enough).any())
        if len(lost) and (last or not fails):
            warn(
                f"{type(self).__name__} hardly predicts the class"
                f" {', '.join(map(repr, self.classes_[lost].tolist()))}, or mistakes it for another"
                f" one. Annotators agree on such a class for {int(named[lost].sum())} of"
                f" {len(predicted)} training instances. Train longer, or with"
                ' imbalance="reweighting".',
                UserWarning,
                stacklevel=2,
            )
        return fails

    def _few_cells(self, data: TrainingData) -> bool:
        """Returns whether a step gathers the head's weights for each annotation.

        It does if few cells have a label, or if a cell has several labels. Otherwise one product
        with all annotators' weights costs less; that product has room for one label per cell.
        """
        crowd = data.annotations
        most = max(crowd.num_annotations, self.annotations_expected)
        if self.shares_features or most * _GATHERING < math.prod(crowd.shape):
            return True
        return int(crowd.cells().sum()) < crowd.num_annotations

    def _finish(self, network: CompiledNetwork, data: TrainingData) -> None:
        self.confusion_matrices_ = self._confusion_matrices(network, data)

    def _confusion_matrices(self, network: CompiledNetwork, data: TrainingData) -> Floats32:
        """Returns each annotator's probabilities of labels if the class is certain, `[R, C, C]`.

        If labels depend on the instance, it is the mean over the training instances, weighted with
        the classifier's probability of the true class.
        """
        classes = len(self.classes_)
        annotators = data.annotations.num_annotators
        if not self.sees_instances:
            return certain_answers(network.model.head, classes)
        sums = np.zeros((annotators, classes, classes))
        mass = np.zeros(classes)
        rows = rows_at_once(self.feature_shape_, (1 << 22) // (annotators * classes))
        for _, block in blocks_of(data.features, rows):
            probabilities = self._predict_proba(block).astype(np.float64)
            answers = self._outputs("annotators", block)
            sums += np.einsum("bt,brc->rtc", probabilities, answers, optimize=True)
            mass += probabilities.sum(axis=0)
        means = sums / np.maximum(mass, 1e-12)[None, :, None]
        shares = means / np.maximum(means.sum(axis=2, keepdims=True), 1e-12)
        return np.asarray(shares, dtype=np.float32)

    # ----------------------------------------------------------------- use

    def predict_annotators(self, features: ArrayLike) -> Floats32:
        """Returns the probability of each annotator's labels, `[M, R, C]` float32.

        It sums to one over C. For many annotators pass a part of the instances at a time and reduce
        the result.

        Args:
            features: `[M, ...]` raw features.
        """
        _, annotators, classes = self.model_.output["annotators"].shape
        rows = rows_at_once(self.feature_shape_, _CELLS_AT_ONCE // (annotators * classes))
        x = self._check_fitted(features)
        return in_blocks(lambda block: self._outputs("annotators", block), x, rows)
