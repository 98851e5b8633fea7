"""What every method of the catalogue does: results are distributions, gold labels stay, the same
seed gives the same bytes, shards give the same sums, and objectives never fall.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from neucrowd_tf.aggregation import AGGREGATORS, Aggregator, DawidSkene, Glad, make_aggregator
from neucrowd_tf.aggregation.bwa import BwaModel
from neucrowd_tf.aggregation.dawid_skene import DawidSkeneModel
from neucrowd_tf.aggregation.ebcc import EBCCModel
from neucrowd_tf.aggregation.ibcc import IBCCModel, diagonal_counts
from neucrowd_tf.aggregation.mace import MaceModel
from neucrowd_tf.aggregation.sums import LatentModel, Shard, run, total
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError, IdentitiesError, UsageError
from neucrowd_tf.saving.loading import load
from tests.cases import raises
from tests.crowds import array_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]
VARIANTS: dict[str, Aggregator] = {
    "ds_unsmoothed": DawidSkene(smoothing=0.0),
    "glad_update": Glad(prior="update"),
}
NAMES = [*sorted(AGGREGATORS), *VARIANTS]


def _made(name: str, seed: int = 0) -> Aggregator:
    if name in VARIANTS:
        return clone(VARIANTS[name]).set_params(seed=seed)
    built = make_aggregator(name, seed)
    if name == "consensus":
        return built.set_params(restarts=3, folds=2, best=2)
    return built.set_params(restarts=4) if name in ("ebcc", "mace") else built


def _check(result: Aggregator) -> None:
    for name in ("probas_", "priors_", "errors_", "skills_"):
        assert np.isfinite(getattr(result, name)).all(), name
    assert (result.probas_ >= 0).all()
    assert_allclose(result.probas_.sum(axis=1), 1)
    assert_allclose(result.errors_.sum(axis=2), 1)
    assert_allclose(result.priors_.sum(), 1)
    assert ((result.skills_ >= 0) & (result.skills_ <= 1)).all()
    assert result.labels_.dtype == np.int64


@pytest.mark.parametrize("name", NAMES)
class TestEveryMethod:
    def test_finds_most_labels_and_leaves_distributions(
        self, name: str, crowd: Annotations, truth: np.ndarray
    ) -> None:
        result = _made(name).fit(crowd)
        _check(result)
        least = 0.6 if name == "kos" else 0.8  # KOS takes three classes for an order
        assert (result.labels_ == truth).mean() > least

    def test_gold_labels_stay(self, name: str, crowd: Annotations, truth: np.ndarray) -> None:
        wrong = {int(task): int((truth[task] + 1) % 3) for task in range(30)}
        result = _made(name).fit(crowd, wrong)
        assert_array_equal(result.labels_[:30], (truth[:30] + 1) % 3)
        assert_array_equal(result.probas_[:30].max(axis=1), 1.0)
        _check(result)

    def test_an_instance_without_labels_gets_the_prior(self, name: str) -> None:
        dense = array_of("0 0 0; 1 1 1; 1 1 1; -1 -1 -1; -1 1 -1")
        result = _made(name).fit(dense)
        assert_allclose(result.probas_[3], result.priors_)
        assert_array_equal(result.labels_[[0, 1, 2, 4]], [0, 1, 1, 1])

    def test_annotators_with_one_label_and_with_none(self, name: str) -> None:
        dense = np.full((6, 8), -1)  # annotator 7 gave no label
        dense[np.arange(6), np.arange(6)] = [0, 1, 0, 1, 1, 0]
        dense[:, 6] = [0, 1, 0, 1, 0, 0]
        result = _made(name).fit(dense)
        _check(result)
        assert name == "kos" or (result.labels_[[0, 1, 2, 3, 5]] == [0, 1, 0, 1, 0]).all()

    @pytest.mark.parametrize("kind", [int, str, bool])
    def test_ids_of_any_type(self, name: str, kind: type) -> None:
        tasks = [False, True] if kind is bool else [kind(t) for t in range(9)]
        rows = [(task, kind(r), kind(t % 2)) for t, task in enumerate(tasks) for r in (0, 1)]
        crowd = Annotations.from_frame(pd.DataFrame(rows, columns=["task", "worker", "label"]))
        built = _made(name)
        series, frame = built.fit_predict(crowd), built.fit_predict_proba(crowd)
        assert {type(value) for value in series.tolist()} == {kind}
        assert set(series.index.tolist()) == {row[0] for row in rows}
        assert frame.shape == (len(series), 2)

    def test_crowds_that_break_naive_code(self, name: str) -> None:
        rng = default_rng(0)
        for dense in (
            np.zeros((5, 3), dtype=int),
            np.array([[1]]),
            array_of("0 -1; -1 1"),
            np.repeat(np.arange(30)[:, None] % 3, 5, axis=1),
            rng.integers(0, 3, (60, 6)),
            np.tile([0, 1, 2], (20, 1)),
        ):
            for extra in (0, 1):
                crowd = Annotations.from_dense(dense, num_classes=int(dense.max()) + 1 + extra)
                _check(_made(name).fit(crowd))

    def test_repeated_labels(self, name: str, crowd: Annotations) -> None:
        again = np.arange(0, crowd.num_annotations, 7)
        labels = np.concatenate([crowd.labels, (crowd.labels[again] + again % 2) % 3])
        places = np.concatenate([np.arange(crowd.num_annotations), again])
        triple = crowd.instances[places], crowd.annotators[places], labels
        repeated = Annotations(*triple, duplicates="all")
        one_hot = repeated.one_hot().copy()
        _check(_made(name).fit(repeated))
        assert (repeated.one_hot() != one_hot).nnz == 0

    def test_same_seed_same_bytes(self, name: str, crowd: Annotations) -> None:
        one, two = _made(name, 3).fit(crowd), _made(name, 3).fit(crowd)
        assert one.probas_.tobytes() == two.probas_.tobytes()

    def test_saves_and_loads(self, name: str, crowd: Annotations, tmp_path: Path) -> None:
        built = clone(_made(name)).fit(crowd)
        built.save(tmp_path / "fitted")
        loaded = load(tmp_path / "fitted")
        assert loaded.get_params() == built.get_params()
        assert_array_equal(loaded.probas_, built.probas_)

    def test_needs_identities_or_does_not(self, name: str) -> None:
        votes = Annotations.from_votes(array_of("5 2; 1 6"))
        if name in ("majority_vote", "consensus"):
            assert_array_equal(_made(name).fit(votes).labels_, [0, 1])
        else:
            with pytest.raises(IdentitiesError):
                _made(name).fit(votes)

    def test_no_annotation_is_one_error(self, name: str) -> None:
        raises(DataError, "at least one annotation", _made(name).fit, np.full((3, 2), -1))

    def test_an_argument_out_of_range_is_one_error(self, name: str, crowd: Annotations) -> None:
        with pytest.raises(UsageError, match="ties: expected 'random', 'first' or 'prior'"):
            _made(name).set_params(ties="best").fit(crowd)


@pytest.mark.parametrize("hard", [False, True])
def test_a_resumed_run_is_the_uninterrupted_one(hard: bool, crowd: Annotations) -> None:
    model = DawidSkeneModel(np.full((1, 3, 3), 0.1), None, hard=hard)
    shard = Shard(crowd.one_hot(), 3)
    whole = run(model, shard, max_iter=3, tol=0.0)
    begun = run(model, shard, max_iter=1, tol=0.0)
    assert np.isinf(begun.change) and not begun.converged
    resumed = run(model, shard, max_iter=3, tol=0.0, resume_from=begun)
    assert resumed.history.tolist() == whole.history.tolist()
    assert resumed.beliefs.tobytes() == whole.beliefs.tobytes()
    ended = run(model, shard, max_iter=3, tol=1.0, resume_from=resumed)
    assert ended.converged and ended.change == whole.change
    assert not run(model, shard, max_iter=3, tol=0.0, resume_from=resumed).converged


def test_a_run_is_one_that_can_begin(crowd: Annotations) -> None:
    model = DawidSkeneModel(np.full((1, 3, 3), 0.1), None)
    shard = Shard(crowd.one_hot(), 3)
    with pytest.raises(ValueError, match="max_iter: expected a whole number from 1, received 0"):
        run(model, shard, max_iter=0, tol=0.0)
    begun = run(model, shard, max_iter=1, tol=0.0)
    with pytest.raises(ValueError, match="expected beliefs or resume_from, received both"):
        run(model, shard, max_iter=2, tol=0.0, beliefs=begun.beliefs, resume_from=begun)


def test_a_name_that_no_method_has() -> None:
    with pytest.raises(UsageError, match=r"expected one of majority_vote, .* received 'best'"):
        make_aggregator("best")
    with pytest.raises(UsageError, match=r"received .dawid_skeen.\. Did you mean dawid_skene"):
        make_aggregator("dawid_skeen")


def _models(shard: Shard) -> dict[str, LatentModel[Any]]:
    size, annotators = shard.num_classes, shard.num_annotators
    pseudo = np.full((annotators, size, size), 0.01)
    prior = diagonal_counts(size, 4.0, 1.0)
    return {
        "dawid_skene": DawidSkeneModel(pseudo),
        "one_coin": DawidSkeneModel(pseudo, one_coin=True),
        "hard": DawidSkeneModel(pseudo, hard=True),
        "ibcc": IBCCModel(prior),
        "ebcc": EBCCModel(prior, np.ones(size), 1, 0, 1),
        "mace": MaceModel(np.full(2, 0.5), 10.0, True, size, 0),
        "mace_em": MaceModel(np.full(2, 0.01), 0.01, False, size, 0),
        "bwa": BwaModel(),
    }


MODELS = list(_models(Shard(Annotations([0], [0], [0]).one_hot(), 1)))


@pytest.mark.parametrize("name", MODELS)
def test_the_objective_never_falls(name: str, crowd: Annotations) -> None:
    gold = np.where(np.arange(300) % 7 == 0, 1, -1)
    for gold_only in (None, gold):
        shard = Shard(crowd.one_hot(), 3, gold_only)
        history = run(_models(shard)[name], shard, max_iter=40, tol=-np.inf).history
        assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()
        assert history[-1] > history[0]


@pytest.mark.parametrize("name", MODELS)
def test_shards_give_what_the_whole_gives(name: str, crowd: Annotations) -> None:
    """The loop of `sums`' docstring over three shards, against `run` on all annotations."""
    whole = Shard(crowd.one_hot(), 3)
    model = _models(whole)[name]
    shards = [Shard(whole.one_hot[a : a + 100], 3) for a in (0, 100, 200)]
    parameters, objectives = None, []
    sums = total(model.statistics(shard) for shard in shards)
    for _ in range(6):
        parameters = model.m_step(sums, parameters)
        sums = total(model.statistics(shard, parameters) for shard in shards)
        objectives.append(model.objective(sums, parameters))
    expected = run(model, whole, max_iter=6, tol=-np.inf)
    assert_allclose(objectives, expected.history)
    beliefs = np.concatenate([model.soft().e_step(shard, parameters)[0] for shard in shards])
    assert_allclose(beliefs, expected.beliefs, atol=1e-9)
