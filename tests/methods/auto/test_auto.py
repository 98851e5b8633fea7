"""auto: what it recommends, what it says of it, and what it leaves out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.aggregation.ordinal import OrdinalConsensus
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.certainty import Estimate
from neucrowd_tf.declare import registration, registry
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.auto import search
from neucrowd_tf.methods.auto.candidates import STRENGTHS, Candidate
from neucrowd_tf.methods.auto.data import with_validation
from neucrowd_tf.methods.auto.estimator import Auto
from neucrowd_tf.methods.auto.evidence import weighed_consensus
from neucrowd_tf.methods.auto.recommendation import sentence, usefulness
from neucrowd_tf.methods.auto.search import Task, side_by_side
from neucrowd_tf.saving.loading import load
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run
from tests.cases import raises
from tests.crowds import Crowd, array_of, corners

FAST = ("mv_lr", "ds_lr")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Many small regressions: threads that wait for each other would cost more than they give."""
    with threadpoolctl.threadpool_limits(1):
        yield


def _crowd(size: int = 160, spam: int = 6, seed: int = 0) -> Crowd:
    """Three good annotators and `spam` who always give class 1, so that the majority vote leans to
    it.
    """
    rng = default_rng([21, seed])
    truth = rng.integers(0, 2, size)
    features = corners(rng, truth, 2, 1.5)
    good = simulation.from_skills(np.full((3, 2), 0.95))
    bad = np.repeat(np.array([[[0.0, 1.0], [0.1, 0.9]]]), spam, axis=0)
    crowd = simulation.simulate(truth, np.concatenate([good, bad]), seed, class_names=["no", "yes"])
    return features, crowd, truth


