"""Truth-inference benchmarks: annotations without features, and the truth of some instances.

Under `<data_dir>/truth_inference` each folder with a `label.csv` (`item,worker,label`) and a
`truth.csv` (`item,truth`) is a benchmark; `printed.csv` (`dataset`, then a column a method) has
published accuracies.

References:
    Li, Rubinstein and Cohn (2019), Exploiting worker correlation for label aggregation in
    crowdsourcing, collect them.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.arrays import check_each
from data.tables import read_csv
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = "truth_inference"


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """One set.

    Attributes:
        annotations: the crowd's; of an annotator's several labels of an instance the first.
        truth: `[N]` class codes, -1 where unknown; -2 where the truth is a class that nobody named.
    """

    annotations: Annotations
    truth: NDArray[np.int64]

    def accuracy(self, probas: NDArray[np.float64]) -> float:
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
    return sorted(
        path.parent.name
        for path in (data_dir / FOLDER).glob("*/label.csv")
        if path.with_name("truth.csv").exists()
    )


def load(data_dir: Path, name: str) -> Benchmark:
    """Reads one benchmark.

    Raises:
        DataError: it is not there, or a truth is of an item without labels.
    """
    folder = data_dir / FOLDER / name
    if not (folder / "label.csv").exists():
        raise DataError(f"{folder}: expected label.csv and truth.csv, received none")
    options = TableOptions(duplicates="first")
    crowd = read_annotations(folder / "label.csv", options, report=lambda _: None).annotations
    path = folder / "truth.csv"
    table = read_csv(path, ["item", "truth"], dtype=str)
    labelled = table["item"].isin(crowd.instance_names.astype(str))
    check_each(path, table["item"], labelled, "an item with labels")
    truth = dict(zip(table["item"], table["truth"], strict=True))
    label = {str(key): code for code, key in enumerate(crowd.class_names.tolist())}
    items = map(str, crowd.instance_names.tolist())
    codes = [label.get(truth[item], -2) if item in truth else -1 for item in items]
    return Benchmark(crowd, np.array(codes, dtype=np.int64))


def printed(data_dir: Path) -> dict[str, dict[str, float]]:
    """Returns published accuracies: method -> benchmark -> accuracy; nothing without the file."""
    path = data_dir / FOLDER / "printed.csv"
    if not path.exists():
        return {}
    table: Any = read_csv(path).set_index("dataset")
    return {method: table[method].to_dict() for method in table.columns}
