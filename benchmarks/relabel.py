"""Measures what further labels bring on public crowds, by which items are labelled again.

    python -m benchmarks.relabel [--data_dir=D] [--crowds=rte,...] [--json]

Every crowd of `benchmarks.crowds` with more labels is thinned to two and three labels per item.
A tenth and three tenths of the items each get one of the other labels, and the consensus is
inferred again. They are the items (and labels) with the highest expected gain of `neucrowd
relabel`; three tenths are also drawn at random, by the entropy of the consensus, and by ActiveLab's
score (with the classes' shares for a classifier), each with an annotator at random.

The accuracy rises by less than the gains add up to. `neucrowd_tf.labelling.plan.REACHED` has the
reached part: mean and quantiles over families of crowds, each counted once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr

from benchmarks.crowds import FAMILY, read_crowds, thinned
from benchmarks.timing import arguments, data_folder, show
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.labelling.activelab import activelab_scores
from neucrowd_tf.labelling.belief import belief_of
from neucrowd_tf.labelling.gain import expected_gain

SHARES = (0.1, 0.3)
OTHERS = ("random", "entropy", "activelab")


def scores(
    strategy: str, start: Annotations, probas: np.ndarray[Any, Any], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Returns `[N]` how much an item's label is worth to one of `OTHERS`; ties are broken."""
    ties = rng.random(len(probas)) * 1e-9
    if strategy == "entropy":
        return np.asarray(entr(probas).sum(axis=1) + ties)
    if strategy == "activelab":
        shares = start.vote_counts().sum(axis=0) + 1.0
        return ties - activelab_scores(start, np.tile(shares / shares.sum(), (len(probas), 1)))
    return ties


def one_per_item(worth: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the places of the best label of each item, the best item first."""
    order = np.argsort(-worth, kind="stable")
    return order[np.sort(np.unique(items[order], return_index=True)[1])]


def rises(
    name: str, crowd: Annotations, truth: np.ndarray[Any, Any], labels: int
) -> Iterator[dict[str, Any]]:
    """Yields what is expected of further labels and what is reached, for each of `SHARES`."""
    start, rng = thinned(crowd, labels), np.random.default_rng([labels, 7])
    pairs = [
        one.instances.astype(np.int64) * crowd.num_annotators + one.annotators
        for one in (crowd, start)
    ]
    shown = np.isin(pairs[0], pairs[1])
    first = infer(start)
    rows = np.flatnonzero((truth != -1) & start.annotated)
    belief = belief_of(start, first.probas)
    held = rng.permutation(np.flatnonzero(~shown & np.isin(crowd.instances, rows)))
    items = crowd.instances[held]
    gains = expected_gain(belief.probas[items], belief.errors[crowd.annotators[held]])
    before = float(np.mean(first.labels[rows] == truth[rows]))

    def reached(best: np.ndarray[Any, Any], share: float) -> float:
        more = shown.copy()
        more[held[best[: int(share * len(rows))]]] = True
        return float(np.mean(infer(crowd.select(more)).labels[rows] == truth[rows])) - before

    best = one_per_item(gains, items)
    for share in SHARES:
        row = {"crowd": name, "labels": labels, "share": share, "accuracy": before}
        row["expected"] = float(gains[best[: int(share * len(rows))]].sum() / len(rows))
        row["reached"] = reached(best, share)
        for strategy in OTHERS if share == SHARES[-1] else ():
            worth = scores(strategy, start, first.probas, rng)[items]
            row[strategy] = reached(one_per_item(worth, items), share)
        yield row


def reached_part(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Returns the part of the gains that is reached: mean, 10% and 90% quantiles over families."""
    values = (rows["reached"] / rows["expected"]).to_numpy()
    weights = 1.0 / rows.groupby("family")["family"].transform("size").to_numpy()
    order = np.argsort(values)
    places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    low, high = np.interp([0.1, 0.9], places, values[order])
    return float(np.average(values, weights=weights)), float(low), float(high)


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the reached part, how well it holds for families that are left out, and strategies.

    `error` is the mean distance of the reached rise and that said by the other families, `covered`
    the share of their 80% intervals that contain it, `spread` the standard error of the mean part
    over families. Strategies have the mean reached rise. A single family is measured by itself.
    """
    table = pd.DataFrame(rows)
    table = table.assign(family=[FAMILY.get(name, name) for name in table["crowd"]])
    means, errors, covered = [], [], []
    for family, mine in table.groupby("family", sort=False):
        others = table[table["family"] != family]
        mean, low, high = reached_part(others if len(others) else mine)
        means.append(reached_part(mine)[0])
        expected, reached = mine["expected"], mine["reached"]
        errors.append((mean * expected - reached).abs().mean())
        covered.append(reached.between(low * expected, high * expected).mean())
    mean, low, high = reached_part(table)
    spread = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0
    result = {"mean": mean, "low": low, "high": high, "spread": spread}
    result |= {"error": float(np.mean(errors)), "covered": float(np.mean(covered))}
    most = table.reindex(columns=[*table.columns, *(set(OTHERS) - set(table.columns))])
    rise = most.dropna(subset=[OTHERS[0]])[["reached", *OTHERS]].mean()
    return result | {f"{strategy}_rise": float(value) for strategy, value in rise.items()}


def main() -> None:
    """Measures the crowds."""
    options = arguments(__doc__, data_dir=data_folder(), crowds="")
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name, crowd, truth in read_crowds(options.data_dir):
        if options.crowds and name not in options.crowds.split(","):
            continue
        mean = crowd.num_annotations / crowd.annotated.sum()
        for labels in (2, 3):
            if mean >= labels + 1:
                rows += rises(name, crowd, truth, labels)
                print(rows[-1], file=sys.stderr)
    result = summary(rows)
    page = f"{pd.DataFrame(rows).to_string(index=False)}\n\n{pd.Series(result).to_string()}"
    show(options, {"reached": result, "rows": rows}, page)


if __name__ == "__main__":
    main()
