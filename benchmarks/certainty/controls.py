"""Simulated crowds whose gold items are control questions, which nearly everybody labelled."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations

Array = NDArray[Any]
OTHERS, CONTROLS, PEOPLE = 400, 100, 40
ANSWERED = 0.6  # share of the annotators who labelled a control question
LEAST, MOST = 0.02, 0.98  # of a chance of being right


@dataclasses.dataclass(frozen=True)
class Family:
    """How annotators label control questions and other items.

    Attributes:
        classes: how many there are.
        shares, control_shares: of the first class, among other items and control questions; the
            other classes are equally frequent.
        low, high: annotators' skill: the chance of being right lies evenly between the two.
        lean: is added to it for items of the first class, and subtracted for those of the others.
        difficulty: standard deviation of an item's log odds of being labelled wrongly.
        control_skill: the chance of being right on control questions; None for that on other items.
        control_lean: see `lean`.
        careless: share of the annotators who label control questions alone with care, others at
            random.
        failed: share who label control questions alone, and at random.
        misled: share who are wrong on items of the last class.
    """

    classes: int = 2
    shares: float = 0.5
    control_shares: float = 0.5
    low: float = 0.55
    high: float = 0.9
    lean: float = 0.0
    difficulty: float = 0.0
    control_skill: float | None = None
    control_lean: float | None = None
    careless: float = 0.0
    failed: float = 0.0
    misled: float = 0.0


ALIKE = {
    "alike": Family(),
    "alike, four classes": Family(classes=4, shares=0.4, control_shares=0.4, low=0.35, high=0.8),
    "alike, difficulty": Family(difficulty=1.2),
    "alike, leaning": Family(low=0.6, high=0.8, lean=0.25),
    "alike, misled": Family(low=0.7, high=0.9, misled=0.6),
}
UNLIKE = {
    "easier": Family(control_skill=0.95),
    "harder": Family(control_skill=0.6, difficulty=0.5),
    "no signal": Family(shares=0.6, control_shares=0.7, control_skill=0.5, control_lean=0.42),
    "other classes": Family(shares=0.3, control_shares=0.75, lean=0.15),
    "other classes, four": Family(
        classes=4, shares=0.2, control_shares=0.7, low=0.4, high=0.8, lean=0.1
    ),
    "careless": Family(careless=0.35, control_skill=0.9),
    "failed": Family(failed=0.4),
    "harder, leaning": Family(lean=0.1, control_skill=0.55, control_lean=0.3, control_shares=0.7),
}
FAMILIES = {"alike": ALIKE, "unlike": UNLIKE}
LABELS = (3, 7)  # of an item that is no control question


def control_crowd(name: str, kind: Family, each: int, seed: int) -> tuple[Annotations, Array]:
    """Returns a crowd whose first `CONTROLS` items are control questions, and its true labels.

    Args:
        name: of the family.
        kind: the family.
        each: labels of an item that is no control question.
        seed: of the draws.
    """
    rng = np.random.default_rng([seed, each, *name.encode()])
    control = np.arange(OTHERS + CONTROLS) < CONTROLS
    first = rng.random(len(control)) < np.where(control, kind.control_shares, kind.shares)
    truth = np.where(first, 0, rng.integers(1, kind.classes, len(control)))
    skill = np.tile(rng.uniform(kind.low, kind.high, PEOPLE), (len(control), 1))
    if kind.control_skill is not None:
        skill[control] = kind.control_skill
    lean = np.where(control & (kind.control_lean is not None), kind.control_lean or 0.0, kind.lean)
    chance = np.clip(skill + np.where(truth == 0, lean, -lean)[:, None], LEAST, MOST)
    hard = kind.difficulty * rng.standard_normal(len(control))
    chance = 1.0 / (1.0 + np.exp(-np.log(chance / (1.0 - chance)) + hard[:, None]))
    place = rng.permutation(PEOPLE) / PEOPLE
    chance[np.ix_(~control, place < kind.careless)] = 1.0 / kind.classes
    failed = place < kind.failed
    chance[:, failed] = 1.0 / kind.classes
    chance[np.ix_(truth == kind.classes - 1, place < kind.misled)] = 1.0 - kind.high
    right = rng.random(chance.shape) < chance
    wrong = (truth[:, None] + rng.integers(1, kind.classes, chance.shape)) % kind.classes
    labels = np.where(right, truth[:, None], wrong)
    order = np.argsort(rng.random(chance.shape) + failed, axis=1)
    rank = np.argsort(order, axis=1)
    answered = rng.random(chance.shape) < ANSWERED
    labels[~np.where(control[:, None], answered, rank < each)] = -1
    return Annotations.from_dense(labels, num_classes=kind.classes), truth


def control_crowds(seeds: int) -> Iterator[tuple[str, str, Annotations, Array, Array, int]]:
    """Yields "alike" or "unlike", family, crowd, true labels, control questions and seed."""
    control = np.arange(OTHERS + CONTROLS) < CONTROLS
    for which, families in FAMILIES.items():
        for (name, kind), each, seed in itertools.product(families.items(), LABELS, range(seeds)):
            yield which, name, *control_crowd(name, kind, each, seed), control, seed
