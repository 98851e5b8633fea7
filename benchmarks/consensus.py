"""How far the rule of `Consensus` is to be believed: leave one benchmark out, and crowds that it
was not chosen on.

    python -m benchmarks.consensus [--data_dir=D] [--json]

A rule is written nats / methods / labels: how many nats of EBCC's bound are decisive, how many
methods are averaged else, and how far annotators are drawn towards their mean. All rules of a grid
are scored on every crowd from the same fits. Leave one out: the rule that is best on eleven of the
published benchmarks is applied to the twelfth (rules that tie for best are averaged). The default,
as it is, is then scored on crowds that had no part in its choice: half of each benchmark's
annotations, the other crowds of `benchmarks.crowds`, and simulated ones.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.crowds import read_crowds
from benchmarks.timing import arguments, data_folder, show
from data import truth_inference as published
from data.truth_inference import Benchmark
from neucrowd_tf.aggregation.catalogue import make_aggregator
from neucrowd_tf.aggregation.consensus import CANDIDATES, Consensus, deal, held_out_score
from neucrowd_tf.aggregation.ebcc import EBCC
from neucrowd_tf.annotations import simulation

# -1 is always EBCC, infinity never.
DECISIVE = (-1.0, 0.0, 2.0, 5.0, 10.0, 20.0, float("inf"))
BEST = (1, 2, 3, 5, 8, len(CANDIDATES))
STRENGTH = (1.0, 5.0, 20.0)
ALONE = ("majority_vote", "dawid_skene", "glad", "ebcc", "bwa", "ibcc", "mace", "consensus")
DEFAULT = "5/3/5"
# Classes, annotators, labels an instance, and how many annotators are of the kind itself.
SIMULATED = {
    "two classes": (2, 30, 5, 0),
    "four classes": (4, 40, 5, 0),
    "ten classes": (10, 60, 4, 0),
    "sparse": (4, 80, 2, 0),
    "spammers": (4, 40, 6, 14),
    "adversaries": (3, 40, 6, 6),
}
Crowds = dict[str, Benchmark]


def name_of(decisive: float, best: int, strength: float) -> str:
    """Returns a rule's name."""
    return f"{decisive:g}/{best}/{strength:g}"


def evidence(data: Benchmark, seed: int = 0) -> dict[str, Any]:
    """Returns the accuracy of every rule and of methods alone on one crowd, and EBCC's gain."""
    crowd, settings = data.annotations, Consensus()
    joint = EBCC(seed=seed, restarts=settings.restarts, tol=1e-5).fit(crowd)
    gain = float(joint.bounds_.max() - joint.bounds_[0])
    folds = deal(crowd, settings.folds, seed)
    scores = {strength: dict.fromkeys(CANDIDATES, 0.0) for strength in STRENGTH}
    for fold in range(settings.folds):
        held = folds == fold
        remaining, left = crowd.select(~held), crowd.select(held)
        for name, make in CANDIDATES.items():
            probas = make(seed).fit(remaining).probas_
            for strength in STRENGTH:
                scores[strength][name] += held_out_score(remaining, left, probas, strength)
    result = {name: make(seed).fit(crowd).probas_ for name, make in CANDIDATES.items()}
    rules = {}
    for strength, best in itertools.product(STRENGTH, BEST):
        order = sorted(CANDIDATES, key=lambda name: -scores[strength][name])
        mean = np.mean([result[name] for name in order[:best]], axis=0)
        for decisive in DECISIVE:
            probas = joint.probas_ if gain > decisive else mean
            rules[name_of(decisive, best, strength)] = data.accuracy(probas)
    alone = {}
    for name in ALONE[:-1]:
        alone[name] = data.accuracy(make_aggregator(name, seed).fit(crowd).probas_)
    return {"gain": gain, "rules": rules, "alone": {**alone, "consensus": rules[DEFAULT]}}


