"""A sample of `make torture`: inputs of every kind, names hypothesis thinks of, broken runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neucrowd_tf.annotations import read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names import is_marker, meant
from tests.torture.inputs import BAD, try_inputs
from tests.torture.kills import try_kills


@pytest.mark.ci
def test_inputs() -> None:
    found = try_inputs(120, seed=19, workers=1)
    assert len(found) == 120
    assert [item for item in found if item[1] in BAD] == []


@pytest.mark.ci
def test_kills() -> None:
    lines, wrong = try_kills(3, 19, workers=1, methods=("mv_dl", "neucrowd"))
    assert not wrong, "\n".join(lines)


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
