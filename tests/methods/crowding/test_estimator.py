"""CrowdInG end to end on a small crowd: exact refits and resume, the guard, generated annotations,
saving.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import neucrowd_tf.saving.loading
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, IdentitiesError, UsageError
from neucrowd_tf.methods.crowding import CrowdInG
from neucrowd_tf.methods.crowding import estimator as module
from neucrowd_tf.methods.crowding.game import Game
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.reuse import NetworkCache
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import HELD_OUT
from tests.cases import raises
from tests.crowds import Crowd
from tests.methods.crowding.conftest import ARGUMENTS

LOGGED = {
    "discriminator_loss",
    "generator_loss",
    "classifier_loss",
    "discriminator_training_auc",
    "generator_entropy",
    "classifier_entropy",
    "val_accuracy",
}


class Killed(Exception):
    pass


def fitted(
    estimator: CrowdInG, crowd: Crowd, run: Run | None = None, seed: int = 0, **changes: Any
) -> CrowdInG:
    """Fits with the first instances' truth as validation."""
    x, annotations, truth = crowd
    estimator.set_params(seed=seed, **changes)
    return estimator.fit(x, annotations, (x[:18], truth[:18]), run=run)


def game_of(estimator: CrowdInG) -> Game:
    """The compiled game of the latest fit."""
    entry = estimator._caches["game"]._network
    return entry[0]  # type: ignore[index, no-any-return]


def results(estimator: CrowdInG, crowd: Crowd) -> tuple[Any, ...]:
    return (
        estimator.predict_proba(crowd[0]).tobytes(),
        estimator.history_,
        [w.tobytes() for w in estimator.generator_weights_],
    )


def test_a_fit_logs_every_player_and_learns(estimator: CrowdInG, crowd: Crowd) -> None:
    fitted(estimator, crowd)
    assert set(estimator.history_) >= LOGGED
    assert all(len(values) == estimator.n_iter_ == 3 for values in estimator.history_.values())
    assert estimator.score(crowd[0], crowd[2]) > 0.7
    assert estimator.start_ is not None and not estimator.collapsed_
    assert all(0 <= value <= 1 for value in estimator.history_["discriminator_training_auc"])
    test = Split(crowd[0], crowd[2], np.arange(len(crowd[2])))
    dataset = CrowdDataset("small", crowd[0], crowd[1], test, truth=crowd[2])
    figures = estimator.evaluation(dataset)
    assert figures["information_loss"] > 0 and 0 <= figures["auxiliary_accuracy"] <= 1
    assert game_of(estimator).informed() == estimator.informed_
    drawn = estimator.generate(crowd[0])
    right = drawn.labels == crowd[2][drawn.instances]
    assert figures["generated_accuracy"] == right.mean()
    unknown = estimator.evaluation(dataset.replace(truth=None))
    assert unknown == estimator.informed_ and set(unknown) < set(figures)
    assert_allclose(estimator.confusion_matrices_.sum(axis=2), 1.0, rtol=1e-5)


def test_a_refit_of_one_shape_equals_a_fresh_fit_without_tracing_again(
    estimator: CrowdInG, crowd: Crowd
) -> None:
    first = results(fitted(estimator, crowd), crowd)
    game = game_of(estimator)
    count = game.passes["generator",].experimental_get_tracing_count()
    exported = estimator.inference_model()
    other = results(fitted(estimator, crowd, seed=1), crowd)
    kept = exported.predict(crowd[0], verbose=0)["probabilities"]
    assert_allclose(kept, np.frombuffer(first[0], kept.dtype).reshape(kept.shape), rtol=1e-5)
    assert other[0] != first[0] and other[2] != first[2]
    assert results(fitted(estimator, crowd), crowd) == first
    assert game_of(estimator) is game
    assert game.passes["generator",].experimental_get_tracing_count() == count == 1


