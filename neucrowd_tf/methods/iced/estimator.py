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
from neucrowd_tf.declare.types import Array, Fields, Floats32, Indices, Integers, Mask
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

TOP_GROUPS = 3
# What the auto-encoder's and the warm-up's epochs draw is a function of (seed, this, epoch).
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
        permutations_history_: `[rounds + 1, C]` how EM's classes were put back in place (the
            identity as a rule); `find_permutation` is this repair.
        warm_up_samples_: how many instances the warm-up trained on.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
        history_: a dict with a list for each logged value, one entry a round; for example
            `synthetic_as_made`, how many synthetic instances are inferred as the class that they
            were made for, and `balance`, the smallest class over the largest after the inference.
        n_iter_: rounds done. converged_: whether `tol` stopped them.

    References:
        Wang et al.: Learning from Imbalanced Crowdsourced Labeled Data, section 2, algorithms 1 and
            2.
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
        votes = data.annotations.vote_counts()
        size = crowd.num_classes
        real = np.arange(len(data.features))
        self.rows_, self.certainty_ = data.rows, label_certainty(votes, self.epsilon)
        model = self._networks(data.features)
        start = starting_values(model.encoder, pretrained=self.pretrained)
        run = with_start(run, [value for _, value in start])
        # An epoch is of the rows that `set_epoch` says.
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
            passes = self.epochs_per_round
            model.set_epoch(
                classifier=self._order(rows, ROUNDS, 1, index, passes=passes),
                decoder=self._order(real, ROUNDS, 4, index),
            )
            smallest = np.bincount(candidates, minlength=size)[generate.used].min()
            figures = round_figures(synthetic.counts, inference.labels, generate.used)
            return {"changed": changed, "smallest_class": float(smallest), **figures}

        def figures() -> dict[str, float]:  # they choose nothing
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
        """Returns an epoch's rows, drawn from the seed and the stream."""
        rng = np.random.default_rng([self.seed, *stream])
        return epoch_order(rows, self.batch_size, rng, passes)

    def _warm_up(self, model: ICEDModel, learn: Callable[..., Any], votes: Array, run: Run) -> None:
        """Trains the auto-encoder, then the classifier on majority votes.

        References:
            ICED, algorithm 1, line 1; section 2.5 and algorithm 2.
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
        self.warm_up_samples_ = len(set().union(*(rows.tolist() for rows in schedule)))
        model.set_rows(np.eye(size)[majority])

        def start_warm_up(epoch: int) -> None:
            model.set_epoch(classifier=self._order(schedule[epoch], _WARM_UP, epoch))

        learn(epochs=len(schedule), run=run.stage("warm-up"), epoch_start=start_warm_up)

    def _networks(self, features: Floats32) -> ICEDModel:
        """Returns what is trained; `model_` and `decoder_` share its weights."""
        mean, scale = (x.astype(np.float32) for x in standardise(features, self.standardise))
        shape = features.shape[1:]
        classes = len(self.classes_)
        config = configuration("encoder", self.encoder, ICED_ENCODERS)
        networks = build_networks(
            shape, classes, config, seed=self.seed, pretrained=self.pretrained
        )
        scaled = (features - mean) / scale
        size = self.batch_size
        make = functools.partial(make_optimizer, self.optimizer, self.learning_rate)
        model = ICEDModel(*networks, scaled, classes, batch_size=size, make_optimizer=make)
        self.model_ = prediction_model(model, mean, scale)
        self.decoder_ = model.decoder
        return model

    def _infer(self, one_hot: sparse.csr_matrix, num_classes: int) -> Inference:
        """Returns labels of real and synthetic instances."""
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
        if number := sum(self.history_.get("synthetic", ())):
            as_made = sum(self.history_["synthetic_as_made"]) / number
            scores |= {"synthetic_as_made": as_made, "balance": self.history_["balance"][-1]}
        for group, mix in enumerate(self.certainty_classes_, start=1):
            if mix.any():
                largest = float(mix.max() / mix.sum())
            else:
                largest = None
            scores |= {f"group_{group}": int(mix.sum()), f"group_{group}_largest": largest}
        if dataset.truth is None:
            return scores
        table = score_rounds(self, dataset.truth)
        names = ("label_accuracy", "balanced_label_accuracy", "candidate_purity")
        scores["rounds"] = {name: table[name].tolist() for name in names}
        for kind in ("inferred", "candidates", "synthetic"):
            counts = table[[f"{kind}_{name}" for name in self.classes_.tolist()]]
            shares = counts.div(counts.sum(axis=1).replace(0, np.nan), axis=0)
            scores["rounds"][f"{kind}_shares"] = shares.to_numpy(object).tolist()
        labels = scores["rounds"]["label_accuracy"]
        purity = scores["rounds"]["candidate_purity"]
        scores |= {"label_original": labels[0], "label_final": labels[-1]}
        scores["candidate_purity"] = purity[-1]
        return scores | ({"label_first": labels[1]} if len(labels) > 1 else {})


def score_rounds(model: ICED, truth: ArrayLike) -> pd.DataFrame:
    """Scores each round of a fitted ICED against the true labels, which `fit` never sees.

    Args:
        model: fitted.
        truth: `[N]` class codes of the instances that `fit` was given.

    Returns:
        A row per round, round 0 before any synthesis (D&S-orig; 1 is D&S-first, the last
        D&S-final), with the columns `label_accuracy`, `balanced_label_accuracy` (mean over
        classes), `candidate_purity` (mean over the classes that were synthesised, of how many of
        their candidates belong to them), and for each class `candidates_<class>`,
        `synthetic_<class>`, `inferred_<class>` counts. What round 0 has not is NaN.

    References:
        ICED, section 3.3 and figure 2.
    """
    codes = np.asarray(truth)[model.rows_]
    records = []
    for index, inferred in enumerate(model.labels_history_):
        right = inferred == codes
        if index:
            candidates = model.candidates_history_[index - 1]
        else:
            candidates = inferred[:0]
        if index:
            counts = model.synthetic_history_[index - 1]
        else:
            counts = np.zeros(0)
        members = [codes[candidates == code] == code for code in np.flatnonzero(counts)]
        purities = [member.mean() for member in members if len(member)]
        by_class = [right[codes == code].mean() for code in np.unique(codes)]
        record: Fields = {
            "round": index,
            "label_accuracy": right.mean(),
            "balanced_label_accuracy": np.mean(by_class),
            "candidate_purity": np.mean(purities) if purities else np.nan,
        }
        for code, name in enumerate(model.classes_.tolist()):
            record[f"inferred_{name}"] = int((inferred == code).sum())
            if index:
                record[f"candidates_{name}"] = int((candidates == code).sum())
            else:
                record[f"candidates_{name}"] = np.nan
            if index:
                record[f"synthetic_{name}"] = int(counts[code])
            else:
                record[f"synthetic_{name}"] = np.nan
        records.append(record)
    return pd.DataFrame.from_records(records)


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
        rows = {name: value for name, value in vars(self).items() if name != "inference"}
        return rows | vars(self.inference)

    def set_state(self, state: dict[str, Array]) -> None:
        """Goes on from what `get_state` returned."""
        names = ("probas", "priors", "errors", "permutation")
        self.inference = Inference(*(state[name] for name in names))
        self.labels = state["labels"]
        self.permutations = state["permutations"]
        self.candidates = state["candidates"]
        self.synthetic = state["synthetic"]


def round_figures(counts: Indices, inferred: Indices, used: Mask) -> dict[str, float]:
    """Returns how many instances a round synthesised, how many of them are inferred as made.

    Args:
        counts: `[C]` synthetic instances of each class.
        inferred: `[N + S]` labels of the real and then the synthetic instances, class after class.
        used: `[C]` whether any annotator gave the class.

    Returns:
        `synthetic`, `synthetic_as_made` and `balance`, the smallest class over the largest among
            all instances.
    """
    classes = np.repeat(np.arange(len(counts)), counts)
    as_made = (inferred[len(inferred) - len(classes) :] == classes).sum()
    sizes = np.bincount(inferred, minlength=len(counts))[used]
    balance = float(sizes.min() / sizes.max())
    number = float(counts.sum())
    return {"synthetic": number, "synthetic_as_made": float(as_made), "balance": balance}


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
    sizes = (history.candidates[:, :, None] == np.arange(len(names))).sum(axis=1)
    small = used & (sizes < 2).any(axis=0)
    problems = {
        "no annotator used this class, which is never synthesised or inferred": ~used,
        "fewer than two candidates in a round, too few to synthesise from, of class": small,
    }
    return [
        f"{problem}: {', '.join(map(repr, names[classes].tolist()))}"
        for problem, classes in problems.items()
        if classes.any()
    ]


# --------------------------------------------------------------------- the warm-up


def certainty_groups(certainty: Array) -> Indices:
    """Returns `[N]` groups: 1 for the highest certainty, 2 for the next; the rest share the last.

    Groups are distinct values, not quantiles: W annotators of two classes have only W // 2 + 1 of
    them. Where fewer than `TOP_GROUPS` values occur, the later groups are empty.

    References:
        ICED, section 2.5 (four groups; algorithm 2 with the details is in an appendix that our text
        lacks).
    """
    values = np.asarray(certainty, dtype=np.float64)
    ordered = np.sort(np.unique(values))[::-1]
    # Values that differ by rounding alone are one level.
    breaks = np.concatenate([[False], ordered[1:] < ordered[:-1] * (1 - 1e-9)])
    level = np.cumsum(breaks)[len(ordered) - 1 - np.searchsorted(ordered[::-1], values)]
    return np.minimum(level + 1, TOP_GROUPS + 1).astype(np.int64)


def warm_up_schedule(strategy: str, groups: Indices, epochs: int) -> list[Indices]:
    """Returns the rows that each epoch of the warm-up trains on.

    Args:
        strategy: "groups" (ICED-w: the third-highest group first, then the second-highest, then the
            highest), "all" (Trad-I: every instance), "top" (Trad-II: the three groups at once) or
            "none".
        groups: `[N]` from `certainty_groups`.
        epochs: of the whole warm-up; "groups" gives each group its third, the earlier ones one more
            where it does not divide.

    References:
        ICED, sections 2.5 and 3.4, algorithm 2 (not published).
    """
    rows = np.arange(len(groups))
    if strategy == "all":
        return [rows] * epochs
    if strategy == "top":
        return [rows[groups <= TOP_GROUPS]] * epochs
    if strategy == "none":
        return []
    of_groups = (rows[groups == group] for group in range(TOP_GROUPS, 0, -1))
    present = [members for members in of_groups if len(members)]
    in_turn = np.sort(np.arange(epochs) % len(present))  # the earlier ones have one more
    return [present[index] for index in in_turn]


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
