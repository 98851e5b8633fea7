"""Public crowds with true labels, for the studies of inferred labels.

They are the twelve of `truth_inference/`, LabelMe, Music, 4,000 images of CIFAR-10N, and four of
`real_files/` with gold labels. A family has the crowds of the same items or task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from data import cifar10n, labelme, music
from data import truth_inference as published
from neucrowd_tf.annotations import Annotations

Array = NDArray[Any]
RELATIVES = ("CF CF_amt", "ZC_all ZC_in ZC_us", "rte snow_rte", "trec trec_rf10", "MS music")
FAMILY = {name: group.split()[0] for group in RELATIVES for name in group.split()}
# Item (of several columns), annotator and label of the files with gold labels; numbers if a file
# has no header.
FILES: dict[str, tuple[str, list[Any], Any, Any]] = {
    "snow_rte": ("snow_rte.tsv", ["orig_id"], "!amt_worker_ids", "response"),
    "snow_wsd": ("snow_wsd.tsv", ["orig_id"], "!amt_worker_ids", "response"),
    "barzan": ("barzan.txt", [1], 0, 2),
    "trec_rf10": ("trec_rf10.txt", ["topicID", "docID"], "workerID", "label"),
}


def read_crowds(data_dir: Path) -> Iterator[tuple[str, Annotations, Array]]:
    """Yields name, annotations and true labels of each crowd: -1 unknown, -2 no class of it."""
    for name in published.names(data_dir):
        crowd = published.load(data_dir, name)
        yield name, crowd.annotations, crowd.truth
    loaders: dict[str, Callable[[], Any]] = {
        "labelme": lambda: labelme.load(data_dir),
        "music": lambda: music.load(data_dir),
        "cifar10n": lambda: cifar10n.load(data_dir, size=4000),
    }
    for name, load in loaders.items():
        dataset = load()
        yield name, dataset.annotations, np.asarray(dataset.truth)
    for name in FILES:
        yield name, *_with_gold(data_dir / "real_files", name)


def _with_gold(folder: Path, name: str) -> tuple[Annotations, Array]:
    """Returns the last label of each item and annotator of a file, and the gold labels."""
    file, item, annotator, label = FILES[name]
    form: dict[str, Any] = {"sep": r"\s+", "header": None} if label == 2 else {"sep": "\t"}
    table = pd.read_csv(folder / file, dtype=str, keep_default_na=False, **form)
    rows = pd.DataFrame({"item": table[item].agg("|".join, axis=1), "annotator": table[annotator]})
    rows = rows.assign(label=table[label]).groupby(["item", "annotator"], sort=False).last()
    (instances, items), (annotators, people), (labels, classes) = (
        pd.factorize(values, sort=True) for values in rows.reset_index().to_numpy().T
    )
    crowd = Annotations(
        instances,
        annotators,
        labels,
        num_instances=len(items),
        num_annotators=len(people),
        num_classes=len(classes),
    )
    gold = pd.read_csv(folder / "gold" / f"{name}.csv", dtype=str).set_index("task")["truth"]
    codes = gold.map({value: code for code, value in enumerate(classes)}).fillna(-2)
    return crowd, codes.reindex(items).fillna(-1).to_numpy(int)


def thinned(crowd: Annotations, labels: int, rng: np.random.Generator | None = None) -> Annotations:
    """Returns a crowd with at most that many labels per item, drawn at random."""
    rng = rng or np.random.default_rng([0, labels])
    order = rng.permutation(crowd.num_annotations)
    grouped = order[np.argsort(crowd.instances[order], kind="stable")]
    place = np.arange(len(grouped))
    first = np.searchsorted(crowd.instances[grouped], crowd.instances[grouped])
    return crowd.select(np.sort(grouped[place - first < labels]))
