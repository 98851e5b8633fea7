"""Learns the calibration of inferred labels on public crowds.

    python -m benchmarks.certainty [--data_dir=D]

Crowds are those of `benchmarks.crowds`, each also thinned to two and three labels per item. The
command writes neucrowd_tf/certainty/recalibration.json. results/STUDIES.md has the commit that
measured the calibration on crowds whose family was left out.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.crowds import FAMILY, Array, read_crowds, thinned
from benchmarks.timing import arguments, data_folder
from neucrowd_tf.aggregation import Consensus, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.statistics import agreement_coefficients
from neucrowd_tf.certainty import Calibration
from neucrowd_tf.certainty import recalibration as learned
from neucrowd_tf.io.files.atomic import write_text

WIDENING = 1.2  # of the shift's spread without gold labels: few families, and unknown relatives
MODELS = {"consensus": Consensus(), "dawid_skene": DawidSkene(), "majority_vote": MajorityVote()}
# How far beyond the sizes of the learned crowds a crowd still counts as alike.
LOOSE = {
    "items": (0.5, 1e9),
    "classes": (1.0, 1.5),
    "labels": (0.75, 10.0),
    "shared": (0.75, 2),
    "agreement": (0.95, 2),
}


@dataclasses.dataclass(frozen=True)
class Crowd:
    """One crowd with its inferred labels.

    Attributes:
        name: as in `benchmarks.crowds`.
        annotations: the crowd, or some of its labels.
        truth: `[N]` class codes; -1 unknown, -2 a class that nobody named.
        probas: by model (`MODELS`), `[N, C]`.
    """

    name: str
    annotations: Annotations
    truth: Array
    probas: dict[str, Array]

    @property
    def family(self) -> str:
        return FAMILY.get(self.name, self.name)


def fitted_crowds(data_dir: Path) -> Iterator[Crowd]:
    """Yields every crowd, full and thinned, with the posteriors of all models."""
    warnings.simplefilter("ignore")  # not converged, on small sets
    for name, crowd, truth in read_crowds(data_dir):
        mean = crowd.num_annotations / crowd.annotated.sum()
        for one in (crowd, *(thinned(crowd, k) for k in (2, 3) if mean > k + 0.5)):
            probas = {key: model.fit(one).probas_ for key, model in MODELS.items()}
            yield Crowd(name, one, truth, probas)


def learn(crowds: Sequence[Crowd], model: str = "consensus") -> Calibration:
    """Returns the calibration of a model on these crowds, each with equal weight.

    The shifts' covariance is the empirical-Bayes estimate over families, by EM with Laplace's
    approximation for each crowd; a large crowd counts for 400 instances.
    """
    evidence, right = [], []
    for one in crowds:
        rows = np.flatnonzero((one.truth != -1) & one.annotations.annotated)
        probas = one.probas[model]
        evidence.append(learned.evidence(probas, one.annotations.vote_counts())[rows])
        right.append((probas.argmax(axis=1) == one.truth)[rows].astype(float))
    weights = [np.full(len(one), 100.0 / len(one)) for one in right]
    regression = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    regression.fit(np.concatenate(evidence), np.concatenate(right), np.concatenate(weights))
    coefficients = np.concatenate([regression.intercept_, regression.coef_[0]])
    calibration = Calibration(coefficients, np.zeros(2), np.diag([0.5, 0.05]))
    members = Counter(one.family for one in crowds)
    shares = [1.0 / members[one.family] for one in crowds]
    for _ in range(30):
        seconds = []
        for features, hits in zip(evidence, right, strict=True):
            logits = coefficients[0] + features @ coefficients[1:]
            shift, spread = calibration.shift_of(logits, hits, min(1.0, 400 / len(hits)))
            seconds.append(np.outer(shift, shift) + spread)
        covariance = np.average(seconds, axis=0, weights=shares)
        calibration = dataclasses.replace(calibration, covariance=covariance)
    return calibration


def ranges(crowds: Sequence[Crowd]) -> dict[str, list[float]]:
    """Returns the ranges of sizes within which the calibration was learned."""
    measured: dict[str, list[float]] = {name: [] for name in LOOSE}
    for one in crowds:
        votes = one.annotations.vote_counts()
        counts = votes.sum(axis=1)[one.annotations.annotated]
        agreement = agreement_coefficients(votes, np.eye(votes.shape[1]))["krippendorff"]
        row = (len(counts), votes.shape[1], counts.mean(), (counts > 1).mean(), agreement)
        for values, value in zip(measured.values(), row, strict=True):
            values.append(float(value))
    return {
        name: [round(min(values) * LOOSE[name][0], 3), round(max(values) * LOOSE[name][1], 3)]
        for name, values in measured.items()
    }


def main() -> None:
    """Writes the package's coefficients, learned on all crowds."""
    options = arguments(__doc__, data_dir=data_folder())
    crowds, models = list(fitted_crowds(options.data_dir)), {}
    for name in MODELS:
        calibration = learn(crowds, name)
        models[name] = {
            "weights": calibration.weights.round(6).tolist(),
            "covariance": (calibration.covariance * WIDENING**2).round(6).tolist(),
        }
    names = sorted({one.name for one in crowds})
    values = {"models": models, "ranges": ranges(crowds), "crowds": names}
    path = Path(learned.__file__).with_name("recalibration.json")
    write_text(path, json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
