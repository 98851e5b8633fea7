"""The methods that can be fitted out of core, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.aggregation.base import coin_errors, expected_skills
from neucrowd_tf.aggregation.bwa import BWA, BwaModel, Weights
from neucrowd_tf.aggregation.dawid_skene import Confusion, DawidSkene, DawidSkeneModel
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.glad_integrated import Abilities, IntegratedGladModel
from neucrowd_tf.aggregation.ibcc import IBCC, IBCCModel, Posterior, diagonal_counts
from neucrowd_tf.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.aggregation.sums import LatentModel


@dataclasses.dataclass(frozen=True)
class Method:
    """How a method is fitted out of core.

    Attributes:
        model: makes it for C classes; None for a vote, which has no parameters.
        parameters: their class.
        max_iter, tol: its defaults.
        final: the model of the last E-step, where it is another.
        probas: class probabilities `[n, C]` from the beliefs and C.
        errors: `[R, C true, C observed]` from the parameters; None where it has none.
    """

    model: Callable[[int], LatentModel[Any]] | None
    parameters: Callable[..., Any] = dict
    max_iter: int = 100
    tol: float = 1e-6
    final: Callable[[Any], LatentModel[Any]] = lambda model: model
    probas: Callable[[NDArray[np.float64], int], NDArray[np.float64]] = lambda beliefs, size: (
        beliefs
    )
    priors: Callable[[Any], NDArray[np.float64]] = lambda parameters: parameters.priors
    errors: Callable[[Any], NDArray[np.float64]] | None = None

    def skills(self, parameters: Any) -> NDArray[np.float64] | None:
        """Returns `[R]`, the probability that an annotator is right, where it is modelled."""
        if self.errors is None:
            return None
        return expected_skills(self.errors(parameters), self.priors(parameters))


def _dawid_skene(one_coin: bool = False, hard: bool = False) -> Method:
    default = DawidSkene()

    def model(size: int) -> DawidSkeneModel:
        # As many pseudo-answers for one coin as for one row of a matrix.
        pseudo = float(np.asarray(default.smoothing)) / (size if one_coin else 1)
        return DawidSkeneModel(np.full((1, 1, 1), pseudo), None, one_coin, hard)

    return Method(
        model,
        Confusion,
        default.max_iter,
        default.tol,
        final=_soft,
        errors=lambda last: last.errors.transpose(0, 2, 1),
    )


def _soft(model: DawidSkeneModel) -> DawidSkeneModel:
    return dataclasses.replace(model, hard=False)


def _glad() -> Method:
    default = Glad()

    def model(size: int) -> IntegratedGladModel:
        prior = np.full(size, 1.0 / size)
        return IntegratedGladModel(size, default.ability_prior, default.easiness_prior, prior)

    def errors(last: Abilities) -> NDArray[np.float64]:
        size = len(last.priors)
        points, weights = model(size).grid()
        chances = 1.0 / (1.0 + np.exp(-last.abilities[:, None] * np.exp(points)))
        return coin_errors(chances @ weights if size > 1 else np.ones(len(chances)), size)

    def probas(beliefs: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        summed: NDArray[np.float64] = beliefs.reshape(len(beliefs), size, -1).sum(axis=2)
        return summed

    return Method(model, Abilities, default.max_iter, default.tol, probas=probas, errors=errors)


def _ibcc() -> Method:
    default = IBCC()

    def model(size: int) -> IBCCModel:
        return IBCCModel(diagonal_counts(size, default.right, default.wrong), default.class_prior)

    def errors(last: Posterior) -> NDArray[np.float64]:
        shares: NDArray[np.float64] = last.counts / last.counts.sum(axis=1, keepdims=True)
        return shares.transpose(0, 2, 1)

    return Method(
        model,
        Posterior,
        default.max_iter,
        default.tol,
        priors=lambda last: last.mass / last.mass.sum(),
        errors=errors,
    )


def _bwa() -> Method:
    default = BWA()

    def model(size: int) -> BwaModel:
        return BwaModel(default.shape, default.pull, default.corrected)

    def probas(beliefs: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        values = np.maximum(beliefs, 0.0)
        mass = values.sum(axis=1, keepdims=True)
        return np.divide(values, mass, out=np.full_like(values, 1 / size), where=mass > 0)

    return Method(model, Weights, default.max_iter, default.tol, probas=probas)


METHODS: dict[str, Method] = {
    "majority_vote": Method(None),
    "dawid_skene": _dawid_skene(),
    "one_coin": _dawid_skene(one_coin=True),
    "fast_dawid_skene": _dawid_skene(hard=True),
    "glad": _glad(),
    "ibcc": _ibcc(),
    "bwa": _bwa(),
}


def find_method(name: str) -> Method:
    """Returns the method of that name.

    Raises:
        UsageError: none has that name, or it needs all annotations in memory.
    """
    if name not in METHODS:
        raise UsageError(
            f"method: expected one of {', '.join(METHODS)} out of core, received {name!r}"
        )
    return METHODS[name]
