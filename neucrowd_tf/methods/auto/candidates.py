"""The methods that `auto` tries on a table, with settings from its size and its features."""

from __future__ import annotations

import dataclasses
import functools
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
from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Array, Fields, NamedValues
from neucrowd_tf.methods.crowd_layers.common.presets import SMALL_CNN, STRONG_BASE
from neucrowd_tf.names import positions

BASELINE = "mv_lr"
# Four strengths instead of nine: the study never chose one of the others.
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
# Most gradient steps of a fit with small and with large batches.
MOST_STEPS = 1000
LARGE_BATCH_STEPS = 200
# Self-training adds this share of the missing annotations in each round. In section 4.1 of DASC, M
# is 0.17 to 0.34 of LabelMe's empty cells.
QUOTA = 0.17
ROUNDS = 5
TEXT_INPUTS = 100  # about so many numbers represent a text for a network
# Seconds per letter, in all folds: to count n-grams, and to fit a regression to them (per class).
COUNTING = 1e-5
FITTING = 6e-7
# Seconds per n-gram to reduce TF-IDF. There is one n-gram per so many letters, up to the most.
REDUCING = 5e-4
LETTERS = 8
MOST_TERMS = 40_000
# Seconds of all cores together that candidates may take. This share is for the first fits, the rest
# for further fits of the better ones.
BUDGET = 100.0
FIRST = 0.6
TOO_DEAR = "it does not fit into the budget of {:g} s"
# A small convolutional network needs minutes where a dense one needs seconds.
IMAGE_BUDGET = 1500.0
# Seconds of one of its epochs, per image and pixel.
PIXEL = 7e-7
# Tables with at most so many numbers get so many epochs, because an epoch has few steps.
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
        """Returns the candidate with `OrdinalConsensus` in place of Dawid and Skene's labels."""
        if not self.method.startswith("ds_"):
            return self
        hparams = {**self.hparams, "aggregator": "ordinal"}
        # Candidates that differ only in their aggregator get one name, and one of them is left.
        classifier = self.name.rpartition("_")[2]
        return dataclasses.replace(self, name=f"ordinal_{classifier}", hparams=hparams)

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


def _networks(features: Array) -> tuple[Fields, Fields]:
    """Returns two kinds of settings, *strong* and *large*.

    Strong ones have batch normalisation, dropout and a learning rate that falls to 0; large ones
    dropout, batches of 512 and few steps. For images both are a small convolutional network.
    """
    if is_images(features):
        return SMALL_CNN, SMALL_CNN
    common: Fields = {"standardise": True}
    if not is_text(features) and is_skewed(features):
        common["standardise"] = "square_root"
    rows = len(features)
    most = STRONG_BASE["epochs"]
    if rows * _inputs(features) <= SMALL:
        most = SMALL_EPOCHS
    epochs = _epochs(rows, STRONG_BASE["batch_size"], most, MOST_STEPS)
    strong = {**common, **STRONG_BASE, "epochs": epochs}
    epochs = _epochs(rows, 512, 25, LARGE_BATCH_STEPS)
    return strong, {**common, "batch_size": 512, "epochs": epochs}


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


def _network_seconds(
    features: Array,
    annotations: Annotations,
    settings: Fields,
    *,
    heads: bool = False,
    fits: int = 1,
    step: float = 1.5e-3,
) -> float:
    """Returns the predicted seconds of a network on one core.

    Args:
        features: `[N, ...]`.
        annotations: of N instances.
        settings: see `_networks`.
        heads: whether the network has a head for each annotator.
        fits: how often it is trained.
        step: seconds of a step without matrix products.
    """
    rows = len(features)
    epochs = fits * settings["epochs"]
    if is_images(features):
        return 1.0 + epochs * PIXEL * (rows * math.prod(features.shape[1:3]))
    batch = settings["batch_size"]
    cells = _inputs(features) * 128
    if heads:
        cells += annotations.num_annotators * annotations.num_classes * 8
    return 1.0 + epochs * math.ceil(rows / batch) * (step + 1e-10 * (batch * cells))


