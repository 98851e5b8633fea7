"""What steps ask of a GPU: operations that it has kernels for, and few that run one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from tensorflow.python.framework import kernels, op_callbacks

from neucrowd_tf import Annotations, registry
from neucrowd_tf.cli.runs import plugins

Operations = list[tuple[str, list[str]]]
# One for each way in which the steps of a fit are compiled.
METHODS: dict[str, dict[str, Any]] = {
    "crowd_layer": {"epochs": 1},
    "neucrowd": {"epochs": 1},
    "rll": {"epochs": 1},
    "iced": {"rounds": 1},
    "dl_cl_gan": {"gan_epochs": 1, "epochs": 1},
}
# Graphs that run on the host before the steps: pipelines, and the orders of CrowdInG's turns.
HOST = ("Dataset_", "shuffles")


@pytest.fixture
def operations() -> Iterator[Operations]:
    """The operations that run or are traced, each with the names of the graphs that it is in."""
    noted: Operations = []

    def note(kind: str, *_: object, graph: Any = None, **__: object) -> None:
        names = []
        while graph is not None:
            names.append(str(getattr(graph, "name", "")))
            graph = getattr(graph, "outer_graph", None)
        noted.append((kind, names))

    op_callbacks.add_op_callback(note)
    yield noted
    op_callbacks.remove_op_callback(note)


def fit(name: str, **options: object) -> None:
    plugins.register(("baselines",))
    rng = default_rng(0)
    truth = np.arange(40) % 2
    features = rng.normal(size=(40, 4)) + truth[:, None]
    labels = np.where(rng.random((40, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    crowd = Annotations.from_dense(labels)
    registry.method(name).make(seed=0, **options).fit(features, crowd)


def _devices(kind: str) -> set[str]:
    return {kernel.device_type for kernel in kernels.get_registered_kernels_for_op(kind).kernel}


@pytest.mark.parametrize("name", METHODS)
def test_no_operation_of_a_step_has_a_kernel_for_processors_alone(
    name: str, operations: Operations
) -> None:
    assert _devices("RandomIndexShuffle") == {"CPU"} and "GPU" in _devices("MatMul")
    fit(name, **METHODS[name])
    steps = set()
    for kind, names in operations:
        if names and not any(title.startswith(HOST) for title in names):
            steps.add(kind)
    assert "MatMul" in steps
    assert not {kind for kind in steps if _devices(kind) == {"CPU"}}


def test_a_round_of_iced_runs_few_operations_one_by_one(operations: Operations) -> None:
    eager = []
    for rounds in (1, 2):
        operations.clear()
        fit("iced", rounds=rounds)
        eager.append(sum(not names for _, names in operations))
    assert 0 < eager[1] - eager[0] <= 12
