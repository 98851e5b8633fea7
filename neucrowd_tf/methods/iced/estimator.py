"""ICED: the estimator, its rounds, its warm-up and its scores against the truth."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.declare.declarations import estimator, none, number, one_of, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Array, Fields, Floats, Floats32, Indices, Integers, Mask
from neucrowd_tf.errors import warn
from neucrowd_tf.methods.iced.inference import EM, PRIORS, Inference, infer_labels, label_certainty
from neucrowd_tf.methods.iced.networks import (
    ICEDModel,
    build_networks,
    epoch_order,
    prediction_model,
)
from neucrowd_tf.methods.iced.synthesis import INTERPOLATIONS, ROUNDS, Generator, choose_candidates
from neucrowd_tf.nn.embedding_networks import make_optimizer
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData, transform
from neucrowd_tf.training.features import standardise
from neucrowd_tf.training.learner import in_turns
from neucrowd_tf.training.loop import train
from neucrowd_tf.training.networks import (
    ICED_ENCODERS,
    BatchSize,
    Encoder,
    Kinds,
    LearningRate,
    Optimizer,
    Pretrained,
    Standardise,
    check_network,
    configuration,
)
from neucrowd_tf.training.owner import with_start
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import starting_values
from neucrowd_tf.training.validation import validation_figures

if TYPE_CHECKING:
    from neucrowd_tf.datasets import CrowdDataset

TOP_GROUPS = 3  # of the certainty groups, those that the warm-up can train on
# The epochs of the auto-encoder and of the warm-up draw from (seed, this, epoch).
_AUTOENCODER = 0xAE
_WARM_UP = 0x3A


@estimator
class ICED(CrowdEstimator):
    """True-label inference and synthetic minority data that improve each other.

    Works for two classes (as in the paper) and for more. An auto-encoder is trained first; its
    encoder starts the feature extractor. After a warm-up on majority votes, each round interpolates
    new instances of the rarer classes in the embedding space, lets the annotators label them as
    they labelled their neighbours, infers the labels of all instances (Dawid-Skene with a uniform
    prior) and trains the classifier on them. Which classes are rare is decided in each round, by
    its candidates.

    `fit` differs from a command in the last bits, which rounds amplify; call
    `tf.config.experimental.enable_op_determinism()` first for the same predictions.

    Attributes:
        model_: Keras model from raw features to {"probabilities", "embedding"}.
        decoder_: Keras model from an embedding to standardised features.
        labels_: `[N]` class codes inferred in the last round; `probas_` `[N, C]` their posteriors.
        priors_: `[C]` the prior that the inference held or estimated.
        confusion_matrices_: `[R, C true, C observed]` from the last round.
        certainty_: `[N]` label certainty.
        certainty_classes_: `[groups, C]` majority labels of each certainty group, the surest first.
        labels_history_: `[rounds + 1, N]` inferred labels: before any synthesis (D&S-orig), after
            the first (D&S-first), ...
        candidates_history_: `[rounds, N]` the class that each instance was a candidate of.
        synthetic_history_: `[rounds, C]` how many instances were synthesised of each class.
        permutations_history_: `[rounds + 1, C]` how EM's classes were put back in place, usually
            the identity; see `find_permutation`.
        warm_up_samples_: how many instances the warm-up trained on.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
        history_: a dict with a list for each logged value, one entry a round; for example
            `synthetic_as_made`, how many synthetic instances are inferred as the class that they
            were made for, and `balance`, the smallest class over the largest after the inference.
        n_iter_: rounds done. converged_: whether `tol` stopped them.

    References:
        Wang et al.: Learning from Imbalanced Crowdsourced Labeled Data, section 2 and
            algorithm 1.
    """

    requires_identities = True
    nested: ClassVar[Mapping[str, Kinds]] = {"encoder": ICED_ENCODERS}
    rounds: Annotated[
        int,
        whole(0),
        "number of rounds; 0 stops after the warm-up. Many repeat the classifier's mistakes.",
    ] = 15
    epochs_per_round: Annotated[int, whole(), "epochs per round, on the augmented data."] = 1
    k: Annotated[int, whole(), "number of nearest candidates of a class for the interpolation."] = 5
    annotation_neighbours: Annotated[
        int, whole(), "real neighbours from which labels are copied."
    ] = 20
    epsilon: Annotated[
        float, number(above=0), "epsilon of eq. 2.4; a tiny one copies unanimous instances."
    ] = 0.01
    eta: Annotated[float, number(least=0, most=1), "noise of eq. 2.5 is in (-eta, eta)."] = 0.1
    interpolation: Annotated[
        str,
        one_of(*INTERPOLATIONS),
        'how far a synthetic point lies from its candidate: "certainty" (equation 2.5 with S\' in'
        ' the numerator), "printed" (as published) or "uniform" (plain SMOTE).',
    ] = "certainty"
    candidates: Annotated[
        str,
        one_of("classifier", "inferred"),
        'candidates of a class are chosen by the "classifier"\'s prediction or, as published, by'
        ' the "inferred" label of the round before, in the first round that of EM on the'
        " annotations alone.",
    ] = "classifier"
    prior: Annotated[
        str,
        one_of(*PRIORS),
        '"uniform" keeps the class prior uniform, "update" estimates it (section 2.3),'
        ' "start" estimates it after a first E-step with a uniform prior.',
    ] = "uniform"
    em: Annotated[
        str,
        one_of(*EM),
        'what the M-step counts: "soft" posteriors or "hard" labels (as published).',
    ] = "soft"
    smoothing: Annotated[float, number(least=0), "pseudo-count of each cell of the matrices."] = 1.0
    em_iterations: Annotated[int, whole(), "largest number of EM iterations per round."] = 100
    warm_up: Annotated[
        str,
        one_of("groups", "all", "top", "none"),
        'training data of the warm-up: one certainty group after the other ("groups", ICED-w),'
        ' "all" (Trad-I), the "top" three groups at once (Trad-II) or "none".',
    ] = "all"
    warm_up_epochs: Annotated[int, whole(0), "epochs of the warm-up."] = 4
    autoencoder_epochs: Annotated[int, whole(0), "epochs of the auto-encoder, at first."] = 20
    tol: Annotated[
        float | None,
        number(least=0, most=1) | none,
        "stops if a round changes at most this share of the inferred labels; None runs all rounds.",
    ] = None
    pretrained: Pretrained = False
    encoder: Encoder = "dense"
    standardise: Standardise = True
    optimizer: Optimizer = "adam"
    learning_rate: LearningRate = 1e-3
    batch_size: BatchSize = 32

    _check_together = check_network
    transform = transform

    # ----------------------------------------------------------------- the algorithm

    def _fit(self, data: TrainingData, run: Run) -> None:
        """Trains the auto-encoder, warms up and makes algorithm 1's rounds.

        References:
            ICED, section 2.6, algorithm 1.
        """
        crowd = data.annotations
        votes = crowd.vote_counts()
        size = crowd.num_classes
        real = np.arange(len(data.features))
        self.rows_ = data.rows
        self.certainty_ = label_certainty(votes, self.epsilon)
        model = self._networks(data.features)
        start = starting_values(model.encoder, pretrained=self.pretrained)
        run = with_start(run, [value for _, value in start])
        # `set_epoch` decides which rows an epoch trains on.
        learn = functools.partial(train, model, in_turns(model.train_epoch))
        # Line 1: the warm-up.
        self._warm_up(model, learn, votes, run)
        generate = Generator(self, crowd, self.certainty_)
        # Section 2.4: the inference module comes before the first synthesis.
        history = RoundHistory(self._infer(generate.real, size))

        def start_round(index: int) -> dict[str, float]:
            embeddings, probabilities = model.outputs()
            latest = history.labels[-1]
            candidates = choose_candidates(self.candidates, probabilities, latest, generate.used)
            # Line 3: synthetic instances with their annotations.
            synthetic = generate(embeddings, candidates, index)
            # Line 4: the labels of all instances.
            inference = self._infer(synthetic.one_hot, size)
            changed = history.add(candidates, synthetic.counts, inference)
            # Line 5: the classifier trains on them; the decoder follows the encoder.
            model.set_rows(np.eye(size)[inference.labels], model.decode(synthetic.points))
            rows = np.arange(len(inference.labels))
            model.set_epoch(
                classifier=self._order(rows, ROUNDS, 1, index, passes=self.epochs_per_round),
                decoder=self._order(real, ROUNDS, 4, index),
            )
            candidate_counts = np.bincount(candidates, minlength=size)[generate.used]
            return {
                "changed": changed,
                "smallest_class": float(candidate_counts.min()),
                **round_figures(synthetic.counts, inference.labels, generate.used),
            }

        def figures() -> dict[str, float]:  # logged only: no round is chosen by them
            features, codes = data.validation  # type: ignore[misc]
            return validation_figures(self._predict_proba(features), codes, auc=False)

        # Lines 2 and 6: until the labels settle or the rounds are done.
        self.history_ = learn(
            epochs=self.rounds,
            run=run.stage("rounds"),
            epoch_start=start_round,
            state=history,
            evaluate=None if data.validation is None else figures,
            stop_when=lambda logs: settled(logs["changed"], self.tol),
        ).logs
        self._set_results(history)
        for problem in shortages(history, generate.used, self.classes_):
            warn(f"{type(self).__name__}: {problem}", UserWarning, stacklevel=3)

    def _order(self, rows: Indices, *stream: int, passes: int = 1) -> Indices:
        """Returns an epoch's rows in an order that is drawn from the seed and the stream."""
        rng = np.random.default_rng([self.seed, *stream])
        return epoch_order(rows, self.batch_size, rng, passes)

    def _warm_up(self, model: ICEDModel, learn: Callable[..., Any], votes: Array, run: Run) -> None:
        """Trains the auto-encoder, then the classifier on majority votes.

        References:
            ICED, algorithm 1, line 1; section 2.5.
        """
        size = votes.shape[1]
        real = np.arange(len(votes))

        def start_autoencoder(epoch: int) -> None:
            model.set_epoch(autoencoder=self._order(real, _AUTOENCODER, epoch))

        stage = run.stage("autoencoder")
        learn(epochs=self.autoencoder_epochs, run=stage, epoch_start=start_autoencoder)
        majority = majority_labels(votes, "random", self.seed)
        groups = certainty_groups(self.certainty_)
        self.certainty_classes_ = class_mix(groups, majority, size)
        schedule = warm_up_schedule(self.warm_up, groups, self.warm_up_epochs)
        self.warm_up_samples_ = len(np.unique(np.concatenate([real[:0], *schedule])))
        model.set_rows(np.eye(size)[majority])

        def start_warm_up(epoch: int) -> None:
            model.set_epoch(classifier=self._order(schedule[epoch], _WARM_UP, epoch))

        learn(epochs=len(schedule), run=run.stage("warm-up"), epoch_start=start_warm_up)

    def _networks(self, features: Floats32) -> ICEDModel:
        """Returns what is trained; `model_` and `decoder_` share its weights."""
        mean, scale = np.asarray(standardise(features, self.standardise), np.float32)
        classes = len(self.classes_)
        networks = build_networks(
            features.shape[1:],
            classes,
            configuration("encoder", self.encoder, ICED_ENCODERS),
            seed=self.seed,
            pretrained=self.pretrained,
        )
        model = ICEDModel(
            *networks,
            (features - mean) / scale,
            classes,
            batch_size=self.batch_size,
            make_optimizer=functools.partial(make_optimizer, self.optimizer, self.learning_rate),
        )
        self.model_ = prediction_model(model, mean, scale)
        self.decoder_ = model.decoder
        return model

    def _infer(self, one_hot: sparse.csr_matrix, num_classes: int) -> Inference:
        """Returns the inference over the annotations of real and synthetic instances."""
        return infer_labels(
            one_hot,
            num_classes,
            prior=self.prior,
            em=self.em,
            smoothing=self.smoothing,
            max_iter=self.em_iterations,
            seed=self.seed,
        )

    def _set_results(self, history: RoundHistory) -> None:
        self.labels_history_ = history.labels
        self.candidates_history_ = history.candidates
        self.synthetic_history_ = history.synthetic
        self.permutations_history_ = history.permutations
        self.labels_ = history.labels[-1].astype(np.int64)
        inference = history.inference
        self.probas_ = inference.probas[: len(self.labels_)]
        self.priors_ = inference.priors
        self.confusion_matrices_ = inference.errors
        self.n_iter_ = len(history.candidates)
        self.converged_ = settled(self.history_.get("changed", []), self.tol)

    # ----------------------------------------------------------------- scores against the truth

    def evaluation(self, dataset: CrowdDataset) -> Fields:
        """Returns scores of the warm-up and the rounds for evaluation.json.

        Returns:
            `warm_up_samples`, how many instances the warm-up trained on; `group_<g>` and
                `group_<g>_largest`, the size of each certainty group and the share of its most
                frequent label; `permuted`, how often the inference permuted the classes;
                `synthetic_as_made`, the share of all rounds' synthetic instances that are inferred
                as the class that they were made for, and the last round's `balance`; with the
                truth of the training instances also `rounds`, lists of `label_accuracy`,
                `balanced_label_accuracy`, `candidate_purity` and the classes' shares of inferred
                labels, candidates and synthetic instances, and `label_original`,
                `label_first` and `label_final`, the label accuracies that figure 2 compares.

        References:
            ICED, section 3.3, figure 2 and table 3.
        """
        permuted = self.permutations_history_ != np.arange(len(self.classes_))
        scores: Fields = {
            "warm_up_samples": self.warm_up_samples_,
            "permuted": int(permuted.any(axis=1).sum()),
        }
        if synthetic := sum(self.history_.get("synthetic", ())):
            scores["synthetic_as_made"] = sum(self.history_["synthetic_as_made"]) / synthetic
            scores["balance"] = self.history_["balance"][-1]
        for group, mix in enumerate(self.certainty_classes_, start=1):
            scores[f"group_{group}"] = int(mix.sum())
            scores[f"group_{group}_largest"] = _quotients(mix.max(), mix.sum()).item()
        truth = dataset.truth
        if truth is None or (truth[self.rows_] < 0).all():
            return scores
        table = score_rounds(self, truth)
        labels = table["label_accuracy"].tolist()
        purity = table["candidate_purity"].tolist()
        scores["rounds"] = {
            "label_accuracy": labels,
            "balanced_label_accuracy": table["balanced_label_accuracy"].tolist(),
            "candidate_purity": purity,
        }
        for stage, counts in class_counts(self).items():
            shares = _quotients(counts, counts.sum(axis=1, keepdims=True))
            scores["rounds"][f"{stage}_shares"] = shares.tolist()
        scores["label_original"] = labels[0]
        scores["label_final"] = labels[-1]
        scores["candidate_purity"] = purity[-1]
        if len(labels) > 1:
            scores["label_first"] = labels[1]
        return scores


