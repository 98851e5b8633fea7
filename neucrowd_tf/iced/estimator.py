"""ICED: the estimator that puts section 2 together."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.arguments import (
    argument,
    estimator,
    flag,
    network,
    none,
    number,
    one_of,
    text,
    whole,
    widths,
)
from neucrowd_tf.iced.certainty import (
    certainty_groups,
    class_mix,
    label_certainty,
    warm_up_schedule,
)
from neucrowd_tf.iced.generation import Generator, choose_candidates
from neucrowd_tf.iced.history import RoundHistory, settled, shortages
from neucrowd_tf.iced.inference import EM, PRIORS, Inference, infer_labels
from neucrowd_tf.iced.scores import round_scores
from neucrowd_tf.iced.smote import INTERPOLATIONS, balancing_weights
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.embedding_estimator import EmbeddingEstimator
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.standardise import standardise

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.datasets import CrowdDataset
    from neucrowd_tf.iced.model import ICEDModel
    from neucrowd_tf.iced.stages import Stages

_SPACE: dict[str, tuple[Any, ...]] = {
    "rounds": (10, 15, 20),
    "dropout": (0.0, 0.3, 0.5),
    "annotation_neighbours": (10, 20, 40),
    "warm_up": ("all", "groups"),
    "standardise": (True, False),
    "hidden_units": ((128, 64), (256, 64), (64, 32)),
    "learning_rate": (3e-4, 1e-3, 3e-3),
}
_register = functools.partial(
    register_method,
    requires_identities=True,
    # Pixels in [0, 1] are left as they are: border pixels, blank but for a few images, are noise
    # once they are standardised.
    presets={"usps_syn": {"standardise": False}, "usps_lt": {"standardise": False}},
    space=_SPACE,
    paper=(
        "Wang, Thekinen, Liu, Liu and Tang: Learning from Imbalanced Crowdsourced Labeled Data"
        " (ICED)"
    ),
)


@_register(
    "iced_literal",
    summary=(
        "ICED as printed: class prior updated, hard EM, candidates by inferred label, equation 2.5"
        " and the warm-up by certainty groups to the letter"
    ),
    defaults={
        "candidates": "inferred",
        "first_labels": "majority",
        "interpolation": "printed",
        "prior": "update",
        "em": "hard",
        "smoothing": 0.0,
        "warm_up": "groups",
        "warm_up_epochs": 6,
    },
)
@_register(
    "iced",
    summary="ICED: label inference and synthetic instances of rare classes that improve each other",
)
@estimator
class ICED(EmbeddingEstimator):
    """True-label inference and synthetic minority data that improve each other, for two classes and
    more.

    An auto-encoder is trained first; its encoder starts the feature extractor. After a warm-up on
    majority votes, each round interpolates new instances of the rarer classes in the embedding
    space, lets the annotators label them as they labelled their neighbours, infers the labels of
    all instances (Dawid-Skene with a uniform prior) and trains the classifier on them.

    Attributes:
        model_: Keras model from raw features to {"probabilities", "embedding"}.
        decoder_: Keras model from an embedding to standardised features.
        labels_: `[N]` class codes inferred in the last round; `probas_` `[N, C]` their posteriors.
        priors_: `[C]` the prior that the inference held or found.
        confusion_matrices_: `[R, C true, C observed]` from the last round.
        certainty_: `[N]` label certainty.
        certainty_classes_: `[groups, C]` majority labels of each certainty group, the surest first.
        labels_history_: `[rounds + 1, N]` inferred labels: before any synthesis (D&S-orig), after
            the first (D&S-first), ...
        candidates_history_: `[rounds, N]` the class that each instance was a candidate of.
        synthetic_history_: `[rounds, C]` how many instances were made of each class.
        permutations_history_: `[rounds + 1, C]` how EM's classes were put back in place (the
            identity as a rule).
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
        history_: a dict with a list for each logged value, one entry a round.
        n_iter_: rounds done. converged_: whether `tol` stopped them.

    References:
        Wang et al.: Learning from Imbalanced Crowdsourced Labeled Data, section 2, algorithms 1 and
            2.
    """

    requires_identities = True

    rounds: int = argument(
        15,
        whole(0),
        "how often (0 stops after the warm-up); with many of them the classifier begins to follow"
        " its own mistakes.",
    )
    epochs_per_round: int = argument(1, whole(), "passes over the augmented data in each.")
    k: int = argument(
        5, whole(), "neighbours for the interpolation, among the class's own candidates."
    )
    annotation_neighbours: int = argument(
        20, whole(), "real neighbours that annotators are copied from."
    )
    epsilon: float = argument(
        0.01, number(above=0), "of equation 2.4; a tiny one makes unanimous points duplicates."
    )
    eta: float = argument(
        0.1, number(least=0, most=1), "noise on the interpolation is uniform in (-eta, eta)."
    )
    interpolation: str = argument(
        "certainty",
        one_of(*INTERPOLATIONS),
        '"certainty" (equation 2.5 mended), "printed" (to the letter; formerly "literal") or'
        ' "uniform" (plain SMOTE).',
    )
    candidates: str = argument(
        "classifier",
        one_of("classifier", "inferred"),
        'what says which class a real instance may stand for: "classifier" (its own prediction) or'
        ' "inferred" (the label inferred in the round before, as printed).',
    )
    targets: str = argument(
        "hard",
        one_of("hard", "soft"),
        'what the classifier is trained on: the "hard" inferred labels, or the "soft" posteriors.',
    )
    prior: str = argument(
        "uniform",
        one_of(*PRIORS),
        '"uniform" holds the class prior of the inference, "update" estimates it (as printed),'
        ' "start" does so after a first E-step under a uniform one, "separate" estimates one of the'
        " real and one of the synthetic instances.",
    )
    em: str = argument(
        "soft",
        one_of(*EM),
        'what the M-step counts: "soft" posteriors or "hard" labels (as printed); "majority" takes'
        " the majority vote in place of EM.",
    )
    first_labels: str = argument(
        "inferred",
        one_of("inferred", "majority"),
        'the labels that the first round\'s candidates have (with `candidates="inferred"`): those'
        " of EM, or the majority vote's, which the printed warm-up leaves.",
    )
    balance: str = argument(
        "synthesis",
        one_of("synthesis", "weights", "none"),
        'what makes the classes count alike in the rounds: "synthesis", class "weights" (the'
        ' inferred labels\' inverse shares) or "none"; the latter two synthesise nothing.',
    )
    smoothing: float = argument(
        1.0, number(least=0), "pseudo-count of every cell of the confusion matrices."
    )
    em_iterations: int = argument(100, whole(), "most iterations of EM in a round.")
    warm_up: str = argument(
        "all",
        one_of("groups", "cumulative", "all", "top", "none"),
        '"groups" (ICED-w), "cumulative" (each group together with those before it), "all"'
        ' (Trad-I), "top" (Trad-II) or "none".',
    )
    warm_up_evened: bool = argument(
        False, flag, "whether rows of rarer majority labels are repeated until classes are equal."
    )
    warm_up_epochs: int = argument(4, whole(0), "of the whole warm-up.")
    autoencoder_epochs: int = argument(20, whole(0), "before everything else.")
    decoder_epochs: int = argument(
        1, whole(0), "passes in each round that let the decoder follow the encoder."
    )
    tol: float | None = argument(
        None,
        number(least=0, most=1) | none,
        "stop when a round changes at most this share of the inferred labels; None does all"
        " rounds.",
    )
    encoder: Any = argument(
        None,
        none | network,
        "a Keras model `[None, ...] -> [None, h]` to use as feature extractor; it is copied, not"
        " trained itself.",
    )
    classifier: Any = argument(
        None,
        none | network,
        "likewise `[None, h] -> [None, C]` logits; one dense layer by default.",
    )
    decoder: Any = argument(
        None,
        none | network,
        "likewise `[None, h] -> [None, ...]`; needed with `encoder` unless the default one for"
        " `[h]` fits.",
    )
    hidden_units: Sequence[int] = argument(
        (128, 64),
        widths,
        "of the default encoder, fully connected; for images `[height, width, channels]` it is"
        " convolutional, with an embedding of `hidden_units[-1]`.",
    )
    activation: str = argument("relu", text, "of the default encoder and decoder.")
    dropout: float = argument(0.3, number(least=0, below=1), "of the default encoder.")
    l2: float = argument(0.0, number(least=0), "penalty on the default encoder's kernels.")
    optimizer: str = argument("adam", text, "of all three trainings.")
    learning_rate: float = argument(1e-3, number(above=0), "of all three trainings.")
    batch_size: int = argument(32, whole(), "of all three trainings.")
    standardise: bool = argument(
        True,
        flag,
        "whether features (the channels of images) are standardised on the training instances.",
    )
    seed: int = argument(0, whole(0), "draws everything that is random.")

    def _fit(self, data: TrainingData, run: Run) -> None:
        """Makes algorithm 1's rounds after the auto-encoder and the warm-up.

        References:
            ICED, section 2.6, algorithm 1.
        """
        from neucrowd_tf.iced.stages import Stages

        crowd, votes = data.annotations, data.annotations.vote_counts()
        size = crowd.num_classes
        self.rows_, self.certainty_ = data.rows, label_certainty(votes, self.epsilon)
        model = self._networks(data.features)
        stages = Stages(model, run, self.batch_size, self.seed)
        stages.autoencode(self.autoencoder_epochs)

        # Line 1: the warm-up, on majority votes (algorithm 2).
        majority = majority_labels(votes, "random", self.seed)
        groups = certainty_groups(self.certainty_)
        self.certainty_classes_ = class_mix(groups, majority, size)
        schedule = warm_up_schedule(self.warm_up, groups, self.warm_up_epochs)
        stages.warm_up(majority, size, schedule, self.warm_up_evened)

        generate, infer = self._modules(crowd)
        history = RoundHistory(infer(generate.real))
        # Deviation: the first candidates have the labels of EM, as all later ones; section 2.5
        # leaves the majority votes behind (`first_labels="majority"`).
        first = majority if self.first_labels == "majority" else history.labels[0]

        def start_round(index: int) -> dict[str, float]:
            latest = history.labels[-1] if index else first
            return self._start_round(index, stages, generate, infer, history, latest)

        # Lines 2 and 6: until the labels settle or the rounds are done.
        self.history_ = stages.rounds(
            self.rounds,
            start_round,
            state=history,
            evaluate=self._scoring(data.validation),
            stop_when=lambda logs: settled(logs["changed"], self.tol),
        )
        self._keep(history)
        for problem in shortages(history, generate.used, self.classes_, self.k, self.balance):
            warnings.warn(f"{type(self).__name__}: {problem}", UserWarning, stacklevel=3)
        run.flush()

    def _start_round(
        self,
        index: int,
        stages: Stages,
        generate: Generator,
        infer: Callable[[sparse.csr_matrix], Inference],
        history: RoundHistory,
        latest: NDArray[np.integer[Any]],
    ) -> dict[str, float]:
        """Sets up a round, adds it to the history and returns what is logged of it.

        Args:
            index: of the round.
            latest: `[N]` the labels of the round before.

        References:
            ICED, section 2.6, lines 3 to 5 of its algorithm.
        """
        embeddings, probabilities = stages.model.outputs()
        candidates = choose_candidates(self.candidates, probabilities, latest, generate.used)
        # Line 3: synthetic instances with their annotations.
        synthesis = self.balance == "synthesis"
        made = (
            generate(embeddings, candidates, index) if synthesis else generate.nothing(embeddings)
        )
        # Line 4: the labels of all.
        inference = infer(made.one_hot)
        changed = history.add(candidates, made.counts, inference)
        # Line 5: the classifier trains on them; the decoder follows the encoder.
        stages.set_round(
            index,
            self._targets(inference),
            made.points,
            passes=self.epochs_per_round,
            decoder_passes=self.decoder_epochs,
        )
        smallest = np.bincount(candidates, minlength=len(self.classes_))[generate.used].min()
        return {
            "changed": changed,
            "synthetic": float(made.counts.sum()),
            "smallest_class": float(smallest),
        }

    def _targets(self, inference: Inference) -> NDArray[np.float64]:
        """Returns what the classifier is trained on, `[N + S, C]`."""
        hard = np.eye(len(self.classes_))[inference.labels]
        targets = hard if self.targets == "hard" else inference.probas
        return targets * balancing_weights(targets) if self.balance == "weights" else targets

    def _networks(self, features: NDArray[np.float32]) -> ICEDModel:
        """Returns what is trained; `model_` and `decoder_` share its weights."""
        from neucrowd_tf.iced.model import build_model, prediction_model
        from neucrowd_tf.nn.encoders import make_optimizer

        mean, scale = (x.astype(np.float32) for x in standardise(features, self.standardise))
        model = build_model(
            (features - mean) / scale,
            len(self.classes_),
            (self.encoder, self.classifier, self.decoder),
            hidden_units=self.hidden_units,
            activation=self.activation,
            dropout=self.dropout,
            l2=self.l2,
            seed=self.seed,
            batch_size=self.batch_size,
            make_optimizer=lambda: make_optimizer(self.optimizer, self.learning_rate),
        )
        self.model_, self.decoder_ = prediction_model(model, mean, scale), model.decoder
        return model

    def _modules(
        self, crowd: Annotations
    ) -> tuple[Generator, Callable[[sparse.csr_matrix], Inference]]:
        """Returns the paper's two modules: synthetic data generation and true-label inference."""
        generate = Generator(
            crowd,
            self.certainty_,
            k=self.k,
            annotation_neighbours=self.annotation_neighbours,
            eta=self.eta,
            interpolation=self.interpolation,
            seed=self.seed,
        )
        infer = functools.partial(
            infer_labels,
            num_classes=crowd.num_classes,
            prior=self.prior,
            em=self.em,
            real=crowd.num_instances,
            smoothing=self.smoothing,
            max_iter=self.em_iterations,
        )
        return generate, infer

    def _scoring(
        self, validation: tuple[NDArray[np.float32], NDArray[np.int64]] | None
    ) -> Callable[[], dict[str, float]] | None:
        """Returns what scores validation data after each round; it chooses nothing."""
        if validation is None:
            return None
        features, codes = validation
        return lambda: {
            "accuracy": float(accuracy_score(codes, self._predict_proba(features).argmax(axis=1)))
        }

    def _keep(self, history: RoundHistory) -> None:
        self.labels_history_, self.candidates_history_ = history.labels, history.candidates
        self.synthetic_history_ = history.synthetic
        self.permutations_history_ = history.permutations
        self.labels_ = history.labels[-1].astype(np.int64)
        inference = history.inference
        self.probas_ = inference.probas[: len(self.labels_)]
        self.priors_, self.confusion_matrices_ = inference.priors, inference.errors
        self.n_iter_ = len(history.candidates)
        self.converged_ = settled(self.history_.get("changed", []), self.tol)

    # ----------------------------------------------------------------- use

    def evaluation(self, dataset: CrowdDataset) -> dict[str, Any]:
        """Returns how the rounds went, from the truth: see `round_scores`."""
        return round_scores(self, dataset.truth)
