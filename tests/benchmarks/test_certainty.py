"""Figures of the benchmark of certainty, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from benchmarks.certainty import goals, models
from neucrowd_tf.annotations import Annotations
from tests.crowds import array_of


def test_a_tie_counts_by_its_share() -> None:
    probas = array_of("0.5 0.5; 0.9 0.1; 0.2 0.8")
    truth = array_of("1 1 -2")  # -2: a class that nobody named
    assert goals.accuracy_of(probas, truth, np.arange(3)) == pytest.approx(0.5 / 3)
    wrong = np.array([True, False, True, False])
    assert goals.share_of_wrong(array_of("3.0 2.0 2.0 1.0"), wrong, 2) == pytest.approx(0.75)
    assert goals.share_of_wrong(np.array([3.0]), wrong[:1], 2) == 0.5


def test_a_vote_by_gold_items_alone() -> None:
    crowd = Annotations.from_dense(array_of("0 1; 1 0; 0 1; 1 0"))
    gold = array_of("0 1 -1 -1")  # the first annotator is right twice, the second never
    accuracies = np.array([(2 + 1) / 4, 1 / 4])
    odds = accuracies / (1 - accuracies)
    probas = goals.gold_alone(crowd, gold)
    assert probas[2, 0] == pytest.approx(odds[0] / (odds[0] + odds[1]))
    assert probas[3, 1] == pytest.approx(probas[2, 0])


def test_the_best_of_several_equal_methods_is_better_by_chance() -> None:
    rng = default_rng(0)
    apart = rng.standard_normal((4, 400))
    # The mean of the least of three normal means of spread 1 / 20 is -0.85 / 20.
    assert goals.above_best_by_chance([*apart]) == pytest.approx(0.85 / 20, rel=0.15)
    assert goals.above_best_by_chance([apart[0]] * 4) == pytest.approx(0.0, abs=1e-12)


def test_the_table_says_what_is_reached() -> None:
    rows = {"cells": [{"crowd": "a", "gain": 0.2}, {"crowd": "b", "gain": -0.01}]}
    table = goals.table(rows).set_index("figure")
    mean = table.loc["people and models: mean gain"]
    assert mean["value"] == pytest.approx(0.095) and mean["reached"] == "yes"
    worst = table.loc["people and models: worst cell"]
    assert worst["wanted"] == ">= -0.006" and worst["reached"] == "no"


def test_the_grid_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [("copies", 0.4, 2, 1, 0.7), ("copies", 0.8, 2, 1, 0.7)]
    measured = []

    def figures(*_, **__) -> dict[str, float]:
        measured.append(1)
        return {"annotators": 0.5, "together": 0.75}

    monkeypatch.setattr(models, "cells", lambda: iter(cells))
    monkeypatch.setattr(models, "measured", figures)
    path = tmp_path / "grid.csv"
    models.measure_grid(tmp_path, path, 2)
    first = pd.read_csv(path)
    assert len(first) == 2 and (first["seeds"] == 2).all() and len(measured) == 4
    models.measure_grid(tmp_path, path, 2)
    assert len(measured) == 4
    models.measure_grid(tmp_path, path, 3)
    assert len(measured) == 10 and (pd.read_csv(path)["seeds"] == 3).all()
    assert next(goals.cells(path))["gain"] == 0.25


def test_labels_of_crowd_and_classifier_are_compared_with_the_better_of_both_by_family() -> None:
    """Of two crowds of one family they are ahead by 0.1 and behind by 0.2; of another by 0.05."""
    rows = pd.DataFrame(
        {
            "crowd": ["quiz_a", "quiz_b", "music"],
            "by_crowd": [0.7, 0.8, 0.6],
            "model": [0.6, 0.9, 0.5],
            "joint": [0.8, 0.7, 0.65],
        }
    )
    assert goals.joint_lead(rows) == pytest.approx((-0.05 + 0.05) / 2)
