"""Tables in memory: names of rows, columns and classes are never lost in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.aggregation import Crowdlab, Mmsr
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.two_stage import TwoStageClassifier
from neucrowd_tf.saving.keras_objects import AnnotationLoss
from neucrowd_tf.training.run import Run
from tests.cases import raises
from tests.crowds import noisy_labels

N = 120
rng = default_rng(7)
TRUTH = rng.integers(2, size=N)
X = rng.normal(size=(N, 4)) + 1.5 * (TRUTH[:, None] * 2 - 1) * [1, 1, 0, 0]
LABELS = noisy_labels(rng, TRUTH, 5, 0.85)
NAMES = [f"i{row}" for row in range(N)]


def fitted(features: Any, annotations: Any) -> TwoStageClassifier:
    return TwoStageClassifier().fit(features, annotations)


def test_score_knows_classes_by_name_and_weights_by_index() -> None:
    named = Annotations.from_dense(LABELS, class_names=["n", "y"])
    model, texts = fitted(X, named), np.array(["n", "y"], object)[TRUTH]
    wide = pd.DataFrame(np.array(["n", "y"], object)[LABELS])
    wide.iloc[0, 0] = "maybe"  # sorts first
    expected = model.score(X, named)
    assert expected > 0.9 and model.score(X, LABELS) == expected
    assert abs(model.score(X, Annotations.from_wide_frame(wide)) - expected) <= 1 / N
    numbered = fitted(X, Annotations.from_dense(LABELS, class_names=[1, 2]))
    assert numbered.score(X, TRUTH[:, None] + 1) == numbered.score(X, TRUTH + 1) > 0.9
    frame, truth = pd.DataFrame(X, index=NAMES), pd.Series(texts, index=NAMES)
    weights = pd.Series(default_rng(1).random(N), index=NAMES)
    score = fitted(frame, named).score(frame, truth, sample_weight=weights)
    shuffled = weights.sample(frac=1, random_state=2)
    assert fitted(frame, named).score(frame, truth, sample_weight=shuffled) == score
    crowd = Annotations.from_dense(LABELS, class_names=["n", "y"], instance_names=NAMES)
    by_crowd = fitted(frame, named).score(frame, crowd, sample_weight=weights)
    assert fitted(frame, named).score(frame, crowd, sample_weight=shuffled) == by_crowd < 1


def test_names_of_rows_and_columns_are_kept() -> None:
    turned = [3, 2, 1, 0]
    model, other = fitted(pd.DataFrame(X), LABELS), fitted(pd.DataFrame(X)[turned], LABELS)
    expected = model.predict_proba(X)
    assert_array_equal(model.predict_proba(pd.DataFrame(X)[turned]), expected)
    assert_allclose(other.predict_proba(pd.DataFrame(X)), expected, atol=1e-6)
    frame = pd.DataFrame(X, index=NAMES).sample(frac=1, random_state=1)
    votes = np.stack([(code == LABELS).sum(axis=1) for code in (0, 1)], axis=1)
    truth = pd.Series(TRUTH, index=NAMES)
    for crowd in (
        Annotations.from_dense(pd.DataFrame(LABELS, index=NAMES)),
        Annotations.from_votes(pd.DataFrame(votes, index=NAMES, columns=[0, 1])),
    ):
        assert fitted(frame, crowd).score(frame, truth) > 0.9
    crowd = Annotations.from_dense(LABELS, instance_names=NAMES, class_names=["n", "y"])
    probas = pd.DataFrame(expected, index=NAMES, columns=["n", "y"])
    first = Crowdlab().fit(crowd, probabilities=expected).probas_
    turned_probas = probas.loc[frame.index, ["y", "n"]]
    assert_array_equal(Crowdlab().fit(crowd, probabilities=turned_probas).probas_, first)
    long = Annotations.from_dense(LABELS).to_frame().sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="row i is instance i"):
        fitted(X, Annotations.from_frame(long))


def test_what_no_array_of_codes_can_hold_is_an_error() -> None:
    wrong = np.array([[0, 2**64 - 1]], np.uint64)
    raises(DataError, "is no code of a class", Annotations.from_dense, wrong, num_classes=2)
    with pytest.raises(DataError, match="set_index"):
        Annotations.from_wide_frame(pd.DataFrame({"task": NAMES[:3], "ann": [0, 1, 1]}))
    votes = np.ma.array([[3, 1], [1, 1]], mask=[[0, 1], [0, 0]])
    assert Annotations.from_votes(votes).vote_counts().tolist() == [[3, 0], [1, 1]]
    flags = np.ma.array([[True, False]], mask=[[True, False]])
    assert Annotations.from_dense(flags).to_dense().tolist() == [[-1, 0]]
    with pytest.raises(Exception, match="no code below the number of classes"):
        AnnotationLoss()(np.array([1, 2]), np.zeros((2, 2), np.float32))


def test_repeated_labels_and_unknown_models_are_no_silent_change() -> None:
    crowd = Annotations.from_dense(LABELS)
    twice = [np.tile(one, 2) for one in (crowd.instances, crowd.annotators, crowd.labels)]
    both = Annotations(*twice, duplicates="all")
    assert_allclose(Mmsr().fit(both).skills_, Mmsr().fit(crowd).skills_)
    raises(UsageError, "no annotator is named 'gpt'", infer, crowd, models=["gpt"])
    assert infer(crowd, models=np.arange(3, 5)).people is not None
    assert_array_equal(infer(LABELS).labels, infer(crowd).labels)


def test_a_refused_fit_leaves_the_model_as_it_was() -> None:
    model = fitted(X, LABELS)
    before = model.predict(X)
    for validation in ((X, ["zz"] * N), 0.2, (X,), (X, Annotations.from_dense(LABELS))):
        with pytest.raises((DataError, UsageError), match="validation"):
            model.fit(X, Annotations.from_dense(1 - LABELS), validation)
        assert_array_equal(model.predict(X), before)
    assert Run(checkpoints="folder").stage("a").checkpoints.name == "a"
