"""Whether a network was trained: its validation figures beside those after one step.

A falling loss proves nothing, because a network of random weights can lower it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import tensorflow as tf

from neucrowd_tf.declare.types import Network, Tensor
from neucrowd_tf.training.compiled_steps import compiled_steps
from neucrowd_tf.training.loop import judged
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import model_variables, note_starts, restored


def figures_after_one_step(
    model: Network,
    batches: Callable[[int], Tensor],
    evaluate: Callable[[], Mapping[str, float]],
    run: Run,
) -> dict[str, float]:
    """Returns the validation figures of a copy that has taken the first training step only.

    The model and its optimizers are afterwards as before.

    Args:
        model: compiled, with its starting weights.
        batches: see `train`.
        evaluate: returns the validation figures of the model's present weights.
        run: of the fit.
    """
    with run.scope():
        note_starts(model)  # builds the optimizers, whose variables a step would make
    with restored(model_variables(model)):
        compiled_steps(model, run.strategy)(iter(batches(0)), tf.constant(1))
        return dict(judged(model, evaluate))


def beats_one_step(trained: float, one_step: float, size: int) -> bool | None:
    """Returns whether a validation figure rose by more than a standard error since the first step.

    None if the figure is undefined, as the AUC of one class is.

    Args:
        trained: accuracy or AUC of the chosen epoch.
        one_step: that of the copy after one step.
        size: validation instances.
    """
    if math.isnan(one_step):
        return None
    return trained - one_step > math.sqrt(one_step * (1.0 - one_step) / size)
