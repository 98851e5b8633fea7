"""crowd-kit's callers find its results here: frames go in as they are, and a thin adapter gives its
Series and frames back.
"""

from __future__ import annotations

import crowdkit.aggregation as crowdkit
import numpy as np
import pandas as pd
import pytest

from neucrowd_tf import DawidSkene, Glad, MajorityVote


class Adapter:
    """One of our aggregators under crowd-kit's names."""

    def __init__(self, aggregator: MajorityVote | DawidSkene | Glad) -> None:
        self.aggregator = aggregator

    def fit(self, data: pd.DataFrame) -> Adapter:
        self.labels_ = self.aggregator.fit_predict(data).rename("agg_label").rename_axis("task")
        probas = self.aggregator.fit_predict_proba(data)
        self.probas_ = probas.rename_axis(index="task", columns="label")
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        return self.fit(data).labels_

    def fit_predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        return self.fit(data).probas_


PAIRS = {
    "majority vote": (MajorityVote(), crowdkit.MajorityVote()),
    "dawid skene": (DawidSkene(), crowdkit.DawidSkene(n_iter=100)),
    "glad": (Glad(), crowdkit.GLAD(n_iter=10)),
}


def answers(classes: list[str], seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Forty tasks, seven workers who are right nine times in ten and one who guesses."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(len(classes), size=40)
    rows = []
    for worker in range(8):
        right = 0.9 if worker < 7 else 1 / len(classes)
        for task in generator.permutation(40)[:30]:
            wrong = (truth[task] + generator.integers(1, len(classes))) % len(classes)
            code = truth[task] if generator.random() < right else wrong
            rows.append((f"w{worker}", f"t{task}", classes[code]))
    names = pd.Index([f"t{i}" for i in range(40)], name="task")
    frame = pd.DataFrame(rows, columns=["worker", "task", "label"])
    return frame, pd.Series(np.array(classes)[truth], names, name="agg_label")


@pytest.mark.parametrize("classes", [["no", "yes"], ["chicken", "goose", "parrot"]])
@pytest.mark.parametrize("name", PAIRS)
def test_results_are_those_of_crowd_kit(name: str, classes: list[str]) -> None:
    frame, truth = answers(classes, seed=3)
    ours, theirs = PAIRS[name]
    result, wanted = Adapter(ours).fit_predict(frame), theirs.fit_predict(frame)
    ordered = np.sort(theirs.probas_.to_numpy(), axis=1)
    tasks = theirs.probas_.index[ordered[:, -1] > ordered[:, -2] + 0.05]  # the rest are ties
    assert len(tasks) > 30 and result.name == wanted.name and result.index.name == "task"
    assert result[tasks].tolist() == wanted[tasks].tolist()
    assert (result[truth.index] == truth).mean() > 0.9
    probas = Adapter(ours).fit_predict_proba(frame)
    assert probas.columns.tolist() == classes and np.allclose(probas.sum(axis=1), 1)
    if name == "majority vote":
        theirs_ = theirs.probas_.loc[probas.index, probas.columns]
        np.testing.assert_allclose(probas.to_numpy(), theirs_.to_numpy())
