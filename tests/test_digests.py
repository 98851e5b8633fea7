"""Stored predictions: of a method of each class here, of every method by `make smoke`."""

from __future__ import annotations

import json
from operator import attrgetter
from pathlib import Path

import pytest

from neucrowd_tf.cli.runs import plugins, process, runner
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare import registry
from reproduction.run import case_options
from reproduction.smoke import suite
from tests.digests import STORED, differences, digest

plugins.register(("baselines", "data"))


def kinds() -> list[registry.Method]:
    """Returns a method of each class of estimators.

    `make smoke` also has the controls of studies, and `dl_cl_ing`, a fit of two methods.
    """
    first: dict[object, registry.Method] = {}
    for method in sorted(registry.methods(), key=lambda m: (len(m.defaults), len(m.name), m.name)):
        first.setdefault(method.factory, method)
    others = [m for m in first.values() if not m.factory.__module__.startswith("reproduction")]
    return [method for method in others if method.name != "dl_cl_ing"]


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


@pytest.mark.parametrize("method", kinds(), ids=attrgetter("name"))
def test_a_method_of_each_class_predicts_what_is_stored(
    stored, method: registry.Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "start", lambda options: None)
    (case,) = suite([method]).cases
    (work,) = runner.works(case_options(Options(output_dir=tmp_path), case), progress=False)
    assert runner.make_run(work).status == "ok"
    name = method.name
    assert differences({name: stored[name]}, {name: digest(work.folder)}, exact=False) == []
