"""What steps ask of a GPU: operations that it has kernels for, and few that run one by one."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow.python.framework import kernels

from neucrowd_tf import Annotations, registry
from neucrowd_tf.cli.runs import plugins
from tests.conftest import Operations
from tests.crowds import blobs

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


def fit(name: str, **options: object) -> None:
    plugins.register(("baselines",))
    features, labels, _ = blobs(40, 2, width=4, annotators=4)
    registry.method(name).make(seed=0, **options).fit(features, Annotations.from_dense(labels))


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
        if names and not any(title.startswith(HOST) for title in names.split()):
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
