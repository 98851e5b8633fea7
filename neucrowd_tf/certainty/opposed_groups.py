"""Two groups of annotators who agree with each other, but with the other group hardly at all.

Independent annotators of skills a and b, 0 for chance, agree beyond chance by a b. So the agreement
between two groups is the geometric mean of that within them, however skilled they are. If it is far
less, the groups differ in what they take for the truth, and votes do not show which is right.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtr

from neucrowd_tf.aggregation.families import labels_of, shared_labels
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.estimate import resamples
from neucrowd_tf.declare.types import Floats, Indices, Mask

MOST_CELLS = 50_000_000  # annotators x annotators, or items x annotators
FEWEST_ITEMS = 40
# The smaller group must have more than LEAST_SHARE of the labels, with copies counted once: a still
# smaller one may be friends who err alike, and votes decide against it. If one group only swaps
# classes, the smaller one must have more than LEAST_CONTRARY.
LEAST_SHARE = 0.25
LEAST_CONTRARY = 0.45
# Two annotators are copies if they differ in less than this part of the labels in which two
# annotators of one group usually differ.
COPIED = 1 / 3
# Bounds of the agreement between groups, relative to the expected one, and of the agreement within
# groups. The ends of their 95% intervals must lie within. In 41 other public crowds they never do.
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

    members: Mask
    share: float

    def majorities(self, crowd: Annotations) -> Indices:
        """Returns `[2, N]` the class that each group named most often, -1 if none or several."""
        labels = []
        for members in self.members:
            votes = labels_of(crowd, members).vote_counts()
            top = votes.max(axis=1, keepdims=True)
            single = (votes == top).sum(axis=1) == 1
            labels.append(np.where(single, votes.argmax(axis=1), -1))
        return np.stack(labels)

    def differ(self, crowd: Annotations) -> Mask:
        """Returns `[N]` whether the groups named different classes most often."""
        first, second = self.majorities(crowd)
        return (first >= 0) & (second >= 0) & (first != second)

    def least_accuracy(self, crowd: Annotations, labels: Indices) -> float:
        """Returns the accuracy of labels `[N]` if the group that they follow less is right.

        Where the labels are that group's, they may be right by chance only.
        """
        majorities = self.majorities(crowd)
        agreed = ((majorities == labels) & (majorities >= 0)).sum(axis=1)
        return float((agreed / (majorities >= 0).sum(axis=1)).min()) / crowd.num_classes

    def skills(self, crowd: Annotations) -> Floats:
        """Returns `[2, R]` how often an annotator's label is the one that a group named most."""
        size = crowd.num_annotators
        shares = []
        for true in self.majorities(crowd)[:, crowd.instances]:
            hits = np.bincount(crowd.annotators, crowd.labels == true, minlength=size)
            total = np.bincount(crowd.annotators, true >= 0, minlength=size)
            shares.append(hits / np.maximum(total, 1))
        return np.stack(shares)


def opposed_groups(crowd: Annotations, families: Collection[Mask] = ()) -> OpposedGroups | None:
    """Returns the two groups that annotators split into, or None.

    Groups are chosen on half of the items and tested on the others, and the other way round.

    Args:
        crowd: with identities.
        families: `[R]` who is in each family that counts as one annotator, as copies do.
    """
    cells = crowd.num_annotators * max(crowd.num_annotators, crowd.num_instances)
    if crowd.annotated.sum() < FEWEST_ITEMS or cells > MOST_CELLS:
        return None
    first = _split(crowd)
    *within, share = _figures(_agreements(crowd, first).sum(axis=0))
    smaller = _smaller(crowd, first)
    if min(within) < LEAST_WITHIN or share > MOST_BETWEEN or smaller <= LEAST_SHARE:
        return None
    sources = _sources(crowd, families, min(within))
    crowd = crowd.select(np.isin(crowd.annotators, sources))
    rng = np.random.default_rng(0)
    half = rng.random(crowd.num_instances) < 0.5
    first = _split(crowd)
    rows = []
    for chosen in (half, ~half):
        side = _split(crowd.select(chosen[crowd.instances]))
        if _smaller(crowd, side) <= LEAST_SHARE:
            return None
        if (side == first)[sources].mean() < 0.5:  # which of the groups comes first is chance
            side = ~side
        rows.append(_agreements(crowd.select(~chosen[crowd.instances]), side))
    agreements = np.concatenate(rows)
    agreements = agreements[agreements.any(axis=1)]
    share = _figures(agreements.sum(axis=0))[2]
    once = np.ones(len(agreements), dtype=np.int64)
    drawn = np.array([_figures(times @ agreements) for times in resamples(rng, once, RESAMPLES)])
    lowest = np.quantile(drawn[:, :2], TAIL, axis=0).min()
    if lowest < LEAST_WITHIN or np.quantile(drawn[:, 2], 1.0 - TAIL) > MOST_BETWEEN:
        return None
    contrary = _association(crowd, first) > MOST_BETWEEN
    smaller = min(smaller, _smaller(crowd, first))
    if smaller <= (LEAST_CONTRARY if contrary else LEAST_SHARE):
        return None
    return OpposedGroups(np.stack([first, ~first])[:, sources], share)


