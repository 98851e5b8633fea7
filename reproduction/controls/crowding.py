"""CrowdInG with the factors of our studies: other readings, and what its gain is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neucrowd_tf.arguments import argument, estimator, many, one_of
from neucrowd_tf.crowding.estimator import CrowdInG
from neucrowd_tf.crowding.variants import register

if TYPE_CHECKING:
    from neucrowd_tf.crowd_layers import CrowdLayer
    from neucrowd_tf.crowding.game import Game
    from neucrowd_tf.training.estimator import TrainingData
    from neucrowd_tf.training.run import Run

FACTORS = {
    "trained_on": "in place of the game, DL-CL goes on through its crowd layer, with as many steps,"
    " the same rate, average and choice of the epoch",
    "annotator_rate": "DL-CL's annotators learn at .01, a rate of their own",
    "class": "the generator gets a class drawn from z-hat for each pair, and Q guesses that class",
    "exact": "turns by the sum over all labels instead of logged draws",
    "observed": "generated annotations in the cells of the authentic ones",
    "printed_loss": "the discriminator's loss as in the paper's eq. 4",
    "density_ratio": "eq. 4 as in the paper with log p(y) - log G(y) as the logit of D(y)",
    "no_output_penalty": "no penalty of the discriminator's outputs",
    "no_generated_term": "no generated annotations in the discriminator's loss",
    "likelihood": "-log G of the authentic annotations in the generator's turn, weight 1",
    "penalised": "the classifier's weight penalty stays in the game",
    "equal_inputs": "the generator's inputs start with equal variances in its hidden layer",
    "long_turns": "twice the passes in the turns of generator and classifier",
}


@estimator
class ControlledCrowdInG(CrowdInG):
    """CrowdInG with factors of our studies, each a subclass of the game or a step of the fit."""

    factors: Sequence[str] = argument(
        (),
        many(one_of(*FACTORS), "factors", 0),
        "; ".join(f'"{name}": {meaning}' for name, meaning in FACTORS.items()) + ".",
    )

    def _game_class(self) -> type[Game]:
        from neucrowd_tf.crowding.game import Game
        from reproduction.controls.crowding_game import GAMES

        bases = [GAMES[name] for name in GAMES if name in self.factors]
        return type("ControlledGame", (*bases, Game), {})

    def _dl_cl(self) -> CrowdLayer:
        classifier = super()._dl_cl()
        if "annotator_rate" in self.factors:
            classifier.set_params(annotator_learning_rate=0.01)
        return classifier

    def _train_game(self, network: Any, data: TrainingData, run: Run, epochs: int) -> None:
        if "trained_on" not in self.factors:
            return super()._train_game(network, data, run, epochs)
        from neucrowd_tf.training.state import read_variables, write_variables
        from reproduction.controls.crowding_game import ContinuedClassifier

        averaged, standardise, self.model_ = self._averaged(network.base)
        for copy, source in ((averaged, network.base), (standardise, network.standardise)):
            write_variables(copy.variables, read_variables(source.variables))
        model = ContinuedClassifier(network, averaged, self)
        self._play(model, "game", epochs, data, run)
        layer = self._classifier
        self.confusion_matrices_ = layer._confusion_matrices(network, data)
        return None


register(
    "crowding_control",
    "CrowdInG with factors of our studies (docs/crowding.md)",
    ControlledCrowdInG,
)
