"""Models as annotators: may they replace people, and what is a label of theirs worth?

A model is compared with people's labels, not with a consensus: each person's label is part of the
consensus, so that people would look better than a model that is as good.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neucrowd_tf.aggregation.families import labels_of
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.alternative_test import AlternativeTest, alternative_test, labels_by
from neucrowd_tf.certainty.estimate import NOTHING, Estimate, resamples
from neucrowd_tf.declare.types import Floats, Indices, Mask
from neucrowd_tf.errors import DataError

REPLACEMENT = {
    True: "it may replace human annotators",
    False: "it may not replace human annotators",
    None: "whether it may replace human annotators is undecided",
}


@dataclasses.dataclass(frozen=True)
class ModelAnnotator:
    """A model beside the people who labelled the same items.

    Attributes:
        annotator: its code.
        test: the alternative annotator test; None if there are too few labels.
        note: why there is no test; otherwise empty.
        worth: how many labels of an average person one label of the model is worth, with 80%
            interval: the ratio of the log-odds of being right; NaN if people share no items.
    """

    annotator: int
    test: AlternativeTest | None
    note: str
    worth: Estimate

    @property
    def may_replace(self) -> bool | None:
        """False if the test fails, True if it passes and worth.low is 1 or more, else None."""
        if self.test is None:
            return None
        if not self.test.passed:
            return False
        if self.worth.low >= 1.0:
            return True
        return None


class SharedMistakes(NamedTuple):
    """How often two models give the same label, which differs from the people's consensus.

    Attributes:
        first, second: codes of the models.
        items: number of items that both labelled.
        shared: number of those with the same other label.
        expected: that number if the models erred independently, given the consensus.
    """

    first: int
    second: int
    items: int
    shared: int
    expected: float


def model_annotators(crowd: Annotations, models: Mask) -> list[ModelAnnotator]:
    """Returns how each model compares with the people.

    Args:
        crowd: with identities.
        models: `[R]` which annotators are models.
    """
    votes = labels_of(crowd, ~models).vote_counts().astype(np.float64)
    rows = []
    for code in np.flatnonzero(models).tolist():
        test = None
        note = ""
        try:
            test = alternative_test(crowd, code, models=models)
        except DataError as error:
            note = str(error)
        worth = label_worth(votes, labels_by(crowd, code))
        rows.append(ModelAnnotator(code, test, note, worth))
    return rows


def compare_models(
    crowd: Annotations, names: Sequence[str], consensus: Indices | None
) -> tuple[list[ModelAnnotator], list[str]]:
    """Returns how models compare with the people, and lines that say it; nothing without models.

    Args:
        crowd: with identities.
        names: of the annotators that are models.
        consensus: `[N]` labels inferred from people's annotations; None without people.
    """
    models = np.isin(crowd.annotator_names.astype(str), names)
    rows = model_annotators(crowd, models)
    pairs = []
    if rows and consensus is None:
        return rows, [
            f"all {len(rows)} annotators are models, and nothing compares them with people. Label"
            " some items: neucrowd gold draws them, and neucrowd report --gold compares."
        ]
    if len(rows) > 1 and consensus is not None:
        annotated = labels_of(crowd, ~models).annotated
        pairs = shared_mistakes(crowd, models, np.where(annotated, consensus, -1))
    return rows, model_lines(crowd, rows, pairs)


def label_worth(votes: Floats, labels: Indices) -> Estimate:
    """Returns how many labels of an average person one label of a model is worth.

    All people are as accurate as each other, and mistakes fall evenly on the other classes: this
    turns agreement between people into their accuracy, and agreement of the model with people into
    the model's. The worth is the ratio of log((C - 1) a / (1 - a)), the weights of such labels in
    a vote. The interval is from resampled items. It also holds if the model leans towards a class
    and people lean likewise or the other way: half of the items by which its class shares differ
    from the people's may be right or wrong by that lean.

    Args:
        votes: `[N, C]` of people.
        labels: `[N]` the model's class codes, -1 if unknown.

    References:
        Nitzan and Paroush (1982), International Economic Review 23 (the weights).
    """
    size = votes.shape[1]
    total = votes.sum(axis=1)
    answered = labels >= 0
    # Agreeing pairs and all pairs: of two people, and of the model and a person.
    pairs = np.zeros((len(votes), 4))
    pairs[:, 0] = (votes * (votes - 1)).sum(axis=1)
    pairs[:, 1] = total * (total - 1)
    pairs[answered, 2] = votes[answered, labels[answered]]
    pairs[answered, 3] = total[answered]
    if size < 2 or not pairs[:, 1].any() or not pairs[:, 3].any():
        return NOTHING
    used = pairs[pairs[:, 1::2].any(axis=1)]
    rng = np.random.default_rng(0)
    once = np.ones(len(used), dtype=np.int64)
    drawn = [_worth(resampled @ used, size) for resampled in resamples(rng, once)]
    sums = used.sum(axis=0)
    named = np.bincount(labels[answered], minlength=size) / answered.sum()
    by_people = votes[answered].sum(axis=0) / max(votes[answered].sum(), 1.0)
    lean = sums[3] * np.abs(named - by_people).sum() / 4
    value, low, high = Estimate.of(_worth(sums, size), drawn)
    for away in (-lean, lean):
        leaning = sums.copy()
        leaning[2] = np.clip(sums[2] + away, 0.0, sums[3])
        end = _worth(leaning, size)
        if not np.isnan(end):
            low = min(low, end)
            high = max(high, end)
    return Estimate(value, low, high)


def _worth(sums: Floats, size: int) -> float:
    """Returns the worth by numbers of pairs `[4]`; NaN if they do not show it.

    Args:
        sums: agreeing pairs and all pairs of people, agreeing pairs and all pairs with the model.
        size: C.
    """
    if not sums[1] or not sums[3]:
        return float("nan")
    # Two labels agree with probability p = a b + (1 - a) (1 - b) / (C - 1), hence
    # (C a - 1) (C b - 1) = (C - 1) (C p - 1).
    among_people, with_model = (size - 1) * (size * sums[::2] / sums[1::2] - 1)
    if among_people <= 0:
        return float("nan")
    person = np.sqrt(among_people)
    accuracies = (1 + np.array([person, with_model / person])) / size
    accuracies = np.clip(accuracies, 1 / size, 0.99)
    person_odds, model_odds = np.log((size - 1) * accuracies / (1 - accuracies))
    return float(model_odds / person_odds)


def shared_mistakes(crowd: Annotations, models: Mask, consensus: Indices) -> list[SharedMistakes]:
    """Returns the shared mistakes of each pair of models.

    Args:
        crowd: with identities.
        models: `[R]` which annotators are models.
        consensus: `[N]` class codes inferred from people's labels alone, -1 if unknown.
    """
    size = crowd.num_classes
    pairs = []
    for first, second in itertools.combinations(np.flatnonzero(models).tolist(), 2):
        labels = np.stack([labels_by(crowd, first), labels_by(crowd, second), consensus])
        one, two, true = labels[:, (labels >= 0).all(axis=0)]
        # `[true class, other class]` numbers of each model's mistakes.
        mistakes = np.zeros((2, size, size))
        np.add.at(mistakes[0], (true, one), 1.0)
        np.add.at(mistakes[1], (true, two), 1.0)
        mistakes *= 1.0 - np.eye(size)
        total = np.bincount(true, minlength=size)
        expected = mistakes.prod(axis=0).sum(axis=1) / np.maximum(total, 1)
        shared = int(((one == two) & (one != true)).sum())
        pairs.append(SharedMistakes(first, second, len(true), shared, float(expected.sum())))
    return pairs


def model_lines(
    crowd: Annotations, rows: Sequence[ModelAnnotator], pairs: Sequence[SharedMistakes] = ()
) -> list[str]:
    """Returns what a command prints about models, one line per model and pair of models.

    Args:
        crowd: with the models' names.
        rows: of `model_annotators`.
        pairs: of `shared_mistakes`.
    """
    names = list(map(str, crowd.annotator_names.tolist()))
    lines = []
    for row in rows:
        text = f"model {names[row.annotator]!r}: "
        if row.test is None:
            text += f"{row.note} "
        else:
            text += (
                f"{REPLACEMENT[row.may_replace]} (alternative annotator test: winning rate"
                f" {row.test.winning_rate:.2f}, advantage {row.test.advantage:.2f}). "
            )
        if row.worth.low > 0:
            text += (
                f"One label is worth {row.worth.value:.2f} [{row.worth.low:.2f},"
                f" {row.worth.high:.2f}] labels of a human annotator. It surely pays if it costs"
                f" less than {row.worth.low:.2f} times as much."
            )
        lines.append(text.rstrip())
    for pair in pairs:
        lines.append(
            f"models {names[pair.first]!r} and {names[pair.second]!r}: the same label, unlike the"
            f" people's, in {pair.shared:,} of {pair.items:,} items;"
            f" {pair.expected:.1f} if independent."
        )
    return lines
