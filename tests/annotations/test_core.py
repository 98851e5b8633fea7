"""Annotations: every conversion there and back, any hashable ids, row subsets, and errors that say
where.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations, as_annotations
from neucrowd_tf.errors import DataError, IdentitiesError
from tests.cases import cases, raises
from tests.crowds import array_of

IDS = {
    "int": [7, 3, 12],
    "negative": [-1, 5, 0],
    "str": ["b", "a", "007"],
    "bool": [True, False],
    "float": [1.5, 0.25, 2.0],
    "tuple": [("a", 1), ("b", 2), ("a", 3)],
    "mixed": ["a", 1, (2, 3)],
    "unicode": ["日本", "ü", 'a,b"c'],
}
NAMES = ("instance_names", "annotator_names", "class_names")


@st.composite
def crowds(draw: st.DrawFn) -> Annotations:
    """Draws annotations of a few instances, annotators and classes, some of them without any
    label."""
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    classes = draw(st.integers(1, 4))
    matrix = draw(hnp.arrays(np.int64, shape, elements=st.integers(-1, classes - 1)))
    sides = dict(zip(NAMES, (*shape, classes), strict=True))
    named = {
        side: np.arange(size) + 3 if draw(st.booleans()) else [f"n{i}" for i in range(size)]
        for side, size in sides.items()
    }
    return Annotations.from_dense(matrix, **named)


@settings(max_examples=60, deadline=None)
@given(crowds())
def test_conversions_lose_nothing(crowd: Annotations) -> None:
    names = {side: getattr(crowd, side) for side in NAMES}
    frame = crowd.to_frame()
    columns = [frame[name].tolist() for name in ("task", "worker", "label")]
    again = [
        Annotations.from_dense(crowd.to_dense(), **names),
        Annotations.from_arrays(*columns, **names),
        Annotations.from_wide_frame(crowd.to_wide_frame(), class_names=crowd.class_names),
        *([Annotations.from_frame(frame, **names)] if len(frame) else []),
    ]
    assert all(other == crowd for other in again)
    assert np.array_equal(crowd.to_sparse().toarray() - 1, crowd.to_dense())


@settings(max_examples=60, deadline=None)
@given(crowds(), st.data())
def test_rows_and_votes_are_those_of_the_matrix(crowd: Annotations, data: st.DataObject) -> None:
    dense = crowd.to_dense()
    rows = np.array(
        data.draw(st.lists(st.integers(0, crowd.num_instances - 1), max_size=8)), dtype=int
    )
    section = crowd[rows]
    assert np.array_equal(section.to_dense(), dense[rows])
    assert section.instance_names.tolist() == crowd.instance_names[rows].tolist()
    assert section.shape == (len(rows), crowd.num_annotators)
    assert section.num_classes == crowd.num_classes
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(crowd), max_size=len(crowd))))
    assert np.array_equal(crowd[mask].to_dense(), dense[mask])
    assert np.array_equal(crowd[1:].to_dense(), dense[1:])
    votes = np.stack([(dense == c).sum(axis=1) for c in range(crowd.num_classes)], axis=1)
    assert np.array_equal(crowd.vote_counts(), votes)
    assert np.array_equal(crowd.annotated, votes.sum(axis=1) > 0)
    assert np.array_equal(
        crowd.one_hot().toarray().reshape(len(crowd), -1, crowd.num_classes).sum(axis=1), votes
    )
    alone = Annotations.from_votes(
        votes, instance_names=crowd.instance_names, class_names=crowd.class_names
    )
    assert np.array_equal(alone.vote_counts(), votes)
    assert np.array_equal(alone[rows].vote_counts(), votes[rows])


@pytest.mark.parametrize("kind", IDS)
def test_any_hashable_ids(kind: str) -> None:
    ids = IDS[kind]
    tasks, workers, labels = ids, list(reversed(ids)), ids
    crowd = Annotations.from_arrays(tasks, workers, labels)
    assert crowd.instance_names.tolist() == ids and crowd.annotator_names.tolist() == workers
    assert [type(name) for name in crowd.instance_names.tolist()] == [type(name) for name in ids]
    expected = sorted(ids) if kind != "mixed" else ids
    assert crowd.class_names.tolist() == expected
    frame = crowd.to_frame()
    assert [frame[name].tolist() for name in frame] == [tasks, workers, labels]
    assert Annotations.from_frame(frame) == crowd
    assert (
        Annotations.from_wide_frame(crowd.to_wide_frame(), class_names=crowd.class_names) == crowd
    )


def test_votes_only() -> None:
    crowd = Annotations.from_votes(array_of("5 2; 0 0; 1 6"), class_names=["no", "yes"])
    assert not crowd.has_identities and crowd.shape == (3, 7) and crowd.num_annotations == 14
    assert crowd.annotated.tolist() == [True, False, True] and "votes only" in repr(crowd)
    for use in ("instances", "annotators", "labels"):
        raises(IdentitiesError, "vote counts only", getattr, crowd, use)
    raises(IdentitiesError, "GLAD needs to know which annotator", crowd.require_identities, "GLAD")
    assert crowd[[0]].num_annotators == 7
    counts = crowd.vote_counts()
    counts[0] = 0  # a copy
    assert crowd.vote_counts()[0].tolist() == [5, 2]


def test_generated_annotations_are_marked() -> None:
    crowd = Annotations.from_dense(array_of("0 -1; 1 0"))
    more = crowd.with_generated([0], [1], [1])
    assert more.generated.tolist() == [False, False, False, True]
    assert more.to_dense().tolist() == [[0, 1], [1, 0]]
    assert not more.named and crowd.replace(instance_names="ab").with_generated([], [], []).named
    assert more.observed() == crowd and more[[0]].generated.tolist() == [False, True]
    assert crowd.observed() is crowd
    raises(DataError, "expected each pair once", crowd.with_generated, [0], [0], [1])
    twice = Annotations([0, 0], [0, 0], [0, 1], num_annotators=2, duplicates="all")
    assert twice.with_generated([0], [1], [1]).vote_counts().tolist() == [[1, 2]]
    raises(DataError, "expected each pair once", twice.with_generated, [0], [0], [1])
    raises(DataError, "expected each pair once", twice.with_generated, [0, 0], [1, 1], [0, 1])


def test_duplicates() -> None:
    triples = (["t", "u", "t"], ["a", "a", "a"], [0, 1, 1])
    with pytest.raises(
        DataError,
        match=(
            r"row 2, columns 'task' and 'worker': expected each pair once, received task 't' and"
            r" worker 'a' again"
        ),
    ):
        Annotations.from_arrays(*triples)
    assert Annotations.from_arrays(*triples, duplicates="first").to_dense().tolist() == [[0], [1]]
    assert Annotations.from_arrays(*triples, duplicates="last").to_dense().tolist() == [[1], [1]]
    both = Annotations.from_arrays(*triples, duplicates="all")
    assert both.vote_counts().tolist() == [[1, 1], [0, 1]]
    for view in (both.to_sparse, both.to_dense, both.to_wide_frame):
        raises(DataError, "several labels of an instance by one annotator", view)
    with pytest.raises(DataError, match="duplicates: expected 'error', 'first', 'last' or 'all'"):
        Annotations.from_arrays(*triples, duplicates="any")


@pytest.mark.parametrize(
    ("kind", "arguments", "named", "message"),
    cases(r"""
