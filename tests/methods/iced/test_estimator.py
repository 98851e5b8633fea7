"""ICED as an estimator: results, histories, saving, resuming, user's networks, images, sparse
crowds and awkward data.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import neucrowd_tf
from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError
from neucrowd_tf.methods.iced import ICED, score_rounds
from neucrowd_tf.methods.iced.estimator import certainty_groups
from neucrowd_tf.methods.iced.inference import infer_labels
from tests.crowds import Crowd
from tests.processes import python

SMALL: dict[str, Any] = {
    "encoder": {"hidden_units": (16, 8)},
    "annotation_neighbours": 15,
    "autoencoder_epochs": 3,
    "warm_up_epochs": 3,
    "rounds": 4,
    "batch_size": 16,
    "learning_rate": 3e-3,
}


def task(
    sizes: tuple[int, ...] = (120, 15), seed: int = 0, rate: float = 1.0, low: float = 0.55
) -> Crowd:
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = 1.6 * np.eye(6)[: len(sizes)]
    x = (centres[truth] + 0.5 * rng.normal(size=(len(truth), 6))).astype(np.float32)
    crowd = simulation.simulate(
        truth, simulation.class_skill_annotators(7, len(sizes), seed, low=low), seed, rates=rate
    )
    return x, crowd, truth


@pytest.fixture(scope="module")
def fitted() -> tuple[ICED, np.ndarray, Annotations, np.ndarray]:
    x, crowd, truth = task()
    return ICED(**SMALL).fit(x, crowd), x, crowd, truth


def test_it_learns_the_rare_class_and_improves_the_labels(fitted) -> None:
    model, x, _, truth = fitted
    right = model.predict(x) == truth
    assert right[truth == 1].mean() > 0.8 and right[truth == 0].mean() > 0.8
    scores = score_rounds(model, truth)
    assert scores["label_accuracy"].iloc[-1] > scores["label_accuracy"].iloc[0] + 0.05
    assert np.isfinite(scores["label_accuracy"]).all()


def test_histories_agree_with_each_other(fitted) -> None:
    model, x, _, truth = fitted
    shapes = model.labels_history_.shape, model.candidates_history_.shape
    assert shapes == ((5, len(x)), (4, len(x)))
    assert (model.labels_ == model.labels_history_[-1]).all()
    assert (model.labels_ == model.probas_.argmax(axis=1)).all()
    for candidates, new in zip(model.candidates_history_, model.synthetic_history_, strict=True):
        counts = np.bincount(candidates, minlength=2)
        assert new.sum() == 0 or (counts + new).tolist() == [counts.max()] * 2
    assert model.confusion_matrices_.sum(axis=2) == pytest.approx(np.ones((7, 2)))
    assert model.n_iter_ == 4 and not model.converged_
    assert len(model.history_["loss"]) == 4
    scores = score_rounds(model, truth)
    right = (model.labels_history_[2] == truth).mean()
    assert scores["label_accuracy"].iloc[2] == pytest.approx(right)
    new = model.candidates_history_[1] == 1
    assert scores["candidate_purity"].iloc[2] == pytest.approx((truth[new] == 1).mean())
    assert scores["synthetic_1"].iloc[2] == model.synthetic_history_[1][1]
    known = np.arange(len(truth)) % 3 == 0
    partly = score_rounds(model, np.where(known, truth, -1))
    right = model.labels_history_[2][known] == truth[known]
    assert partly["label_accuracy"].iloc[2] == pytest.approx(right.mean())
    by_class = [right[truth[known] == code].mean() for code in (0, 1)]
    assert partly["balanced_label_accuracy"].iloc[2] == pytest.approx(np.mean(by_class))
    assert partly["candidate_purity"].iloc[2] == pytest.approx((truth[new & known] == 1).mean())


def test_images_and_a_user_network() -> None:
    import keras

    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [40, 8])
    x = rng.normal(size=(48, 16, 15, 1)).astype(np.float32)
    x[truth == 1, 4:9] += 2
    crowd = simulation.simulate(truth, simulation.class_skill_annotators(5, 2, 0), 0)
    model = ICED(**{**SMALL, "rounds": 1}).fit(x, crowd)
    assert model.decoder_.output_shape == (None, 16, 15, 1)
    assert model.predict_proba(x).shape == (48, 2)

    inputs = keras.Input((16, 15, 1))
    mine = keras.Model(
        inputs, keras.layers.Dense(5, activation="tanh")(keras.layers.Flatten()(inputs))
    )
    before = [w.copy() for w in mine.get_weights()]
    model = ICED(**{**SMALL, "rounds": 1, "encoder": mine}).fit(x, crowd)
    assert model.transform(x).shape == (48, 5)
    assert all(np.array_equal(a, b) for a, b in zip(before, mine.get_weights(), strict=True))
    with pytest.raises(DataError, match="encoder: expected a network from"):
        ICED(**{**SMALL, "encoder": keras.Sequential([inputs])}).fit(x, crowd)


def test_no_rounds_is_the_warm_up_alone() -> None:
    x, crowd, truth = task((20, 6))
    model = ICED(**{**SMALL, "rounds": 0}, warm_up="top").fit(x, crowd)
    assert model.labels_history_.shape == (1, 26) and model.n_iter_ == 0
    assert model.candidates_history_.shape == (0, 26)
    assert model.predict_proba(x).shape == (26, 2)
    dataset = CrowdDataset("t", x, crowd, Split(x, truth, np.arange(26)), truth=truth)
    scores = model.evaluation(dataset)
    mix = model.certainty_classes_
    assert mix.sum() == 26 and mix.shape[1] == 2
    names = {f"group_{g + 1}{end}" for g in range(len(mix)) for end in ("", "_largest")}
    without = model.evaluation(dataclasses.replace(dataset, truth=None))
    assert set(without) == {"warm_up_samples", "permuted"} | names
    assert scores["group_1"] == mix[0].sum()
    assert scores["group_1_largest"] == mix[0].max() / mix[0].sum()
    assert "label_first" not in scores
    assert scores["label_original"] == scores["label_final"] == (model.labels_ == truth).mean()
    groups = certainty_groups(model.certainty_)
    assert scores["warm_up_samples"] == (groups <= 3).sum()
    counts = np.bincount(model.labels_, minlength=2)
    assert scores["rounds"]["inferred_shares"] == [(counts / 26).tolist()]


def test_the_printed_factors_one_by_one() -> None:
    x, crowd, _ = task((20, 6))
    majority = majority_labels(crowd.vote_counts(), "random", 0)
    few = {**SMALL, "rounds": 2, "autoencoder_epochs": 1}
    printed = {"candidates": "inferred", "prior": "update", "em": "hard", "warm_up": "groups"}
    first = ICED(**few, **printed).fit(x, crowd)
    assert np.array_equal(first.candidates_history_[0], majority)
    assert np.array_equal(first.candidates_history_[1], first.labels_history_[1])
    hard = infer_labels(crowd.one_hot(), 2, prior="update", em="hard", smoothing=1.0)
    assert np.array_equal(first.labels_history_[0], hard.labels)


def test_registered_methods() -> None:
    assert registry.method("iced").make(seed=3).get_params()["candidates"] == "classifier"
    # Sections 2.3 to 2.5 and table 3's 2 x 3 epochs.
    printed = {
        "candidates": "inferred", "interpolation": "printed", "prior": "update", "em": "hard",
        "smoothing": 0.0, "warm_up": "groups", "warm_up_epochs": 6, "rounds": 2,
    }  # fmt: skip
    literal = registry.method("iced_literal").make(rounds=2).get_params()
    assert {name: literal[name] for name in printed} == printed
    # Sections 2.4, 3.2 and 3.3 and figure 2: the prior is uniform.
    uniform = registry.method("iced_printed").make(rounds=2).get_params()
    assert uniform == literal | {"prior": "uniform"}
    assert neucrowd_tf.methods.iced.ICED is ICED


FIT = """
import numpy as np, tensorflow as tf
tf.config.experimental.enable_op_determinism()
from neucrowd_tf import ICED
from neucrowd_tf.datasets.bundled import load_cancer
crowd = load_cancer(seed=0)
model = ICED(rounds=1, autoencoder_epochs=1, warm_up_epochs=1, seed=0)
model.fit(crowd.features, crowd.annotations, validation=crowd.validation_pair())
np.save("fitted.npy", model.predict_proba(crowd.test.features))
"""


def test_fit_has_the_predictions_of_the_command(tmp_path: Path) -> None:
    """As the docstring says, with deterministic operations, to the digits of predictions.csv."""
    root = Path(neucrowd_tf.__file__).parents[1]
    flags = "--dataset=breast_cancer --method=iced --seed=0 --output_dir=out"
    few = "--hparam rounds=1 --hparam autoencoder_epochs=1 --hparam warm_up_epochs=1"
    program = [str(root / "run_experiment.py"), *flags.split(), *few.split()]
    for command in (["-c", FIT], program):
        python(root, *command, cwd=tmp_path, check=True)
    (path,) = tmp_path.glob("out/**/predictions.csv")
    written = pd.read_csv(path).filter(like="p_").to_numpy()
    np.testing.assert_allclose(np.load(tmp_path / "fitted.npy"), written, rtol=0, atol=2e-9)
