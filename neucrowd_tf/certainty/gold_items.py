"""Labels of gold items that other items lack: they make predictions look better than they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations

FEWEST_OTHERS = 20  # items without gold labels, for a comparison
ONLY_GOLD = 1e-3  # probability that an annotator's items are all gold by chance
OVER_REPRESENTED = 2.0  # times the usual share of an annotator's labels that are on gold items
SIGNIFICANT = 3.0  # standard errors by which gold items have more labels


def like_other_items(crowd: Annotations, gold: NDArray[np.int64]) -> Annotations | None:
    """Returns the annotations in which gold items have the labels that an item without gold has.

    Labels of annotators who labelled gold items alone, such as the author of the gold labels, are
    left out. If gold items still have more labels than others, as control questions do, labels are
    drawn that are left out, first those of annotators who labelled gold items more than others did.

    Args:
        crowd: the annotations.
        gold: `[N]` class codes, -1 if unknown.

    Returns:
        the same object if nothing is left out; None for vote counts, whose gold items have more.
    """
    counts = crowd.vote_counts().sum(axis=1)
    marked, others = (gold >= 0) & (counts > 0), (gold < 0) & (counts > 0)
    if others.sum() < FEWEST_OTHERS or not marked.any():
        return crowd
    if not crowd.has_identities:
        return None if _more(counts[marked], counts[others]) else crowd
    on_gold = marked[crowd.instances]
    inside = np.bincount(crowd.annotators, on_gold, minlength=crowd.num_annotators)
    outside = np.bincount(crowd.annotators, ~on_gold, minlength=crowd.num_annotators)
    share = marked.sum() / (marked.sum() + others.sum())
    only = (outside == 0) & (share**inside < ONLY_GOLD)
    keep = ~(on_gold & only[crowd.annotators])
    counts = np.bincount(crowd.instances[keep], minlength=len(counts))
    if _more(counts[marked], counts[others]):
        rng = np.random.default_rng(0)
        on_these = inside / np.maximum(inside + outside, 1)
        usual = float(np.median(on_these[(inside > 0) & ~only])) if (inside > 0).any() else 0.0
        late = (on_these > OVER_REPRESENTED * usual)[crowd.annotators] + rng.random(len(keep))
        places = np.flatnonzero(keep & on_gold)
        places = places[np.lexsort((late[places], crowd.instances[places]))]
        rows = crowd.instances[places]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        wanted = rng.choice(counts[others], len(counts))
        keep[places[rank >= wanted[rows]]] = False
    return crowd if keep.all() else crowd.select(keep)


def _more(marked: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
    """Returns whether gold items have more labels than others, beyond chance."""
    error = np.sqrt(marked.var() / len(marked) + others.var() / len(others))
    return bool(marked.mean() - others.mean() > SIGNIFICANT * error + 0.05 * others.mean())