@pytest.mark.parametrize("kill_at", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_killed_fit_ends_where_an_unbroken_one_does(
    estimator: CrowdInG, crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int
) -> None:
    expected = results(fitted(estimator, crowd), crowd)
    run = Run(checkpoints=tmp_path, checkpoint_seconds=0)
    original = module.collapsed

    def killing(logs: Mapping[str, list[float]], *others: Any) -> bool:
        if len(logs["loss"]) == kill_at:
            raise Killed
        return original(logs, *others)

    with monkeypatch.context() as patch:
        patch.setattr(module, "collapsed", killing)
        with pytest.raises(Killed):
            fitted(estimator, crowd, run)
    assert (tmp_path / "discriminator" / "train.npz").exists()
    fitted(estimator, crowd, seed=5)  # whatever the networks hold in between does not matter
    assert results(fitted(estimator, crowd, run), crowd) == expected
    assert results(fitted(estimator, crowd, run), crowd) == expected  # finished stages are restored


def test_dl_cl_is_where_crowding_starts_and_what_is_kept_where_no_epoch_is_better(
    estimator: CrowdInG, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, annotations, truth = crowd
    original, figures = module.validation_figures, []

    def never_better(*arguments: Any, **options: Any) -> dict[str, float]:
        figures.append(original(*arguments, **options))
        return figures[0]

    monkeypatch.setattr(module, "validation_figures", never_better)
    fitted(estimator, crowd)
    assert len(figures) == 4
    assert estimator.best_epoch_ is None
    dl_cl = (
        registry.method("dl_cl")
        .make(**{**estimator.get_params(), "epochs": 0})
        .fit(x, annotations, (x[:18], truth[:18]))
    )
    assert_array_equal(estimator.predict_proba(x), dl_cl.predict_proba(x))
    assert estimator.start_["accuracy"] == np.mean(dl_cl.predict(x[:18]) == truth[:18])
    raises(UsageError, "DL-CL", dl_cl.generate, x)


def test_generated_annotations_are_marked_and_fill_only_empty_cells(
    estimator: CrowdInG, crowd: Crowd
) -> None:
    x, annotations, _ = crowd
    fitted(estimator, crowd)
    generated_crowd = estimator.generate(x, annotations)
    assert generated_crowd.generated.sum() == annotations.shape[0] * annotations.shape[1] - len(
        annotations.labels
    )
    assert_array_equal(generated_crowd.observed().to_dense(), annotations.to_dense())
    alone = estimator.generate(x[:7])
    assert alone.generated.all() and len(alone.labels) == 7 * annotations.num_annotators
    assert_allclose(estimator.predict_annotators(x).sum(axis=2), 1.0, rtol=1e-5)
    assert estimator.predict_annotators(x[:0]).shape == (0, *generated_crowd.shape[1:], 3)
    estimator.set_params(embedding_size=estimator.embedding_size + 1)  # of the next fit
    assert estimator.generate(x[:7]) == alone
    estimator.set_params(embedding_size=estimator.embedding_size - 1)
    assert estimator.generate(x[:0]).shape == (0, annotations.num_annotators)
    raises(DataError, "48 instances", estimator.generate, x, annotations[:5])
    with pytest.raises(DataError, match="by the annotators"):
        estimator.generate(x, Annotations.from_dense(annotations.to_dense()[:, :4]))


def test_generated_annotations_never_reach_an_evaluation(estimator: CrowdInG, crowd: Crowd) -> None:
    x, annotations, _ = crowd
    fitted(estimator, crowd)
    generated_crowd = estimator.generate(x, annotations)
    wrong = annotations.with_generated(
        generated_crowd.instances[generated_crowd.generated],
        generated_crowd.annotators[generated_crowd.generated],
        (generated_crowd.labels[generated_crowd.generated] + 1) % 3,
    )
    assert (
        estimator.score(x, generated_crowd)
        == estimator.score(x, wrong)
        == estimator.score(x, annotations)
    )
    # Nor do they train: instances with generated annotations alone are left out.
    authentic = annotations.select(annotations.instances != 7)
    partly_generated = authentic.with_generated([7, 7], [0, 1], [2, 2])
    data = TrainingData(x, partly_generated, None, np.arange(len(x)))
    split = module.authentic_data(data)
    assert split.rows.tolist() == [*range(7), *range(8, len(x))]
    assert_array_equal(split.annotations.labels, authentic.labels)
    assert_array_equal(split.features, x[split.rows])
    expected = estimator.predict_proba(x)
    estimator.fit(x, wrong, (x[:18], crowd[2][:18]))
    assert_array_equal(estimator.predict_proba(x), expected)
    raises(DataError, "authentic", estimator.fit, x, estimator.generate(x))


@pytest.mark.parametrize("collapses", ["choice", "refit"])
def test_a_refit_tells_how_the_epoch_was_chosen_and_whether_either_collapsed(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, collapses: str
) -> None:
    asked = []

    def train(self: CrowdInG, data: TrainingData, run: Run, epochs: int) -> None:
        stage = run.prefix.rstrip("/")
        asked.append((stage, epochs, len(data.features)))
        self.history_, self.start_, self.n_iter_ = {"loss": [float(epochs)]}, None, epochs
        self.best_epoch_, self.collapsed_ = 2, stage == collapses

    def predict(self: CrowdInG, features: Any) -> Any:
        return np.full((len(features), len(self.classes_)), 1 / len(self.classes_))

    monkeypatch.setattr(CrowdInG, "_train", train)
    monkeypatch.setattr(CrowdInG, "_predict_proba", predict)
    model = CrowdInG(epochs=7)
    with pytest.warns(UserWarning, match="collapsed"):
        model.fit(crowd[0], crowd[1])
    assert HELD_OUT == 0.2
    assert asked == [("choice", 7, 38), ("refit", 3, 48)]
    assert model.history_ == {"loss": [7.0]} and model.n_iter_ == 7 and model.collapsed_
    # A refit that collapses has no validation data to go back by: it ends at the start.
    assert model.best_epoch_ == (2 if collapses == "choice" else None)


WAYS: list[dict[str, Any]] = [{"multiplier": "search"}, {"multiplier": 0.0}, {"two_step": False}]


@pytest.mark.parametrize("changes", WAYS, ids=str)
def test_every_way_to_play_is_finite_and_a_function_of_its_seed(
    crowd: Crowd, changes: dict[str, Any]
) -> None:
    x, annotations, truth = crowd
    model = CrowdInG(**{**ARGUMENTS, "epochs": 2, **changes})
    first = results(model.fit(x, annotations, (x[:18], truth[:18])), crowd)
    assert all(np.isfinite(values).all() for values in model.history_.values())
    if (
        "multiplier" in changes
        # the one that was given, or one of those that were tried: a loss, and losses are negative
        # on the whole
    ):
        tried = model.history_["generator_multiplier"] + model.history_["classifier_multiplier"]
        assert set(tried) == {0.0} if changes["multiplier"] == 0.0 else len(set(tried)) == 4
    assert results(model.fit(x, annotations, (x[:18], truth[:18])), crowd) == first


def test_a_saved_estimator_predicts_and_generates_the_same(
    estimator: CrowdInG, crowd: Crowd, tmp_path: Path
) -> None:
    fitted(estimator, crowd)
    estimator.save(tmp_path / "saved")
    loaded = neucrowd_tf.saving.loading.load(tmp_path / "saved")
    assert_allclose(loaded.predict_proba(crowd[0]), estimator.predict_proba(crowd[0]), rtol=1e-6)
    assert_array_equal(
        loaded.generate(crowd[0]).to_dense(), estimator.generate(crowd[0]).to_dense()
    )
    record = tmp_path / "saved" / "estimator.json"
    text = record.read_text(encoding="utf-8")
    record.write_text(text.replace('"passes":', '"ratio_cap": 10.0, "passes":'), encoding="utf-8")
    with pytest.raises(DataError, match=r"'ratio_cap'.* CHANGELOG\.md has replacements"):
        neucrowd_tf.saving.loading.load(tmp_path / "saved")


def test_the_guard_stops_a_collapse_and_keeps_the_best_epoch(
    crowd: Crowd, estimator: CrowdInG
) -> None:
    # Another rate is another game: after the tests that share one.
    for accuracies, entropies, expected in (
        ([0.9, 0.85], [1.0, 0.9], False),
        ([0.9, 0.75], [1.0, 0.9], True),
        ([0.65], [1.0], True),
        ([0.9, 0.9], [1.0, 0.4], True),
        ([0.9, 0.9], [1.0, float("nan")], True),
    ):
        logs = {"val_accuracy": accuracies, "predicted_class_entropy": entropies}
        assert module.collapsed(logs, {"accuracy": 0.8}, 0.1) == expected
        assert module.collapsed(logs, {"accuracy": 0.8}, 1.0) == np.isnan(entropies[-1])
    with pytest.warns(UserWarning, match="collapsed"):
        fitted(estimator, crowd, classifier_learning_rate=1.0, epochs=8, collapse_drop=0.05)
    assert estimator.collapsed_ and estimator.n_iter_ < 8
    accuracy = estimator.score(crowd[0][:18], crowd[2][:18])
    assert accuracy == max(estimator.start_["accuracy"], *estimator.history_["val_accuracy"])
    estimator.set_params(classifier_learning_rate=1e-4, epochs=3, collapse_drop=0.1)


def test_bad_arguments_and_data_have_one_clear_error(crowd: Crowd) -> None:
    x, annotations, _ = crowd
    for multiplier in ("median", None):
        raises(UsageError, "multiplier", CrowdInG(multiplier=multiplier).fit, x, annotations)
    with pytest.raises(DataError, match="two instances or more"):
        CrowdInG().fit(x[:1], Annotations.from_dense([[0, 1]]), (x[:18], np.zeros(18, int)))
    with pytest.raises(IdentitiesError):
        CrowdInG().fit(x, Annotations.from_votes(annotations.vote_counts()))


def test_estimators_share_networks_of_a_cache_and_start_anew(
    estimator: CrowdInG, crowd: Crowd
) -> None:
    expected = results(fitted(estimator, crowd), crowd)
    cache = NetworkCache()
    others = [CrowdInG(**ARGUMENTS), CrowdInG(**ARGUMENTS)]
    for seed, other in zip((1, 0), others, strict=True):
        with other.reused(cache):
            fitted(other, crowd, seed=seed)
    assert game_of(others[1]) is game_of(others[0]) is not game_of(estimator)
    assert results(others[1], crowd) == expected
