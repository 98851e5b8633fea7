"""The methods that `auto` tries on a table, with settings from its size and its features."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import skew

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import imbalance_ratio, sparsity
from neucrowd_tf.annotations.tables import is_text
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.types import Array, Fields, NamedValues
from neucrowd_tf.methods.crowd_layers.common.presets import SMALL_CNN, STRONG_BASE

BASELINE = "mv_lr"
# Four strengths instead of nine: the study never chose one of the others.
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
# Most gradient steps of a fit with small and with large batches.
MOST_STEPS = 1000
LARGE_BATCH_STEPS = 200
# Self-training adds this share of the missing annotations in each of its rounds. M of DASC's
# section 4.1 is .17 to .34 of LabelMe's empty cells.
QUOTA = 0.17
ROUNDS = 5
# About this many numbers represent a text for a network. Seconds to count the n-grams of a letter
# in all folds, to fit a regression to them by class, and to reduce an n-gram (of one in so many
# letters, up to the most).
TEXT_INPUTS = 100
COUNTING = 1e-5
FITTING = 6e-7
REDUCING = 5e-4
LETTERS = 8
MOST_TERMS = 40_000
# Seconds of all cores together that candidates may take, of which this share is for the first fits
# and the rest for further fits of the better ones.
BUDGET = 100.0
FIRST = 0.6
TOO_DEAR = "it does not fit into the budget of {:g} s"
# A small convolutional network needs minutes where a dense one needs seconds.
IMAGE_BUDGET = 1500.0
# Seconds of one epoch of it per image and pixel.
PIXEL = 7e-7
# Tables of at most so many numbers get so many epochs: they have few steps in each.
SMALL = 75_000
SMALL_EPOCHS = 100
# Seconds of a step of annot-mix, without its matrix products.
MIXING_STEP = 6e-3
# DASC comes early if this share of the cells is empty.
MOSTLY_EMPTY = 0.8
# ICED balances classes: it comes early if the largest is this many times the smallest.
IMBALANCED = 3.0


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A method with settings.

    Attributes:
        name: the candidate's name.
        method: its name in the registry.
        hparams: the constructor's arguments except the seed.
        cost: predicted seconds of one fit on one core.
    """

    name: str
    method: str
    hparams: NamedValues
    cost: float

    @property
    def seconds(self) -> float:
        """Predicted seconds of three folds on two thirds of the rows and a fit to all rows."""
        return 3 * self.cost

    def make(self, seed: int) -> Any:
        """Returns an unfitted estimator."""
        return registry.method(self.method).make(seed=seed, **self.hparams)

    def ordered(self) -> Candidate:
        """Returns the candidate with labels of ordered classes in place of Dawid and Skene's."""
        if not self.method.startswith("ds_"):
            return self
        hparams = {**self.hparams, "aggregator": "ordinal"}
        kind = self.name.rpartition("_")[2]  # of all that differ in their aggregator, one is left
        return dataclasses.replace(self, name=f"ordinal_{kind}", hparams=hparams)

    def with_strength(self, strength: float | None) -> Candidate:
        """Returns the candidate with one regularisation strength; itself for None."""
        if strength is None:
            return self
        return dataclasses.replace(self, hparams={**self.hparams, "Cs": (strength,)})


def is_skewed(features: Array) -> bool:
    """Returns whether features are skewed amounts, which a square root makes more even.

    They are if none is negative and their median skewness is above 1.
    """
    flat = np.asarray(features, dtype=np.float64).reshape(len(features), -1)
    if (flat < 0).any():
        return False
    varying = flat[:, flat.std(axis=0) > 0]
    return bool(varying.size and np.median(skew(varying, axis=0)) > 1)


def has_blank_features(features: Array) -> bool:
    """Returns whether features are within [0, 1] and often at their minimum, like border pixels.

    Standardised, such features are noise.
    """
    flat = features.reshape(len(features), -1)
    return bool(flat.min() >= 0 and flat.max() <= 1 and np.mean(flat == flat.min(axis=0)) > 0.25)


def _epochs(rows: int, batch: int, most: int, steps: int) -> int:
    """Returns at most `most` epochs of at most `steps` steps together, but 5 epochs or more."""
    return max(5, min(most, math.ceil(steps / math.ceil(rows / batch))))


