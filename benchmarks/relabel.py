"""How many more labels a consensus needs, by what is labelled again and who is asked.

    python -m benchmarks.relabel [--json] [--data_dir=D] [--draws=3] [--datasets=labelme,music,...]
        [--quick] [--output=results/relabel.md]

A crowd's labels are replayed: 40 % of them (at least one a task) are known at first, the others are
held back. In ten rounds each strategy asks for 50 % more, and gets those labels of the tasks (and
the annotators) that it chose which were held back; a task is asked for once a round. After 10, 25
and 50 % more, the consensus is compared with the truth, which no strategy sees.

Strategies: `random`; `entropy` of the consensus; `activelab`, these three with an annotator at
random; ours by `item` (the mean gain over the possible annotators, one of them at random); ours by
`item_annotator`. ActiveLab and ours are given what a classifier predicts, a logistic regression on
the majority's labels, out of fold, where a dataset has features (LabelMe, Music), else the shares
of the classes. The consensus knows labels only; it is
`neucrowd_tf.labelling.belief.believe` for all, and those of Dawid and Skene's model with
its defaults and of the majority are given beside it.

Where a dataset has features, the model's accuracy is given, too: that of the logistic regression,
trained on the labels of `believe`, on the published test split.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import entr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import Clock, flags, tell
from neucrowd_tf.aggregation import DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.simulation import (
    confusion_annotators,
    remove_annotations,
    simulate,
    spammers,
)
from neucrowd_tf.evaluation.intervals import mean_interval
from neucrowd_tf.labelling.activelab import activelab_scores
from neucrowd_tf.labelling.belief import Belief, believe, informed
from neucrowd_tf.labelling.gain import expected_gain, expected_information
from neucrowd_tf.labelling.plan import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEEP, MARKS, ROUNDS = 0.4, (0.1, 0.25, 0.5), 10
STRATEGIES = ("random", "entropy", "activelab", "item", "item_annotator")
FOLDS = 5


class Replay(NamedTuple):
    """A crowd whose labels are replayed.

    Attributes:
        crowd: all its labels.
        truth: `[N]` class codes, -1 where unknown.
        features: `[N, d]`, where there are any.
        test: features `[M, d]` and true classes `[M]` of other instances, where there are any.
    """

    crowd: Annotations
    truth: NDArray[np.int64]
    features: NDArray[Any] | None = None
    test: tuple[NDArray[Any], NDArray[np.int64]] | None = None


def simulated(seed: int, *, tasks: int, annotators: int, classes: int, each: int) -> Replay:
    """Draws a crowd of which a quarter gives random labels."""
    random = annotators // 4
    matrices = np.concatenate(
        [
            confusion_annotators(annotators - random, classes, seed, accuracy=0.65),
            spammers(random, classes, seed),
        ]
    )
    truth = np.random.default_rng([seed, 3]).integers(0, classes, tasks)
    return Replay(simulate(truth, matrices, seed, rates=each / annotators), truth)


def published(name: str, data_dir: Path, size: int | None) -> Replay:
    """Returns the training split of a dataset of `data`, its truth and its features."""
    from data import cifar10n, labelme, music

    if name == "cifar10n":
        dataset = cifar10n.load(data_dir, size=size or 5_000)
        return Replay(dataset.annotations, np.asarray(dataset.truth))
    dataset = {"labelme": labelme.load, "music": music.load}[name](data_dir)
    return Replay(
        dataset.annotations,
        np.asarray(dataset.truth),
        np.asarray(dataset.features),
        (np.asarray(dataset.test.features), np.asarray(dataset.test.labels)),
    )


def datasets(data_dir: Path, quick: bool) -> dict[str, Callable[[int], Replay]]:
    """Returns each replay's maker by name; it takes the draw's seed."""
    few = 200 if quick else 1_000
    return {
        "labelme": lambda seed: published("labelme", data_dir, None),
        "music": lambda seed: published("music", data_dir, None),
        "cifar10n": lambda seed: published("cifar10n", data_dir, 500 if quick else None),
        "simulated_2": lambda s: simulated(s, tasks=few, annotators=40, classes=2, each=6),
        "simulated_4": lambda s: simulated(s, tasks=few, annotators=40, classes=4, each=6),
        "simulated_8": lambda s: simulated(s, tasks=few, annotators=100, classes=8, each=8),
    }


def regression() -> Any:
    """Returns the classifier, unfitted."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))


