"""Shared fixtures: where the real data lies, and quiet TensorFlow."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Tests run in as many processes as there are cores: more threads would wait for each other.
for _threads in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(_threads, "1")
ROOT = Path(__file__).resolve().parent.parent
Operations = list[tuple[str, str]]  # each with the names of the graphs that it is in
INFERRED: dict[str, list[Any]] = {}  # crowds and their labels, by what fitted them


# Longest first, as a file is made by one process: the last to begin should not be the last to end.
LONGEST = tuple(
    f"tests/{name}.py"
    for name in (
        *("cli/runs/test_resume", "reproduction/test_suite_kill", "test_documents", "test_digests"),
        *("test_common", "cli/runs/test_machines", "methods/crowding/test_estimator"),
        *("training/test_tables", "training/test_own_network", "training/test_parity"),
        *("cli/runs/test_pool", "methods/auto/test_auto", "reproduction/test_claims"),
    )
)


# Functions that take more than .8 s are `ci`, of more than 10 s `slow`: a mark and a name per line.
LINES = (ROOT / "tests" / "marks.txt").read_text(encoding="utf-8").splitlines()
MARKS = {name: mark for mark, name in map(str.split, LINES)}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {ROOT / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))
    for item in items:
        if mark := MARKS.get(item.nodeid.partition("[")[0]):
            item.add_marker(mark)


def pytest_collection_finish() -> None:
    """What was imported stays: looking through TensorFlow's million objects for garbage, again and
    again while networks are traced, takes a tenth of the tests' time. So does Grappler, which tiny
    fits never pay back; commands in processes of their own have it.
    """
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """A command that a test calls in this process leaves signals as they were."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number in numbers:
        signal.signal(number, before[number])


@pytest.fixture
def inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands infer the labels of equal crowds once."""
    from neucrowd_tf.certainty import inference

    fit = inference.fit_with_families

    def remembered(make, crowd, once, gold=None, *alone):
        fits = INFERRED.setdefault(
            repr((make(), once, None if gold is None else gold.tolist())), []
        )
        if not (models := [model for other, model in fits if other == crowd]):
            models = [fit(make, crowd, once, gold, *alone)]
            fits.append((crowd, *models))
        return models[0]

    monkeypatch.setattr(inference, "fit_with_families", remembered)


@pytest.fixture
def operations() -> Iterator[Operations]:
    """The operations that run or are traced, each with the names of the graphs that it is in."""
    from tensorflow.python.framework import op_callbacks

    noted: Operations = []

    def note(kind: str, *_: object, graph: Any = None, **__: object) -> None:
        names = []
        while graph is not None:
            names.append(getattr(graph, "name", "a graph"))
            graph = getattr(graph, "outer_graph", None)
        noted.append((kind, " ".join(names)))

    op_callbacks.add_op_callback(note)
    yield noted
    op_callbacks.remove_op_callback(note)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the published datasets; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("NEUCROWD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set NEUCROWD_DATA")
    return folder


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command, which ends with an exit code; returns what it printed."""
    from neucrowd_tf.cli.commands import call  # after the variables above are set

    def printed(name: str, flags: Sequence[str], code: int = 0):
        assert call(name, flags) == code
        return capsys.readouterr()

    return printed
