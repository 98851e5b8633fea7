"""A sample of `make torture`: the catalogue's cases, and a few broken runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neucrowd_tf.io.checks import catalogue
from tests.torture.cases import CASES, FEATURES, command, prepare, try_case, try_features
from tests.torture.commands import BY_PARTS
from tests.torture.kills import try_kills
from tests.torture.record import Record


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{n}" for n, case in enumerate(CASES)])
def test_labels_are_rejected_with_the_id(
    case: tuple[str, str, str | bytes, tuple[str, ...]],
) -> None:
    prepare()
    assert not try_case(*case)


@pytest.mark.parametrize(("check", "content"), FEATURES)
def test_features_are_rejected_with_the_id(check: str, content: str) -> None:
    prepare()
    assert not try_features(check, content)


def test_every_check_has_a_case() -> None:
    assert {case[0] for case in (*CASES, *FEATURES)} == set(catalogue())


@pytest.mark.slow
def test_kills() -> None:
    record = Record()
    try_kills(5, 19, 1, ("mv_dl", f"bwa{BY_PARTS}"), record)
    assert not record.wrong, "\n".join(record.lines())


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(labels=st.lists(NAMES, min_size=2, max_size=4, unique=True))
def test_any_class_names_end_in_labels_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str]
) -> None:
    folder: Path = tmp_path_factory.mktemp("names")
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        rows = [[f"t{i}", f"w{j}", label] for i, label in enumerate(labels) for j in range(2)]
        csv.writer(stream).writerows([["task", "worker", "label"], *rows])
    flags = [f"--annotations={folder}/a.csv", "--method=majority_vote", f"--output={folder}/o.csv"]
    assert command("aggregate", flags) == (0 if (folder / "o.csv").exists() else 2)