def classifier(crowd: Annotations, features: NDArray[Any] | None) -> NDArray[np.float64]:
    """Returns `[N, C]` a classifier's probabilities, out of fold, from the majority's labels."""
    votes = crowd.vote_counts()
    shares = (votes.sum(axis=0) + 1.0) / (votes.sum() + crowd.num_classes)
    outcome: NDArray[np.float64] = np.tile(shares, (crowd.num_instances, 1))
    if features is None:
        return outcome
    labels = MajorityVote(ties="first").fit(crowd).labels_
    remaining = np.flatnonzero(np.bincount(labels, minlength=crowd.num_classes)[labels] >= FOLDS)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    section = cross_val_predict(
        regression(), features[remaining], labels[remaining], cv=splits, method="predict_proba"
    )
    outcome[np.ix_(remaining, np.unique(labels[remaining]))] = section
    return outcome


def scores(
    strategy: str,
    crowd: Annotations,
    belief: Belief,
    features: NDArray[Any] | None,
    pairs: tuple[NDArray[Any], NDArray[Any]],
) -> NDArray[np.float64]:
    """Returns what each held-back pair of task and annotator is worth to a strategy."""
    tasks, annotators = pairs
    if strategy == "random":
        return np.zeros(len(tasks))
    if strategy != "entropy":
        probas = classifier(crowd, features)
    if strategy == "entropy":
        return np.asarray(entr(belief.probas).sum(axis=1)[tasks])
    if strategy == "activelab":
        return -activelab_scores(crowd, probas)[tasks]
    believed, errors = informed(belief, crowd, probas).probas[tasks], belief.errors[annotators]
    worth = expected_gain(believed, errors) + TIES * expected_information(believed, errors)
    if strategy == "item":
        total = np.bincount(tasks, weights=worth, minlength=crowd.num_instances)
        return np.asarray((total / np.maximum(np.bincount(tasks, minlength=len(total)), 1))[tasks])
    return worth


