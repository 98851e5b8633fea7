"""Fits in several threads change nothing of the process."""

from __future__ import annotations

import ast
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from neucrowd_tf.aggregation import Glad
from neucrowd_tf.errors import quietly, warn
from neucrowd_tf.methods.auto.estimator import Auto
from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from tests.test_common import crowd_data

# Changes of the whole process, by the names of what makes them; commands may.
CHANGES = (
    *("catch_warnings", "simplefilter", "filterwarnings", "seterr", "set_random_seed"),
    *("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"),
)


def settings() -> tuple[object, ...]:
    """Returns what belongs to the whole process."""
    libraries = sorted((each["filepath"], each["num_threads"]) for each in threadpool_info())
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    return list(warnings.filters), np.geterr(), libraries, state


@pytest.mark.filterwarnings("ignore")
def test_six_threads_leave_filters_and_threads_as_they_are() -> None:
    features, crowd, *_ = crowd_data(2)
    TwoStageClassifier("ds").fit(features, crowd)  # imports
    before, errors = settings(), []

    def work() -> None:
        try:
            for _ in range(3):
                TwoStageClassifier("ds").fit(features, crowd)
                Glad(max_iter=3).fit(crowd)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and settings() == before
    Auto(("mv_lr", "ds_lr"), folds=2, jobs=2).fit(features, crowd)
    assert settings() == before


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