["from_arrays", [[1, 9], [0, 0], [0, 1]], {"instance_names": [1, 2]},
 "row 1, column 'task': .* 1, 2, received 9"],
["from_arrays", [[1], [0], ["x"]], {"class_names": ["a"]},
 "row 0, column 'label': .* 'a', received 'x'"],
["from_arrays", [["a", null], [0, 1], [0, 1]], {},
 "row 1, column 'task': expected a value, received a missing one"],
["from_arrays", [[1], [0], [0]], {"instance_names": [1, 2, 1]},
 "task names: .* received 1 again"],
["", [[0, 1], [0], [0]], {}, "of one length, received \\[2, 1, 1\\]"],
["", [[0, 1], [0, 0], [0, 3]], {"num_classes": 2},
 "row 1, label: expected a code from 0 to 1, received 3"],
["", [[0, -2], [0, 0], [0, 1]], {}, "row 1, task: expected a code from 0 to 0, received -2"],
["", [[0, 1], [0, 0], [0, 4294967296]], {}, "code 4294967296 is too large"],
["from_dense", [[[0, 1099511627776]]], {"num_classes": 2}, "is no code of a class"],
["", [[0.5], [0], [0]], {},
 "instances: expected a one-dimensional array of integer codes, received float64"],
["", [[0], [0], [0]], {"num_classes": 2, "class_names": ["a"]},
 "class_names: expected 2 names, received 1"],
["", [[0], [0], [0]], {"class_names": ["a", "a"]},
 "class names: expected each name once, received 'a' again"],
["", [[0], [0], [0]], {"annotator_names": ["a", "b", "a"]},
 "annotator names: expected each name once, received 'a' again"],
["", [[0], [0], [0]], {"generated": [true, false]},
 "generated: expected shape \\(1,\\), received \\(2,\\)"],
["from_dense", [[0, 1]], {},
 "of shape \\[instances, annotators\\], received int64 of shape \\(2,\\)"],
