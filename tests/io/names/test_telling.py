"""Names of frames that often stand for none, or are one in two spellings, are told."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest

from neucrowd_tf.annotations import Annotations


def long(task: Any = "t3", worker: Any = "ben", label: Any = "yes") -> pd.DataFrame:
    rows = [("t1", "anna", "yes"), ("t1", "ben", "no"), ("t2", "anna", "no"), (task, worker, label)]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


@pytest.mark.parametrize(
    "name", ["NA", "None", "null", "N/A", "<NA>", "-", "?", " ", "", "\u200bNA"]
)
@pytest.mark.parametrize("role", ["task", "worker", "label"])
def test_names_that_often_stand_for_none(name: str, role: str) -> None:
    with pytest.warns(UserWarning, match=f"frame: the {role} .* often stands for none"):
        found = Annotations.from_frame(long(**{role: name}))
    assert found.num_annotations == 4


@pytest.mark.parametrize("label", [-1, "-1", -1.0])
def test_minus_one_as_a_label(label: Any) -> None:
    with pytest.warns(UserWarning, match="the label .*1.* often stands for none"):
        Annotations.from_frame(long(label=label))


@pytest.mark.parametrize(
    "twin", [{"label": "Yes"}, {"label": "yes "}, {"worker": "BEN"}, {"worker": "ben\u200b"},
             {"task": "t2 "}, {"task": "T2"}])  # fmt: skip
def test_two_spellings_of_one(twin: dict[str, str]) -> None:
    with pytest.warns(
        UserWarning, match=r"frame: the \w+s '.*' and '.*' differ in how they are spelt"
    ):
        Annotations.from_frame(long(**twin))


def test_numbers_and_texts_of_one_class() -> None:
    frame = pd.DataFrame({"a": [1, "1", 2], "b": [2, 2.0, None]}, index=["x", "y", "z"])
    with pytest.warns(UserWarning, match="the labels .* are taken for two"):
        Annotations.from_wide_frame(frame)


def test_a_sound_frame_and_names_that_are_given_are_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Annotations.from_frame(long())
        Annotations.from_frame(long(label="NA"), class_names=["yes", "no", "NA"])
        Annotations.from_frame(pd.DataFrame({"task": [1, 2], "worker": [-1, -2], "label": [0, 1]}))
        Annotations.from_wide_frame(pd.DataFrame({"a": ["x", None], "b": ["y", "x"]}))
