"""Every aggregator on the crowds that break naive code: each gives a finite, documented result or
one clear error.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene, Glad
from neucrowd_tf.aggregation.base import gold_codes
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from tests.cases import raises

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]


def test_no_warning_when_em_converges() -> None:
    with warnings.catch_warnings(action="error"):
        assert DawidSkene().fit(np.repeat(np.arange(30)[:, None] % 3, 5, axis=1)).converged_


def test_one_iteration_cannot_converge(crowd: Annotations) -> None:
    with pytest.warns(ConvergenceWarning, match="1 iterations: a rise takes two iterations"):
        assert not DawidSkene(max_iter=1).fit(crowd).converged_


@pytest.mark.parametrize("labels", [1, 3])
def test_annotators_with_one_label_each_keep_the_vote_under_a_uniform_prior(labels: int) -> None:
    # As the docstring says: each annotator's matrix explains any truth, so only the held prior
    # keeps the classes apart.
    truth = np.arange(30) % 3
    crowd = Annotations.from_arrays(
        np.repeat(np.arange(30), labels), np.arange(30 * labels), np.repeat(truth, labels)
    )
    assert_array_equal(DawidSkene(prior="uniform").fit(crowd).labels_, truth)
    assert_array_equal(Glad().fit(crowd).labels_, truth)
    assert np.isfinite(DawidSkene().fit(crowd).probas_).all()


def test_gold_labels_that_contradict_each_other_are_one_error() -> None:
    gold = pd.Series(["a", "a", "b"], index=["x", "y", "x"])
    crowd = Annotations.from_arrays(["x", "y"], ["p", "p"], ["a", "b"])
    with pytest.raises(DataError, match="task 'x', label 'b': the task also has the label 'a'"):
        gold_codes(gold, crowd)
    assert_array_equal(gold_codes(gold[:2].repeat(2), crowd), [0, 0])
    assert_array_equal(gold_codes({"x": "a"}, crowd[[0, 1, 0]]), [0, -1, 0])
    raises(DataError, "gold labels: expected 2 class codes", gold_codes, gold.to_frame(), crowd)


@pytest.mark.parametrize("method", [DawidSkene, Glad])
def test_a_prior_with_names_is_refused(method: type[DawidSkene | Glad]) -> None:
    with pytest.raises(DataError, match="prior: expected an array in the order of the classes"):
        method(prior=pd.Series({"b": 0.3, "a": 0.7})).fit([[0, 1], [1, 1]])
