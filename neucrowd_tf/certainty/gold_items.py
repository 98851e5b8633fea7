"""Labels of gold items that other items lack, and gold items that other items are unlike.

Both would make labels look better, or annotators other, than they are on items without gold labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Indices, Mask

FEWEST_OTHERS = 20  # items without gold labels, for a comparison
FEWEST_GOLD_ITEMS = 10  # for a comparison of what their labels are like
ONLY_GOLD = 1e-3  # probability that an annotator's items are all gold by chance
OVER_REPRESENTED = 2.0  # times the usual share of an annotator's labels that are on gold items
SIGNIFICANT = 3.0  # standard errors by which gold items have more or other labels
DRAWS = 4  # of the labels that gold items keep


@dataclasses.dataclass(frozen=True)
class GoldItems:
    """What gold items show about other items.

    Attributes:
        crowd: the annotations, without those of annotators who labelled gold items alone.
        draws: the same, in which gold items have the labels that an item without gold has;
            the crowd itself if they have no others.
        left_out: how many labels of gold items other items lack, in the first draw.
        unlike: whether gold items are surely no random draw of all items, by their labels.
    """

    crowd: Annotations
    draws: Sequence[Annotations]
    left_out: int
    unlike: bool


def gold_items(crowd: Annotations, gold: Indices) -> GoldItems | None:
    """Returns gold items with as many labels as other items have.

    Labels of annotators who labelled gold items alone, such as the author of the gold labels, are
    left out. If gold items still have more labels than others, as control questions do, labels are
    drawn that are left out, first those of annotators who labelled gold items more than others did.

    Args:
        crowd: the annotations.
        gold: `[N]` class codes, -1 if unknown.

    Returns:
        None for vote counts whose gold items have more.
    """
    counts = crowd.vote_counts().sum(axis=1)
    marked = (gold >= 0) & (counts > 0)
    others = (gold < 0) & (counts > 0)
    if others.sum() < FEWEST_OTHERS or not marked.any():
        return GoldItems(crowd, [crowd], 0, unlike=False)
    if not crowd.has_identities:
        if _more(counts[marked], counts[others]):
            return None
        return GoldItems(crowd, [crowd], 0, unlike=unlike_others(crowd, gold))
    on_gold = marked[crowd.instances]
    inside = np.bincount(crowd.annotators, on_gold, minlength=crowd.num_annotators)
    outside = np.bincount(crowd.annotators, ~on_gold, minlength=crowd.num_annotators)
    share = marked.sum() / (marked.sum() + others.sum())
    only = (outside == 0) & (share**inside < ONLY_GOLD)
    keep = ~(on_gold & only[crowd.annotators])
    usual = crowd if keep.all() else crowd.select(keep)
    draws = [usual]
    counts = usual.vote_counts().sum(axis=1)
    if _more(counts[marked], counts[others]):
        on_these = inside / np.maximum(inside + outside, 1)
        often = on_these > OVER_REPRESENTED * np.median(on_these[(inside > 0) & ~only])
        late = often[usual.annotators]
        rng = np.random.default_rng(0)
        draws = [
            _thinned(usual, marked, late, rng.choice(counts[others], len(counts)), rng)
            for _ in range(DRAWS)
        ]
    left_out = crowd.num_annotations - draws[0].num_annotations
    return GoldItems(usual, draws, left_out, unlike=unlike_others(usual, gold))


def _thinned(
    crowd: Annotations, marked: Mask, late: Mask, most: Indices, rng: np.random.Generator
) -> Annotations:
    """Returns a crowd in which marked items `[N]` keep up to a number of labels `[N]`.

    Labels `[A]` that are `late` are kept only if an item has too few others.
    """
    order = np.lexsort((late + rng.random(len(late)), crowd.instances))
    rows = crowd.instances[order]
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return crowd.select(~marked[crowd.instances] | (rank < most[crowd.instances]))


def _more(marked: Indices, others: Indices) -> bool:
    """Returns whether gold items have more labels than others, beyond chance."""
    error = np.sqrt(marked.var() / len(marked) + others.var() / len(others))
    return bool(marked.mean() - others.mean() > SIGNIFICANT * error + 0.05 * others.mean())


def unlike_others(crowd: Annotations, gold: Indices) -> bool:
    """Returns whether gold items surely differ from the others by their labels.

    They are compared by the share of each class among an item's labels, and by how often two of
    them agree.

    Args:
        crowd: the annotations.
        gold: `[N]` class codes, -1 if unknown.
    """
    votes = crowd.vote_counts().astype(np.float64)
    total = votes.sum(axis=1)
    several = total > 1
    marked = (gold >= 0)[several]
    votes = votes[several]
    total = total[several]
    if marked.sum() < FEWEST_GOLD_ITEMS or (~marked).sum() < FEWEST_OTHERS:
        return False
    agreed = (votes * (votes - 1)).sum(axis=1) / (total * (total - 1))
    values = np.column_stack([votes / total[:, None], agreed])
    others = values[~marked].var(axis=0)
    # Few gold items may not show how much shares vary: the others show it. Shares of more labels
    # vary less.
    fewer = min(1.0, float(total[~marked].mean() / total[marked].mean()))
    variance = np.maximum(values[marked].var(axis=0), others * fewer) / marked.sum()
    error = np.sqrt(variance + others / (~marked).sum())
    away = np.abs(values[marked].mean(axis=0) - values[~marked].mean(axis=0))
    return bool((away > SIGNIFICANT * error + 1e-9).any())
