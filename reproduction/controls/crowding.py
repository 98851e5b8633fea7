"""CrowdInG as the paper and as its authors' code have it, and single points of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from neucrowd_tf.crowding.estimator import CrowdInG
from neucrowd_tf.crowding.game import Game
from neucrowd_tf.crowding.variants import register
from neucrowd_tf.declare import estimator, many, one_of
from neucrowd_tf.methods.crowd_layer import CrowdLayer
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from reproduction.controls import crowding_released
from reproduction.controls.crowding_released import released_start

# Each is a class of `crowding_released`, in the order in which they override each other.
FACTORS = (
    "printed_loss",
    # Points of the authors' code.
    *("released_loss", "released_reward", "released_networks", "l1_outputs", "weight_decay"),
    *("informed_by_both", "unpretrained", "uncapped", "nats", "same_draws", "dropout", "batches"),
    "released_start",
)
# The code has neither rates nor lambda, mu, the ratios' cap, the weight of the L1 penalty or the
# numbers of inner updates, here ours but for rates and mu, which validation images chose.
RELEASED: dict[str, Any] = {
    "factors": (
        *("released_loss", "released_reward", "released_networks", "l1_outputs", "weight_decay"),
        *("informed_by_both", "unpretrained", "nats", "same_draws", "dropout", "batches"),
        "released_start",
    ),
    "embedding_size": 60,
    "batch_size": 1024,
    "epochs": 40,
    "averaging": 0.0,
    "collapse_drop": 1.0,
    "multiplier": 0.0,
    # In the code the generator's rate is fifty times the classifier's.
    "discriminator_learning_rate": 3e-4,
    "generator_learning_rate": 3e-3,
    "classifier_learning_rate": 6e-5,
}
PRINTED: dict[str, Any] = {
    "factors": ("printed_loss", "uncapped", "nats", "same_draws"),
    "multiplier": "search",
    "epochs": 40,
    "averaging": 0.0,
    "collapse_drop": 1.0,
    "generator_learning_rate": 3e-4,
    "classifier_learning_rate": 1e-4,
    "discriminator_learning_rate": 3e-4,
}


def _changed(factor: str) -> type[Any]:
    """Returns the class of a factor: that of "same_draws" is `SameDraws`."""
    changed: type[Any] = getattr(crowding_released, factor.title().replace("_", ""))
    return changed


def _meaning(factor: str) -> str:
    summary = (_changed(factor).__doc__ or "").split("\n")[0]
    return f'"{factor}": {summary.rstrip(".")}'


@estimator
class ControlledCrowdInG(CrowdInG):
    """CrowdInG with other forms of single points, each a game or a step of the fit."""

    factors: Annotated[
        Sequence[str], many(one_of(*FACTORS), "factors", 0), "; ".join(map(_meaning, FACTORS)) + "."
    ] = ()

    def _game_class(self) -> type[Game]:
        games = [_changed(name) for name in FACTORS[:-1] if name in self.factors]
        return type("ControlledGame", (*games, Game), {})

    def _pretrain(self, data: TrainingData, run: Run) -> Any:
        held = data.validation
        self._judged = None if held is None else (held[0], self.classes_[held[1]])
        return super()._pretrain(data, run)

    def _dl_cl(self) -> CrowdLayer:
        if "released_start" in self.factors:
            return released_start(self, self._judged)
        return super()._dl_cl()


register("crowding_control", "CrowdInG with single points changed", ControlledCrowdInG)
register("crowding_printed", "CrowdInG as the paper has it", ControlledCrowdInG, **PRINTED)
register("crowding_released", "CrowdInG as its authors' code", ControlledCrowdInG, **RELEASED)
