"""What stands between crowd labels and the truth as training labels: the same two classifiers on
majority votes, on Dawid-Skene's posterior, on the posterior of annotators' true confusion matrices
and on the truth, scored on training instances that were left out.

    python -m benchmarks.headroom [--dataset=music] [--data_dir=DIR] [--folds=5] [--seed=0] [--json]

Test instances are not looked at. The confusion matrices are counted against the truth of the
instances trained on, so the third row is what a method could reach at most by knowing annotators
better, with these classifiers. The network has one hidden layer of 128, on four labels drawn from
each posterior; its probabilities are the mean of four fits.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from benchmarks.timing import run
from neucrowd_tf import registry
from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.harness import plugins
from reproduction.known_annotators import confusion_matrices, posterior

DRAWS = FITS = 4


def network(seed: int) -> Pipeline:
    layer = MLPClassifier((128,), alpha=1.0, max_iter=40, random_state=seed)
    return make_pipeline(PowerTransformer(), layer)


def regression(seed: int) -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.03, max_iter=500))


def predicted(
    make: Any, features: NDArray[Any], labels: NDArray[Any], left_out: NDArray[Any], seed: int
) -> NDArray[np.int64]:
    """Returns the classes of left-out instances.

    Args:
        make: seed to classifier.
        labels: `[N, C]` a posterior each.
    """
    total = np.zeros((len(left_out), labels.shape[1]))
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(features)), DRAWS)
    for fit in range(FITS):
        below = rng.random((len(rows), 1)) > labels.cumsum(axis=1)[rows]
        drawn = np.minimum(below.sum(axis=1), labels.shape[1] - 1)
        model = make(seed + fit).fit(features[rows], drawn)
        total[:, model.classes_] += model.predict_proba(left_out)
    return np.asarray(total.argmax(axis=1))


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    plugins.register(("baselines", "data"))
    warnings.simplefilter("ignore", ConvergenceWarning)  # 40 passes are what the network is given
    data = registry.dataset(arguments.dataset).load(arguments.data_dir)
    truth = data.truth
    if truth is None:
        raise SystemExit(f"{arguments.dataset}: expected the truth of training instances")
    features = data.features.reshape(len(truth), -1)
    found: dict[str, list[dict[str, float]]] = {}
    folds = StratifiedKFold(arguments.folds, shuffle=True, random_state=arguments.seed)
    for rows, left_out in folds.split(features, truth):
        crowd = data.annotations[rows]
        votes = crowd.vote_counts()
        labels = {
            "majority vote": np.eye(votes.shape[1])[votes.argmax(axis=1)],
            "Dawid-Skene": DawidSkene().fit_predict_proba(crowd).to_numpy(),
            "known annotators": posterior(crowd, confusion_matrices(crowd, truth[rows])),
            "truth": np.eye(votes.shape[1])[truth[rows]],
        }
        for name, given in labels.items():
            right = {"labels": float((given.argmax(axis=1) == truth[rows]).mean())}
            for kind, make in (("regression", regression), ("network", network)):
                codes = predicted(make, features[rows], given, features[left_out], arguments.seed)
                right[kind] = float((codes == truth[left_out]).mean())
            found.setdefault(name, []).append(right)
    return {
        f"{name}, {kind}": float(np.mean([each[kind] for each in runs]))
        for name, runs in found.items()
        for kind in runs[0]
    }


if __name__ == "__main__":
    run(__doc__, measured, dataset="music", folds=5, seed=0)
