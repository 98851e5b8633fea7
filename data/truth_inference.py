"""Truth-inference benchmarks: annotations without features, and the truth of some instances.

Under `<data_dir>/truth_inference` each folder with a `label.csv` (`item,worker,label`) and a
`truth.csv` (`item,truth`) is a benchmark; `printed.csv` (`dataset`, then a column a method) has
published accuracies. HITspam (`load_hitspam`) is downloaded.

References:
    Li, Rubinstein and Cohn (2019), Exploiting worker correlation for label aggregation in
    crowdsourcing, collect them.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats, Indices
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import positions

from .arrays import check_each
from .catalogue import source
from .download import locate
from .tables import read_csv

FOLDER = "truth_inference"


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """One set.

    Attributes:
        annotations: the crowd's; of an annotator's several labels of an instance the first.
        truth: `[N]` class codes, -1 where unknown; -2 where the truth is a class that nobody named.
    """

    annotations: Annotations
    truth: Indices

    def accuracy(self, probas: Floats) -> float:
        """Returns the accuracy over instances with a true label.

        A true class that ties for the most probable one counts by its share.
        """
        top = (probas == probas.max(axis=1, keepdims=True)).astype(np.float64)
        top /= top.sum(axis=1, keepdims=True)
        rows = np.flatnonzero(self.truth != -1)
        hit = np.where(self.truth[rows] >= 0, top[rows, self.truth[rows]], 0.0)
        return float(hit.mean())


def names(data_dir: Path | None) -> list[str]:
    """Returns the benchmarks that are there, in alphabetical order."""
    if data_dir is None:
        return []
    benchmarks = []
    for path in (data_dir / FOLDER).glob("*/label.csv"):
        if path.with_name("truth.csv").exists():
            benchmarks.append(path.parent.name)
    return sorted(benchmarks)


def load(data_dir: Path, name: str) -> Benchmark:
    """Reads one benchmark.

    Raises:
        DataError: it is not there, or a truth is of an item without labels.
    """
    folder = data_dir / FOLDER / name
    if not (folder / "label.csv").exists():
        raise DataError(f"{folder}: expected label.csv and truth.csv, received none")
    crowd = _labels(folder / "label.csv", TableOptions(duplicates="first"))
    path = folder / "truth.csv"
    table = read_csv(path, ["item", "truth"], dtype=str)
    labelled = table["item"].isin(crowd.instance_names.astype(str))
    check_each(path, table["item"], labelled, "an item with labels")
    return _benchmark(crowd, dict(zip(table["item"], table["truth"], strict=True)))


def load_hitspam(data_dir: Path | None = None) -> Benchmark:
    """Reads HITspam: is a job on Mechanical Turk spam, by CrowdFlower's annotators.

    Args:
        data_dir: a folder with `hitspam/` that holds `labels.txt` and `gold.txt`; None downloads
            them.

    Raises:
        DataError: a file is missing or is not the published one.
    """
    folder = locate("hitspam", ["labels.txt", "gold.txt"], data_dir, source("hitspam"))
    columns = {"worker_column": "1", "task_column": "2", "label_column": "3"}
    options = TableOptions.of(separator="tab", header="none", duplicates="first", **columns)
    gold = (line.split("\t") for line in (folder / "gold.txt").read_text("utf-8").splitlines())
    truth = dict(map(operator.itemgetter(0, -1), gold))
    return _benchmark(_labels(folder / "labels.txt", options), truth)


def _labels(path: Path, options: TableOptions) -> Annotations:
    return read_annotations(path, options, report=lambda line: None).annotations


def _benchmark(crowd: Annotations, truth: Mapping[str, str]) -> Benchmark:
    """Returns a benchmark with the true labels of the items that have labels."""
    label = positions(map(str, crowd.class_names.tolist()))
    codes = np.full(crowd.num_instances, -1)
    for row, name in enumerate(map(str, crowd.instance_names.tolist())):
        if name in truth:
            codes[row] = label.get(truth[name], -2)
    return Benchmark(crowd, codes)


def printed(data_dir: Path) -> dict[str, dict[str, float]]:
    """Returns published accuracies: method -> benchmark -> accuracy; nothing without the file."""
    path = data_dir / FOLDER / "printed.csv"
    if not path.exists():
        return {}
    table: Any = read_csv(path).set_index("dataset")
    return {method: table[method].to_dict() for method in table.columns}
