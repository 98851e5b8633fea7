"""Do models beside people make the labels better? Simulated crowds, and crowds with true labels.

    python -m benchmarks.people_and_models [--data_dir=D] [--seeds=3] [--output=F.csv]

Nine models that are right for 80% of the items label them, too. Their errors are correlated by
0, .4 or .8: they copy one draw (copies) or one of three (families), or fail on the same items and
often with the same class (difficulty). Columns: accuracy of the labels of people alone, of people
and models, and (where errors are independent) of all counted one by one; the share of people's 80%
skill intervals that hold with and without models. `data_dir` has `people_and_models/`.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from benchmarks.timing import arguments, data_folder, show
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import Inference, infer

ITEMS, PEOPLE, MODELS, RIGHT = 300, 20, 9, 0.8
SPREAD = 0.1  # people's accuracies are within this of their mean
KINDS = (("independent", 0.0), *itertools.product(("copies", "families", "difficulty"), (0.4, 0.8)))
Crowd = tuple[Annotations, np.ndarray[Any, Any]]


def simulated(
    kind: str, correlation: float, classes: int, each: int, accuracy: float, seed: int
) -> Crowd:
    """Returns a crowd, whose models are named m0, m1, ..., and its true labels."""
    rng = np.random.default_rng([seed, classes, each, int(100 * accuracy), int(10 * correlation)])
    truth = rng.integers(classes, size=ITEMS)

    def wrong(width: int) -> np.ndarray[Any, Any]:
        return (truth[:, None] + rng.integers(1, classes, (ITEMS, width))) % classes

    def drawn(right: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
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
        single = drawn(rng.random((ITEMS, MODELS)) < RIGHT, wrong(MODELS))
        models = np.where(shared, source[:, np.arange(MODELS) * sources // MODELS], single)
    names = [f"p{i}" for i in range(PEOPLE)] + [f"m{i}" for i in range(MODELS)]
    dense = np.concatenate([people, models], axis=1)
    return Annotations.from_dense(dense, num_classes=classes, annotator_names=names), truth


def real(folder: Path) -> tuple[Annotations, np.ndarray[Any, Any], list[str]]:
    """Returns a crowd, its true labels (-1 unknown) and the names of its models."""
    rows = pd.read_csv(folder / "labels.csv", dtype=str)
    truth = pd.read_csv(folder / "truth.csv", dtype=str).set_index("task")["label"]
    crowd = Annotations.from_arrays(rows["task"], rows["worker"], rows["label"])
    names = json.loads((folder / "set.json").read_text(encoding="utf-8"))["models"]
    codes = {name: code for code, name in enumerate(crowd.class_names.tolist())}
    checked = [codes.get(truth.get(name), -1) for name in crowd.instance_names.tolist()]
    return crowd, np.array(checked), names


def measured(
    crowd: Annotations, truth: np.ndarray[Any, Any], models: list[str], each_by_itself: bool = True
) -> dict[str, float]:
    """Returns the figures of one crowd, over items that a person labelled."""
    people = ~np.isin(crowd.annotator_names.astype(str), models)
    alone = crowd.select(people[crowd.annotators])
    rows = np.flatnonzero(alone.annotated & (truth >= 0))
    checked = crowd.select(np.isin(crowd.instances, rows))
    total = np.maximum(checked.labels_per_annotator(), 1)
    hits = checked.labels == truth[checked.instances]
    right = np.bincount(checked.annotators, hits, minlength=len(people)) / total
    judged = np.flatnonzero(people & (total >= 10))

    def accuracy(one: Inference) -> float:
        return float((one.labels[rows] == truth[rows]).mean())

    def holding(one: Inference) -> float:
        if one.skills is None or not len(judged):
            return float("nan")
        low, high = one.skills.low[judged], one.skills.high[judged]
        return float(((low <= right[judged]) & (right[judged] <= high)).mean())

    without, together = infer(alone), infer(crowd, models=models)
    single = infer(crowd) if each_by_itself else None
    return {
        "people": accuracy(without),
        "together": accuracy(together),
        "one_by_one": accuracy(single) if single else float("nan"),
        "said": together.certainty.accuracy(rows).value,
        "intervals_people": holding(without),
        "intervals_together": holding(together),
        "counted_once": float(len(together.families)),
    }


def measurements(data_dir: Path | None, seeds: int) -> Iterator[dict[str, Any]]:
    """Yields a row per crowd with true labels, and per cell of the simulated grid."""
    for folder in sorted((data_dir / "people_and_models").glob("*/")) if data_dir else ():
        yield {"crowd": folder.name} | measured(*real(folder))
    models = [f"m{i}" for i in range(MODELS)]
    for classes, each, accuracy in itertools.product((2, 4), (1, 2, 3, 5), (0.7, 0.8, 0.9)):
        for kind, correlation in KINDS:
            cell = (kind, correlation, classes, each, accuracy)
            figures = [
                measured(*simulated(*cell, seed), models, correlation == 0) for seed in range(seeds)
            ]
            names = ("crowd", "correlation", "classes", "people_each", "accuracy")
            yield dict(zip(names, cell, strict=True)) | dict(pd.DataFrame(figures).mean())


def main() -> None:
    """Prints the summary and writes the table."""
    options = arguments(__doc__, data_dir=data_folder(), seeds=3, output=Path("-"))
    warnings.simplefilter("ignore")
    rows = []
    for row in measurements(options.data_dir, options.seeds):
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    table = pd.DataFrame(rows)
    if str(options.output) != "-":
        table.round(4).to_csv(options.output, index=False)
    gain = table["together"] - table["people"]
    loss = table["one_by_one"] - table["together"]
    result = {
        "mean_gain": float(gain.mean()),
        "least_gain": float(gain.min()),
        "most_behind_one_by_one": float(loss[table["crowd"] == "independent"].max()),
        "intervals_people": float(table["intervals_people"].mean()),
        "intervals_together": float(table["intervals_together"].mean()),
    }
    show(options, result, table.round(3).to_string())


if __name__ == "__main__":
    main()
