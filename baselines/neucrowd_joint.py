"""neucrowd_joint: NeuCrowd's tuplets as the residual of a linear classifier trained on posteriors.

The method is ours, not the paper's.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from neucrowd_tf.aggregation.crowd_and_classifier import alternate, evidence
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import estimator, fitted, number, strengths, whole
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData, transform
from neucrowd_tf.training.features import standardise
from neucrowd_tf.training.linear import soft_path
from neucrowd_tf.training.networks import (
    ENCODERS,
    BatchSize,
    Encoder,
    Epochs,
    Kinds,
    LearningRate,
    Optimizer,
    Standardise,
    StepsPerEpoch,
    check_network,
    configuration,
)
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from baselines.neucrowd_joint_model import Member

    Rows = tuple[NDArray[Any], NDArray[Any]]  # features and class probabilities

_QUARTER_DECADES = tuple(float(10.0 ** (k / 4)) for k in range(-16, 5))
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the residual
_MEMBER_STRIDE = 7907  # member m draws from seed + m times this prime
_PSEUDO = 0.1  # a label that an annotator never gave is rare, not impossible
_LEAST = 1e-4  # how sure a classifier may be that an instance is not of a class
_PATIENCE = 3  # strengths in a row that are worse than the best before weaker ones are left


@register_method(
    "neucrowd_joint",
    summary="a linear classifier on posteriors, and a residual trained on tuplets (ours)",
    space={"trust": (1.0, 3.0, 10.0), "l2": (1e-4, 1e-3, 1e-2), "rounds": (1, 3, 5)},
)
@estimator
class NeuCrowdJoint(TransformerMixin, CrowdEstimator):
    """Logits `linear(x) + s mean_m f_m(x) V_m`.

    1. The posterior begins as Dawid-Skene's (the shares of votes without identities).
    2. A linear classifier is trained against it; its strength has the least log loss on instances
       left out in turn, and on validation data. In each round the left-out probabilities become
       the prior of a new posterior, and the classifier is trained anew.
    3. Members f_m, V_m are trained on tuplets in which every class takes the positive role, and on
       the posterior, beside the left-out logits; each leaves one fold out.
    4. s, from 0 to 1, is chosen on what members left out and on validation data. At s = 0 the
       method is SoftProb where there are no identities.

    Works on annotations and on vote counts alone, for any number of classes.

    Attributes:
        model_: Keras model from raw features to {"probabilities", "embedding"}; the embedding is
            that of all members side by side.
        posterior_: `[n, C]` of the instances trained on, after the last round.
        assurance_: `[n]` definition 2's, with the posterior for shares of votes.
        residual_share_: s.
        regularisation_: C of the linear classifier.
        history_: `loss`, an entry an epoch of each member.

    References:
        NeuCrowd, definition 2 and section 3.3.3; Raykar et al. (2010), section 2.4.
    """

    n: Annotated[
        int, whole(3), "tuplet size: an anchor, a positive example and n - 2 negatives."
    ] = 5
    eta: Annotated[float, number(above=0), "smoothing of the softmax."] = 5.0
    trust: Annotated[
        float, number(least=0), "weight of the cross-entropy against the posterior."
    ] = 3.0
    rounds: Annotated[
        int, whole(0), "how often the posterior is estimated again, if annotators are identified."
    ] = 4
    members: Annotated[int, whole(0), "how many residuals are averaged; 0 leaves them out."] = 3
    folds: Annotated[int, whole(2), "parts in which instances are left out."] = 5
    epochs: Epochs = 10  # of each member
    steps_per_epoch: StepsPerEpoch = 20
    Cs: Annotated[
        Sequence[float],
        strengths,
        "what the linear classifier's C is chosen from, the strongest regularisation first.",
    ] = _QUARTER_DECADES
    encoder: Encoder = "dense"
    standardise: Standardise = True
    optimizer: Optimizer = "adam"
    learning_rate: LearningRate = 1e-3
    batch_size: BatchSize = 128

    nested: ClassVar[Mapping[str, Kinds]] = {"encoder": ENCODERS}
    _check_together, transform = check_network, transform

    model_: Any = fitted()
    posterior_: NDArray[np.float64] = fitted()
    assurance_: NDArray[np.float32] = fitted()
    residual_share_: float = fitted()
    regularisation_: float = fitted()
    history_: dict[str, list[float]] = fitted()

    def _fit(self, data: TrainingData, run: Run) -> None:
        flat = data.features.reshape(len(data.features), -1)
        mean, scale = (block.astype(np.float32) for block in standardise(flat, self.standardise))
        x = (flat - mean) / scale
        held: Rows | None = None
        if data.validation is not None:
            values, codes = data.validation
            rows = (values.reshape(len(values), -1) - mean) / scale
            held = rows, np.eye(len(self.classes_))[codes]
        parts = fold_rows(data.annotations.vote_counts().argmax(axis=1), self.folds, self.seed)
        stage = run.cached(
            "linear", lambda: linear_stage(x, data.annotations, held, parts, self.Cs, self.rounds)
        )
        self.posterior_, left_out = stage["posterior"], stage["left_out"]
        self.assurance_ = posterior_assurance(self.posterior_)
        self.regularisation_, self.history_ = float(stage["strength"]), {}
        members = self._train_members(x, left_out, parts, run)
        kernel, bias = next(soft_path(x, self.posterior_, [self.regularisation_]))
        self.residual_share_ = self._share(members, x, left_out, parts, held, (kernel, bias))
        self.model_ = self._inference(members, mean, scale, kernel, bias)

    # ------------------------------------------------------------- the residual

    def _train_members(
        self,
        x: NDArray[np.float32],
        left_out: NDArray[Any],
        parts: list[NDArray[np.intp]],
        run: Run,
    ) -> list[Member]:
        """Returns trained residuals; member m never saw fold m.

        There are no residuals if no class has two instances to pair, or the tuplets' negatives.
        Members are trained in one network, one after another: it is compiled once, and begins from
        each member's own weights.
        """
        from baselines.neucrowd_joint_model import Member
        from neucrowd_tf.training.batches import uniform_batches
        from neucrowd_tf.training.loop import train
        from neucrowd_tf.training.state import model_variables, read_variables, write_variables

        network = self._network(x, left_out, run) if self.members else None
        if network is None:
            return []
        start = read_variables(model_variables(network))
        members = []
        for m, block in zip(range(self.members), parts, strict=False):
            seed = self.seed + m * _MEMBER_STRIDE
            encoder = self._make_encoder(x.shape[1], seed, f"encoder_{m}")
            write_variables(model_variables(network), start)
            write_variables(network.encoder.variables, read_variables(encoder.variables))
            network.set_probabilities(~np.isin(np.arange(len(x)), block))
            history = train(
                network,
                uniform_batches(seed, self.batch_size, self.n + 1),
                epochs=self.epochs,
                steps_per_epoch=self.steps_per_epoch,
                run=run.stage(f"member-{m}"),
            )
            self.history_.setdefault("loss", []).extend(history.logs["loss"])
            encoder.set_weights(network.encoder.get_weights())
            members.append(Member(encoder, np.array(network.kernel)))
        return members

    def _network(self, x: NDArray[np.float32], left_out: NDArray[Any], run: Run) -> Any:
        """Returns the compiled network of the members; None if no tuplet can be drawn."""
        from baselines.neucrowd_joint_model import ResidualModel
        from neucrowd_tf.nn.encoders import make_optimizer
        from neucrowd_tf.training.tuplets import TupletIndex

        labels = self.posterior_.argmax(axis=1)
        counts = np.bincount(labels, minlength=self.posterior_.shape[1])
        enough = (counts >= 2) & (len(labels) - counts >= self.n - 2)
        if not enough.any():
            return None
        index = TupletIndex(labels, self.n - 2, np.flatnonzero(enough).tolist())
        with run.scope():
            model = ResidualModel(
                self._make_encoder(x.shape[1], self.seed, "encoder"),
                x,
                index,
                self.assurance_,
                self.posterior_,
                left_out,
                eta=self.eta,
                trust=self.trust,
                l2=configuration("encoder", self.encoder, ENCODERS).l2,
            )
            model.compile(
                optimizer=make_optimizer(self.optimizer, self.learning_rate),
                steps_per_execution=run.steps_per_call(self.steps_per_epoch),
                jit_compile=False,
            )
            model.optimizer.build(model.trainable_variables)
        return model

    def _make_encoder(self, width: int, seed: int, name: str) -> Any:
        from neucrowd_tf.nn.encoders import build_encoder

        return build_encoder(configuration("encoder", self.encoder, ENCODERS), width, seed, name)

    def _share(
        self,
        members: list[Member],
        x: NDArray[np.float32],
        left_out: NDArray[Any],
        parts: list[NDArray[np.intp]],
        held: Rows | None,
        linear: tuple[NDArray[Any], NDArray[Any]],
    ) -> float:
        """Returns how much of the residual serves instances best that it was not trained on."""
        if not members:
            return 0.0
        targets, logits, residuals = [], [], []
        for member, block in zip(members, parts, strict=False):
            targets.append(self.posterior_[block])
            logits.append(left_out[block])
            residuals.append(member.residual(x[block]))
        if held is not None:
            targets.append(held[1])
            logits.append(held[0] @ linear[0] + linear[1])
            residuals.append(np.mean([member.residual(held[0]) for member in members], axis=0))
        target, base, rest = (np.concatenate(block) for block in (targets, logits, residuals))
        losses = [entropy(target, base + share * rest) for share in _SHARES]
        return _SHARES[int(np.argmin(losses))]

    # ------------------------------------------------------------- use

    def _inference(
        self,
        members: list[Member],
        mean: NDArray[np.float32],
        scale: NDArray[np.float32],
        kernel: NDArray[Any],
        bias: NDArray[Any],
    ) -> Any:
        """Returns raw features -> standardise -> linear classifier and residuals as a model."""
        import keras

        from neucrowd_tf.nn.layers import constants

        inputs = keras.Input(self.feature_shape_, name="features")
        flat = inputs if len(self.feature_shape_) == 1 else keras.layers.Flatten()(inputs)
        x = constants(mean, scale, "standardise")(flat)
        # Without members the standardised features are the embedding.
        embedded = [member.encoder(x) for member in members] or [x]
        joined = keras.layers.Concatenate()(embedded) if len(embedded) > 1 else embedded[0]
        embedding = keras.layers.Activation("linear", name="embedding", dtype="float32")(joined)
        classes = len(self.classes_)
        first = keras.layers.Dense(classes, name="linear", dtype="float32")
        logits = first(x)
        if members:
            second = keras.layers.Dense(classes, use_bias=False, name="residual", dtype="float32")
            logits = keras.layers.Add(name="logits", dtype="float32")([logits, second(embedding)])
        outputs = keras.layers.Activation("softmax", name="probabilities", dtype="float32")(logits)
        model = keras.Model(
            inputs, {"probabilities": outputs, "embedding": embedding}, name="neucrowd_joint"
        )
        first.set_weights([kernel, bias])
        if members:
            share = self.residual_share_ / len(members)
            second.set_weights([share * np.concatenate([member.kernel for member in members])])
        return model


# --------------------------------------------------------------------- the linear classifier


def fold_rows(labels: NDArray[np.integer[Any]], folds: int, seed: int) -> list[NDArray[np.intp]]:
    """Returns the rows of each fold; empty for fewer than two instances."""
    count = min(folds, len(labels))
    if count < 2:
        return []
    stratified = np.unique(labels, return_counts=True)[1].min() >= count
    kind: Any = StratifiedKFold if stratified else KFold
    splits = kind(count, shuffle=True, random_state=seed).split(labels, labels)
    return [rows for _, rows in splits]


def linear_stage(
    x: NDArray[Any],
    crowd: Annotations,
    held: Rows | None,
    parts: list[NDArray[np.intp]],
    Cs: Sequence[float],
    rounds: int,
) -> dict[str, NDArray[Any]]:
    """Trains the linear classifier and the posterior in turns.

    Args:
        x: `[N, d]` features, standardised.
        crowd: of the N instances.
        held: validation features and one-hot labels, or None.
        parts: rows of each fold.
        Cs: strengths to choose from, once; the rounds keep it.
        rounds: how often the posterior is estimated again, if annotators are identified.

    Returns:
        the last `posterior` `[N, C]`, the `left_out` logits `[N, C]` of each instance from the
        classifier that was trained without it, and the `strength` that was chosen.

    References:
        Raykar et al. (2010), Learning from crowds, section 2.4.
    """
    posterior = crowd_posterior(crowd)
    strength, left_out = choose_strength(x, posterior, held, parts, Cs)
    for _ in range(rounds if crowd.has_identities else 0):
        predicted = np.exp(log_softmax(left_out, axis=1))
        posterior = refreshed_posterior(crowd, posterior, predicted)
        _, left_out = choose_strength(x, posterior, None, parts, [strength])
    return {"posterior": posterior, "left_out": left_out, "strength": np.array(strength)}


def choose_strength(
    x: NDArray[Any],
    posterior: NDArray[Any],
    held: Rows | None,
    parts: list[NDArray[np.intp]],
    Cs: Sequence[float],
) -> tuple[float, NDArray[np.float64]]:
    """Returns the strength with the least log loss, and the logits of left-out rows."""
    rests = [np.setdiff1d(np.arange(len(x)), block) for block in parts]
    paths = [soft_path(x[rest], posterior[rest], Cs) for rest in rests]
    whole = soft_path(x, posterior, Cs) if held is not None else None
    losses: list[float] = []
    best = Cs[0], np.log(np.maximum(posterior, 1e-4))
    for strength in Cs:
        logits = np.zeros(posterior.shape)
        for block, path in zip(parts, paths, strict=True):
            kernel, bias = next(path)
            logits[block] = x[block] @ kernel + bias
        loss = entropy(posterior, logits) if parts else 0.0
        if held is not None and whole is not None:
            kernel, bias = next(whole)
            loss += entropy(held[1], held[0] @ kernel + bias)
        if parts and (not losses or loss < min(losses)):
            best = strength, logits
        losses.append(loss)
        if len(losses) - 1 - int(np.argmin(losses)) >= _PATIENCE:
            break
    return best


def entropy(targets: NDArray[Any], logits: NDArray[Any]) -> float:
    """Returns the cross-entropy, summed over rows."""
    return float(-(targets * log_softmax(logits, axis=1)).sum())


# --------------------------------------------------------------------- the posterior


def crowd_posterior(annotations: Annotations) -> NDArray[np.float64]:
    """Returns class probabilities `[N, C]` from the annotations alone.

    These are Dawid-Skene's posteriors, or the shares of votes without identities.

    References:
        Dawid and Skene (1979), equation 2.5.
    """
    if not annotations.has_identities:
        votes = annotations.vote_counts().astype(np.float64)
        return votes / votes.sum(axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is only where the rounds begin
        return np.asarray(DawidSkene().fit(annotations).probas_)


def refreshed_posterior(
    annotations: Annotations, posterior: NDArray[Any], predicted: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns posteriors `[N, C]` from annotations and a classifier.

    The classifier's probabilities are each instance's prior, and annotators' confusion matrices,
    estimated from the last posterior, judge its annotations. Without identities the shares of votes
    are returned.

    Args:
        annotations: of the N instances.
        posterior: `[N, C]` of the last round.
        predicted: `[N, C]` probabilities from classifiers that were not trained on the instance:
            one that was would only repeat the posterior it learnt.

    References:
        Raykar et al. (2010), Learning from crowds, section 2.4, with C classes.
    """
    if not annotations.has_identities:
        return crowd_posterior(annotations)
    return alternate(
        evidence(annotations), predicted, posterior, pseudo_counts=_PSEUDO, max_iter=1, least=_LEAST
    ).probas


def posterior_assurance(posterior: NDArray[Any]) -> NDArray[np.float32]:
    """Returns definition 2's assurance by posteriors `[N, C]`: `(C max q - 1) / (C - 1)`.

    References:
        NeuCrowd, definition 2.
    """
    classes = posterior.shape[1]
    return ((classes * posterior.max(axis=1) - 1.0) / (classes - 1.0)).astype(np.float32)
