"""One label an instance from a crowd and a classifier: is it right more often than by the better of
the two?

    python -m benchmarks.crowd_and_model [--json] [--data_dir=D] [--draws=3] [--output=F]

Music and LabelMe with all labels of their training instances and with 40 % of them (at least one an
instance), and simulated crowds whose classifier sees the truth through noise. The classifier's
probabilities are out of fold (`benchmarks.relabel`: a logistic regression on the majority's labels,
on a hundred principal components where there are more features), once as they are and once as
unsure as a temperature of 3 makes them. `together` is what labels.csv of a run has.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from sklearn.decomposition import PCA

from benchmarks.relabel import KEEP, cell, classifier, over_draws, published, right, simulated
from benchmarks.timing import flags, tell
from neucrowd_tf.aggregation import Crowdlab
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.simulation import remove_annotations
from neucrowd_tf.labelling.belief import believe, believe_with_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_FEATURES, COMPONENTS, UNSURE = 300, 100, 3.0
COLUMNS = ("crowd", "model", "together", "together, unsure", "CROWDLAB", "CROWDLAB, unsure")

# A crowd, the truth, and a classifier's probabilities.
Case = tuple[Annotations, "NDArray[np.int64]", "NDArray[np.float64]"]


def dataset(name: str, data_dir: Path, keep: float) -> Callable[[int], Case]:
    """Returns the maker of a dataset's case; it takes the draw's seed."""
    full = published(name, data_dir, None)
    if full.features is None:
        raise ValueError(f"{name}: expected a dataset with features")
    features = full.features.reshape(len(full.features), -1)
    if features.shape[1] > MOST_FEATURES:
        features = PCA(COMPONENTS, random_state=0).fit_transform(features)

    def make(seed: int) -> Case:
        crowd = full.crowd if keep == 1 else remove_annotations(full.crowd, keep, seed)
        return crowd, full.truth, classifier(crowd, features)

    return make


def drawn(classes: int, noise: float, each: int) -> Callable[[int], Case]:
    """Returns the maker of a simulated case; the classifier knows its noise."""

    def make(seed: int) -> Case:
        full = simulated(seed, tasks=1_000, annotators=40, classes=classes, each=each)
        rng = np.random.default_rng([seed, 9])
        seen = np.eye(classes)[full.truth] + noise * rng.normal(size=(1_000, classes))
        return full.crowd, full.truth, softmax(seen / noise**2, axis=1)

    return make


def accuracies(case: Case) -> list[float]:
    """Returns the accuracy of each of `COLUMNS`."""
    crowd, truth, probas = case
    unsure = probas ** (1 / UNSURE)
    unsure /= unsure.sum(axis=1, keepdims=True)
    found = [
        believe(crowd).probas,
        probas,
        *(believe_with_model(crowd, p).probas for p in (probas, unsure)),
        *(Crowdlab().fit(crowd, probabilities=p).probas_ for p in (probas, unsure)),
    ]
    return [right(part.argmax(axis=1), truth) for part in found]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for."""
    parser = flags(__doc__)
    parser.add_argument("--data_dir", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--output", type=Path, help="a page to write")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # iterations run out on few labels
    cases: dict[str, Callable[[int], Case]] = {
        f"{name}, {keep:.0%}": dataset(name, arguments.data_dir, keep)
        for name in ("music", "labelme")
        for keep in (1.0, KEEP)
    }
    for classes, noise, each in ((2, 0.6, 3), (2, 1.6, 3), (4, 0.6, 3), (4, 1.0, 6)):
        cases[f"simulated: {classes} classes, noise {noise:g}, {each} labels"] = drawn(
            classes, noise, each
        )
    results: dict[str, Any] = {}
    for name, make in cases.items():
        draws = 1 if name.endswith("100%") else arguments.draws
        columns = zip(*(accuracies(make(seed)) for seed in range(draws)), strict=True)
        results[name] = dict(zip(COLUMNS, map(list, columns), strict=True))
    tell(arguments, results, markdown(results, arguments.draws))
    return 0


def markdown(results: dict[str, Any], draws: int) -> str:
    """Returns the page of results."""
    lines = [
        "# Labels by crowd and model together",
        "",
        "Made with `python -m benchmarks.crowd_and_model --output=results/crowd_and_model.md`; what"
        " is compared and how stands in that file's docstring. Accuracy of the labels; mean and"
        f" 95 % interval over {draws} draws, and one figure where all labels are known.",
        "",
        f"| crowd | {' | '.join(COLUMNS)} |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for name, found in results.items():
        shown = [
            f"{values[0]:.3f}" if len(values) == 1 else cell(over_draws(values))
            for values in found.values()
        ]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