["from_dense", [[[0, -1], [-2, 1]]], {},
 "row 1, annotator 0: expected a label from 0 .*, received -2"],
["from_dense", [[[0, NaN]]], {},
 "row 0, annotator 1: expected a label from 0 or -1 .*, received nan"],
["from_dense", [[[0, 0.5]]], {},
 "row 0, annotator 1: expected a label from 0 or -1 .*, received 0\\.5"],
["from_dense", [[[0, 1], [1]]], {}, "received rows of different lengths"],
["from_dense", [[["a"]]], {}, "expected whole numbers, .* received <U1"],
["from_votes", [[[1, -1]]], {}, "row 0, class 1: expected a count from 0, received -1"],
["from_votes", [[[1, 0.5]]], {}, "row 0, class 1: expected a count from 0, received 0\\.5"],
["from_frame", [[[0, 1]]], {}, "frame: expected a DataFrame, received list"]
"""),
)
def test_errors_say_where(kind: str, arguments, named, message: str) -> None:
    make = getattr(Annotations, kind) if kind else Annotations
    with pytest.raises(DataError, match=message) as caught:
        make(*arguments, **named)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (
            lambda tasks: Annotations.from_arrays(tasks, [0, 1], [0, 1]),
            pd.Series(["a", None], dtype="category"),
            "row 1, column 'task': expected a value",
        ),
        (
            Annotations.from_wide_frame,
            pd.DataFrame([[0, 1]], columns=["a", "a"]),
            "wide frame: expected each column name once, received 'a' again",
        ),
        (
            Annotations.from_frame,
            pd.DataFrame(columns=["task", "worker", "label"]),
            "frame: expected at least one row",
        ),
    ],
)
def test_errors_of_frames_say_where(make, argument, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        make(argument)
    assert "\n" not in str(caught.value)


def test_empty_and_dense_matrix() -> None:
    empty = Annotations.from_dense(np.full((3, 2), -1), num_classes=2)
    assert empty.vote_counts().tolist() == [[0, 0]] * 3
    assert not empty.annotated.any()
    assert empty[[2, 0]].num_annotations == 0
    assert as_annotations([[0, -1], [1, 1]]).num_classes == 2 and as_annotations(empty) is empty
    assert len(empty) == 3
    assert empty != Annotations.from_dense(np.full((3, 2), -1), num_classes=3)
    assert (empty == 1) is False


def test_vote_counts_in_blocks() -> None:
    """More annotations than one block holds: five million over two instances."""
    instances, labels = default_rng(0).integers([[2], [3]], size=(2, 5_000_000))
    crowd = Annotations(instances, np.arange(5_000_000), labels)
    expected = np.bincount(instances * 3 + labels, minlength=6)
    assert crowd.vote_counts().ravel().tolist() == expected.tolist()


def test_ids_of_64_bits_stay_as_they_are() -> None:
    ids = [11749869230777074271, 4976686463289251617, 2**60, 2**60 + 1, -5]
    for container in (list, tuple, pd.Series, lambda x: pd.Index(x, dtype=object)):
        crowd = Annotations.from_arrays(container(ids), ["a"] * 5, [0, 1, 0, 1, 0])
        assert crowd.instance_names.tolist() == ids
    frame = pd.DataFrame({"task": ids, "worker": "a", "label": [0, 1, 0, 1, 0]})
    assert Annotations.from_frame(frame).instance_names.tolist() == ids
    unsigned = np.array(ids[:4], dtype=np.uint64)
    crowd = Annotations.from_dense(np.zeros((4, 2), int), instance_names=unsigned)
    assert crowd.instance_names.tolist() == ids[:4]


def test_minus_one_in_a_wide_frame_is_a_class_with_a_line() -> None:
    frame = pd.DataFrame({"a": [0, 1, -1], "b": [1, 1, 0]})
    with pytest.warns(UserWarning, match="-1 is read as a class"):
        assert Annotations.from_wide_frame(frame).class_names.tolist() == [-1, 0, 1]
    Annotations.from_wide_frame(frame, class_names=[-1, 0, 1])
    Annotations.from_wide_frame(frame.replace(-1, np.nan))


def test_ids_that_differ_only_in_spaces_are_said() -> None:
    rows = [("t1", "a", "x"), ("t1 ", "b", "y"), ("t2", "e\u0301", "x"), ("t2", "\u00e9", "y")]
    with pytest.warns(UserWarning, match="'(task|worker)': 1 more names differ only") as raised:
        crowd = Annotations.from_arrays(*zip(*rows, strict=True))
    assert len(raised) == 2 and (crowd.num_instances, crowd.num_annotators) == (3, 4)