def _counts(codes: Integers, num_classes: int) -> Integers:
    """Returns how often each class is among the codes of each row, `[rows, C]`."""
    return (codes[:, :, None] == np.arange(num_classes)).sum(axis=1)


def _quotients(numbers: Array, totals: Array) -> Floats:
    """Returns numbers over totals, NaN for a total of 0 or NaN."""
    numbers, totals = np.broadcast_arrays(numbers, totals)
    return np.divide(numbers, totals, out=np.full(numbers.shape, np.nan), where=totals > 0)


def class_counts(model: ICED) -> dict[str, Array]:
    """Returns the instances of each class by round, `[rounds + 1, C]`.

    Returns:
        a matrix for "inferred" labels, for "candidates" and for "synthetic" instances. The last two
            have NaN in row 0, before any synthesis.
    """
    size = len(model.classes_)
    none = np.full(size, np.nan)
    return {
        "inferred": _counts(model.labels_history_, size),
        "candidates": np.vstack([none, _counts(model.candidates_history_, size)]),
        "synthetic": np.vstack([none, model.synthetic_history_]),
    }


def score_rounds(model: ICED, truth: ArrayLike) -> pd.DataFrame:
    """Scores each round of a fitted ICED against the true labels, which `fit` never sees.

    Args:
        model: fitted.
        truth: `[N]` class codes of the instances that `fit` was given, -1 where unknown (such
            instances do not count).

    Returns:
        A row per round. Row 0 is before any synthesis (D&S-orig), row 1 is D&S-first, and the last
        row D&S-final. Columns are `round`, `label_accuracy`, `balanced_label_accuracy` (the mean
        over classes), `candidate_purity`, and for each class `inferred_<class>`,
        `candidates_<class>` and `synthetic_<class>` counts. The purity of a class is the share of
        its candidates that belong to it; the column has the mean over the classes that were
        synthesised. Purity and the last two counts are NaN in row 0.

    References:
        ICED, section 3.3 and figure 2.
    """
    codes = np.asarray(truth)[model.rows_]
    known = codes >= 0
    codes = codes[known]
    right = model.labels_history_[:, known] == codes
    by_class = [right[:, codes == code].mean(axis=1) for code in np.unique(codes)]
    size = len(model.classes_)
    candidates = model.candidates_history_[:, known]
    pure = _counts(np.where(candidates == codes, candidates, -1), size)
    purities = _quotients(pure, _counts(candidates, size))
    synthesised = np.ma.array(purities, mask=model.synthetic_history_ == 0)
    table = pd.DataFrame(
        {
            "round": np.arange(len(right)),
            "label_accuracy": right.mean(axis=1),
            "balanced_label_accuracy": np.mean(by_class, axis=0),
            "candidate_purity": [np.nan, *synthesised.mean(axis=1).filled(np.nan)],
        }
    )
    for stage, counts in class_counts(model).items():
        table[[f"{stage}_{name}" for name in model.classes_.tolist()]] = counts
    return table