def simulated(kind: str, seed: int, tasks: int) -> Benchmark:
    """Draws a crowd of one kind."""
    rng = np.random.default_rng([seed, 17])
    classes, annotators, each, others = SIMULATED[kind]
    truth = rng.integers(classes, size=tasks)
    groups = [simulation.confusion_annotators(annotators - others, classes, seed, accuracy=0.7)]
    if others:
        groups.append(getattr(simulation, kind)(others, classes, seed))
    matrices = np.concatenate(groups)
    return Benchmark(simulation.simulate(truth, matrices, seed, rates=each / annotators), truth)


def crowds(data_dir: Path) -> tuple[Crowds, Crowds]:
    """Returns the benchmarks that the rule was chosen on, and other crowds."""
    seen: Crowds = {}
    unseen: Crowds = {}
    names = published.names(data_dir)
    for name, crowd, truth in read_crowds(data_dir):
        (seen if name in names else unseen)[name] = Benchmark(crowd, truth)
        if name in names:
            half = simulation.remove_annotations(crowd, 0.5, 0)
            unseen[f"half of {name}"] = Benchmark(half, truth)
    for kind, seed in itertools.product(SIMULATED, range(2)):
        unseen[f"simulated, {kind}, {seed}"] = simulated(kind, seed, 400)
    return seen, unseen


def gathered(crowds: Crowds) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each crowd's figures."""
    for name, crowd in crowds.items():
        result = evidence(crowd)
        print(name, f"{result['alone']['consensus']:.4f}", file=sys.stderr, flush=True)
        yield name, result


def left_out(seen: dict[str, dict[str, Any]]) -> dict[str, tuple[str, float]]:
    """Returns, for each benchmark, the rule that is best on the others (with how many tie) and its
    accuracy on this one.
    """
    rules = list(next(iter(seen.values()))["rules"])
    table = np.array([[one["rules"][rule] for rule in rules] for one in seen.values()])
    result = {}
    for place, name in enumerate(seen):
        means = np.delete(table, place, axis=0).mean(axis=0)
        best = np.flatnonzero(means >= means.max() - 1e-12)
        more = f" and {len(best) - 1} alike" if len(best) > 1 else ""
        result[name] = rules[best[0]] + more, float(table[place, best].mean())
    return result


def tables(seen: dict[str, Any], unseen: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the tables as text, and what --json prints."""
    rules = pd.DataFrame(
        [
            (name, seen[name]["gain"], rule, accuracy, seen[name]["rules"][DEFAULT])
            for name, (rule, accuracy) in left_out(seen).items()
        ],
        columns=["benchmark", "EBCC's gain", "rule from the others", "its accuracy", "default"],
    )
    alone = pd.DataFrame({name: one["alone"] for name, one in unseen.items()}).T[list(ALONE)]
    groups = {"mean": "", "mean of halves": "half of", "mean of simulated": "simulated"}
    means = pd.DataFrame(
        {title: alone[alone.index.str.startswith(start)].mean() for title, start in groups.items()}
    ).T.dropna()
    behind = alone.rsub(alone.max(axis=1), axis=0).agg(["mean", "max"])
    titles = {
        "Each benchmark with the rule that is best on the others": rules,
        "Crowds that had no part in the choice": pd.concat([means, alone]),
        "Behind the best of these, which nobody knows without truth": behind,
    }
    text = "\n\n".join(f"{title}:\n{table.to_string()}" for title, table in titles.items())
    chosen, by_default = rules["its accuracy"].mean(), rules["default"].mean()
    figures = {"left_out": float(chosen), "default": float(by_default)}
    return text, figures | {"unseen": means.T.to_dict()}


def main() -> None:
    """Scores the rules on all crowds."""
    options = arguments(__doc__, data_dir=data_folder())
    warnings.simplefilter("ignore")  # not converged, on small sets
    text, result = tables(*(dict(gathered(some)) for some in crowds(options.data_dir)))
    show(options, result, text)


if __name__ == "__main__":
    main()
