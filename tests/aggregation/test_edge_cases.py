"""Every aggregator on the crowds that break naive code: each gives a finite, documented result or
one clear error.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from neucrowd_tf.aggregation import Aggregator, DawidSkene, Glad, MajorityVote
from neucrowd_tf.aggregation.base import gold_codes
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError, UsageError

AGGREGATORS = [
    MajorityVote(),
    DawidSkene(),
    DawidSkene(one_coin=True),
    DawidSkene(smoothing=0.0),
    Glad(),
    Glad(prior="update"),
    Glad(easiness="integrated"),
]
IDS = ["mv", "ds", "one_coin", "ds_unsmoothed", "glad", "glad_update", "glad_integrated"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]


def _fit(aggregator: Aggregator, annotations: Annotations | np.ndarray) -> Aggregator:
    result = clone(aggregator).fit(annotations)
    for name in ("probas_", "priors_", "errors_", "skills_"):
        assert np.isfinite(getattr(result, name)).all(), name
    np.testing.assert_allclose(result.probas_.sum(axis=1), 1)
    np.testing.assert_allclose(result.errors_.sum(axis=2), 1)
    assert result.labels_.dtype == np.int64
    assert ((result.labels_ >= 0) & (result.labels_ < result.probas_.shape[1])).all()
    return result


@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=IDS)
class TestEdgeCases:
    def test_annotators_with_one_label_and_with_none(self, aggregator: Aggregator) -> None:
        dense = np.full((6, 8), -1)
        dense[np.arange(6), np.arange(6)] = [0, 1, 0, 1, 1, 0]
        dense[:, 6] = [0, 1, 0, 1, 0, 0]
        result = _fit(aggregator, dense)  # annotator 7 gave no label
        np.testing.assert_allclose(result.errors_[7].sum(axis=1), 1)
        assert (result.labels_[[0, 1, 2, 3, 5]] == [0, 1, 0, 1, 0]).all()

    @pytest.mark.parametrize("kind", [int, str, bool])
    def test_ids_of_any_type(self, aggregator: Aggregator, kind: type) -> None:
        tasks = [False, True] if kind is bool else [kind(t) for t in range(9)]
        rows = [
            (task, kind(worker), kind(t % 2)) for t, task in enumerate(tasks) for worker in (0, 1)
        ]
        crowd = Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
        built = clone(aggregator)
        series, frame = built.fit_predict(crowd), built.fit_predict_proba(crowd)
        assert {type(value) for value in series.tolist()} == {kind}
        assert set(series.index.tolist()) == {row[0] for row in rows}
        assert frame.shape == (len(series), 2)
        assert all(series.loc[row[0]] == row[2] for row in rows)

    def test_the_input_is_not_changed(self, aggregator: Aggregator) -> None:
        dense = np.random.default_rng(1).integers(-1, 3, (20, 4))
        gold = np.full(20, -1)
        gold[3] = 2
        before, gold_before = dense.copy(), gold.copy()
        clone(aggregator).fit(dense, gold)
        np.testing.assert_array_equal(dense, before)
        np.testing.assert_array_equal(gold, gold_before)


def test_no_warning_when_em_converges() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DawidSkene().fit(np.repeat(np.arange(30)[:, None] % 3, 5, axis=1)).converged_


CROWD = Annotations.from_dense(np.array([[0, 1, 1], [1, 1, 0], [0, 0, 0]]))


@pytest.mark.parametrize(
    ("aggregator", "error", "message"),
    [
        (
            DawidSkene(max_iter=1.5),
            UsageError,
            r"max_iter: expected a whole number from 1, received 1\.5",
        ),  # type: ignore[arg-type]
        (DawidSkene(max_iter="3"), UsageError, "max_iter: expected a whole number"),  # type: ignore[arg-type]
        (DawidSkene(tol=float("nan")), UsageError, "tol: expected a number"),
        (DawidSkene(tol="x"), UsageError, "tol: expected a number, received 'x'"),  # type: ignore[arg-type]
        (DawidSkene(smoothing="a"), DataError, "smoothing: expected numbers, received 'a'"),
        (DawidSkene(prior=["a", "b"]), DataError, "prior: expected numbers"),
    ],
)
def test_arguments_that_make_no_sense_are_one_error(
    aggregator: Aggregator, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        aggregator.fit(CROWD)


@pytest.mark.parametrize("labels", [1, 3])
def test_annotators_with_one_label_each_keep_the_vote_under_a_uniform_prior(labels: int) -> None:
    # As the docstring says: each annotator's matrix explains any truth, so only the held prior
    # keeps the classes apart.
    truth = np.arange(30) % 3
    crowd = Annotations.from_arrays(
        np.repeat(np.arange(30), labels), np.arange(30 * labels), np.repeat(truth, labels)
    )
    np.testing.assert_array_equal(DawidSkene(prior="uniform").fit(crowd).labels_, truth)
    np.testing.assert_array_equal(Glad().fit(crowd).labels_, truth)
    assert np.isfinite(DawidSkene().fit(crowd).probas_).all()


def test_gold_labels_that_contradict_each_other_are_one_error() -> None:
    gold = pd.Series(["a", "a", "b"], index=["x", "y", "x"])
    crowd = Annotations.from_arrays(["x", "y"], ["p", "p"], ["a", "b"])
    with pytest.raises(DataError, match="task 'x': expected one label, received 'a' and 'b'"):
        gold_codes(gold, crowd)
    np.testing.assert_array_equal(gold_codes(gold[:2].repeat(2), crowd), [0, 0])
