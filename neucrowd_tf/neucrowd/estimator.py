"""NeuCrowd: the estimator that puts section 3 together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.neucrowd.assurance import label_assurance
from neucrowd_tf.neucrowd.safety import neighbourhood_size, safe_examples, sampling_weights
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.representation import DEFAULT_CS, RepresentationEstimator
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAPER = (
    "Hao, Ding and Liu: NeuCrowd: Neural Sampling Network for Representation Learning with"
    " Crowdsourced Labels"
)
_SYN = {"l2": 1e-3}
_PRESETS: dict[str, dict[str, Any]] = {"syn1": _SYN, "syn2": _SYN}
_SPACE: dict[str, tuple[Any, ...]] = {
    "eta": (1.0, 2.0, 5.0, 10.0),
    "l2": (1e-4, 1e-3, 1e-2),
    "hidden_units": ((64, 32), (128, 64), (32, 16)),
    "dropout": (0.0, 0.2, 0.4),
    "unsafe_weight": (0.1, 0.3, 0.6),
}


@register_method(
    "neucrowd_no_sa_ra_sn",
    summary="NeuCrowd without safety-aware sampling, robust anchors and sampling network (table 3)",
    defaults={"safety_aware": False, "anchor": "none", "sampling_network": False},
    presets=_PRESETS,
    space=_SPACE,
    paper=_PAPER,
)
@register_method(
    "neucrowd_no_sa_ra",
    summary="NeuCrowd without safety-aware sampling and robust anchors (table 3)",
    defaults={"safety_aware": False, "anchor": "none"},
    presets=_PRESETS,
    space=_SPACE,
    paper=_PAPER,
)
@register_method(
    "neucrowd_no_sa",
    summary="NeuCrowd without safety-aware sampling (table 3)",
    defaults={"safety_aware": False},
    presets=_PRESETS,
    space=_SPACE,
    paper=_PAPER,
)
@register_method(
    "neucrowd",
    summary=(
        "NeuCrowd: n-tuplet embedding with robust anchors, safety-aware sampling and a sampling"
        " network"
    ),
    presets=_PRESETS,
    space=_SPACE,
    paper=_PAPER,
)
class NeuCrowd(RepresentationEstimator):
    """Embedding from n-tuplets with robust anchors, safety-aware sampling and a hardness-predicting
    sampling network.

    Works on annotations and on vote counts alone, for two classes (as in the paper) and for more:
    then each class is the positive one in turn, with a robust anchor of its own in each batch.

    Args:
        n: tuplet size: an anchor, a positive example and n - 2 negatives (definition 1).
        eta: smoothing of the softmax.
        offset: C of the similarity C - l2 distance; it cancels unless `weight_inside`.
        weight_inside: whether the label assurance multiplies inside the exponent, as printed, or
            outside it.
        similarity: "euclidean" (section 3.3.3) or "cosine".
        safety_aware: definition 3; False leaves it out (-SA).
        unsafe_weight: the sampling weight of an unsafe example relative to a safe one; 0 excludes
            them.
        safety_margin: delta of definition 3.
        anchor: "mean" (assurance-weighted mean), "sum" (definition 4 as printed) or "none" (-RA).
        anchor_space: where anchors are combined: "embedding", or "input", which embeds the combined
            features.
        sampling_network: section 3.3.4; False leaves it out (-SN).
        pool_factor: how many candidates the sampling network scores for each tuplet that is kept.
        sampler_warmup: epochs before it selects.
        encoder: a Keras model to use as embedding network in place of fully connected layers; it is
            copied, not trained itself.
        hidden_units, activation, dropout, l2, initializer: the fully connected layers.
        optimizer, learning_rate: by Keras' name; the paper's is "adadelta".
        batch_size: tuplets a step.
        steps_per_epoch, epochs, patience, monitor: how long to train and which validation figure
            ("auc", "accuracy" or "log_loss") chooses the epoch.
        standardise: whether features are standardised on the training instances.
        Cs: what the downstream logistic regression's C is chosen from.
        validation_fraction: the share held out when `fit` gets no validation data.
        seed: draws everything that is random.

    Attributes:
        safe_: `[n]` which of the instances that the embedding was trained on (without held-out
            ones) were safe when training began its last epoch, or None.
        assurance_: `[n]` their label assurance.
        model_, history_, n_iter_, best_epoch_, train_labels_, rows_: see `RepresentationEstimator`.

    References:
        Hao, Ding, Liu: NeuCrowd, section 3.
    """

    def __init__(
        self,
        n: int = 5,
        eta: float = 5.0,
        offset: float = 1.0,
        weight_inside: bool = False,
        similarity: Literal["euclidean", "cosine"] = "euclidean",
        safety_aware: bool = True,
        unsafe_weight: float = 0.3,
        safety_margin: float = 0.0,
        anchor: Literal["mean", "sum", "none"] = "mean",
        anchor_space: Literal["embedding", "input"] = "embedding",
        sampling_network: bool = True,
        pool_factor: int = 2,
        sampler_warmup: int = 1,
        encoder: Any = None,
        hidden_units: Sequence[int] = (64, 32),
        activation: str = "sigmoid",
        dropout: float = 0.2,
        l2: float = 1e-2,
        initializer: Literal["glorot", "normal"] = "glorot",
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        steps_per_epoch: int = 20,
        epochs: int = 20,
        patience: int | None = None,
        monitor: Literal["auc", "accuracy", "log_loss"] = "auc",
        standardise: bool = True,
        Cs: Sequence[float] = DEFAULT_CS,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.n = n
        self.eta = eta
        self.offset = offset
        self.weight_inside = weight_inside
        self.similarity = similarity
        self.safety_aware = safety_aware
        self.unsafe_weight = unsafe_weight
        self.safety_margin = safety_margin
        self.anchor = anchor
        self.anchor_space = anchor_space
        self.sampling_network = sampling_network
        self.pool_factor = pool_factor
        self.sampler_warmup = sampler_warmup
        self.encoder = encoder
        self.hidden_units = hidden_units  # type: ignore[assignment]
        self.activation = activation
        self.dropout = dropout
        self.l2 = l2
        self.initializer = initializer
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.steps_per_epoch = steps_per_epoch
        self.epochs = epochs
        self.patience = patience
        self.monitor = monitor
        self.standardise = standardise
        self.Cs = Cs  # type: ignore[assignment]
        self.validation_fraction = validation_fraction
        self.seed = seed

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if not isinstance(self.n, (int, np.integer)) or self.n < 3:
            raise ValueError(
                "n: expected a whole number from 3 (anchor, positive, one negative), received"
                f" {self.n!r}"
            )
        if not isinstance(self.pool_factor, (int, np.integer)) or self.pool_factor < 1:
            raise ValueError(
                f"pool_factor: expected a whole number from 1, received {self.pool_factor!r}"
            )
        if not isinstance(self.sampler_warmup, (int, np.integer)) or self.sampler_warmup < 0:
            raise ValueError(
                f"sampler_warmup: expected a whole number from 0, received {self.sampler_warmup!r}"
            )
        if not self.eta > 0:
            raise ValueError(f"eta: expected a number above 0, received {self.eta!r}")
        if self.anchor not in ("mean", "sum", "none"):
            raise ValueError(f"anchor: expected 'mean', 'sum' or 'none', received {self.anchor!r}")
        if self.anchor_space not in ("embedding", "input"):
            raise ValueError(
                f"anchor_space: expected 'embedding' or 'input', received {self.anchor_space!r}"
            )
        if not 0 <= self.unsafe_weight <= 1:
            raise ValueError(
                f"unsafe_weight: expected a number from 0 to 1, received {self.unsafe_weight!r}"
            )

    def _trainer(
        self, features: NDArray[np.float32], data: TrainingData, labels: NDArray[np.int64], run: Run
    ) -> tuple[Any, Any]:
        from neucrowd_tf.neucrowd.embedding import NeuCrowdModel
        from neucrowd_tf.neucrowd.sampler import SamplingNetwork
        from neucrowd_tf.nn.encoders import make_optimizer
        from neucrowd_tf.training.tuplets import TupletIndex, uniform_batches

        self.assurance_ = label_assurance(data.annotations.vote_counts())
        self.safe_: NDArray[np.bool_] | None = None
        index = TupletIndex(labels, self.n - 2)
        sampler = None
        if self.sampling_network:
            sampler = SamplingNetwork(
                self._make_encoder(features.shape[1:], self.seed + 7919, "sampler"),
                self.n,
                seed=self.seed + 7919,
            )
        # Deviation: the assurance multiplies the exponential itself unless `weight_inside`, and the
        # posterior's sum leaves the anchor out.
        model = NeuCrowdModel(
            self._make_encoder(features.shape[1:], self.seed),
            features,
            index,
            self.assurance_,
            sampler=sampler,
            anchor=self.anchor,
            anchor_space=self.anchor_space,
            pool_factor=self.pool_factor,
            warmup_steps=self.sampler_warmup * self.steps_per_epoch,
            eta=self.eta,
            similarity_name=self.similarity,
            offset=self.offset,
            weight_inside=self.weight_inside,
        )
        model.compile(
            optimizer=make_optimizer(self.optimizer, self.learning_rate),
            steps_per_execution=run.steps_per_call(self.steps_per_epoch),
            jit_compile=False,
        )
        return model, uniform_batches(self.seed, self.batch_size * model.pool_factor, self.n)

    def _epoch_start(
        self, model: Any, labels: NDArray[np.int64], epoch: int, steps: int
    ) -> Mapping[str, float] | None:
        """Finds safe examples anew in the current embedding space (definition 3) and sets their
        sampling weights.
        """
        if not self.safety_aware:
            return None
        # Deviation: once an epoch instead of once an iteration; embeddings move little within 20
        # steps.
        embedded = model.embed(np.asarray(model._instances))
        k = neighbourhood_size(self.batch_size, len(labels))
        self.safe_ = safe_examples(
            embedded, labels, self.assurance_, k=k, margin=self.safety_margin
        )
        model.cumulative.assign(
            model.index.cumulative(sampling_weights(self.safe_, self.unsafe_weight))
        )
        return {"safe_share": float(self.safe_.mean())}
