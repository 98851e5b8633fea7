"""How sure a model's answers for annotators are to be taken: a temperature for each annotator, from
annotations that it was not trained on.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.dasc.confidence import PredictsAnnotators

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

TEMPERATURES = np.geomspace(0.25, 8.0, 41)
# Standard deviation of log T_r about the crowd's log T: who has few labels keeps the crowd's.
_SPREAD = 0.5
_LEAST = 1e-12
_CELLS_AT_ONCE = 1 << 22


def softened(probabilities: Any, temperatures: NDArray[Any]) -> NDArray[np.float32]:
    """Returns p^(1/T) scaled to sum to one.

    Args:
        probabilities: `[..., C]`.
        temperatures: of the leading axes' last ones, or a number.
    """
    logs = np.log(np.maximum(np.asarray(probabilities, np.float64), _LEAST))
    logs = logs / np.asarray(temperatures)[..., None]
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)


def fit_temperatures(
    probabilities: NDArray[Any], labels: NDArray[Any], annotators: NDArray[Any], num_annotators: int
) -> NDArray[np.float64]:
    """Returns `[R]` temperatures: the most probable ones given held-out annotations, log T_r being
    normal about the log T that suits all annotations best; both among `TEMPERATURES`.

    Args:
        probabilities: `[H, C]` predicted for held-out annotations.
        labels, annotators: `[H]` what was said, and who said it.
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
    """Returns the annotations without a share of them, and the positions of that share; each
    instance and each annotator keeps one at least.

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
    kept = np.ones(len(order), dtype=bool)
    kept[held] = False
    return annotations.select(kept), np.flatnonzero(~kept)


class Calibrated:
    """A fitted model whose answers for annotators are softened.

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
