"""What CrowdInG is compared with in table 1: other ways to fill in the annotations that nobody
gave, before DL-CL is trained.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from neucrowd_tf.crowd_layers import CrowdLayer
from neucrowd_tf.crowding.presets import PAPER, PRESETS
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

_COMMON = (
    "base",
    "hidden_units",
    "activation",
    "dropout",
    "batch_norm",
    "l2",
    "square_root",
    "standardise",
)
_PRETRAINING = {
    "pretrain_epochs": "epochs",
    "pretrain_batch": "batch_size",
    "pretrain_learning_rate": "learning_rate",
}


def dl_cl_presets() -> dict[str, dict[str, Any]]:
    """Returns DL-CL's hyper-parameters by dataset: those with which CrowdInG pre-trains."""
    found: dict[str, dict[str, Any]] = {}
    for dataset, preset in PRESETS.items():
        found[dataset] = {
            _PRETRAINING.get(name, name): value
            for name, value in preset.items()
            if name in _COMMON or name in _PRETRAINING
        }
    return found


DL_CL_PRESETS = dl_cl_presets()
# DL-CL+InG trains CrowdInG as it is trained on the dataset by itself: without label correlation on
# Music.
ING_PRESETS = {
    dataset: {
        **preset,
        **{name: value for name, value in PRESETS[dataset].items() if name == "label_correlation"},
    }
    for dataset, preset in DL_CL_PRESETS.items()
}
DL_CL_SPACE: Mapping[str, tuple[Any, ...]] = {
    "epochs": (15, 25, 50),
    "learning_rate": (3e-4, 1e-3),
    "dropout": (0.0, 0.3, 0.5),
}