# --------------------------------------------------------------------- the rounds


class RoundHistory:
    """The rounds so far, as arrays that are part of each checkpoint.

    All else that a round depends on follows from the networks' weights and the seed.

    Args:
        inference: of the real annotations alone, before any synthesis (D&S-orig).

    Attributes:
        inference: the last one.
        labels: `[rounds + 1, N]` inferred labels of the real instances.
        permutations: `[rounds + 1, C]`, see `Inference`.
        candidates: `[rounds, N]` the class that each instance was a candidate of.
        synthetic: `[rounds, C]` how many instances were synthesised of each class.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.labels = inference.labels[None].astype(np.int16)
        self.permutations = inference.permutation[None].astype(np.int16)
        self.candidates = self.labels[:0]
        self.synthetic = np.zeros((0, len(inference.priors)), np.int64)

    def add(self, candidates: Indices, counts: Indices, inference: Inference) -> float:
        """Adds a round and returns the share of the inferred labels that it changed."""

        def joined(rows: Array, row: Array) -> Array:
            return np.concatenate([rows, row[None].astype(rows.dtype)])

        self.inference = inference
        self.labels = joined(self.labels, inference.labels[: self.labels.shape[1]])
        self.permutations = joined(self.permutations, inference.permutation)
        self.candidates = joined(self.candidates, candidates)
        self.synthetic = joined(self.synthetic, counts)
        return float(np.mean(self.labels[-1] != self.labels[-2]))

    def get_state(self) -> dict[str, Array]:
        """Returns everything as arrays."""
        state = vars(self) | vars(self.inference)
        del state["inference"]
        return state

    def set_state(self, state: dict[str, Array]) -> None:
        """Continues from what `get_state` returned."""
        self.inference = Inference(**{name: state[name] for name in vars(self.inference)})
        for name in ("labels", "permutations", "candidates", "synthetic"):
            setattr(self, name, state[name])


def round_figures(counts: Indices, inferred: Indices, used: Mask) -> dict[str, float]:
    """Returns how many instances a round synthesised, and how many have their intended class.

    Args:
        counts: `[C]` synthetic instances of each class.
        inferred: `[N + S]` labels of the real and then the synthetic instances, class after class.
        used: `[C]` whether any annotator gave the class.

    Returns:
        `synthetic`, their number; `synthetic_as_made`, the number that are inferred as the class
            that they were made for; and `balance`, the smallest class over the largest among all
            instances.
    """
    intended = np.repeat(np.arange(len(counts)), counts)
    as_made = inferred[len(inferred) - len(intended) :] == intended
    sizes = np.bincount(inferred, minlength=len(counts))[used]
    return {
        "synthetic": float(counts.sum()),
        "synthetic_as_made": float(as_made.sum()),
        "balance": float(sizes.min() / sizes.max()),
    }


def settled(changed: Sequence[float], tol: float | None) -> bool:
    """Returns whether the last round changed no larger share of the labels than `tol`.

    The first round, which brings in synthetic instances, does not count.

    Args:
        changed: the share that each round changed, so far.
        tol: None never stops.

    References:
        ICED, algorithm 1, line 6.
    """
    return tol is not None and len(changed) > 1 and changed[-1] <= tol


def shortages(history: RoundHistory, used: Mask, names: Array) -> list[str]:
    """Returns sentences about unused classes and classes that were too small to synthesise.

    Args:
        history: of all rounds.
        used: `[C]` whether any annotator gave the class.
        names: `[C]` of the classes.
    """
    small = used & (_counts(history.candidates, len(names)) < 2).any(axis=0)
    sentences = []
    for problem, classes in (
        ("no annotator used this class, which is never synthesised or inferred", ~used),
        ("fewer than two candidates in a round, too few to synthesise from, of class", small),
    ):
        if classes.any():
            sentences.append(f"{problem}: {', '.join(map(repr, names[classes].tolist()))}")
    return sentences


# --------------------------------------------------------------------- the warm-up


def certainty_groups(certainty: Array) -> Indices:
    """Returns `[N]` groups: 1 for the highest certainty, 2 for the next; the last has the rest.

    Groups are distinct values, not quantiles: W annotators of two classes have only W // 2 + 1 of
    them. If fewer than `TOP_GROUPS` values occur, the later groups are empty.

    Args:
        certainty: `[N]` label certainty.

    References:
        ICED, section 2.5 (four groups; algorithm 2 with the details is not in our text).
    """
    negated, index = np.unique(np.negative(certainty), return_inverse=True)
    # Values that differ only by rounding are one level.
    breaks = negated[1:] > negated[:-1] * (1 - 1e-9)
    levels = np.concatenate([[0], np.cumsum(breaks)])
    return np.minimum(levels[index] + 1, TOP_GROUPS + 1).astype(np.int64)


def warm_up_schedule(strategy: str, groups: Indices, epochs: int) -> list[Indices]:
    """Returns the rows that each epoch of the warm-up trains on.

    Args:
        strategy: "groups" (ICED-w: the third-highest group first, then the second-highest, then the
            highest), "all" (Trad-I: every instance), "top" (Trad-II: the three groups at once) or
            "none".
        groups: `[N]` from `certainty_groups`.
        epochs: of the whole warm-up; "groups" divides them among the groups, and earlier groups
            have one more if they do not divide evenly.

    References:
        ICED, sections 2.5 and 3.4.
    """
    if strategy == "all":
        return [np.arange(len(groups))] * epochs
    if strategy == "top":
        return [np.flatnonzero(groups <= TOP_GROUPS)] * epochs
    if strategy == "none":
        return []
    present = np.unique(groups[groups <= TOP_GROUPS])[::-1]
    turns = np.sort(np.arange(epochs) % len(present))  # the earlier groups have one more
    return [np.flatnonzero(groups == group) for group in present[turns]]


def class_mix(groups: Indices, labels: Integers, num_classes: int) -> Indices:
    """Returns how many instances of each certainty group have each label, `[groups, C]`.

    A group of nearly one class teaches the classifier that class alone.
    """
    cells = np.zeros((int(groups.max(initial=0)), num_classes), dtype=np.int64)
    np.add.at(cells, (groups - 1, labels), 1)
    return cells


_SETTINGS = settings_in(Path(__file__).with_name("presets.toml"))
for _name, _variant in _SETTINGS["variants"].items():
    register_method(_name, presets=_SETTINGS["presets"], space=_SETTINGS["space"], **_variant)(ICED)
