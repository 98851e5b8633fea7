"""How far the rule of `Consensus` is to be believed: leave one benchmark out, and crowds that it
was not chosen on.

    python -m benchmarks.consensus [--data_dir=D] [--json]

A rule is written nats / methods / labels: how many nats of EBCC's bound are decisive, how many
methods are averaged else, and how far annotators are drawn towards their mean. All rules of a grid
are scored on every crowd from the same fits. Leave one out: the rule that is best on eleven of the
published benchmarks is applied to the twelfth (rules that tie for best are averaged). The default,
as it is, is then scored on crowds that had no part in its choice: half of each benchmark's
annotations, LabelMe, Music, 2,000 images of CIFAR-10N, and simulated crowds.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.timing import arguments, data_folder, show
from data import truth_inference as published
from data.truth_inference import Benchmark
from neucrowd_tf.aggregation import EBCC, Consensus, make_aggregator
from neucrowd_tf.aggregation.consensus import CANDIDATES, deal, held_out_score
from neucrowd_tf.annotations import Annotations, simulation

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
    "copies": (3, 30, 6, 6),
}
Crowds = dict[str, Callable[[], Benchmark]]


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


def halved(name: str, data_dir: Path) -> Benchmark:
    """Returns half of a benchmark's annotations."""
    data = published.load(data_dir, name)
    return Benchmark(simulation.remove_annotations(data.annotations, 0.5, 0), data.truth)


def simulated(kind: str, seed: int, tasks: int) -> Benchmark:
    """Draws a crowd of one kind; who errs together copies one labeller."""
    rng = np.random.default_rng([seed, 17])
    classes, annotators, each, others = SIMULATED[kind]
    truth = rng.integers(classes, size=tasks)
    groups = [simulation.confusion_annotators(annotators - others, classes, seed, accuracy=0.7)]
    if kind in ("spammers", "adversaries"):
        groups.append(getattr(simulation, kind)(others, classes, seed))
    if kind == "copies":
        one = simulation.confusion_annotators(1, classes, seed + 1, accuracy=0.6)
        groups.append(np.repeat(one, others, axis=0))
    matrices = np.concatenate(groups)
    crowd = simulation.simulate(truth, matrices, seed, rates=each / annotators)
    if kind == "copies":
        source = simulation.simulate(truth, matrices[-1:], seed + 2).to_dense()[:, 0]
        copied = crowd.annotators >= annotators - others
        crowd = Annotations(
            crowd.instances,
            crowd.annotators,
            np.where(copied, source[crowd.instances], crowd.labels),
            num_instances=tasks,
            num_annotators=annotators,
            num_classes=classes,
        )
    return Benchmark(crowd, truth)


def crowds(data_dir: Path) -> tuple[Crowds, Crowds]:
    """Returns the makers of the benchmarks that the rule was chosen on, and of other crowds."""
    names = published.names(data_dir)
    seen: Crowds = {name: partial(published.load, data_dir, name) for name in names}
    unseen: Crowds = {f"half of {name}": partial(halved, name, data_dir) for name in names}
    for name in ("labelme", "music", "cifar10n"):
        if (data_dir / name).is_dir():
            unseen[name] = partial(_real, name, data_dir)
    for kind, seed in itertools.product(SIMULATED, range(2)):
        unseen[f"simulated, {kind}, {seed}"] = partial(simulated, kind, seed, 400)
    return seen, unseen


def _real(name: str, data_dir: Path) -> Benchmark:
    module = importlib.import_module(f"data.{name}")
    dataset = module.load(data_dir, **({"size": 2_000} if name == "cifar10n" else {}))
    return Benchmark(dataset.annotations, np.asarray(dataset.truth))


def gathered(makers: Crowds) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each crowd's figures."""
    for name, make in makers.items():
        result = evidence(make())
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
    default = {name: one["rules"][DEFAULT] for name, one in seen.items()}
    rules = pd.DataFrame(left_out(seen), index=["rule from the others", "its accuracy"]).T
    rules = rules.assign(gain={name: one["gain"] for name, one in seen.items()}, default=default)
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
    makers = crowds(options.data_dir)
    if not makers[0]:
        sys.exit(f"consensus: expected benchmarks in {options.data_dir}/{published.FOLDER}")
    text, result = tables(*(dict(gathered(some)) for some in makers))
    show(options, result, text)


if __name__ == "__main__":
    main()