class AugmentedDLCL(CrowdEstimator):
    """DL-CL trained on annotations, completed by what a subclass makes of them, and trained again
    from fresh weights.

    Args:
        base, hidden_units, activation, dropout, batch_norm, l2, square_root, standardise,
        learning_rate, batch_size, epochs, seed:
            as of `CrowdLayer`; the same for both trainings.

    Attributes:
        classifier_: the fitted `CrowdLayer`.
        completed_: `Annotations` of the training instances, with generated ones marked, that it was
            trained on at last.
        confusion_matrices_, history_, n_iter_: those of `classifier_`.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
    """

    requires_identities: ClassVar[bool] = True

    classifier_: CrowdLayer
    completed_: Annotations

    def __init__(
        self,
        base: Any = "dense",
        *,
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
        self.base = base
        self.hidden_units = hidden_units
        self.activation = activation
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.l2 = l2
        self.square_root = square_root
        self.standardise = standardise
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.seed = seed

    def _dl_cl(self) -> CrowdLayer:
        """Returns an unfitted DL-CL that knows the data's classes and features."""
        settings = {
            name: getattr(self, name)
            for name in (*_COMMON, "learning_rate", "batch_size", "epochs", "seed")
        }
        made = CrowdLayer(settings.pop("base"), **settings)
        adopt(made, self)
        return made

    def _complete(self, data: TrainingData, first: CrowdLayer, run: Run) -> Annotations:
        """Returns the training annotations with generated ones in their empty cells; `first` is
        DL-CL trained on them.
        """
        raise NotImplementedError

    def _fit(self, data: TrainingData, run: Run) -> None:
        classifier = self._dl_cl()
        with classifier.reused():
            classifier._fit(data, run.stage("observed"))
            self.completed_ = self._complete(data, classifier, run)
            classifier._fit(
                dataclasses.replace(data, annotations=self.completed_), run.stage("completed")
            )
        self._keep(classifier, data)

    def _keep(self, classifier: CrowdLayer, data: TrainingData) -> None:
        self.classifier_, self.rows_ = classifier, data.rows
        self.confusion_matrices_, self.history_, self.n_iter_ = (
            classifier.confusion_matrices_,
            classifier.history_,
            classifier.n_iter_,
        )

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return self.classifier_._predict_proba(features)

    def inference_model(self) -> keras.Model:
        return self.classifier_.inference_model()


def check_numbers(
    estimator: CrowdEstimator,
    *,
    counts: Sequence[str] = (),
    rates: Sequence[str] = (),
    shares: Sequence[str] = (),
) -> None:
    """Raises UsageError where an argument is no whole number from 1 (counts), number above 0
    (rates) or between 0 and 1 (shares).
    """
    for names, kinds, below, what in (
        (counts, (int, np.integer), np.inf, "a whole number from 1"),
        (rates, (int, float, np.number), np.inf, "a number above 0"),
        (shares, (int, float, np.number), 1.0, "a number between 0 and 1"),
    ):
        for name in names:
            value = getattr(estimator, name)
            if not isinstance(value, kinds) or isinstance(value, bool) or not 0 < value < below:
                raise UsageError(f"{name}: expected {what}, received {value!r}")


def adopt(part: CrowdEstimator, whole: CrowdEstimator) -> None:
    """Tells an estimator inside another one what `fit` found out about the data."""
    for name in ("classes_", "feature_shape_", "n_features_in_"):
        setattr(part, name, getattr(whole, name))


def completed(annotations: Annotations, labels: NDArray[np.integer[Any]]) -> Annotations:
    """Returns annotations whose empty cells hold the generated labels `[N, R]`."""
    rows, columns = np.nonzero(annotations.to_dense(np.int32) < 0)
    return annotations.with_generated(
        rows.astype(np.int32), columns.astype(np.int32), labels[rows, columns].astype(np.int32)
    )


def predicted_labels(model: CrowdLayer, features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Returns the label that each annotator most probably gives, `[N, R]`, without holding all
    probabilities at once.
    """
    rows = 4096
    parts = [
        model.predict_annotators(features[start : start + rows]).argmax(axis=2)
        for start in range(0, len(features), rows)
    ]
    return np.concatenate(parts)


def _registered(
    name: str, summary: str, presets: Mapping[str, dict[str, Any]] = DL_CL_PRESETS
) -> Any:
    return register_method(
        name,
        summary=summary,
        requires_identities=True,
        presets=presets,
        space=DL_CL_SPACE,
        paper=PAPER,
    )


@_registered("dl_cl_self", "DL-CL+Self: DL-CL on annotations that another DL-CL completed")
class DLCLSelf(AugmentedDLCL):
    """DL-CL+Self: what DL-CL predicts of each annotator fills the empty cells, and another DL-CL is
    trained on all cells.

    References:
        CrowdInG, section 4.4.1.
    """

    def _complete(self, data: TrainingData, first: CrowdLayer, run: Run) -> Annotations:
        return completed(data.annotations, predicted_labels(first, data.features))


@_registered(
    "dl_cl_gcn",
    "DL-CL+GCN: DL-CL on annotations completed by a graph convolution over annotators and"
    " instances",
)
class DLCLGCN(AugmentedDLCL):
    """DL-CL+GCN: a graph convolutional autoencoder on the bipartite graph of annotators and
    instances fills the empty cells.

    Args:
        graph_units: width of nodes' embeddings.
        graph_epochs: steps of its training, each on the whole graph.
        graph_learning_rate: Adam's.
        edge_dropout: the share of annotations that are left out of the graph in a step, and are
            what it predicts.
        base, ...: see `AugmentedDLCL`.

    References:
        CrowdInG, section 4.4.1; van den Berg, Kipf, Welling (2017), Graph convolutional matrix
        completion.
    """

    def __init__(
        self,
        base: Any = "dense",
        *,
        graph_units: int = 32,
        graph_epochs: int = 100,
        graph_learning_rate: float = 3e-3,
        edge_dropout: float = 0.3,
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
        self.graph_units = graph_units
        self.graph_epochs = graph_epochs
        self.graph_learning_rate = graph_learning_rate
        self.edge_dropout = edge_dropout

    def _complete(self, data: TrainingData, first: CrowdLayer, run: Run) -> Annotations:
        from baselines.graph_completion import GraphCompletion
        from neucrowd_tf.crowding.pretraining import Counter
        from neucrowd_tf.training.loop import train

        check_numbers(
            self,
            counts=("graph_units", "graph_epochs"),
            rates=("graph_learning_rate",),
            shares=("edge_dropout",),
        )
        features = np.asarray(first._network.standardise(data.features)).reshape(
            len(data.features), -1
        )
        graph = GraphCompletion(
            features,
            data.annotations,
            units=self.graph_units,
            learning_rate=self.graph_learning_rate,
            edge_dropout=self.edge_dropout,
            seed=self.seed,
        )
        train(graph, Counter(), epochs=self.graph_epochs, steps_per_epoch=1, run=run.stage("graph"))
        return completed(data.annotations, graph.most_probable())


@_registered(
    "dl_cl_ing", "DL-CL+InG: DL-CL on annotations that CrowdInG's generator completed", ING_PRESETS
)
class DLCLInG(AugmentedDLCL):
    """DL-CL+InG: CrowdInG is trained, its generator fills the empty cells, and DL-CL is trained on
    all cells.

    Args:
        crowding_epochs: of CrowdInG's game; its other arguments are the defaults, and those of the
            classifier the same as DL-CL's.
        label_correlation: CrowdInG's.
        fill: "sampled" draws labels from the generator, as `CrowdInG.generate` does;
            "most_probable" takes its best label.
        base, ...: see `AugmentedDLCL`.

    References:
        CrowdInG, section 4.4.1.
    """

    def __init__(
        self,
        base: Any = "dense",
        *,
        crowding_epochs: int = 12,
        label_correlation: bool = True,
        fill: Literal["sampled", "most_probable"] = "sampled",
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
        self.crowding_epochs = crowding_epochs
        self.label_correlation = label_correlation
        self.fill = fill

    def _fit(self, data: TrainingData, run: Run) -> None:
        if self.fill not in ("sampled", "most_probable"):
            raise UsageError(f"fill: expected 'sampled' or 'most_probable', received {self.fill!r}")
        check_numbers(self, counts=("crowding_epochs",))
        self.completed_ = self._complete_by_crowding(data, run.stage("crowding"))
        classifier = self._dl_cl()
        classifier._fit(
            dataclasses.replace(data, annotations=self.completed_), run.stage("completed")
        )
        self._keep(classifier, data)

    def _complete_by_crowding(self, data: TrainingData, run: Run) -> Annotations:
        from neucrowd_tf.crowding import CrowdInG

        crowding = CrowdInG(
            self.base,
            **{name: getattr(self, name) for name in _COMMON if name != "base"},
            pretrain_epochs=self.epochs,
            pretrain_batch=self.batch_size,
            pretrain_learning_rate=self.learning_rate,
            label_correlation=self.label_correlation,
            epochs=self.crowding_epochs,
            seed=self.seed,
        )
        adopt(crowding, self)
        crowding._fit(data, run)
        if self.fill == "most_probable":
            return completed(
                data.annotations, crowding.predict_annotators(data.features).argmax(axis=2)
            )
        return crowding.generate(data.features, annotations=data.annotations)
