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

FACTORS = {
    "printed_loss": "the discriminator's loss as in the paper's eq. 4",
    # Points of the authors' code.
    "released_loss": "D's loss is the binary cross-entropy of the given entry on both sides, the"
    " generated one times .9",
    "released_reward": "the generator's reward is -log D, and Q's term has mu of its own",
    "released_networks": "the released code's generator, discriminator and auxiliary network",
    "l1_outputs": "an L1 penalty of D's outputs",
    "weight_decay": "a weight decay of .01 for D and Q in the game, and a rate of 1e-4 before it",
    "informed_by_both": "Q trained on authentic annotations too",
    "unpretrained": "a generator that is not trained before the game",
    "uncapped": "importance ratios without bounds",
    "nats": "`threshold` is an entropy in nats",
    "same_draws": "the same draws for eqs. 5 and 6",
    "dropout": "the classifier's dropout is on in the game",
    "batches": "turns of all networks in each batch of instances",
    "released_start": "DL-CL from 2 I by Adam at 1e-2, restarted each epoch, the best of 40",
}
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


@estimator
class ControlledCrowdInG(CrowdInG):
    """CrowdInG with other forms of single points, each a game or a step of the fit."""

    factors: Annotated[
        Sequence[str],
        many(one_of(*FACTORS), "factors", 0),
        "; ".join(f'"{name}": {meaning}' for name, meaning in FACTORS.items()) + ".",
    ] = ()

    def _game_class(self) -> type[Game]:
        # The game of "same_draws" is `SameDraws`; in the order of FACTORS they override each other.
        names = [name.title().replace("_", "") for name in FACTORS if name in self.factors]
        bases = [getattr(crowding_released, name) for name in names if name != "ReleasedStart"]
        return type("ControlledGame", (*bases, Game), {})

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
