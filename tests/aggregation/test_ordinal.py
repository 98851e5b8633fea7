"""Ordered classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from scipy.optimize import approx_fprime
from scipy.stats import spearmanr

from neucrowd_tf.aggregation import OrdinalConsensus, ordinal
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.cli.commands import call
from neucrowd_tf.cli.commands.aggregate import ordered_method
from tests.crowds import Labelled, array_of


def rated(seed: int = 0, items: int = 200) -> Labelled:
    """Returns six levels by 15 annotators with bias and spread, four an item, and the truth."""
    rng = default_rng(seed)
    score, cuts = rng.normal(size=items), array_of("-1.2 -0.6 0.0 0.6 1.2")
    noise = rng.normal(size=(items, 15)) * np.exp(rng.normal(size=15) * 0.5)
    dense = np.searchsorted(cuts, score[:, None] + rng.normal(size=15) * 0.5 + noise)
    np.put_along_axis(dense, np.argsort(rng.random((items, 15)), axis=1)[:, 4:], -1, axis=1)
    return Annotations.from_dense(dense, num_classes=6), np.searchsorted(cuts, score)


def test_nearer_than_the_median_and_gold_labels_are_kept() -> None:
    crowd, truth = rated()
    gold = np.where(np.arange(200) < 10, 5 - truth, -1)
    model = OrdinalConsensus().fit(crowd, gold)
    assert model.chosen_ == "latent score" and (model.labels_[:10] == gold[:10]).all()
    votes = crowd.vote_counts()
    median = ordinal.medians(votes / votes.sum(axis=1, keepdims=True))
    ours, theirs = (np.abs(one - truth)[10:].mean() for one in (model.labels_, median))
    assert ours < theirs - 0.1
    assert np.allclose(model.probas_.sum(axis=1), 1.0)


def test_gradient() -> None:
    rng = default_rng(0)
    theta = np.r_[-1.0, 0.1, 0.2, rng.normal(size=6) * 0.2]
    counts = rng.random((3, 4, len(ordinal.NODES))) * (np.abs(ordinal.NODES) < 2)
    _, gradient = ordinal._loss(theta, counts)
    numeric = approx_fprime(theta, lambda t: ordinal._loss(t, counts)[0], 1e-6)
    assert gradient == pytest.approx(numeric, rel=1e-3, abs=1e-3)


def test_the_command_writes_expected_values(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    crowd, truth = rated(1, 60)
    crowd.to_frame().to_csv(tmp_path / "ratings.csv", index=False)
    output = tmp_path / "labels.csv"
    flags = [f"--annotations={tmp_path / 'ratings.csv'}", f"--output={output}", "--scale=ordinal"]
    assert call("aggregate", flags) == 0
    values = pd.read_csv(output)["expected_value"]
    assert values.between(0, 5).all() and "of classes 0 < 1" in capsys.readouterr().err
    assert call("aggregate", [*flags, "--method=glad"]) == 2
    assert call("aggregate", [*flags, "--ties=first"]) == 2
    annotators = tmp_path / "annotators.csv"
    assert call("aggregate", [*flags, "--method=median", f"--annotators={annotators}"]) == 0
    table, means = pd.read_csv(output), crowd.to_frame().groupby("task")["label"].mean()
    ours, plain = (
        spearmanr(x, truth[table["task"].to_numpy(int)])[0]
        for x in (table["expected_value"], means)
    )
    assert ours > plain + 0.01 and np.abs(table["expected_value"] - means).max() < 2
    assert call("aggregate", [*flags[:2], "--method=median"]) == 2
    high = crowd.labels.max(initial=0)
    assert 0 < pd.read_csv(annotators)["bias"].abs().max() < high


def test_the_median_stays_unless_another_method_is_surely_nearer() -> None:
    crowd, _ = rated(2, 30)
    model = OrdinalConsensus().fit(crowd)
    assert model.chosen_ == "median" and min(model.distances_, key=model.distances_.get) != "median"
    model = OrdinalConsensus(only="latent score").fit(crowd)
    assert model.chosen_ == "latent score" and not model.distances_


def test_gold_labels_choose_the_method() -> None:
    rng = default_rng(0)
    truth = rng.integers(3, size=150)
    # All name the class above the true one, and two of five the right one.
    dense = np.tile(np.minimum(truth + 1, 2)[:, None], 5)
    dense[:, :2] = truth[:, None]
    right = rng.random((150, 5)) < 0.9
    crowd = Annotations.from_dense(np.where(right, dense, rng.integers(3, size=(150, 5))))
    gold = np.where(np.arange(150) < 30, truth, -1)
    choice = ordinal.nearest_to_gold(crowd, gold)
    distances = {
        name: np.abs(OrdinalConsensus(only=name).fit(crowd).labels_ - truth)[:30].mean()
        for name in ordinal.BY_GOLD
    }
    assert choice != "median" and distances[choice] == min(distances.values())
    none = np.full(150, -1)
    assert ordinal.nearest_to_gold(crowd, none) == OrdinalConsensus().fit(crowd).chosen_
    assert infer(crowd, "ordinal", gold=gold).base.chosen_ == choice


def test_two_labels_are_not_taken_for_the_lower_one() -> None:
    rng = default_rng(0)
    truth = rng.integers(0, 5, 200)
    dense = np.clip(np.rint(truth[:, None] + rng.normal(0, 0.8, (200, 2))), 0, 4).astype(int)
    crowd = Annotations.from_dense(dense, num_classes=5)
    result = infer(crowd, "ordinal")
    assert result.model.chosen_ == "median" and (result.certainty.num_tied == 1).all()
    assert abs((result.labels - dense.mean(axis=1)).mean()) < 0.15
    names = [str(name) for name in crowd.annotator_names.tolist()]
    family = infer(crowd, "ordinal", families=["|".join(names)], models=())
    assert np.array_equal(family.labels, ordinal.medians(family.model.probas_))


def test_the_line_says_why_a_method_is_used_that_is_not_the_nearest() -> None:
    crowd, _ = rated(2, 30)
    model = OrdinalConsensus().fit(crowd)
    assert "(none is surely nearer)" in ordered_method(model, crowd)
    model.distances_ = {name: float(name != model.chosen_) for name in model.distances_}
    assert "surely" not in ordered_method(model, crowd)
