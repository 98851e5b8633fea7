"""Measures which part of the expected gains of `neucrowd relabel` is reached on public crowds.

    python -m benchmarks.gain [--data_dir=D] [--json] [--output=results/gain.md]

Every crowd of `benchmarks.certainty` with more labels is thinned to two and three labels per item.
The items with the highest expected gain (a tenth and three tenths of all) each get one of the other
labels, and the consensus is inferred again. Its accuracy rises by less than the gains add up to.
`neucrowd_tf.labelling.plan.REACHED` has the mean and the quantiles, each family of crowds counted
once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certainty import FAMILY, read_crowds, thinned
from benchmarks.timing import data_folder, flags, tell
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.labelling.belief import belief_of
from neucrowd_tf.labelling.gain import expected_gain

SHARES = (0.1, 0.3)


def rises(
    name: str, crowd: Annotations, truth: np.ndarray[Any, Any], labels: int
) -> Iterator[dict[str, Any]]:
    """Yields what is expected of further labels and what is reached, for each of `SHARES`."""
    start = thinned(crowd, labels)
    pairs = [
        one.instances.astype(np.int64) * crowd.num_annotators + one.annotators
        for one in (crowd, start)
    ]
    shown = np.isin(*pairs)
    first = infer(start)
    rows = np.flatnonzero((truth != -1) & start.annotated)
    belief = belief_of(start, first.probas)
    held = np.flatnonzero(~shown & np.isin(crowd.instances, rows))
    items = crowd.instances[held]
    gains = expected_gain(belief.probas[items], belief.errors[crowd.annotators[held]])
    order = np.argsort(-gains, kind="stable")
    best = order[np.sort(np.unique(items[order], return_index=True)[1])]  # one label per item
    for share in SHARES:
        chosen = best[: int(share * len(rows))]
        more = shown.copy()
        more[held[chosen]] = True
        labels_then = infer(crowd.select(more)).labels[rows]
        before, after = (np.mean(x == truth[rows]) for x in (first.labels[rows], labels_then))
        yield {
            "crowd": name,
            "labels": labels,
            "share": share,
            "accuracy": float(before),
            "expected": float(gains[chosen].sum() / len(rows)),
            "reached": float(after - before),
        }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Returns the part of the gains that is reached: mean and quantiles over families."""
    ratios: dict[str, list[float]] = {}
    for row in rows:
        family = FAMILY.get(row["crowd"], row["crowd"])
        ratios.setdefault(family, []).append(row["reached"] / row["expected"])
    values = np.concatenate(list(ratios.values()))
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in ratios.values()])
    order = np.argsort(values)
    places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    low, high = np.interp([0.1, 0.9], places, values[order])
    mean = float(np.average(values, weights=weights))
    return {"mean": mean, "low": float(low), "high": float(high)}


def markdown(rows: Sequence[dict[str, Any]], reached: dict[str, float]) -> str:
    """Returns the page of results."""
    lines = [
        "# Expected and reached gains of further labels",
        "",
        "`python -m benchmarks.gain --data_dir=DATA` makes this page.",
        "",
        "Reached part of the expected gain, families of crowds counted once: {mean:.2f}, 80% of"
        " values in [{low:.2f}, {high:.2f}].".format(**reached),
        "",
        "| crowd | labels per item | items labelled again | accuracy | expected rise | reached |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    cells = "{crowd} | {labels} | {share:.0%} | {accuracy:.3f} | {expected:.4f} | {reached:.4f}"
    lines += [f"| {cells.format(**row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the study."""
    parser = flags(__doc__)
    parser.add_argument("--data_dir", type=Path, default=data_folder(), help="the published data")
    parser.add_argument("--output", type=Path, help="a page to write")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name, crowd, truth in read_crowds(Path(arguments.data_dir)):
        mean = crowd.num_annotations / crowd.annotated.sum()
        for labels in (2, 3):
            if mean >= labels + 1:
                rows += rises(name, crowd, truth, labels)
                print(rows[-1], file=sys.stderr)
    reached = summary(rows)
    tell(arguments, {"reached": reached, "rows": rows}, markdown(rows, reached))
    return 0


if __name__ == "__main__":
    sys.exit(main())