def ask(
    worth: NDArray[np.float64], tasks: NDArray[Any], number: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Returns the positions of the pairs with the highest worth, ties at random, a task once as
    long as there are others.
    """
    order = np.lexsort((rng.random(len(worth)), -worth))
    first = np.zeros(len(worth), dtype=bool)
    first[np.unique(tasks[order], return_index=True)[1]] = True
    return np.concatenate([order[first], order[~first]])[:number]


def right(labels: NDArray[Any], truth: NDArray[np.int64]) -> float:
    """Returns the accuracy over tasks whose truth is known."""
    gold_only = truth >= 0
    return float(np.mean(labels[gold_only] == truth[gold_only]))


def accuracies(crowd: Annotations, full: Replay) -> dict[str, float]:
    """Returns the accuracy of the three consensus labels and, where there are test instances, of
    the model.
    """
    labels = {
        "believe": believe(crowd).probas.argmax(axis=1),
        "dawid_skene": DawidSkene().fit(crowd).labels_,
        "majority_vote": MajorityVote().fit(crowd).labels_,
    }
    outcome = {name: right(inferred, full.truth) for name, inferred in labels.items()}
    if full.features is not None and full.test is not None:
        rows = crowd.annotated
        model = regression().fit(full.features[rows], labels["believe"][rows])
        outcome["model"] = right(model.predict(full.test[0]), full.test[1])
    return outcome


def replay(full: Replay, strategy: str, seed: int) -> dict[str, Any]:
    """Asks in rounds, and returns the accuracy after each and, at the marks, of each consensus."""
    crowd, truth, features, _ = full
    rng = np.random.default_rng([seed, 11])
    start = remove_annotations(crowd, KEEP, seed)
    size = crowd.num_annotators
    shown = np.isin(
        crowd.instances.astype(np.int64) * size + crowd.annotators,
        start.instances.astype(np.int64) * size + start.annotators,
    )
    gold_only = int(shown.sum())
    stops = {round(MARKS[-1] * gold_only * section / ROUNDS) for section in range(1, ROUNDS + 1)}
    stops |= {round(mark * gold_only) for mark in MARKS}
    belief = believe(start)
    curve = [(0.0, right(belief.probas.argmax(axis=1), truth))]
    marks: dict[str, dict[str, float]] = {"0": accuracies(start, full)}
    asked = 0
    for stop in sorted(stops):
        held = np.flatnonzero(~shown)
        pairs = (crowd.instances[held], crowd.annotators[held])
        worth = scores(strategy, crowd.select(shown), belief, features, pairs)
        shown[held[ask(worth, pairs[0], stop - asked, rng)]] = True
        asked = stop
        belief = believe(crowd.select(shown))
        curve.append((stop / gold_only, right(belief.probas.argmax(axis=1), truth)))
        for mark in MARKS:
            if stop == round(mark * gold_only):
                marks[f"{mark:g}"] = accuracies(crowd.select(shown), full)
    return {"curve": curve, "marks": marks, "labels": gold_only}


def needed(curve: Sequence[tuple[float, float]], accuracy: float) -> float:
    """Returns the share of further labels at which a curve first reaches an accuracy, on straight
    lines between rounds; infinite where it does not.
    """
    last = curve[0]
    for point in curve:
        if point[1] >= accuracy:
            rise = point[1] - last[1]
            return (
                point[0]
                if rise <= 0
                else last[0] + (point[0] - last[0]) * ((accuracy - last[1]) / rise)
            )
        last = point
    return float("inf")


def over_draws(values: Sequence[float]) -> list[float]:
    """Returns mean and 95 % interval."""
    outcome = mean_interval(values)
    return [outcome.estimate, outcome.low, outcome.high]


def summary(draws: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Returns, of one dataset, accuracies with intervals over draws, and the share of another
    strategy's labels with which `item_annotator` reaches what that one reaches with all of its.
    """
    result: dict[str, Any] = {"labels_at_first": draws["random"][0]["labels"]}
    for strategy, outcome in draws.items():
        result[strategy] = {
            consensus: {
                mark: over_draws([draw["marks"][mark][consensus] for draw in outcome])
                for mark in outcome[0]["marks"]
            }
            for consensus in outcome[0]["marks"]["0"]
        }
    ours = draws["item_annotator"]
    for other in ("random", "activelab"):
        ratios = []
        for mine, theirs in zip(ours, draws[other], strict=True):
            ratios.append(needed(mine["curve"], theirs["curve"][-1][1]) / MARKS[-1])
        finite = all(np.isfinite(ratios))
        result[f"share_of_{other}"] = over_draws(ratios) if finite else None
        result[f"shares_of_{other}"] = [ratio if np.isfinite(ratio) else None for ratio in ratios]
    return result


def cell(interval: Sequence[float]) -> str:
    """Returns a mean and its interval."""
    return "{:.3f} [{:.3f}, {:.3f}]".format(*interval)


def share(outcome: dict[str, Any], other: str) -> str:
    """Returns the share of another's labels that ours needs, or in how many draws it got there."""
    if outcome[f"share_of_{other}"] is not None:
        return cell(outcome[f"share_of_{other}"])
    each = outcome[f"shares_of_{other}"]
    reached = ", ".join(f"{value:.3f}" for value in each if value is not None)
    return f"not reached in {each.count(None)} of {len(each)} draws" + (
        f", else {reached}" if reached else ""
    )


def by_mark(results: dict[str, Any], kind: str) -> list[str]:
    """Returns a table of accuracies at first and after each mark, of datasets that have them."""
    lines = ["| dataset | asked | at first | 10 % | 25 % | 50 % |", "|---|---|---|---|---|---|"]
    for name, outcome in results.items():
        for strategy in STRATEGIES:
            if (row := outcome[strategy].get(kind)) is not None:
                cells = " | ".join(cell(row[mark]) for mark in ("0", *(f"{m:g}" for m in MARKS)))
                lines.append(f"| {name} | {strategy} | {cells} |")
    return lines


def verdicts(results: dict[str, Any]) -> list[str]:
    """Returns on which crowds `item_annotator` needs at most 60 % of random's labels, and where
    fewer than ActiveLab's, on average over draws; where it misses in a draw, it does not.
    """
    lines = []
    for other, limit, text in (
        ("random", 0.6, "At most 60 % of random's labels"),
        ("activelab", 1.0, "Fewer labels than ActiveLab"),
    ):
        shares = {name: outcome[f"share_of_{other}"] for name, outcome in results.items()}
        holds = {name: s for name, s in shares.items() if s is not None and s[0] <= limit}
        unsure = [name for name, s in holds.items() if s[2] > limit]
        rest = [name for name in shares if name not in holds]
        line = f"- {text}: {', '.join(holds) or 'nowhere'}"
        line += f" (the interval ends above on {', '.join(unsure)})" if unsure else ""
        lines.append(line + (f"; not on {', '.join(rest)}." if rest else "."))
    return lines


def markdown(results: dict[str, Any], draws: int) -> str:
    """Returns the page of results."""
    lines = [
        "# Labelling again",
        "",
        "Made with `python -m benchmarks.relabel --output=results/relabel.md`; what is replayed and"
        " how stands in that file's docstring. Accuracy of the consensus after 10, 25 and 50 % more"
        f" labels; mean and 95 % interval over {draws} draws of what is held back.",
        "",
        *by_mark(results, "believe"),
    ]
    models = by_mark(results, "model")
    if len(models) > 2:
        lines += [
            "",
            "The model's accuracy on the published test split, a logistic regression trained on the"
            " consensus:",
            "",
            *models,
        ]
    lines += [
        "",
        "Labels that `item_annotator` needs for the accuracy that another strategy has after 50 %"
        " more, as a share of that one's labels:",
        "",
        "| dataset | of random's | of ActiveLab's |",
        "|---|---|---|",
    ]
    for name, outcome in results.items():
        shares = [share(outcome, other) for other in ("random", "activelab")]
        lines.append(f"| {name} | {' | '.join(shares)} |")
    lines += [
        "",
        *verdicts(results),
        "",
        "The same after 50 % more, by other ways to a consensus:",
        "",
        "| dataset | asked | Dawid and Skene, defaults | majority vote |",
        "|---|---|---|---|",
    ]
    for name, outcome in results.items():
        for strategy in STRATEGIES:
            kinds = ("dawid_skene", "majority_vote")
            cells = " | ".join(cell(outcome[strategy][kind][f"{MARKS[-1]:g}"]) for kind in kinds)
            lines.append(f"| {name} | {strategy} | {cells} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for."""
    parser = flags(__doc__)
    parser.add_argument("--data_dir", type=Path, default=Path("../shared/data"))
    parser.add_argument("--datasets", default="", help="some of them, separated by commas")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small crowds, to try it out")
    parser.add_argument("--output", type=Path, help="a page to write")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # iterations run out on few labels
    makers = datasets(arguments.data_dir, arguments.quick)
    wanted = arguments.datasets.split(",") if arguments.datasets else list(makers)
    results: dict[str, Any] = {}
    for name in wanted:
        with Clock() as clock:
            crowds = [makers[name](seed) for seed in range(arguments.draws)]
            draws = {
                strategy: [replay(crowd, strategy, seed) for seed, crowd in enumerate(crowds)]
                for strategy in STRATEGIES
            }
            results[name] = summary(draws)
        results[name]["seconds"] = clock.seconds
        print(f"{name}: {results[name]['seconds']:.0f} s", file=sys.stderr)
    tell(arguments, results, markdown(results, arguments.draws))
    return 0


if __name__ == "__main__":
    sys.exit(main())
