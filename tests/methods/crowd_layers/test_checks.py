"""What every head must do, and that the checks of it fail where it does not."""

from __future__ import annotations

from typing import Any, ClassVar

import keras
import numpy as np
import pytest
from keras import ops

from neucrowd_tf.methods.crowd_layers.anno_reg import AnnoReg
from neucrowd_tf.methods.crowd_layers.common.checks import check_finds_random_annotator, check_head
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import AnnotatorHead, of_annotators, of_instances
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from tests.methods.crowd_layers.heads import HEADS, PAIRS

FORMULAS = {
    "MW": lambda p, matrix: p @ matrix,
    "anno_reg": lambda p, matrix: np.log(
        p @ (np.exp(matrix) / np.exp(matrix).sum(axis=1, keepdims=True))
    ),
    "trace_reg": lambda p, matrix: np.log(
        p @ (np.log1p(np.exp(matrix)) / np.log1p(np.exp(matrix)).sum(axis=1, keepdims=True))
    ),
    "doctors": lambda p, kernel, bias: p @ kernel + bias,
}


# Others take the features, or another layer's output, too.
@pytest.mark.parametrize("name", [name for name in HEADS if name not in (*PAIRS, "ccc")])
def test_heads_of_this_project(name):
    check_head(HEADS[name](), FORMULAS.get(name))


@pytest.mark.parametrize("estimator", [CrowdLayer, AnnoReg])
def test_layers_of_this_project(estimator):
    check_finds_random_annotator(estimator, annotator_learning_rate=0.05)


class Scaled(AnnotatorHead):
    """Scales the probabilities; what is wrong with it is said by `fault`."""

    fault: ClassVar[str] = ""

    def build(self, input_shape: Any) -> None:
        self.scale = self.annotator_weight("scale", (), "ones")

    def logits(self, inputs: Any, cells: Any) -> Any:
        scale = ops.stop_gradient(self.scale) if self.fault == "gradient" else self.scale
        scale = scale[:1] + 0.0 * scale if self.fault == "first" else scale
        if cells is not None and self.fault == "cells":
            cells = cells[0], ops.zeros_like(cells[1])
        inputs = ops.log(inputs) if self.fault == "finite" else inputs
        return of_annotators(scale[:, None], cells) * of_instances(inputs, cells)


class Forgetful(Scaled):
    """Says that it has other annotators than it has."""

    def get_config(self) -> dict[str, Any]:
        return {"num_annotators": 2}


@pytest.mark.parametrize("fault", ["gradient", "first", "finite", "cells", "config", "formula", ""])
def test_a_fault_is_found(fault, monkeypatch):
    monkeypatch.setattr(Scaled, "fault", fault)
    keras.utils.set_random_seed(0)
    power = 2 if fault == "formula" else 1
    formula = None if fault == "first" else lambda p, scale: scale * p**power
    if not fault:
        return check_head(Scaled(3), formula)
    kind = Forgetful if fault == "config" else Scaled
    with pytest.raises((AssertionError, ValueError)):
        check_head(kind(3), None if fault == "finite" else formula)


def test_a_layer_that_learns_no_annotator_is_found():
    with pytest.raises(AssertionError, match="mean diagonals"):
        check_finds_random_annotator(CrowdLayer, annotator_learning_rate=0.0)


class Sharpness(AnnotatorHead):
    """Logits are t_k log p, with t_k > 0: at p = (1, 0, 0) any t_k says what is seen."""

    def build(self, input_shape: Any) -> None:
        self.sharpness = self.annotator_weight("sharpness", (), "ones")

    def logits(self, inputs: Any, cells: Any) -> Any:
        t = of_annotators(ops.softplus(self.sharpness)[:, None], cells)
        return t * of_instances(ops.log(ops.maximum(inputs, 1e-12)), cells)


class AtCorners(CrowdLayerBase):
    def _head(self, num_annotators: int, num_classes: int) -> Any:
        return Sharpness(num_annotators)


class OverInstances(CrowdLayerBase):
    sees_instances: ClassVar[bool] = True

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        return Sharpness(num_annotators)


def test_corners_that_say_nothing_are_found():
    check_head(Sharpness(3))
    with pytest.raises(AssertionError, match=r"and 0\.33 in its labels.*sees_instances"):
        check_finds_random_annotator(AtCorners)
    check_finds_random_annotator(OverInstances)
