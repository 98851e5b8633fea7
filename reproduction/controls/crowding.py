"""CrowdInG as the paper and as its authors' code have it, and single points of both."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare.declarations import estimator, many, number, one_of
from neucrowd_tf.declare.picking import entries_of, mapped
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Fields, Network
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.crowding.estimator import CrowdInG
from neucrowd_tf.methods.crowding.game import Game
from neucrowd_tf.methods.crowding.variants import COMMON
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from reproduction.controls import crowding_controls, crowding_released
from reproduction.controls.crowding_released import released_start

# Classes of `crowding_released` and `crowding_controls`; the presets of released code and paper.
_SETTINGS = settings_in(Path(__file__).with_suffix(".toml"))
FACTORS: tuple[str, ...] = _SETTINGS["factors"]
RELEASED: Fields = _SETTINGS["released"]
PRINTED: Fields = _SETTINGS["printed"]


def _changed(factor: str) -> type:
    """Returns the class of a factor: that of "same_draws" is `SameDraws`."""
    games: dict[str, type] = {**vars(crowding_released), **vars(crowding_controls)}
    return games[factor.title().replace("_", "")]


def _meaning(factor: str) -> str:
    summary = (_changed(factor).__doc__ or "").split("\n")[0]
    return f'"{factor}": {summary.rstrip(".")}'


@estimator
class ControlledCrowdInG(CrowdInG):
    """CrowdInG with other forms of single points, each a game or a step of the fit."""

    factors: Annotated[
        Sequence[str], many(one_of(*FACTORS), "factors", 0), "; ".join(map(_meaning, FACTORS)) + "."
    ] = ()
    held_out: Annotated[
        float, number(least=0, below=1), "share of annotations withheld from the fit, to measure D."
    ] = 0.0

    def _game_class(self) -> type[Game]:
        games = [_changed(name) for name in FACTORS[:-1] if name in self.factors]
        games += [crowding_controls.HeldOut] * (self.held_out > 0)
        return type("ControlledGame", (*games, Game), {})

    def _train(self, data: TrainingData, run: Run, epochs: int) -> None:
        if self.held_out:
            annotations, self._withheld = crowding_controls.split_annotations(
                data.annotations, self.held_out, self.seed
            )
            data = dataclasses.replace(data, annotations=annotations)
        super()._train(data, run, epochs)

    def _game(self, network: CompiledNetwork, data: TrainingData) -> Network:
        game = super()._game(network, data)
        if self.held_out:
            game.withhold(self._withheld, self.seed)
        return game

    def evaluation(self, dataset: CrowdDataset) -> Fields:
        """Returns the measures of the last epoch, and the accuracy of generated labels."""
        if not self.generator_weights_:
            return {}
        names = ("held_out_auc", "cell_auc", "repeated_negatives", "discriminator_training_auc")
        figures = mapped(operator.itemgetter(-1), entries_of(self.history_, names))
        figures |= super().evaluation(dataset)
        return figures

    def _pretrain(self, data: TrainingData, run: Run) -> Network:
        x, codes = data.validation or (None, None)
        if codes is None:
            self._validation = None
        else:
            self._validation = (x, self.classes_[codes])
        return super()._pretrain(data, run)

    def _dl_cl(self) -> CrowdLayer:
        if "released_start" in self.factors:
            return released_start(self, self._validation)
        return super()._dl_cl()


_VARIANTS: dict[str, Fields] = {
    "crowding_control": {"summary": "CrowdInG with single points changed"},
    "crowding_printed": {
        "summary": "CrowdInG by the paper's equations; rates, epoch, graph and batches are ours",
        "defaults": PRINTED,
    },
    "crowding_released": {"summary": "CrowdInG as its authors' code", "defaults": RELEASED},
}
for _name, _variant in _VARIANTS.items():
    register_method(_name, **COMMON, **_variant)(ControlledCrowdInG)
