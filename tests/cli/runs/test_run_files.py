"""predictions.csv and annotators.csv, cell by cell."""

from __future__ import annotations

import io
import types

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.evaluation.annotators import annotators_csv
from neucrowd_tf.evaluation.cached_consensus import inferred
from neucrowd_tf.io.predictions import LIKELY, predictions_csv
from tests.crowds import array_of


def test_predictions() -> None:
    names = np.array(["no", "=yes"], dtype=object)
    proba = array_of("1/3 2/3; 0.75 0.25; 0.5 0.5", np.float32)
    tasks = np.array(["a", "-b", -3], dtype=object)
    assert predictions_csv(tasks, array_of("1 0 -1"), proba.argmax(1), proba, names) == (
        "task,true_label,predicted,p_no,p_=yes\n"
        "a,'=yes,'=yes,0.333333343,0.666666687\n"
        "'-b,no,no,0.75,0.25\n"
        "-3,,no,0.5,0.5\n"
    )  # fmt: skip
    text = predictions_csv(tasks, array_of("1 0 -1"), proba.argmax(1), proba, names, LIKELY)
    assert text.startswith("task,likely_label,predicted,")


def test_nine_digits_give_float32_back() -> None:
    p = default_rng(0).random(1000, dtype=np.float32)
    proba = np.stack([1 - p, p], axis=1)
    codes = np.zeros(1000, dtype=int)
    text = predictions_csv(np.arange(1000), codes, codes, proba, np.array([0, 1]))
    read = pd.read_csv(io.StringIO(text))[["p_0", "p_1"]].to_numpy(dtype=np.float32)
    assert_array_equal(read, proba)


def test_annotators_by_hand() -> None:
    # Tasks 0 and 1 have a majority; task 2 is a tie of two, whose labels agree with it by half.
    dense = [[0, 0, 1, -1], [1, 1, 1, -1], [0, -1, 1, -1]]
    crowd = Annotations.from_dense(dense, annotator_names=["+a", "b", "c", "idle"])
    fitted = types.SimpleNamespace(
        annotator_accuracy_=array_of("0.9 0.8 0.5 nan"),
        confusion_matrices_=np.tile([[0.7, 0.3], [0.4, 0.6]], (4, 1, 1)),
    )
    text = annotators_csv(inferred(crowd), array_of("0 1 1"), fitted)
    # The consensus of task 2, a tie of two, is a's or c's label; the model's is c's. 2/3 of a's
    # labels are the model's.
    frame = pd.read_csv(io.StringIO(text)).set_index("annotator")
    assert frame.columns.tolist() == [
        *("num_labels", "skill", "skill_low", "skill_high", "note", "agreement_consensus"),
        *("agreement_others", "agreement_model", "method_skill", "recall_0", "recall_1"),
    ]
    assert frame.index.tolist() == ["'+a", "b", "c", "idle"]
    assert frame["num_labels"].tolist() == [3, 2, 3, 0]
    consensus, model = frame["agreement_consensus"], frame["agreement_model"]
    assert consensus["b"] == 1.0 and consensus["'+a"] + consensus["c"] == pytest.approx(4 / 3)
    assert_allclose(model, array_of("2/3 1 2/3 nan"), atol=1e-8)
    assert_allclose(frame["method_skill"], array_of("0.9 0.8 0.5 nan"))
    assert set(frame["recall_0"]) == {0.7} and set(frame["recall_1"]) == {0.6}
    # a: labels beside its own are 0, 1 of task 0, 1, 1 of task 1, 1 of task 2: 3 of 5 are its own.
    assert frame["agreement_others"]["'+a"] == 0.6 and set(frame["note"][:3]) == {"few labels"}


def test_votes_alone_give_a_header() -> None:
    text = annotators_csv(inferred(Annotations.from_votes([[1, 2]])), np.array([0]), object())
    assert text.startswith("annotator,num_labels,skill,") and text.count("\n") == 1
