"""Fits in several threads change nothing of the process."""

from __future__ import annotations

import ast
import random
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from neucrowd_tf import errors
from neucrowd_tf.aggregation import Glad
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import quietly, warn
from neucrowd_tf.methods.auto.estimator import Auto
from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from tests.test_common import crowd_data, make

# Changes of the whole process, by the names of what makes them; commands may.
CHANGES = (
    *("catch_warnings", "simplefilter", "filterwarnings", "seterr", "set_random_seed"),
    *("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"),
)


def settings() -> tuple[object, ...]:
    """Returns what belongs to the whole process."""
    libraries = sorted((each["filepath"], each["num_threads"]) for each in threadpool_info())
    states = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    return list(warnings.filters), np.geterr(), libraries, states


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Lets threads change places so often that one interrupts the other nearly everywhere."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.filterwarnings("ignore")
def test_six_threads_leave_filters_and_threads_as_they_are(frequent_switches: None) -> None:
    features, crowd, *_ = crowd_data(2)
    TwoStageClassifier("ds").fit(features, crowd)  # imports
    before, raised = settings(), []

    def work() -> None:
        try:
            for _ in range(3):
                TwoStageClassifier("ds").fit(features, crowd)
                Glad(max_iter=3).fit(crowd)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not raised and settings() == before
    Auto(("mv_lr", "ds_lr"), folds=2, jobs=2).fit(features, crowd)
    assert settings() == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        "ds_lr",
        *(pytest.param(name, marks=pytest.mark.ci) for name in ("auto", "iced")),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("ccc", "crowding", "neucrowd")),
    ],
)
def test_one_thread_at_a_time_is_within_what_changes_filters(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Every `catch_warnings` that a fit meets, scikit-learn's own ones, is within the lock."""
    features, crowd, truth, _, _ = crowd_data(3)
    enter, outside, inside = warnings.catch_warnings.__enter__, [], []

    def entered(block: warnings.catch_warnings) -> object:
        frames = traceback.extract_stack()
        if not any("importlib" in frame.filename for frame in frames):
            (inside if errors._CHECKS._is_owned() else outside).append(frames[-2])
        return enter(block)

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", entered)
    model = make(registry.method(name)).fit(features, crowd)
    model.score(features, crowd.class_names[truth])
    assert inside and not outside


def test_a_fit_draws_from_no_random_state_of_the_process() -> None:
    features, crowd, *_ = crowd_data(2)
    keras.utils.set_random_seed(3)

    def base(shape: tuple[int, ...], classes: int) -> keras.Model:
        inputs = keras.Input(shape)
        hidden = keras.layers.Dropout(0.2)(keras.layers.Dense(4)(inputs))
        return keras.Model(inputs, keras.layers.Dense(classes)(hidden + keras.random.normal((4,))))

    expected = random.random(), float(keras.random.normal(()))
    keras.utils.set_random_seed(3)
    make(registry.method("crowd_layer")).set_params(base=base, epochs=1).fit(features, crowd)
    assert (random.random(), float(keras.random.normal(()))) == expected


def test_what_is_fitted_quietly_warns_of_nothing_in_its_own_thread_alone() -> None:
    inside, outside = threading.Event(), threading.Event()

    def work() -> None:
        with quietly():
            inside.set()
            outside.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    with pytest.warns(UserWarning, match="a line"):
        warn("a line")
    outside.set()
    thread.join()
    with warnings.catch_warnings(), quietly():
        warnings.simplefilter("error")
        warn("a line")


def test_nothing_outside_commands_changes_the_process(repository: Path) -> None:
    for package in ("neucrowd_tf", "baselines", "data"):
        for path in (repository / package).rglob("*.py"):
            if "cli" in path.relative_to(repository).parts:
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not names.intersection(CHANGES), path