def candidates(features: Array, annotations: Annotations) -> list[Candidate]:
    """Returns the candidates for a table, the most useful for their cost first.

    Some of them may not run on the data, see `reason_against`.

    Args:
        features: `[N, ...]` of annotated instances.
        annotations: of the same instances.
    """
    rows = len(features)
    letters = _letters(features)
    classes = annotations.num_classes
    annotators = annotations.num_annotators
    strong, large = _networks(features)
    # Seconds on one core of 2024: regressions by their cells, networks by their steps and a second
    # to build one, a step of a crowd layer also by the cells of its heads' outputs.
    linear = 0.1 + 1e-7 * rows * _inputs(features) * classes
    softprob = 5 * linear
    if letters:
        linear = 0.1 + FITTING * letters * classes
        softprob = 2 * linear

    network = functools.partial(_network_seconds, features, annotations)
    empty = 0
    if annotations.has_identities:
        empty = rows * annotators - annotations.num_annotations
    dasc = {
        **large,
        "quota": max(100, int(QUOTA * empty)),
        "pick": "last",
        "rounds": ROUNDS,
        # A round that loses a class restarts once. If it loses one again, the method is hopeless.
        "restarts": 1,
    }
    self_training = network(large, heads=True, fits=ROUNDS + 1)
    self_training += 4e-8 * ROUNDS * rows * annotators * classes
    annotator_rate = None
    if is_images(features):
        annotator_rate = 0.01
    crowd = {**strong, "annotator_learning_rate": annotator_rate}
    crowd_layer = network(strong, heads=True)
    deep = network(strong)
    regression = {"Cs": STRENGTHS}
    scaled = is_text(features) or not has_blank_features(features)
    tuplets = 6.0 + 1e-3 * rows
    return [
        Candidate(BASELINE, BASELINE, regression, linear),
        Candidate("ds_lr", "ds_lr", regression, linear),
        Candidate("dasc_crowd_layer", "dasc_crowd_layer", dasc, self_training),
        Candidate("anno_reg", "anno_reg", crowd, crowd_layer),
        Candidate("annot_mix", "annot_mix", crowd, network(strong, heads=True, step=MIXING_STEP)),
        Candidate("geocrowdnet_f", "geocrowdnet_f", crowd, crowd_layer),
        Candidate("crowd_layer", "crowd_layer", crowd, crowd_layer),
        Candidate("dasc_anno_reg", "dasc_anno_reg", dasc, self_training),
        Candidate("ds_dl", "ds_dl", strong, deep),
        Candidate("softprob", "softprob", regression, softprob),
        Candidate("iced", "iced", {"standardise": scaled}, 1.3 + 1.6e-3 * rows),
        Candidate("mv_dl", "mv_dl", strong, deep),
        Candidate("rll", "rll_bayesian", {}, tuplets),
        Candidate("neucrowd", "neucrowd", {}, 4 * tuplets),
        Candidate("crowdingu", "crowdingu", {}, 20.0 + 1e-2 * rows),
    ]


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
    return starting_with(names, "dasc_")


def named(name: str, features: Array, annotations: Annotations) -> Candidate:
    """Returns the candidate with a name, else the method with that name and its defaults.

    Raises:
        UsageError: there is neither.
    """
    for candidate in candidates(features, annotations):
        if candidate.name == name:
            return candidate
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
    methods: Sequence[str] | None,
) -> tuple[list[Candidate], dict[str, str], float]:
    """Returns the candidates that run on the data, why others do not, and the seconds left.

    The baseline is the first candidate. The first network on texts also costs the reduction of
    TF-IDF. Candidates may take `FIRST` of the budget; the rest is for further fits of the better
    ones.

    Args:
        features: `[N, ...]`.
        annotations: of N instances.
        budget: predicted seconds on one core for cross-validations and last fits; None for
            `usual_budget`.
        balanced: whether all classes count equally.
        methods: names of candidates to try whatever they cost, with no seconds left; None for the
            most useful ones.
    """
    total = budget or usual_budget(features)
    if methods is not None:
        total = math.inf
        names = dict.fromkeys((BASELINE, *methods))
        order = [named(name, features, annotations) for name in names]
    else:
        labels = majority_labels(annotations.vote_counts())
        early = [BASELINE, "ds_lr"]
        counts = np.bincount(labels, minlength=annotations.num_classes)
        if balanced or imbalance_ratio(counts) > IMBALANCED:
            early.append("iced")
        if not is_mostly_empty(annotations):
            early += ["anno_reg", "annot_mix"]  # rather than self-training
        order = candidates(features, annotations)
        ranks = positions(early)
        order.sort(key=lambda candidate: ranks.get(candidate.name, len(ranks)))
    chosen: list[Candidate] = []
    reasons: dict[str, str] = {}
    letters = _letters(features)
    spent = COUNTING * letters
    reduction = REDUCING * min(MOST_TERMS, letters / LETTERS)
    for candidate in order:
        seconds = candidate.seconds
        if "Cs" not in candidate.hparams:
            seconds += reduction
        reason = reason_against(candidate, annotations)
        if spent + seconds > FIRST * total and candidate.name != BASELINE:
            reason = reason or TOO_DEAR.format(total)
        if reason is None:
            chosen.append(candidate)
            spent += seconds
            if "Cs" not in candidate.hparams:
                reduction = 0.0
        else:
            reasons[candidate.name] = reason
    if methods is not None:
        return chosen, reasons, 0.0
    return chosen, reasons, total - spent


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
