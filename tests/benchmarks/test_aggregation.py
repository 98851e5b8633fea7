"""The benchmark of truth inference prints one JSON object, on sizes small enough for a test."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import aggregation


def test_json_alone_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(
        aggregation, "DAWID_SKENE", {"tasks": 300, "annotators": 20, "classes": 3, "labels_each": 4}
    )
    monkeypatch.setattr(
        aggregation, "GLAD", {"tasks": 30, "annotators": 8, "classes": 2, "labels_each": 3}
    )
    monkeypatch.setattr(aggregation, "crowdkit", None)
    monkeypatch.setattr("sys.argv", ["aggregation", "--json"])
    aggregation.main()
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert result["dawid_skene_annotations"] == 1200
    assert (
        result["dawid_skene_speedup"] is result["glad_speedup"] is None
    )  # nothing to compare with
    assert "dawid_skene_seconds_per_iteration" in printed.err


def test_simulated_crowd_is_seeded_and_of_the_size_asked() -> None:
    crowd, truth = aggregation.simulate(0, tasks=500, annotators=30, classes=4, labels_each=5)
    assert crowd.num_annotations == 2500
    assert (crowd.vote_counts().sum(axis=1) == 5).all()
    assert 0.5 < np.mean(crowd.labels == truth[crowd.instances]) < 0.95
    again, _ = aggregation.simulate(0, tasks=500, annotators=30, classes=4, labels_each=5)
    assert again == crowd


@pytest.mark.slow
def test_speedup_over_crowd_kit() -> None:
    pytest.importorskip("crowdkit")
    assert (
        aggregation.bench_dawid_skene(aggregation.DAWID_SKENE, 0)["dawid_skene_speedup"] > 10
    )  # 20 on an idle machine
    glad = aggregation.bench_glad({**aggregation.GLAD, "tasks": 2000}, 0)
    assert glad["glad_accuracy"] >= glad["glad_crowdkit_accuracy"] - 0.005
    assert glad["glad_speedup"] > 20
