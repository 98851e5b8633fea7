"""Do models beside people make the labels better? Simulated crowds, and crowds with true labels.

Nine models that are right for 80% of the items label them, too. Their errors are correlated by
0, .4 or .8: they copy one draw (copies) or one of three (families), or fail on the same items and
often with the same class (difficulty). Columns: accuracy of the labels of people alone, of people
and models, and (where errors are independent) of all counted one by one; the share of people's 80%
skill intervals that hold with and without models.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from neucrowd_tf.aggregation.families import labels_of
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import Inference, infer
from neucrowd_tf.names import positions

Array = NDArray[Any]
ITEMS = 300
PEOPLE = 20
MODELS = 9
RIGHT = 0.8
SPREAD = 0.1  # people's accuracies are within this of their mean
KINDS = (("independent", 0.0), *itertools.product(("copies", "families", "difficulty"), (0.4, 0.8)))
CELL = ("crowd", "correlation", "classes", "annotators_each", "accuracy")
Cell = tuple[str, float, int, int, float]


def simulated(cell: Cell, seed: int) -> tuple[Annotations, Array]:
    """Returns a crowd, whose models are named m0, m1, ..., and its true labels."""
    kind, correlation, classes, each, accuracy = cell
    rng = np.random.default_rng([seed, classes, each, int(100 * accuracy), int(10 * correlation)])
    truth = rng.integers(classes, size=ITEMS)

    def wrong(width: int) -> Array:
        return np.asarray((truth[:, None] + rng.integers(1, classes, (ITEMS, width))) % classes)

    def drawn(right: Array, other: Array) -> Array:
        return np.where(right, truth[:, None], other)

    skills = np.clip(accuracy + rng.uniform(-SPREAD, SPREAD, PEOPLE), 0, 0.99)
    people = drawn(rng.random((ITEMS, PEOPLE)) < skills, wrong(PEOPLE))
    chosen = np.argsort(rng.random((ITEMS, PEOPLE)), axis=1)[:, each:]
    np.put_along_axis(people, chosen, -1, axis=1)
    shared = rng.random((ITEMS, MODELS)) < np.sqrt(correlation)
    if kind == "difficulty":
        noise = rng.standard_normal((ITEMS, MODELS)) * np.sqrt(1 - correlation)
        hard = np.sqrt(correlation) * rng.standard_normal((ITEMS, 1)) + noise
        models = drawn(hard < ndtri(RIGHT), np.where(shared, wrong(1), wrong(MODELS)))
    else:
        sources = 3 if kind == "families" else 1
        source = drawn(rng.random((ITEMS, sources)) < RIGHT, wrong(sources))
        own = drawn(rng.random((ITEMS, MODELS)) < RIGHT, wrong(MODELS))
        models = np.where(shared, source[:, np.arange(MODELS) * sources // MODELS], own)
    names = [f"p{code}" for code in range(PEOPLE)] + [f"m{code}" for code in range(MODELS)]
    dense = np.concatenate([people, models], axis=1)
    return Annotations.from_dense(dense, num_classes=classes, annotator_names=names), truth


def real(folder: Path) -> tuple[Annotations, Array, list[str]]:
    """Returns a crowd, its true labels (-1 unknown) and the names of its models."""
    rows = pd.read_csv(folder / "labels.csv", dtype=str)
    truth = pd.read_csv(folder / "truth.csv", dtype=str).set_index("task")["label"]
    crowd = Annotations.from_arrays(rows["task"], rows["worker"], rows["label"])
    names = json.loads((folder / "set.json").read_text(encoding="utf-8"))["models"]
    codes = positions(crowd.class_names.tolist())
    known = [codes.get(truth.get(name), -1) for name in crowd.instance_names.tolist()]
    return crowd, np.array(known), names


def measured(
    crowd: Annotations, truth: Array, models: list[str], *, each_by_itself: bool = True
) -> dict[str, float]:
    """Returns the figures of one crowd, over items that a person labelled."""
    people = ~np.isin(crowd.annotator_names.astype(str), models)
    alone = labels_of(crowd, people)
    rows = np.flatnonzero(alone.annotated & (truth >= 0))
    known = crowd.select(np.isin(crowd.instances, rows))
    total = np.maximum(known.labels_per_annotator(), 1)
    hits = known.labels == truth[known.instances]
    right = np.bincount(known.annotators, hits, minlength=len(people)) / total
    judged = np.flatnonzero(people & (total >= 10))

    def accuracy(one: Inference) -> float:
        return float((one.labels[rows] == truth[rows]).mean())

    def holding(one: Inference) -> float:
        if one.skills is None or not len(judged):
            return float("nan")
        inside = (one.skills.low <= right) & (right <= one.skills.high)
        return float(inside[judged].mean())

    together = infer(crowd, models=models)
    without = together.people or infer(alone)
    single = accuracy(infer(crowd)) if each_by_itself else float("nan")
    return {
        "annotators": accuracy(without),
        "together": accuracy(together),
        "one_by_one": single,
        "expected": together.certainty.accuracy(rows).value,
        "intervals_annotators": holding(without),
        "intervals_together": holding(together),
        "counted_once": float(len(together.families)),
    }


def cells() -> Iterator[Cell]:
    """Yields the cells of the simulated grid."""
    for classes, each, accuracy in itertools.product((2, 4), (1, 2, 3, 5), (0.7, 0.8, 0.9)):
        for kind, correlation in KINDS:
            yield kind, correlation, classes, each, accuracy


def measure_grid(data_dir: Path, path: Path, seeds: int) -> None:
    """Adds a row per crowd with true labels, and per cell of the grid, to those of a file.

    Rows that are means over as many seeds stay, so that a command that was stopped goes on.

    Args:
        data_dir: has `people_and_models/`.
        path: of the file, which is written after each row.
        seeds: of each cell.
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    if path.exists():
        for record in pd.read_csv(path).to_dict("records"):
            row = {str(name): value for name, value in record.items()}
            rows[_key(row)] = row
    for folder in sorted((data_dir / "people_and_models").glob("*/")):
        place = {"crowd": folder.name} | dict.fromkeys(CELL[1:], float("nan"))
        if _key(place) not in rows:
            rows[_key(place)] = place | {"seeds": 1} | measured(*real(folder))
            pd.DataFrame(rows.values()).round(4).to_csv(path, index=False)
    models = [f"m{code}" for code in range(MODELS)]
    for cell in cells():
        place = dict(zip(CELL, cell, strict=True))
        if rows.get(_key(place), {"seeds": 0})["seeds"] >= seeds:
            continue
        figures = [
            measured(*simulated(cell, seed), models, each_by_itself=cell[1] == 0)
            for seed in range(seeds)
        ]
        rows[_key(place)] = place | {"seeds": seeds} | dict(pd.DataFrame(figures).mean())
        pd.DataFrame(rows.values()).round(4).to_csv(path, index=False)


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the cell of a row, as text."""
    return (str(row["crowd"]), *(str(float(row[name])) for name in CELL[1:]))