class _Broken(CrowdEstimator):
    """A method that does not run."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, data: TrainingData, run: Run) -> None:
        raise RuntimeError("no such device")


@pytest.fixture
def broken() -> Iterator[str]:
    registry.register_method("broken_for_a_test", summary="does not run")(_Broken)
    yield "broken_for_a_test"
    del registration.METHODS["broken_for_a_test"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Auto, Path]:
    """A fit on the crowd with spammers, and where its checkpoints are."""
    folder = tmp_path_factory.mktemp("checkpoints")
    features, crowd, _ = _crowd()
    with threadpoolctl.threadpool_limits(1):
        return Auto(FAST, seed=1).fit(features, crowd, run=Run(checkpoints=folder)), folder


def test_a_real_difference_is_told(fitted: tuple[Auto, Path]) -> None:
    features, crowd, truth = _crowd()
    result = fitted[0]
    recommended = result.recommendation_
    # Six of nine annotators have no skill, so without gold labels nothing shows the difference.
    assert recommended["method"] == "ds_lr" and recommended["low"] < 0 < recommended["difference"]
    assert recommended["text"].startswith("Recommended: ds_lr. ")
    assert "(mv_lr): unclear." in recommended["text"]
    accuracy = recommended["accuracy"]
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    assert [row["method"] for row in recommended["methods"]] == ["mv_lr", "ds_lr"]
    # The consensus is close to the truth here, so the score is close to the accuracy; held-out
    # predictions are those scored.
    score = float((result.held_out_probas_.argmax(axis=1) == result.consensus_).mean())
    assert score == pytest.approx(recommended["methods"][1]["score"])
    assert abs(score - float((result.held_out_probas_.argmax(axis=1) == truth).mean())) < 0.05
    alone = registry.method("ds_lr").make(seed=1, Cs=STRENGTHS).fit(features, crowd)
    heated = alone.predict_proba(features) ** (1 / result.estimator_.temperature_)
    expected = heated / heated.sum(axis=1, keepdims=True)
    assert_allclose(result.predict_proba(features), expected, atol=1e-3)
    assert result.confusion_matrices_.shape == (9, 2, 2) and not hasattr(result, "transform")


def test_a_refit_has_no_results_of_the_earlier_fit() -> None:
    features, crowd, _ = _crowd(size=40)
    model = Auto(FAST, jobs=1).fit(features, crowd)
    assert model.confusion_matrices_.shape == (9, 2, 2)
    fewer, others, _ = _crowd(size=40, spam=0)
    assert model.fit(fewer, others).confusion_matrices_.shape == (3, 2, 2)


def _reasons(result: Auto) -> dict[str, str]:
    rows = result.recommendation_["methods"]
    return {row["method"]: row["reason"] for row in rows if row["score"] is None}


def test_vote_counts_leave_out_what_needs_identities() -> None:
    features, crowd, _ = _crowd(spam=0)
    votes = Annotations.from_votes(crowd.vote_counts(), class_names=crowd.class_names)
    result = Auto((*FAST, "crowd_layer")).fit(features, votes)
    reasons = _reasons(result)
    assert set(reasons) == {"ds_lr", "crowd_layer"}
    assert all("vote counts" in reason for reason in reasons.values())
    assert result.recommendation_["method"] == "mv_lr"
    assert result.recommendation_["better_than_majority_vote"] == "no"


def test_failures_are_left_out(broken: str) -> None:
    features, crowd, _ = _crowd()
    result = Auto((broken, "ds_lr"), jobs=1).fit(features, crowd)
    assert _reasons(result) == {broken: "no such device"}
    scored = [
        row["method"] for row in result.recommendation_["methods"] if row["score"] is not None
    ]
    assert [name for name in scored if name != "average"] == ["mv_lr", "ds_lr"]  # mv_lr always is


def test_held_out_predictions_are_kept_and_a_resumed_fit_is_the_same(
    fitted: tuple[Auto, Path], tmp_path: Path
) -> None:
    features, crowd, _ = _crowd()
    first, folder = fitted
    names = {f"cv-{name}-{fold}.npz" for name in FAST for fold in range(3)} | {"cv-quick-0.npz"}
    assert {path.name for path in folder.glob("cv-*")} == names
    (folder / "cv-ds_lr-1.npz").unlink()
    run = Run(checkpoints=folder, tensorboard=tmp_path)
    second = Auto(FAST, seed=1).fit(features, crowd, run=run)
    (events,) = tmp_path.iterdir()
    assert b"agreement with the consensus/mv_lr" in events.read_bytes()
    assert first.recommendation_ == second.recommendation_
    assert np.array_equal(first.predict_proba(features), second.predict_proba(features))


def test_threads_change_nothing_but_the_time() -> None:
    features, crowd, _ = _crowd(size=60)
    names = ("ds_lr", "crowd_layer")
    alone, together = (Auto(names, jobs=jobs, seed=3).fit(features, crowd) for jobs in (1, 2))
    assert alone.recommendation_ == together.recommendation_
    assert np.array_equal(alone.predict_proba(features), together.predict_proba(features))


def test_a_run_that_is_stopped_ends_and_callbacks_are_refused() -> None:
    features, crowd, _ = _crowd(size=30)
    stop = threading.Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        Auto(["mv_dl"], jobs=1).fit(features, crowd, run=Run(stop=stop))
    with pytest.raises(UsageError, match="candidates of Auto are trained side by side"):
        Auto(["mv_dl"]).fit(features, crowd, callbacks=[object()])


def test_who_stops_listening_ends_the_threads() -> None:
    """Two tasks wait until they are told to stop; the one that is done tells nobody of them."""
    features, crowd, _ = _crowd(size=8)
    cheap, *dear = (Candidate(str(cost), "mv_lr", {}, cost) for cost in (0.0, 1.0, 2.0))
    ended: list[str] = []
    all_have_begun = threading.Barrier(3)

    def work(task: Task) -> str:
        all_have_begun.wait(10)
        if task.candidate is not cheap:
            assert task.stop.wait(10)
            with pytest.raises(KeyboardInterrupt):
                Run(stop=task.stop).stage("round-1").raise_if_stopped()
        ended.append(task.candidate.name)
        return task.candidate.name

    tasks = [Task(one, features, crowd, [], 0) for one in (cheap, *dear)]
    result = side_by_side(work, tasks, 3)
    assert next(result) == "0.0"
    result.close()
    assert sorted(ended) == ["0.0", "1.0", "2.0"]


@pytest.mark.ci
@pytest.mark.parametrize("slow", ["held_out", "fitted"])
def test_a_slow_candidate_ends_within_the_budget(
    slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, crowd, _ = _crowd()
    function, start = getattr(search, slow), time.perf_counter()

    def wait(task: Task) -> search.Outcome:
        while task.candidate.name == "ds_lr" and time.perf_counter() < start + 60:
            task.run().raise_if_stopped()
            time.sleep(0.01)
        return function(task)

    monkeypatch.setattr(search, slow, wait)
    result = Auto(budget=2.1).fit(features, crowd)
    assert time.perf_counter() - start < 30  # with the import of Keras
    assert result.recommendation_["fits"] == {"mv_lr": 1}
    assert set(_reasons(result).values()) == {"it does not fit into the budget of 2.1 s"}


def test_what_took_long_is_expected_to_take_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    features, crowd, _ = _crowd(size=8)
    now, clock, begun = [0.0], search.Clock(), []
    monkeypatch.setattr(search.time, "perf_counter", lambda: now[0])
    clock.budget, clock._start = 20.0, 0.0

    def work(task: Task) -> search.Outcome:
        begun.append(task.name)
        now[0] += 5.0
        return search.Outcome(task.name)

    for name, cost in (("slow", 1.0), ("dear", 2.0), ("cheap", 1.5)):  # of 12 s, 7 are left
        clock.run(work, Task(Candidate(name, "mv_lr", {}, cost), features, crowd, [], 0))
    assert begun == ["slow", "cheap"]  # 6 s for 3, so 2 * 2.0 take 8


def test_it_is_saved_and_loaded(fitted: tuple[Auto, Path], tmp_path: Path) -> None:
    features, result = _crowd()[0], fitted[0]
    result.save(tmp_path / "auto")
    again = load(tmp_path / "auto")
    assert again.recommendation_ == result.recommendation_
    assert_allclose(again.predict_proba(features), result.predict_proba(features))


def test_small_and_odd_data() -> None:
    features, crowd, _ = _crowd(size=40, spam=0)
    rare = np.flatnonzero(weighed_consensus(crowd, 0) == 1)[:1]
    rows = np.concatenate([np.flatnonzero(weighed_consensus(crowd, 0) == 0), rare])
    result = Auto(("mv_lr",)).fit(
        features[rows], crowd[rows]
    )  # the only instance of a class is never held out
    assert np.isnan(result.held_out_probas_).all(axis=1).tolist() == [
        *[False] * (len(rows) - 1),
        True,
    ]
    with pytest.raises(DataError, match="at least 4 annotated instances"):
        Auto(("mv_lr",)).fit(
            features[:3], Annotations([0, 1, 2], [0, 0, 0], [0, 1, 1], num_classes=2)
        )
    raises(UsageError, "folds", Auto(FAST, folds=1).fit, features, crowd)
    raises(UsageError, "Did you mean", Auto(("ds_lrr",)).fit, features, crowd)


def test_a_model_that_learns_nothing_is_not_to_be_used() -> None:
    """Features of noise: no better than the most frequent class, and the text says so."""
    _, crowd, _ = _crowd(spam=0)
    features = default_rng(5).normal(size=(160, 2)).astype(np.float32)
    recommended = Auto(("mv_lr",)).fit(features, crowd).recommendation_
    assert recommended["better_than_commonest_class"] is False
    assert "do not use this model" in recommended["text"]


def test_a_model_is_useful_or_not_or_undecided() -> None:
    assert usefulness(Estimate(0.1, 0.02, 0.2), 0.2) is True
    assert usefulness(Estimate(0.1, 0.0, 0.2), 0.2) is None  # absence of evidence is no proof
    assert usefulness(Estimate(0.0, -0.02, 0.02), 0.2) is False


def test_the_recommendation_has_one_accuracy() -> None:
    accuracy = Estimate(0.8, 0.7, 0.9)
    assert sentence("average", ["mv_lr", "ds_lr"], accuracy, 0) == (
        "Recommended: the average of mv_lr, ds_lr. Its accuracy on items that it has not seen is"
        " 0.800 [0.700, 0.900] (80% interval; expected, without gold labels)."
    )
    assert "balanced accuracy" in sentence("ds_lr", [], accuracy, 30, balanced=True)
    assert "30 gold labels" in sentence("ds_lr", [], accuracy, 30)


def test_gold_labels_measure_the_accuracy() -> None:
    features, crowd, truth = _crowd(spam=2)
    gold = {str(name): ["no", "yes"][truth[name]] for name in range(0, 160, 4)}
    recommended = Auto(FAST, gold=gold).fit(features, crowd).recommendation_
    assert recommended["gold_labels"] == 40 and "Gold labels of 50" not in recommended["text"]
    assert "40 gold labels" in recommended["text"]


def test_validation_instances_are_trained_on() -> None:
    features, crowd, truth = _crowd()
    validation = features[:60], crowd.class_names[truth[:60]]
    rest = crowd[60:]
    model = Auto(FAST, seed=1).fit(features[60:], rest, validation)
    assert model.held_out_probas_.shape == (100, 2) and model.consensus_.shape == (100,)
    assert model.recommendation_["gold_labels"] == 60
    assert model.confusion_matrices_.shape == (9, 2, 2)
    # Refitting what it was made from gives the same model: validation instances are in it.
    held = features[:60], truth[:60]
    both, gold = with_validation(
        TrainingData(features[60:], rest, held, np.arange(100)), np.full(100, -1)
    )
    assert (gold[:100] == -1).all() and (gold[100:] == truth[:60]).all()
    alone = registry.method("ds_lr").make(seed=1, Cs=STRENGTHS)
    alone.fit(both.features, both.annotations)
    expected = alone.predict_proba(features).argmax(axis=1)
    assert model.recommendation_["method"] == "ds_lr"
    assert (model.predict_proba(features).argmax(axis=1) == expected).mean() > 0.98


def test_validation_votes_are_no_gold_labels() -> None:
    features, crowd, truth = _crowd()
    held = features[:60], crowd.class_names[truth[:60]], "votes"
    model = Auto(FAST, seed=1).fit(features[60:], crowd[60:], held)
    assert model.recommendation_["gold_labels"] == 0
    assert model.confusion_matrices_.shape == (9, 2, 2)
    with pytest.raises(UsageError, match='the kind "truth" or "votes", received'):
        Auto(FAST).fit(features[60:], crowd[60:], (*held[:2], "majority"))


def test_validation_votes_follow_those_of_the_crowd() -> None:
    features, crowd, truth = _crowd()
    votes = Annotations.from_votes(crowd.vote_counts(), class_names=["no", "yes"])
    held = features[100:], truth[100:]
    data = TrainingData(features[:100], votes[:100], held, np.arange(100))
    both, _ = with_validation(data, np.full(100, -1))
    assert both.features.shape == (160, 2) and not both.annotations.has_identities
    assert (both.annotations.vote_counts()[:100] == crowd.vote_counts()[:100]).all()
    assert (both.annotations.vote_counts()[100:] == np.eye(2)[truth[100:]]).all()


def test_a_validation_label_is_that_of_one_more_annotator() -> None:
    features, crowd, truth = _crowd()
    held = features[100:], truth[100:]
    data = TrainingData(features[:100], crowd[:100], held, np.arange(100))
    dense = with_validation(data, np.full(100, -1))[0].annotations.to_dense()
    assert dense.shape == (160, 10)
    assert (dense[:100, :9] == crowd[:100].to_dense()).all() and (dense[100:, :9] == -1).all()
    assert (dense[:100, 9] == -1).all() and (dense[100:, 9] == truth[100:]).all()
    twice = Annotations([0, 0, 1], [0, 0, 0], [0, 1, 1], generated=[0, 0, 1], duplicates="all")
    data = TrainingData(features[:2], twice, (features[:1], truth[:1]), np.arange(2))
    more = with_validation(data, np.full(2, -1))[0].annotations
    assert more.vote_counts()[:2].tolist() == twice.vote_counts().tolist()
    assert more.generated.tolist() == [False, False, True, False]


@pytest.mark.ci
def test_texts_are_sparse_for_regressions_and_reduced_for_networks(tmp_path: Path) -> None:
    import tensorflow as tf

    words = np.array([["awful", "broken"], ["lovely", "kind"]])
    _, crowd, truth = _crowd(90, spam=0)
    texts = [f"the {words[c, row % 2]} place {row % 7}" for row, c in enumerate(truth)]
    texts[0] = ""
    result = Auto(("ds_lr", "crowd_layer"), folds=2, jobs=1).fit(texts, crowd)
    assert (result.held_out_probas_.argmax(axis=1) == truth)[1:].mean() > 0.95
    shapes = [member.projection().shape[1] for member in result.estimator_.members_]
    assert shapes.count(2) == 2 and max(shapes) > 2
    odd = [*texts, "日本語", "новый текст", "?"]
    result.save(tmp_path / "saved")
    expected = result.predict_proba(odd)
    assert_allclose(load(tmp_path / "saved").predict_proba(odd), expected, atol=1e-6)
    vectors = result.text_layer()(tf.constant(odd))
    served = result.inference_model()(vectors)["probabilities"]
    assert_allclose(served, expected, atol=1e-4)


def test_ordered_classes_are_inferred_and_judged_as_such() -> None:
    rng = default_rng(5)
    truth = rng.integers(0, 4, 160)
    seen = truth[:, None] + rng.normal(0, 0.8, (160, 5)) + array_of("0.8 -0.8 0 0 0")
    crowd = Annotations.from_dense(np.clip(np.rint(seen), 0, 3).astype(int))
    features = truth[:, None] + rng.normal(0, 0.5, (160, 2))
    result = Auto(FAST, scale="ordinal").fit(features, crowd)
    predicted, shares = result.predict(features), result.predict_proba(features).cumsum(axis=1)
    assert np.array_equal(result.classes_[(shares < 0.5).sum(axis=1)], predicted)
    assert (shares[:, 0] < 0.5).any()
    recommended = result.recommendation_
    assert_array_equal(result.consensus_, OrdinalConsensus().fit(crowd).labels_)
    assert [row["method"] for row in recommended["methods"]][:2] == ["mv_lr", "ordinal_lr"]
    assert "Mean absolute error (0 < 1 < 2 < 3; expected): 0." in recommended["text"]
    distance = np.abs(result.held_out_probas_.argmax(axis=1) - truth).mean()
    assert abs(recommended["mean_absolute_error"]["average"] - distance) < 0.1


def test_ordered_texts_in_the_alphabets_order_are_said() -> None:
    crowd = Annotations.from_dense(np.eye(3, dtype=int), class_names=["bad", "good", "medium"])
    with pytest.warns(UserWarning, match="the order of classes is bad < good < medium"):
        weighed_consensus(crowd, 0, "ordinal")
    mixed = Annotations.from_dense(np.eye(3, dtype=int), class_names=[2, "b", True])
    assert len(weighed_consensus(mixed, 0)) == 3
