"""The crowds that calibration is learned on, full and thinned, and those that only check it."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from data import cifar10n, labelme, music
from neucrowd_tf.aggregation import Consensus, DawidSkene, MajorityVote
from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.io.files.atomic import atomic_path

Array = NDArray[Any]
TABLE = Path(__file__).parents[1] / "crowds.csv"
MODELS: dict[str, Aggregator] = {
    "consensus": Consensus(),
    "dawid_skene": DawidSkene(),
    "majority_vote": MajorityVote(),
}
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": r"\s+"}


@dataclasses.dataclass(frozen=True, eq=False)
class Crowd:
    """One crowd with its inferred labels.

    Attributes:
        name, family, kind, thinned: "rte", "rte", "first" or "outside", "full" (or 2, 3 labels).
        annotations: the crowd, or some of its labels.
        truth: `[N]` class codes; -1 unknown, -2 a class that nobody named.
        probas: by model (`MODELS`), `[N, C]`.
    """

    name: str
    family: str
    kind: str
    thinned: str
    annotations: Annotations
    truth: Array
    probas: dict[str, Array]

    @property
    def rows(self) -> Array:
        """The instances with a true label and at least one annotation."""
        return np.flatnonzero((self.truth != -1) & self.annotations.annotated)

    @property
    def votes(self) -> Array:
        return self.annotations.vote_counts()

    def right(self) -> Array:
        """Returns whether the inferred labels of `rows` are right."""
        return np.asarray(self.probas["consensus"].argmax(axis=1) == self.truth)[self.rows]

    def majority_vote(self) -> float:
        """Returns the expected accuracy of majority vote whose ties are drawn."""
        votes, truth = self.votes[self.rows], self.truth[self.rows]
        top = votes == votes.max(axis=1, keepdims=True)
        hits = top[np.arange(len(top)), truth] & (truth >= 0)
        return float((hits / top.sum(axis=1)).mean())


def table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Returns columns 0, 1, ... of a file; numbers name those of files without header."""
    header = None if columns[0].isdigit() else 0
    text = pd.read_csv(
        path, sep=SEPARATORS[path.suffix], header=header, dtype=str, encoding="utf-8-sig"
    ).rename(columns=str)
    parts = [[text[single] for single in name.split("|")] for name in columns]
    joined = [x[0].str.cat(pd.concat(x[1:], axis=1), sep="|") if x[1:] else x[0] for x in parts]
    return pd.concat(joined, axis=1, keys=range(len(columns))).dropna()


def read_crowd(row: dict[str, str], folder: Path) -> tuple[Annotations, Array]:
    """Returns annotations of people and true labels of a row of `crowds.csv`."""
    labels = table(folder / row["labels"], row["columns"].split())
    truth = table(folder / row["truth"], row["true_columns"].split()).drop_duplicates(0).copy()
    labels[2] = labels[2].str.removesuffix(".0")
    if row["classes"]:  # other items are tests of attention
        order = {name: str(code) for code, name in enumerate(row["classes"].split())}
        truth[1] = truth[1].map(order)
        truth = truth.dropna()
        labels = labels[labels[0].isin(truth[0])]
    if (models := folder / Path(row["labels"]).with_name("set.json")).exists():
        labels = labels[~labels[1].isin(json.loads(models.read_text("utf-8"))["models"])]
    crowd = Annotations.from_arrays(*(labels[code] for code in range(3)), duplicates="last")
    codes = {str(name): code for code, name in enumerate(crowd.class_names)}
    true = truth.set_index(0)[1].map(codes).fillna(-2)
    names = crowd.instance_names.astype(str)
    return crowd, true.reindex(names).fillna(-1).to_numpy(int)


def read_crowds(data_dir: Path, outside: Path | None) -> Iterator[tuple[Any, ...]]:
    """Yields name, family, kind, annotations and true labels of each crowd."""
    for row in csv.DictReader(TABLE.read_text("utf-8").splitlines()):
        if row["repository"] and outside is None:
            continue
        folder = outside / row["repository"] if row["repository"] and outside else data_dir
        yield row["name"], row["family"], row["kind"], *read_crowd(row, folder)
    loaded = {
        "labelme": (labelme.load(data_dir), "labelme"),
        "music": (music.load(data_dir), "MS"),
        "cifar10n": (cifar10n.load(data_dir, size=4000), "cifar10n"),
    }
    for name, (dataset, family) in loaded.items():
        yield name, family, "first", dataset.annotations, np.asarray(dataset.truth)


def thinned(crowd: Annotations, labels: int) -> Annotations:
    """Returns a crowd with at most that many labels per item, drawn at random."""
    order = np.random.default_rng([0, labels]).permutation(crowd.num_annotations)
    grouped = order[np.argsort(crowd.instances[order], kind="stable")]
    first = np.searchsorted(crowd.instances[grouped], crowd.instances[grouped])
    return crowd.select(np.sort(grouped[np.arange(len(grouped)) - first < labels]))


def fitted_crowds(options: Any) -> Iterator[Crowd]:
    """Yields every crowd, full and thinned, with the posteriors of all models."""
    for name, family, kind, crowd, truth in read_crowds(options.data_dir, options.outside):
        mean = crowd.num_annotations / crowd.annotated.sum()
        for size in ("full", *(str(k) for k in (2, 3) if mean > k + 0.5)):
            one = crowd if size == "full" else thinned(crowd, int(size))
            path = options.kept and options.kept / f"{name}_{size}.npz"
            if path and path.exists():
                probas = dict(np.load(path))
            else:
                probas = {key: model.fit(one).probas_ for key, model in MODELS.items()}
                if path:
                    with atomic_path(path) as written:
                        np.savez(written, **probas)
            yield Crowd(name, family, kind, size, one, truth, probas)


def read_outside_truth(data_dir: Path) -> Iterator[tuple[str, Annotations, Array]]:
    """Yields name, annotations and true labels of each crowd of `outside_truth/`."""
    for folder in sorted((data_dir / "outside_truth").glob("*/")):
        labels = pd.read_csv(folder / "annotations.csv", dtype=str)
        truth = pd.read_csv(folder / "truth.csv", dtype=str).set_index("task").iloc[:, 0]
        crowd = Annotations.from_arrays(labels["task"], labels["annotator"], labels["label"])
        codes = {str(name): code for code, name in enumerate(crowd.class_names)}
        true = truth.reindex(crowd.instance_names.astype(str)).map(codes)
        yield folder.name, crowd, true.fillna(-1).to_numpy(int)
