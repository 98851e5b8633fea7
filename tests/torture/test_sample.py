"""A sample of `make torture`: inputs of every kind, names hypothesis thinks of, broken runs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neucrowd_tf.annotations import read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.missing import is_marker
from neucrowd_tf.io.names.spelling import meant
from tests.torture.commands import BY_PARTS
from tests.torture.inputs import Wanted, try_inputs
from tests.torture.kills import try_kills
from tests.torture.record import Record


@pytest.mark.ci
def test_inputs() -> None:
    record = Record()
    try_inputs(Wanted(60, seed=19, step=9), record, workers=1)
    assert len(record.inputs) == 60
    assert not record.bad, "\n".join(record.lines())


@pytest.mark.ci
def test_kills() -> None:
    record = Record()
    try_kills(8, 19, 1, ("mv_dl", f"dawid_skene{BY_PARTS}", f"glad{BY_PARTS}"), record)
    assert not record.bad, "\n".join(record.lines())


def test_a_record_goes_on(tmp_path: Path) -> None:
    """Outcomes stay in the file, and what is there is not tried again."""
    items: list[dict[str, Any]] = [
        {"input": [3, 7], "kind": "a", "outcome": "refused", "note": ""},
        {"input": [3, 8], "kind": "b", "outcome": "accepted wrong", "note": "why"},
        {"method": "rll", "chain": 2, "seed": 3, "counts": {"broken": 5}, "wrong": ["bytes"]},
    ]
    for item in items:
        with Record(tmp_path / "r.jsonl") as record:
            record.add(item)
    with Record(tmp_path / "r.jsonl") as record:
        assert record.tried(3) == {7, 8} and not record.tried(0)
        assert record.broken(3) == {("rll", 2)} and not record.broken(0)
        assert record.bad == 2
        assert "| accepted wrong | 1 |" in record.page() and "| broken | 5 |" in record.page()


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(labels=st.lists(NAMES, min_size=2, max_size=4, unique=True))
def test_any_names_are_kept_or_refused(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str]
) -> None:
    """Whatever classes are called, they come out as they went in, or one line says which is none or
    which two are one.
    """
    path: Path = tmp_path_factory.mktemp("names") / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = [[f"t{i}", "w", label] for i, label in enumerate(labels)]
        csv.writer(stream).writerows([["task", "worker", "label"], *rows])
    doubtful = any(map(is_marker, labels)) or len({meant(name) for name in labels}) < len(labels)
    try:
        crowd = read_annotations(path)
    except DataError as error:
        text = str(error)
        assert "a.csv" in text and "expected" in text and "\n" not in text
    else:
        assert not doubtful
        assert {str(name) for name in crowd.class_names.tolist()} == set(labels)
