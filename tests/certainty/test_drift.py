"""Annotators whose accuracy changes over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.drift import _hypergeometric, _Votes, changes
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.io.labels import read_annotations
from tests.cases import cases
from tests.crowds import array_of


def rows_of_a_crowd() -> list[tuple[int, int, int]]:
    """Returns item, annotator and label: annotator 0 is right 40 times, then at chance 40 times."""
    return [
        (item, who, item % 3 % 2 ^ (who == 0 and item >= 40 and item % 4 < 2) ^ (item % 29 == who))
        for item in range(80)
        for who in range(4)
    ]


def test_one_annotator_has_changed_and_the_stable_ones_have_not() -> None:
    crowd = Annotations(*np.array(rows_of_a_crowd()).T)
    times = 1.7e9 + 60.0 * crowd.instances
    inference = infer(crowd, "majority_vote")
    (change,) = changes(inference, times)
    before, after = change.rates
    assert change.annotator == 0 and 35 <= change.num_before <= 45
    assert before > 0.9 and 0.35 < after < 0.65
    assert change.note == f"changed: {before:.2f} to {after:.2f}"
    backwards = changes(inference, -times)
    assert [one.annotator for one in backwards] == [0] and backwards[0].rates == (after, before)
    shuffled = default_rng(0).permutation(80)[crowd.instances] + 1.7e9
    assert not changes(inference, shuffled) and not changes(inference, None)
    assert not changes(inference, np.full_like(times, np.nan))


def test_the_files_and_the_report_say_so_if_there_are_times(tmp_path: Path, cli) -> None:
    path = tmp_path / "labels.csv"
    table = tmp_path / "annotators.csv"
    page = tmp_path / "report.html"
    flags = [f"--annotations={path}", f"--output={tmp_path / 'out.csv'}", f"--annotators={table}"]
    for timed in (True, False):  # the second are the items' dates
        rows = [
            f"t{item},a{who},{label},2026-01-{1 + item // 4:02} 0{who * timed}:00"
            for item, who, label in rows_of_a_crowd()
        ]
        path.write_text("\n".join(["task,annotator,label,created_at", *rows]))
        printed = cli("aggregate", ["--method=majority_vote", *flags]).err
        cli("report", [f"--annotations={path}", f"--output={page}"])
        said = ("a0 changed: " in printed, "changed: " in table.read_text())
        assert said == (timed, timed)
        assert ("Annotators who changed" in page.read_text()) == timed


def test_harder_items_at_the_end_are_no_change_of_everybody() -> None:
    rng = default_rng(0)
    truth = rng.integers(0, 2, 200)
    hard = rng.random(200) < np.where(np.arange(200) < 100, 0.1, 0.5)
    right = rng.random((200, 6)) < np.where(hard, 0.6, 0.97)[:, None]
    crowd = Annotations.from_dense(np.where(right, truth[:, None], 1 - truth[:, None]))
    assert not changes(infer(crowd, "majority_vote"), 1.7e9 + crowd.instances)


def test_spammers_are_no_others_with_many_classes() -> None:
    items = np.arange(80)
    labels = np.column_stack([(items + (items >= 40)) % 3, items % 3, np.full(80, 5)])
    crowd = Annotations.from_dense(labels, num_classes=100)
    inference = infer(crowd, "majority_vote")
    inference.skills.skill[:] = 0.7, 0.9, 0.009
    assert not changes(inference, 1.7e9 + 60.0 * crowd.instances)
    inference.skills.skill[2] = 0.2
    assert changes(inference, 1.7e9 + 60.0 * crowd.instances)


def test_an_annotators_other_labels_of_an_item_are_no_votes_of_others() -> None:
    # Annotator 0 labels item 0 three times and item 1 once, annotators 1 and 2 each item once.
    triples = [(0, 0, 0), (0, 0, 1), (0, 0, 1), (1, 0, 1)]
    triples += [(0, 1, 0), (0, 2, 0), (1, 1, 0), (1, 2, 1)]
    crowd = Annotations(*np.array(triples).T, duplicates="all")
    votes = _Votes.of(crowd, array_of("1.0 1.0 0.5"))
    unknown = np.full(2, -1)
    rows, winners, against = votes.of_others(crowd, np.arange(4), np.array([3, 1]), unknown)
    assert rows.tolist() == [3, 1]
    assert winners.tolist() == [0, 0] and against.tolist() == [0.5, 0.0]
    rows, winners, against = votes.of_others(
        crowd, np.arange(4), np.array([3, 1]), np.array([1, 1])
    )
    assert winners.tolist() == [1, 1] and against.tolist() == [0.5, 1.0]


def test_changes_against_gold_labels_need_no_others() -> None:
    items = np.arange(80)
    wrong = (items >= 40) & (items % 4 < 2)
    crowd = Annotations(items, 0 * items, (items % 2) ^ wrong)
    inference = infer(crowd, "majority_vote", gold=items % 2)
    (change,) = changes(inference, 1.7e9 + 60.0 * items)
    assert change.rates == (1.0, 0.5) and change.agrees.tolist() == (~wrong).tolist()
    assert change != changes(inference, 1.7e9 + 60.0 * items)[0] and len({change}) == 1


def test_hypergeometric_by_hand() -> None:
    # Two of five, of which three are right: 1, 6 and 3 of the ten pairs have 0, 1 and 2 of them.
    assert _hypergeometric(5, 3, 2) == pytest.approx([0.1, 0.6, 0.3])
    assert _hypergeometric(3, 3, 2) == pytest.approx([0, 0, 1])


@pytest.mark.parametrize(
    ("column", "form", "timed"),
    cases("""
["created_at", "2026-01-01T10:{:02}:00Z", true],
["timestamp", "17000000{:02}000", true],
["time", "{}", false],
["lead_time", "17000000{:02}", false],
["date", "3/4/26 1:{:02}", false]
"""),
)  # fmt: skip
def test_a_column_of_times_is_read(tmp_path: Path, column: str, form: str, timed: bool) -> None:
    path = tmp_path / "labels.csv"
    lines = [f"t{at},a{at % 3},{at % 2},{form.format(10 + at)}" for at in range(12)]
    path.write_text("\n".join([f"task,worker,label,{column}", *lines]))
    said: list[str] = []
    reading = read_annotations(path, report=said.append)
    assert (f"Times: {column}." in " ".join(said)) == timed
    if timed:
        assert (np.diff(reading.times) > 0).all()
        assert 1.6e9 < reading.times[0] < 1.8e9
    else:
        assert reading.times is None
