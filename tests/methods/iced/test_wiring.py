"""What a round of ICED hands on: points and labels, certainties, the schedule of the warm-up."""

from __future__ import annotations

import collections
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.iced import ICED
from neucrowd_tf.methods.iced.estimator import certainty_groups, warm_up_schedule
from neucrowd_tf.methods.iced.networks import ICEDModel
from neucrowd_tf.methods.iced.synthesis import Generator
from tests.methods.iced.test_rounds import EMBEDDINGS, SMALL, annotations, noted


def settings(**options: Any) -> Any:
    shared = {"k": 5, "eta": 0.0, "interpolation": "certainty", "annotation_neighbours": 4}
    return types.SimpleNamespace(**(shared | {"seed": 0} | options))


@pytest.mark.parametrize(("interpolation", "place"), [("certainty", 0.1), ("printed", 0.9)])
def test_points_lie_near_the_surer_end(interpolation: str, place: float) -> None:
    # Class 1 is at 0 with certainty 9 and at 1 with certainty 1, class 0 elsewhere.
    z = np.array([[0.0], [1.0], *[[50.0 + i] for i in range(12)]], np.float32)
    crowd = Annotations.from_dense(np.repeat([[1], [0]], [2, 12], axis=0), num_classes=2)
    certainty = np.array([9.0, 1.0, *np.ones(12)])
    make = Generator(settings(interpolation=interpolation), crowd, certainty)
    new = make(z, np.repeat([1, 0], [2, 12]), 0)
    assert_allclose(new.points, np.full((10, 1), place), atol=1e-6)


def test_labels_are_copied_from_all_annotation_neighbours() -> None:
    z = np.arange(120, dtype=np.float32)[:, None]
    crowd = Annotations.from_dense(np.arange(120)[:, None], num_classes=120)
    # Every instance has a label of its own, which says from where a label was copied.
    candidates = np.repeat([0, 1], [100, 20])
    make = Generator(settings(k=1, annotation_neighbours=6), crowd, np.ones(120))
    new = make(z, candidates, 0)
    source = new.one_hot[120:].toarray().argmax(axis=1)
    ranks = set[int]()
    for point, instance in zip(new.points, source, strict=True):
        nearest = np.argsort(abs(z[:, 0] - point[0]), kind="stable").tolist()
        ranks.add(nearest.index(instance))
    assert ranks == set(range(6))


def fit_and_calls(monkeypatch: Any) -> tuple[ICED, Mapping[str, list[Any]]]:
    """Fits; returns the model and, by function, the arguments and result of each call."""
    names = ("decode", "set_rows", "set_epoch")
    seen = noted(monkeypatch, (Generator, "__call__"), *((ICEDModel, name) for name in names))
    model = ICED(**SMALL, rounds=1, warm_up_epochs=3, warm_up="groups")
    model.fit(EMBEDDINGS, annotations())
    calls = collections.defaultdict(list)
    for name, *call in seen:
        calls[name].append(call)
    return model, calls


def test_rows_are_the_points_that_their_labels_were_copied_for(monkeypatch) -> None:
    _, calls = fit_and_calls(monkeypatch)
    ((_, _, made),) = calls["__call__"]
    ((points, _, decoded),) = calls["decode"]
    assert len(made.points) > 3
    assert_array_equal(points[0], made.points)
    rows, _, _ = calls["set_rows"][-1]
    assert_array_equal(rows[1], decoded)


def test_the_warm_up_takes_the_groups_in_the_schedules_order(monkeypatch) -> None:
    model, calls = fit_and_calls(monkeypatch)
    schedule = warm_up_schedule("groups", certainty_groups(model.certainty_), 3)
    for (_, named, _), members in zip(calls["set_epoch"][:3], schedule, strict=True):
        assert set(named["classifier"].tolist()) == set(members.tolist())
