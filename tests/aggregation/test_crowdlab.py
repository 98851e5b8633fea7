"""CROWDLAB: weights and probabilities by hand, a naive loop, and what a good model adds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.aggregation import Crowdlab
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from tests.cases import raises
from tests.crowds import array_of

DENSE = array_of("0 0 1; 1 1 -1; 0 -1 -1; 1 0 1")
MODEL = array_of("0.9 0.1; 0.2 0.8; 0.6 0.4; 0.7 0.3")


def test_by_hand() -> None:
    result = Crowdlab().fit(DENSE, probabilities=MODEL)
    # Consensus 0, 1, (0), 1. Annotator 0 meets others at 0 (agrees with 1 of 2), 1 (1 of 1) and 3
    # (1 of 2): 3 of 5; annotator 1: 1 of 2, 1 of 1, 0 of 2: 2 of 5; annotator 2: 0 of 2, 1 of 2.
    assert_allclose(result.skills_, array_of("3/5 2/5 1/4"))
    # Of the labels 0, 1, 1 of the three instances with several, guessing 1 is wrong once: 1 / 3.
    # Weights 1 - error / (1 / 3): 1 - 1.2 < 0 for annotator 0 already.
    assert_allclose(result.weights_, 1e-6)
    # The model is wrong at the last instance, 1 of 3, so that its weight is 1e-6 sqrt(9 / 4). The
    # shares that agree with the vote are (2/3 + 1 + 2/3) / 3 = 7/9. The last instance has
    # 2/9 + 2/9 + 7/9 + 1.5 * .7 = 2.27 for class 0 and 7/9 + 7/9 + 2/9 + 1.5 * .3 = 2.23 for 1.
    assert_array_equal(result.labels_, [0, 1, 0, 0])
    # Under these labels the model is always right, and (2/3 + 1 + 1/3) / 3 = 2/3 agree.
    assert result.model_weight_ == pytest.approx(np.sqrt(9 / 4))
    assert result.probas_[0, 0] == pytest.approx((1.35 + 5 / 3 * 1e-6) / (1.5 + 3e-6))


def test_agrees_with_cleanlab() -> None:
    # What get_label_quality_multiannotator (cleanlab 2.9, its defaults) gives for these labels. The
    # classifier overrules the only label of the third instance.
    dense = [[0, 0, 1], [1, 1, -1], [0, -1, -1], [1, 0, 1], [-1, 2, 2], [2, -1, 2]]
    model = [
        [0.7, 0.2, 0.1],
        [0.2, 0.7, 0.1],
        [0.02, 0.9, 0.08],
        [0.5, 0.3, 0.2],
        [0.1, 0.1, 0.8],
        [0.2, 0.2, 0.6],
    ]
    result = Crowdlab().fit(dense, probabilities=model)
    assert_array_equal(result.labels_, [0, 1, 1, 1, 2, 2])
    assert_allclose(
        result.quality_,
        [0.69789453, 0.76396051, 0.64022791, 0.4747542, 0.81690365, 0.70233681],
        atol=1e-8,
    )
    assert_allclose(result.weights_, array_of("4/9 1/6 1/6"))
    assert result.model_weight_ == pytest.approx(0.9813067629253163)


def test_a_frame_of_probabilities_is_matched_by_names_as_text() -> None:
    crowd = Annotations.from_dense(DENSE, instance_names=[7, 5, 8, 6], class_names=["no", "yes"])
    frame = pd.DataFrame(MODEL, index=list("7586"), columns=["p_no", "p_yes"])
    moved = frame.sort_index()[["p_yes", "p_no"]]
    expected = Crowdlab().fit(DENSE, probabilities=MODEL).probas_
    assert_array_equal(Crowdlab().fit(crowd, probabilities=frame).probas_, expected)
    assert_array_equal(Crowdlab().fit(crowd, probabilities=moved).probas_, expected)
    for other in (frame.rename({"7": "9"}), frame.rename(columns={"p_no": "p_may"})):
        with pytest.raises(DataError, match=r"'(9|p_may)' is not one of the"):
            Crowdlab().fit(crowd, probabilities=other)
    numbered = Annotations.from_dense(DENSE)  # has no names to match
    other = frame.set_axis(["no", "yes"], axis=1)
    assert_array_equal(Crowdlab().fit(numbered, probabilities=other).probas_, expected)


def test_probabilities_that_cannot_be_used_are_one_error(crowd: Annotations) -> None:
    raises(DataError, "probabilities: expected a model's, of shape", Crowdlab().fit, crowd)
    raises(DataError, r"received shape \(4, 2\)", Crowdlab().fit, crowd, probabilities=MODEL)
    with pytest.raises(DataError, match="not all 0 in a row"):
        Crowdlab().fit(DENSE, probabilities=MODEL * [[1], [0], [1], [1]])