def _smaller(crowd: Annotations, side: Mask) -> float:
    """Returns the smaller group's share of the labels, 0 if it has fewer than two annotators."""
    labels = crowd.labels_per_annotator()
    groups = labels[side], labels[~side]
    if min(map(np.count_nonzero, groups)) < 2:
        return 0.0
    return float(min(map(np.sum, groups)) / labels.sum())


def _sources(crowd: Annotations, families: Collection[Mask], within: float) -> Indices:
    """Returns `[R]` the first annotator of the same family, or with nearly the same labels.

    Args:
        crowd: with identities.
        families: `[R]` each.
        within: usual agreement beyond chance of annotators of one group.
    """
    shared, agreed, chance = _pairs(crowd)
    usual = (1.0 - within) * (1.0 - chance)
    differing = shared - agreed
    few = differing < COPIED * usual * shared
    # By chance less than one pair of the crowd is linked.
    rare = 2 / crowd.num_annotators**2
    links = few & (bdtr(differing, shared.astype(np.int64), usual) < rare)
    for members in families:
        links |= np.outer(members, members)
    codes = connected_components(links, directed=False)[1]
    return np.unique(codes, return_index=True)[1][codes]


def _pairs(crowd: Annotations) -> tuple[Floats, Floats, Floats]:
    """Returns `[R, R]` pairs' shared items, agreements, and the share that agrees by chance."""
    counts = np.zeros((crowd.num_annotators, crowd.num_classes))
    np.add.at(counts, (crowd.annotators, crowd.labels), 1.0)
    counts += counts.sum(axis=0) / max(counts.sum(), 1.0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    _, shared, agreed = shared_labels(crowd)
    return shared, agreed, shares @ shares.T


def _split(crowd: Annotations) -> Mask:
    """Returns `[R]` who is in the first of two groups, which agree within more than between.

    References:
        Newman (2006), Modularity and community structure in networks, PNAS 103.
    """
    shared, agreed, chance = _pairs(crowd)
    beyond = agreed - shared * chance
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


def _agreements(crowd: Annotations, side: Mask) -> Floats:
    """Returns `[N, 6]` agreement beyond chance and its most, within each group and between them."""
    first = labels_of(crowd, side).vote_counts().astype(np.float64)
    second = labels_of(crowd, ~side).vote_counts().astype(np.float64)
    columns = []
    for one, other in ((first, first), (second, second), (first, second)):
        pairs = one.sum(axis=1) * other.sum(axis=1)
        agreed = (one * other).sum(axis=1)
        if one is other:  # a label is no pair with itself
            pairs -= one.sum(axis=1)
            agreed -= one.sum(axis=1)
        totals = one.sum(axis=0), other.sum(axis=0)
        chance = totals[0] @ totals[1] / max(totals[0].sum() * totals[1].sum(), 1.0)
        columns += [agreed - pairs * chance, pairs * (1.0 - chance)]
    return np.stack(columns, axis=1)


def _figures(sums: Floats) -> tuple[float, float, float]:
    """Returns agreement within each group, and between them as a part of what is expected."""
    first, second, between = sums[::2] / np.maximum(sums[1::2], 1e-9)
    expected = np.sqrt(max(first, 1e-3) * max(second, 1e-3))
    return float(first), float(second), float(between / expected)


def _association(crowd: Annotations, side: Mask) -> float:
    """Returns how far one truth explains both groups, if each may name classes in its own way.

    It is the greatest agreement between them over all rotations of the second group's classes, as a
    part of what is expected.
    """
    first = labels_of(crowd, side).vote_counts().astype(np.float64)
    second = labels_of(crowd, ~side).vote_counts().astype(np.float64)
    tables = []
    for one, other in ((first, first), (second, second), (first, second)):
        table = one.T @ other
        if one is other:  # a label is no pair with itself
            table -= np.diag(one.sum(axis=0))
        table /= table.sum()
        tables.append(table - np.outer(table.sum(axis=1), table.sum(axis=0)))
    expected = np.sqrt(np.trace(tables[0]) * np.trace(tables[1]))
    return float(np.linalg.norm(tables[2], "nuc") / expected)
