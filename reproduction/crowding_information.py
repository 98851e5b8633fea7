"""`python -m reproduction.crowding_information`: what CrowdInG's game does to its generator on
LabelMe.

A share of the annotations is left out (each image and each annotator keeps one at least). For the
generator before the game, at the epoch that the validation images keep, and after the last epoch:
the mean of -log G over the annotations that were left out, and what labels tell of classes (see
`CrowdInG.information_`). DL-CL's crowd layer and annotators' shares of labels stand beside it. What
is printed also stands in results/crowding_information.csv.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags
from numpy.typing import NDArray

from neucrowd_tf import registry
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowding import CrowdInG
from neucrowd_tf.dasc.calibration import held_out_annotations
from neucrowd_tf.harness import plugins
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from reproduction.catalogue import SUITES

_READINGS = flags.DEFINE_list(
    "readings",
    ["default", "information=0", "latent=class", "likelihood=1", "density_ratio"],
    "default, or settings of the suite crowding_controls.",
)
_WHEN = flags.DEFINE_list("when", ["before", "kept", "last"], "which rows of a reading.")
_SEED = flags.DEFINE_integer("first_seed", 10300, "of the draw and the fits.")
_SHARE = flags.DEFINE_float("share", 0.1, "of the annotations that are left out.")
_DATA = flags.DEFINE_string("data", None, "folder of the datasets.")
_TO = flags.DEFINE_string("to", "results/crowding_information.csv", "the table.")

FIGURES = ("information", "conditional_information", "bound", "score_variance")
HEADER = ("reading", "when", "epochs", "held_out_nll", *FIGURES, "test_accuracy")
_STILL = {"epochs": 1, "generator_learning_rate": 1e-9, "classifier_learning_rate": 1e-9}


def readings() -> dict[str, Mapping[str, Any]]:
    """Returns CrowdInG's arguments in each setting of the suite crowding_controls."""
    suite = next(suite for suite in SUITES if suite.name == "crowding_controls")
    own = (case for case in suite.cases if case.methods == ("crowding",) and not case.options)
    others = {"default": {}, "information=0": {"information": 0.0}}
    return others | {case.setting: case.hparams for case in own}


def unlikely(answers: NDArray[Any], held: Annotations) -> float:
    """Returns the mean of -log P over annotations, given what annotators answer `[N, R, C]`."""
    chances = answers[held.instances, held.annotators, held.labels]
    return float(-np.log(np.maximum(chances, 1e-12)).mean())


def shares(crowd: Annotations) -> NDArray[np.float64]:
    """Returns each annotator's shares of labels `[R, C]`, one more of each class counted."""
    counts = np.ones((crowd.num_annotators, crowd.num_classes))
    np.add.at(counts, (crowd.annotators, crowd.labels), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def measured(
    data: str | None, seed: int, share: float, wanted: list[str], when: list[str]
) -> Iterator[list[Any]]:
    """Yields the rows of the table; see `HEADER`."""
    labelme = registry.dataset("labelme").load(data)
    crowd, places = held_out_annotations(labelme.annotations, share, seed)
    out = np.zeros(labelme.annotations.num_annotations, dtype=bool)
    out[places] = True
    held, validation = labelme.annotations.select(out), labelme.validation_pair()
    truth = labelme.class_names[labelme.test.labels]
    if "default" in wanted:
        table, none = shares(crowd), [""] * len(FIGURES)
        everywhere = np.broadcast_to(table, (len(labelme.features), *table.shape))
        yield ["annotators' shares", "", "", unlikely(everywhere, held), *none, ""]
        layer = registry.method("crowd_layer").make(dataset="labelme", seed=seed)
        layer.fit(labelme.features, crowd, validation)
        found = unlikely(layer.predict_annotators(labelme.features), held)
        yield ["crowd_layer", "", "", found, *none, layer.score(labelme.test.features, truth)]
    known, make = readings(), registry.method("crowding").make
    for reading in wanted:
        more = {"measured": True, "collapse_drop": 1.0, **known[reading]}
        model: CrowdInG = make(dataset="labelme", seed=seed, **more)

        def row(
            at: str,
            epochs: int,
            information: dict[str, float],
            reading: str = reading,
            model: CrowdInG = model,
        ) -> list[Any]:
            likelihood = unlikely(model.predict_annotators(labelme.features), held)
            figures = [information[name] for name in FIGURES]
            accuracy = model.score(labelme.test.features, truth)
            return [reading, at, epochs, likelihood, *figures, accuracy]

        changed = {name: getattr(model, name) for name in _STILL}
        model.set_params(**_STILL).fit(labelme.features, crowd, validation)
        if "before" in when:
            yield row("before", 0, model.information_["before"])
        model.set_params(**changed)
        if "last" in when:
            # Without validation data the last epoch is what is left.
            rows = np.arange(len(labelme.features))
            whole = TrainingData(labelme.features, crowd, None, rows)
            game = model._train(whole, Run(), model.epochs)
            yield row("last", model.epochs, game.information["after"])
        if "kept" in when:
            model.fit(labelme.features, crowd, validation)
            kept = 0 if model.best_epoch_ is None else model.best_epoch_ + 1
            yield row("kept", kept, model.information_["after"])


def main(_: list[str]) -> None:
    plugins.register(("baselines", "data"))
    rows = []
    given = _DATA.value, _SEED.value, _SHARE.value, _READINGS.value, _WHEN.value
    for row in measured(*given):
        cells = [number_cell(round(c, 4)) if isinstance(c, float) else str(c) for c in row]
        rows.append(cells)
        print(",".join(cells), flush=True)
    write_text(Path(_TO.value), to_csv(HEADER, rows))


if __name__ == "__main__":
    app.run(main)
