"""Two groups of annotators who agree with each other, but with the other group hardly at all.

Independent annotators of skills a and b, 0 for chance, agree beyond chance by a b. So the agreement
between two groups is the geometric mean of that within them, however skilled they are. If it is far
less, the groups differ in what they take for the truth, and votes do not show which is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from neucrowd_tf.annotations import Annotations

    Array = NDArray[np.float64]

MOST_CELLS = 50_000_000  # annotators x annotators, or items x annotators
FEWEST_ANNOTATORS = 4
FEWEST_ITEMS = 40
LEAST_SHARE = 0.15  # of the labels, by the smaller group
# Bounds of the agreement between groups, as a part of what is expected, and of that within groups;
# the ends of 95% intervals have to pass. None of 41 other public crowds does.
MOST_BETWEEN = 0.7
LEAST_WITHIN = 0.2
RESAMPLES = 200
TAIL = 0.025
IMPROVEMENTS = 10


class OpposedGroups(NamedTuple):
    """Two groups and how they differ.

    Attributes:
        members: `[2, R]` who is in which group.
        share: agreement between the groups, as a part of what independent annotators as good as
            these would have.
    """

    members: NDArray[np.bool_]
    share: float

    def majorities(self, crowd: Annotations) -> NDArray[np.int64]:
        """Returns `[2, N]` the class that most of each group named, -1 if there is no such."""
        labels = np.full((2, crowd.num_instances), -1)
        for place, members in enumerate(self.members):
            votes = crowd.select(members[crowd.annotators]).vote_counts()
            top = votes.max(axis=1, keepdims=True)
            single = (votes == top).sum(axis=1) == 1
            labels[place, single] = votes.argmax(axis=1)[single]
        return labels

    def differ(self, crowd: Annotations) -> NDArray[np.bool_]:
        """Returns `[N]` whether most of one group named another class than most of the other."""
        first, second = self.majorities(crowd)
        return (first >= 0) & (second >= 0) & (first != second)

    def least_accuracy(self, crowd: Annotations, labels: NDArray[np.int64]) -> float:
        """Returns the accuracy of labels `[N]` if the group that they follow less is right.

        Where the labels are that group's, they may be right by chance only.
        """
        majorities = self.majorities(crowd)
        agreement = min(np.mean((one == labels)[one >= 0]) for one in majorities)
        return float(agreement) / crowd.num_classes

    def skills(self, crowd: Annotations) -> Array:
        """Returns `[2, R]` how often each annotator's label is that of most of each group."""
        people = crowd.num_annotators
        shares = []
        for majority in self.majorities(crowd):
            true = majority[crowd.instances]
            hits = np.bincount(crowd.annotators, crowd.labels == true, minlength=people)
            total = np.bincount(crowd.annotators, true >= 0, minlength=people)
            shares.append(hits / np.maximum(total, 1))
        return np.stack(shares)


def opposed_groups(crowd: Annotations) -> OpposedGroups | None:
    """Returns the two groups that annotators split into, or None.

    Groups are chosen on half of the items and tested on the others, and the other way round.

    Args:
        crowd: with identities.
    """
    people = int((crowd.labels_per_annotator() > 0).sum())
    items = int(crowd.annotated.sum())
    cells = crowd.num_annotators * max(crowd.num_annotators, crowd.num_instances)
    if people < FEWEST_ANNOTATORS or items < FEWEST_ITEMS or cells > MOST_CELLS:
        return None
    rng = np.random.default_rng(0)
    half = rng.random(crowd.num_instances) < 0.5
    everyone = _split(crowd)
    rows = []
    for chosen in (half, ~half):
        side = _split(crowd.select(chosen[crowd.instances]))
        if not _large(crowd, side):
            return None
        if not ((side == everyone).mean() >= 0.5):
            side = ~side
        rows.append(_agreements(crowd.select(~chosen[crowd.instances]), side))
    sums = np.concatenate(rows)
    sums = sums[sums.any(axis=1)]
    share = _figures(sums.sum(axis=0))[2]
    if share > MOST_BETWEEN or not _large(crowd, everyone):
        return None
    weights = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES)
    drawn = np.array([_figures(drawn) for drawn in weights @ sums])
    within = np.quantile(drawn[:, :2], TAIL, axis=0).min()
    between = float(np.quantile(drawn[:, 2], 1.0 - TAIL))
    if within < LEAST_WITHIN or between > MOST_BETWEEN:
        return None
    return OpposedGroups(np.stack([everyone, ~everyone]), share)


