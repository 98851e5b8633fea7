"""Self-training whose pseudo-annotations are the labels of CrowdInG's generator. Ours."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from neucrowd_tf import registry
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowd.presets import schedule_presets
from neucrowd_tf.dasc.estimator import DASC, seeded
from neucrowd_tf.dasc.selection import PredictsAnnotators
from neucrowd_tf.declare import Constraint, estimator, fitted, text
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

TEMPERATURES = np.geomspace(0.25, 8.0, 41)
CALIBRATION = 0.2  # share of the annotations that a first fit leaves out to choose temperatures
# Standard deviation of log T_r about the crowd's log T: an annotator with few labels stays near it.
_SPREAD = 0.5
_LEAST = 1e-12
_CELLS_AT_ONCE = 1 << 22


@register_method(
    "dasc_crowding",
    summary="CrowdLayer with DASC's quotas of annotations that CrowdInG's generator fills in",
    requires_identities=True,
    defaults={"estimator": "crowd_layer"},
    presets={
        name: {**preset, "preset": name}
        for name, preset in schedule_presets("crowd_layer").items()
        if name in ("labelme", "music", "cifar10n")
    },
)
@estimator
class FilledByGenerator(DASC):
    """Self-training of CrowdLayer in which a generator fills the empty cells.

    The generator is fitted once to the observed annotations. Labels are drawn from its calibrated
    probabilities, by DASC's quotas.

    Attributes:
        generator_: the fitted estimator whose generator fills the cells.
        temperatures_: `[R]` of annotators' probabilities.

    References:
        DASC, equations 3 and 4 (the quotas); CrowdInG, section 3.3 (the generator). Their
        combination is ours.
    """

    generator: Annotated[
        Any,
        text
        | Constraint(
            "a mapping with a name", lambda value: isinstance(value, dict) and "name" in value
        ),
        "the method whose labels fill the cells, CrowdInG or a variant of it; or a mapping with its"
        ' name and hyper-parameters, such as `{"name": "crowding", "epochs": 10}`.',
    ] = "crowding"
    preset: Annotated[
        str | None,
        text,
        "the dataset whose presets the generator's method takes; None takes its defaults.",
    ] = None

    temperatures_: NDArray[np.float64] = fitted()
    generator_: Any = fitted()

    @property
    def _options(self) -> dict[str, Any]:
        named = isinstance(self.generator, str)
        return {"name": self.generator} if named else dict(self.generator)

    def _check_together(self) -> None:
        super()._check_together()
        method = registry.method(self._options["name"], "generator")
        registry.check_preset(self.preset, method.presets, schedule_presets("crowd_layer"))
        if not hasattr(method.factory, "predict_annotators"):
            raise UsageError(
                "generator: expected a method that predicts what annotators would answer, as"
                f" crowding, received {self.generator!r}"
            )

    def _filler(self, data: TrainingData, run: Run) -> PredictsAnnotators:
        options = self._options
        method = registry.method(options.pop("name"))
        self.generator_ = model = seeded(method.make(dataset=self.preset, **options), self.seed)
        observed = data.annotations.observed()
        rest, held = held_out_annotations(observed, CALIBRATION, self.seed)
        stage = run.stage("calibration").stage("round-0")
        model.fit(data.features, rest, data.named_validation, run=stage)
        needed, places = np.unique(observed.instances[held], return_inverse=True)
        annotators = observed.annotators[held]
        probabilities = model.predict_annotators(data.features[needed])[places, annotators]
        self.temperatures_ = fit_temperatures(
            probabilities, observed.labels[held], annotators, observed.num_annotators
        )
        stage = run.stage("filling").stage("round-0")
        model.fit(data.features, observed, data.named_validation, run=stage)
        return Calibrated(model, self.temperatures_)

    def _labels(
        self,
        filler: PredictsAnnotators,
        features: NDArray[np.float32],
        cells: tuple[NDArray[np.int64], NDArray[np.int64]],
        likely: NDArray[Any],
        rng: np.random.Generator,
    ) -> NDArray[Any]:
        return drawn_labels(filler, features, cells, rng)


def softened(probabilities: Any, temperatures: NDArray[Any]) -> NDArray[np.float32]:
    """Returns p^(1/T) scaled to sum to one.

    Args:
        probabilities: `[..., C]`.
        temperatures: of the leading axes' last ones, or a number.
    """
    logs = np.log(np.maximum(np.asarray(probabilities, np.float64), _LEAST))
    powers = softmax(logs / np.asarray(temperatures)[..., None], axis=-1)
    return powers.astype(np.float32)


def fit_temperatures(
    probabilities: NDArray[Any], labels: NDArray[Any], annotators: NDArray[Any], num_annotators: int
) -> NDArray[np.float64]:
    """Returns the most probable temperatures `[R]` given held-out annotations.

    log T_r is normal about the log T that suits all annotations best; both are in `TEMPERATURES`.

    Args:
        probabilities: `[H, C]` predicted for held-out annotations.
        labels: `[H]` of these annotations.
        annotators: `[H]`.
        num_annotators: R.
    """
    losses = np.zeros((num_annotators, len(TEMPERATURES)))
    for index, temperature in enumerate(TEMPERATURES):
        answers = softened(probabilities, temperature)
        chosen = np.maximum(answers[np.arange(len(labels)), labels], _LEAST)
        np.add.at(losses[:, index], annotators, -np.log(chosen))
    common = TEMPERATURES[losses.sum(axis=0).argmin()]
    prior = np.square(np.log(TEMPERATURES / common)) / (2 * _SPREAD**2)
    return np.asarray(TEMPERATURES[(losses + prior).argmin(axis=1)])


def held_out_annotations(
    annotations: Annotations, share: float, seed: int
) -> tuple[Annotations, NDArray[np.int64]]:
    """Returns the annotations without a share of them, and the positions of that share.

    Each instance and each annotator keeps one at least.

    Args:
        annotations: authentic ones.
        share: of the annotations.
        seed: of the draw.
    """
    order = np.random.default_rng([seed, 0x7E]).permutation(annotations.num_annotations)
    instances, annotators = annotations.instances.tolist(), annotations.annotators.tolist()
    left, by = Counter(instances), Counter(annotators)
    held: list[int] = []
    for place in order.tolist():
        if len(held) >= share * len(order):
            break
        instance, annotator = instances[place], annotators[place]
        if left[instance] > 1 and by[annotator] > 1:
            left[instance] -= 1
            by[annotator] -= 1
            held.append(place)
    rest = np.ones(len(order), dtype=bool)
    rest[held] = False
    return annotations.select(rest), np.flatnonzero(~rest)


class Calibrated:
    """A fitted model whose probabilities of annotators' labels are softened.

    Args:
        model: with `predict_annotators`.
        temperatures: `[R]`.
    """

    def __init__(self, model: PredictsAnnotators, temperatures: NDArray[np.float64]) -> None:
        self.model, self.temperatures = model, temperatures

    def predict_annotators(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns `[N, R, C]`."""
        return softened(self.model.predict_annotators(features), self.temperatures)


def drawn_labels(
    model: PredictsAnnotators,
    features: NDArray[Any],
    cells: tuple[NDArray[Any], NDArray[Any]],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Returns labels `[M]` drawn from what a model predicts of some cells.

    Args:
        model: with `predict_annotators`.
        features: `[N, ...]`.
        cells: instances and annotators, `[M]` each.
        rng: draws.
    """
    rows, columns = cells
    uniform, labels = rng.random(len(rows)), np.empty(len(rows), dtype=np.int64)
    first = np.asarray(model.predict_annotators(features[:1]))
    block = max(1, _CELLS_AT_ONCE // (first.shape[1] * first.shape[2]))
    for start in range(0, len(features), block):
        mine = np.flatnonzero((rows >= start) & (rows < start + block))
        if len(mine):
            answers = np.asarray(model.predict_annotators(features[start : start + block]))
            chosen = answers[rows[mine] - start, columns[mine]].astype(np.float64)
            reached = np.cumsum(chosen, axis=1) / chosen.sum(axis=1, keepdims=True)
            labels[mine] = (reached < uniform[mine, None]).sum(axis=1)
    return np.minimum(labels, first.shape[2] - 1)
