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
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions

Array = NDArray[Any]
RELATIVES = ("CF CF_amt", "ZC_all ZC_in ZC_us", "rte snow_rte", "trec trec_rf10", "MS music")
FAMILY = {name: group.split()[0] for group in RELATIVES for name in group.split()}
# Columns of items, annotators and labels of the files with gold labels, and where the names are.
FILES = {
    "snow_rte.tsv": ("orig_id", "!amt_worker_ids", "response", "first"),
    "snow_wsd.tsv": ("orig_id", "!amt_worker_ids", "response", "first"),
    "barzan.txt": ("2", "1", "3", "none"),
    "trec_rf10.txt": ("topicID,docID", "workerID", "label", "first"),
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
    for file in FILES:
        yield Path(file).stem, *_with_gold(data_dir / "real_files", file)


def _with_gold(folder: Path, file: str) -> tuple[Annotations, Array]:
    """Returns the last label of each item and annotator of a file, and the gold labels."""
    task, worker, label, header = FILES[file]
    columns = {"task_column": task, "worker_column": worker, "label_column": label}
    options = TableOptions.of(**columns, header=header, duplicates="last")
    crowd = read_annotations(folder / file, options).annotations
    path = folder / "gold" / Path(file).with_suffix(".csv")
    gold = pd.read_csv(path, dtype=str).set_index("task")["truth"]
    gold.index = gold.index.str.replace("|", ",")  # between columns
    codes = gold.map({str(value): code for code, value in enumerate(crowd.class_names)}).fillna(-2)
    return crowd, codes.reindex([str(name) for name in crowd.instance_names]).fillna(-1).to_numpy(
        int
    )


def thinned(crowd: Annotations, labels: int, rng: np.random.Generator | None = None) -> Annotations:
    """Returns a crowd with at most that many labels per item, drawn at random."""
    rng = rng or np.random.default_rng([0, labels])
    order = rng.permutation(crowd.num_annotations)
    grouped = order[np.argsort(crowd.instances[order], kind="stable")]
    place = np.arange(len(grouped))
    first = np.searchsorted(crowd.instances[grouped], crowd.instances[grouped])
    return crowd.select(np.sort(grouped[place - first < labels]))