def _networks(features: Array) -> dict[str, Fields]:
    """Returns two kinds of settings.

    They are *strong* (batch normalisation, dropout and a rate that falls to 0) and *large*
    (dropout, batches of 512, few steps). For images both are a small convolutional network.
    """
    if is_images(features):
        return {"strong": SMALL_CNN, "large": SMALL_CNN}
    skewed = not is_text(features) and is_skewed(features)
    rows = len(features)
    common = {"standardise": "square_root" if skewed else True}
    if rows * _inputs(features) <= SMALL:
        most = SMALL_EPOCHS
    else:
        most = STRONG_BASE["epochs"]
    epochs = _epochs(rows, STRONG_BASE["batch_size"], most, MOST_STEPS)
    return {
        "strong": {**common, **STRONG_BASE, "epochs": epochs},
        "large": {**common, "batch_size": 512, "epochs": _epochs(rows, 512, 25, LARGE_BATCH_STEPS)},
    }


def is_images(features: Array) -> bool:
    """Returns whether features are images `[N, height, width, channels]`."""
    return features.ndim == 4


def _inputs(features: Array) -> int:
    """Returns the number of features of an instance."""
    if is_text(features):
        return TEXT_INPUTS
    return int(np.prod(features.shape[1:]))


def _letters(features: Array) -> int:
    """Returns the length of all texts together, 0 for numbers."""
    if is_text(features):
        return sum(map(len, features))
    return 0


def candidates(features: Array, annotations: Annotations) -> list[Candidate]:
    """Returns the candidates for a table, the most useful for their cost first.

    Some of them may not run on the data, see `reason_against`.

    Args:
        features: `[N, ...]` of annotated instances.
        annotations: of the same instances.
    """
    rows = len(features)
    inputs = _inputs(features)
    classes = annotations.num_classes
    annotators = annotations.num_annotators
    kinds = _networks(features)
    if annotations.has_identities:
        empty = rows * annotators - annotations.num_annotations
    else:
        empty = 0
    # A round that loses a class restarts once; if it loses one again, the method is hopeless.
    quota = {"quota": max(100, int(QUOTA * empty)), "pick": "last", "rounds": ROUNDS, "restarts": 1}
    blank = {"standardise": is_text(features) or not has_blank_features(features)}
    # Seconds on one core of 2024: regressions by their cells, networks by their steps and a second
    # to build one, a step of a crowd layer also by the cells of its heads' outputs.
    letters = _letters(features)
    linear = 0.1 + (FITTING * letters if letters else 1e-7 * rows * inputs) * classes

    def network(kind: str, heads: bool, fits: int = 1, step: float = 1.5e-3) -> float:
        batch = kinds[kind]["batch_size"]
        if is_images(features):
            pixels = rows * math.prod(features.shape[1:3])
            return 1.0 + fits * kinds[kind]["epochs"] * PIXEL * pixels
        steps = kinds[kind]["epochs"] * math.ceil(rows / batch)
        cells = batch * (inputs * 128 + (annotators * classes * 8 if heads else 0))
        return 1.0 + fits * steps * (step + 1e-10 * cells)

    def self_training() -> float:
        return network("large", True, ROUNDS + 1) + 4e-8 * ROUNDS * rows * annotators * classes

    tuplets = 6.0 + 1e-3 * rows
    lr = {"Cs": STRENGTHS}
    if is_images(features):
        rate = 0.01
    else:
        rate = None
    one_rate = {**kinds["strong"], "annotator_learning_rate": rate}
    table = [
        (BASELINE, BASELINE, lr, linear),
        ("ds_lr", "ds_lr", lr, linear),
        ("dasc_crowd_layer", "dasc_crowd_layer", {**kinds["large"], **quota}, self_training()),
        ("anno_reg", "anno_reg", one_rate, network("strong", True)),
        ("annot_mix", "annot_mix", one_rate, network("strong", True, step=MIXING_STEP)),
        ("geocrowdnet_f", "geocrowdnet_f", one_rate, network("strong", True)),
        ("crowd_layer", "crowd_layer", one_rate, network("strong", True)),
        ("dasc_anno_reg", "dasc_anno_reg", {**kinds["large"], **quota}, self_training()),
        ("ds_dl", "ds_dl", kinds["strong"], network("strong", False)),
        ("softprob", "softprob", lr, (2 if letters else 5) * linear),
        ("iced", "iced", blank, 1.3 + 1.6e-3 * rows),
        ("mv_dl", "mv_dl", kinds["strong"], network("strong", False)),
        ("rll", "rll_bayesian", {}, tuplets),
        ("neucrowd", "neucrowd", {}, 4 * tuplets),
        ("crowdingu", "crowdingu", {}, 20.0 + 1e-2 * rows),
    ]
    return [Candidate(*each) for each in table]