def _large(crowd: Annotations, side: NDArray[np.bool_]) -> bool:
    """Returns whether each group has two annotators or more, and its share of the labels."""
    labels = crowd.labels_per_annotator()
    several = min((labels[side] > 0).sum(), (labels[~side] > 0).sum()) > 1
    share = labels[side].sum() / max(labels.sum(), 1)
    return bool(several and LEAST_SHARE <= share <= 1.0 - LEAST_SHARE)


def _split(crowd: Annotations) -> NDArray[np.bool_]:
    """Returns `[R]` who is in the first of two groups, which agree within more than between.

    References:
        Newman (2006), Modularity and community structure in networks, PNAS 103.
    """
    people = crowd.num_annotators
    size = crowd.num_classes
    one_hot = crowd.one_hot().tocsc()
    places = (crowd.instances, crowd.annotators)
    ones = np.ones(len(crowd.labels))
    labelled = sparse.csc_matrix((ones, places), (crowd.num_instances, people))
    agreed = np.zeros((people, people))
    for code in range(size):
        named = one_hot[:, code::size]
        agreed += (named.T @ named).toarray()
    shared = (labelled.T @ labelled).toarray()
    counts = np.zeros((people, size))
    np.add.at(counts, (crowd.annotators, crowd.labels), 1.0)
    counts += counts.sum(axis=0) / max(counts.sum(), 1.0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    beyond = agreed - shared * (shares @ shares.T)
    np.fill_diagonal(beyond, 0.0)
    np.fill_diagonal(shared, 0.0)
    beyond -= shared * beyond.sum() / max(shared.sum(), 1.0)
    scale = np.sqrt(np.maximum(shared.sum(axis=1), 1.0))
    side = np.linalg.eigh(beyond / np.outer(scale, scale))[1][:, -1] >= 0
    for _ in range(IMPROVEMENTS):
        sign = np.where(side, 1.0, -1.0)
        gain = -sign * (beyond @ sign)
        best = int(gain.argmax())
        if gain[best] <= 1e-9:
            break
        side[best] = ~side[best]
    return side


def _agreements(crowd: Annotations, side: NDArray[np.bool_]) -> Array:
    """Returns `[N, 6]` agreement beyond chance and its most, within each group and between them."""
    first, second = (
        crowd.select(members[crowd.annotators]).vote_counts().astype(np.float64)
        for members in (side, ~side)
    )
    columns = []
    for one, other in ((first, first), (second, second), (first, second)):
        # a label is no pair with itself
        if one is other:
            with_itself = one.sum(axis=1)
        else:
            with_itself = 0.0
        pairs = one.sum(axis=1) * other.sum(axis=1) - with_itself
        agreed = (one * other).sum(axis=1) - with_itself
        totals = one.sum(axis=0), other.sum(axis=0)
        chance = totals[0] @ totals[1] / max(totals[0].sum() * totals[1].sum(), 1.0)
        columns += [agreed - pairs * chance, pairs * (1.0 - chance)]
    return np.stack(columns, axis=1)


def _figures(sums: Array) -> tuple[float, float, float]:
    """Returns agreement within each group, and between them as a part of what is expected."""
    first, second, between = sums[::2] / np.maximum(sums[1::2], 1e-9)
    expected = np.sqrt(max(first, 1e-3) * max(second, 1e-3))
    return float(first), float(second), float(between / expected)
