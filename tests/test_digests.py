"""Stored predictions of every method; `make smoke` makes the suite and compares."""

from __future__ import annotations

import json

import pytest

from neucrowd_tf import registry
from neucrowd_tf.harness import plugins
from tests.digests import STORED, differences

plugins.register(("baselines", "data"))


@pytest.fixture(scope="module")
def stored():
    return json.loads(STORED.read_text())


def test_every_method_has_a_digest(stored):
    missing = registry.entries("method").keys() - stored.keys()
    assert not missing, "make smoke; python -m tests.digests runs/smoke --write"


@pytest.mark.parametrize("exact", [False, True])
def test_another_prediction_is_a_difference(stored, exact):
    assert differences(stored, stored, exact) == []
    labels = stored["crowd_layer"]["labels"]
    changed = {"labels": labels[::-1], "predictions": "0"}
    others = {**stored, "crowd_layer": {**stored["crowd_layer"], **changed}}
    (line,) = differences(stored, others, exact)
    assert line.startswith("crowd_layer: ")
    del others["crowd_layer"]
    assert differences(stored, others, exact) == ["crowd_layer: no finished run"]