def is_mostly_empty(annotations: Annotations) -> bool:
    """Returns whether most pairs of an instance and an annotator have no label."""
    return annotations.has_identities and sparsity(annotations) > MOSTLY_EMPTY


def self_trained(annotations: Annotations, names: Iterable[str]) -> list[str]:
    """Returns the candidates with self-training, if most cells are empty; else none.

    They make other mistakes than the rest, and imitate less those that annotators share. By the
    annotators' labels that looks like an error.
    """
    if not is_mostly_empty(annotations):
        return []
    return [name for name in names if name.startswith("dasc_")]


def named(name: str, features: Array, annotations: Annotations) -> Candidate:
    """Returns the candidate with a name, else the method with that name and its defaults.

    Raises:
        UsageError: there is neither.
    """
    for each in candidates(features, annotations):
        if each.name == name:
            return each
    registry.entry("method", name, "--method")
    return Candidate(name, name, {}, 5.0)


def usual_budget(features: Array) -> float:
    """Returns the budget if none is chosen, in seconds."""
    if is_images(features):
        return IMAGE_BUDGET
    return BUDGET


def affordable(
    features: Array,
    annotations: Annotations,
    budget: float | None,
    *,
    balanced: bool,
    methods: Sequence[str] | None = None,
) -> tuple[list[Candidate], dict[str, str], float]:
    """Returns the candidates that run on the data, why others do not, and the seconds left.

    The baseline is the first candidate. The first network on texts also costs the reduction of
    TF-IDF. Candidates may take `FIRST` of the budget; the rest is for further fits of the better
    ones.

    Args:
        features: `[N, ...]`.
        annotations: of N instances.
        budget: predicted seconds on one core for cross-validation and last fits; None for
            `BUDGET`, or `IMAGE_BUDGET` for images.
        balanced: whether all classes count equally.
        methods: names of candidates to try whatever they cost, with no seconds left; None for the
            most useful ones.
    """
    total = budget or usual_budget(features)
    if methods is not None:
        names = dict.fromkeys((BASELINE, *methods))
        order = [named(name, features, annotations) for name in names]
    else:
        counts = np.bincount(
            majority_labels(annotations.vote_counts()), minlength=annotations.num_classes
        )
        first = [BASELINE, "ds_lr"]
        if balanced or imbalance_ratio(counts) > IMBALANCED:
            first.append("iced")
        if not is_mostly_empty(annotations):
            first += ["anno_reg", "annot_mix"]  # rather than self-training
        order = candidates(features, annotations)
        order.sort(key=lambda each: first.index(each.name) if each.name in first else len(first))
    chosen: list[Candidate] = []
    reasons: dict[str, str] = {}
    letters = _letters(features)
    spent = COUNTING * letters
    reduction = REDUCING * min(MOST_TERMS, letters / LETTERS)
    for each in order:
        reason = reason_against(each, annotations)
        seconds = each.seconds + (0.0 if "Cs" in each.hparams else reduction)
        dear = spent + seconds > FIRST * total and each.name != BASELINE and methods is None
        if reason is None and dear:
            reason = TOO_DEAR.format(total)
        if reason is None:
            chosen.append(each)
            spent = spent + seconds
            reduction = reduction - (seconds - each.seconds)
        else:
            reasons[each.name] = reason
    return chosen, reasons, total - spent if methods is None else 0.0


def reason_against(candidate: Candidate, annotations: Annotations) -> str | None:
    """Returns why a method cannot run on the annotations, or None."""
    method = registry.entry("method", candidate.method)
    if method.requires_identities and not annotations.has_identities:
        return "it needs the annotator of each label, and the data has vote counts only"
    if method.max_classes is not None and annotations.num_classes > method.max_classes:
        return f"it handles at most {method.max_classes} classes"
    if method.uses_truth:
        return "it trains on the truth"
    return None
