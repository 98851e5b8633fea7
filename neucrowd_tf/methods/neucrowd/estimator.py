"""NeuCrowd: the estimator that puts section 3 together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from neucrowd_tf.declare.declarations import estimator, fitted, number, one_of, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Array, Fields, Floats32, Indices, Mask, Network, Tensor
from neucrowd_tf.methods.neucrowd.assurance import label_assurance
from neucrowd_tf.methods.neucrowd.joint_learning import NeuCrowdModel
from neucrowd_tf.methods.neucrowd.safety import (
    compared_instances,
    mislabel_detection,
    neighbourhood_size,
    safe_examples,
    sampling_probabilities,
)
from neucrowd_tf.methods.neucrowd.sampler import SamplingNetwork
from neucrowd_tf.training.batches import uniform_batches
from neucrowd_tf.training.representation import (
    ENCODER_SPACE,
    EQUAL_PRESETS,
    SECOND_SEED,
    EmbeddingData,
    TupletEstimator,
)
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from neucrowd_tf.datasets import CrowdDataset

FIGURES = ("hardness_correlation", "selected_loss_ratio", "selected_oracle_share", "anchor_spread")


@estimator
class NeuCrowd(TupletEstimator):
    """Embedding from n-tuplets with robust anchors, safety-aware sampling and a sampling network.

    Works on annotations and on vote counts alone, for two classes (as in the paper) and for more:
    then each class is the positive one in turn, with a robust anchor of its own in each batch.

    Attributes:
        safe_: `[n]` which of the instances that the embedding was trained on (without held-out
            ones) were safe in the epoch whose weights are kept, or None.
        assurance_: `[n]` their label assurance.
        model_, history_, n_iter_, best_epoch_, train_labels_, rows_, kept_: see
            `RepresentationEstimator`.

    References:
        Hao, Ding, Liu: NeuCrowd, section 3.
    """

    n: Annotated[
        int,
        whole(3),
        "tuplet size: an anchor, a positive example and n - 2 negatives (definition 1).",
    ] = dataclasses.field(default=5, kw_only=False)
    eta: Annotated[float, number(above=0), "smoothing of the softmax."] = 5.0
    offset: Annotated[
        float,
        number(),
        "C of the similarity C - l2 distance; it cancels unless `weight_inside` or"
        " `anchor_in_sum`.",
    ] = 2.0
    similarity: str = "euclidean"
    safety_aware: Annotated[bool, "uses definition 3; False is -SA."] = True
    unsafe_weight: Annotated[
        float,
        number(least=0, most=1),
        "probability of drawing an unsafe example, relative to a safe one; 0 excludes them.",
    ] = 0.3
    safety_margin: Annotated[float, number(), "delta, the margin of definition 3."] = 0.0
    anchor: Annotated[
        str,
        one_of("mean", "sum", "embedding_sum", "none"),
        'the robust anchor: "mean" (assurance-weighted mean of embeddings), "sum" (the embedding of'
        ' definition 4\'s sum of examples), "embedding_sum" (the sum of embeddings) or "none"'
        " (-RA).",
    ] = "mean"
    anchor_in_sum: Annotated[
        bool, "whether the softmax's sum has the anchor too (section 3.3.3's tuplet has it)."
    ] = False
    sampling_network: Annotated[bool, "uses section 3.3.4; False is -SN."] = True
    pool_factor: Annotated[
        int, whole(1), "number of candidates that are scored per selected tuplet."
    ] = 2
    sampler_warmup: Annotated[int, whole(0), "epochs before it selects tuplets."] = 1

    safe_: Mask | None = fitted()

    def _watch(self, model: Network, data: EmbeddingData) -> Callable[[], Mapping[str, float]]:
        """Returns a function whose figures are logged after each epoch."""
        del data
        return lambda: {"fixed_tuplet_loss": model.fixed_loss(), **model.figures(self.batch_size)}

    def _assurance(self, votes: Array) -> Floats32:
        """Returns the label assurance of each instance, `[n]`, by votes `[n, C]`."""
        return label_assurance(votes)

    def _before_epoch(
        self, model: Network, data: EmbeddingData, epoch: int
    ) -> Mapping[str, float] | None:
        """Finds the safe examples in the current embedding space and draws them more often.

        References:
            NeuCrowd, section 3.3.1, definition 3.
        """
        if not self.safety_aware:
            return None
        # Deviation: NeuCrowd definition 3. Paper: Recomputed at each iteration; k = sqrt(batch).
        # Here: Recomputed once an epoch; an example is not its own neighbour; delta 0
        # (`safety_margin`). Of more than 4,096 instances, an epoch compares the next 4,096 among
        # themselves. Why: Embeddings move little within an epoch; no delta is published; an epoch's
        # time does not depend on the number of instances. Effect: not measured.
        rows = compared_instances(len(data.labels), self.seed, epoch)
        embeddings = model.embed_instances(rows)
        assurance = self.assurance_[rows]
        safe = model.safe.numpy().copy()
        safe[rows] = self._safe_examples(embeddings, data.labels[rows], assurance)
        model.safe.assign(safe)
        model.set_probabilities(sampling_probabilities(safe, self.unsafe_weight))
        return {"safe_share": float(safe.mean())}

    def _train_embedding(
        self, model: Network, batches: Callable[[int], Tensor], data: EmbeddingData, run: Run
    ) -> None:
        super()._train_embedding(model, batches, data, run)
        if self.safety_aware:
            self.safe_ = model.safe.numpy()

    def _safe_examples(self, embeddings: Array, labels: Indices, assurance: Floats32) -> Mask:
        """Returns which of m instances are safe, `[m]`; their neighbours are sought among them."""
        k = neighbourhood_size(self.batch_size, len(labels))
        return safe_examples(embeddings, labels, assurance, k=k, margin=self.safety_margin)

    def evaluation(self, dataset: CrowdDataset) -> Fields:
        """Returns scores of safety, hardness and linearity for evaluation.json.

        Returns:
            With safety and true labels, `mislabelled`, the share of wrong consensus labels, and
                `unsafe_precision` and `unsafe_recall`, see `mislabel_detection`; `safe_share` and
                the figures of `NeuCrowdModel.figures` in the last epoch. NaN is not defined.
        """
        figures: Fields = {}
        if self.safe_ is not None and dataset.truth is not None:
            truth = dataset.truth[self.rows_[self.kept_]]
            figures = mislabel_detection(self.safe_, self.train_labels_[self.kept_], truth)
        for name in ("safe_share", *FIGURES):
            if name in self.history_:
                figures[name] = self.history_[name][-1]
        return figures

    def _model_and_batches(self, data: EmbeddingData) -> tuple[Network, Network]:
        """Returns the embedding network and the sampling network as one model, and its batches."""
        self.assurance_ = self._assurance(data.annotations.vote_counts())  # definition 2
        self.safe_ = None
        shape = data.features.shape[1:]
        sampler = None
        if self.sampling_network:
            seed = self.seed + SECOND_SEED
            sampler = SamplingNetwork(self._make_encoder(shape, seed, "sampler"), self.n, seed)
        encoder = self._make_encoder(shape, self.seed)
        options = self._options(sampler)
        model = self._model(encoder, data.features, data.labels, self.assurance_, **options)
        return model, uniform_batches(self.seed, self.batch_size * model.pool_factor, self.n)

    @property
    def _negatives(self) -> int:
        return self.n - 2

    def _options(self, sampler: SamplingNetwork | None = None) -> Fields:
        """Returns the arguments of `NeuCrowdModel` that `TupletEstimator._model` does not set."""
        return {
            "sampler": sampler,
            "anchor": self.anchor,
            "pool_factor": self.pool_factor,
            "warmup_steps": self.sampler_warmup * self.steps_per_epoch,
            "offset": self.offset,
            "anchor_in_sum": self.anchor_in_sum,
        }

    def _model_class(self) -> type[NeuCrowdModel]:
        return NeuCrowdModel


_SETTINGS = settings_in(Path(__file__).with_name("presets.toml"))
SPACE: dict[str, tuple[Tensor, ...]] = {**ENCODER_SPACE, **_SETTINGS["space"]}
for _name, _variant in _SETTINGS["variants"].items():
    register_method(_name, presets=EQUAL_PRESETS, space=SPACE, **_variant)(NeuCrowd)
