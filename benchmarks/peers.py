"""The same methods here and in other packages: what agrees, what differs, and who is right.

    python -m benchmarks.peers [--output=results/peers.csv] [--data_dir=DATA]

Both sides get the same input. With --data_dir truth inference is also run on published benchmarks,
with its accuracy and seconds here and in crowd-kit, each with its own defaults. A package that is
not installed is left out and named.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.estimator_checks import check_estimator

from benchmarks.timing import Clock, arguments
from data import truth_inference as published
from neucrowd_tf.aggregation.catalogue import make_aggregator
from neucrowd_tf.aggregation.crowdlab import Crowdlab
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.labelling.activelab import activelab_scores
from neucrowd_tf.cli.runs import plugins
from neucrowd_tf.declare import registry
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import markdown_table

Row = tuple[str, str, str, str]  # package, what, the largest difference, the verdict
HEAD = ("package", "what", "largest difference", "verdict")
# Methods that are timed, with crowd-kit's class; its GLAD takes minutes on larger benchmarks.
TIMED = {"dawid_skene": "DawidSkene", "glad": "GLAD", "mace": "MACE", "ebcc": ""}
BENCHMARKS = ("SP_amt", "rte", "web")
TIMES = ("task", "method", "package", "accuracy", "seconds", "cpu_seconds")
CLOSE = 1e-5
CROWD_KIT = {"majority_vote": "MajorityVote", "dawid_skene": "DawidSkene", "glad": "GLAD"}
ITERATIONS = "differs: other stopping rules and priors; the labels are compared"
# Checks of scikit-learn that our estimators do not pass, and why.
_TEXT = Path(__file__).with_name("exceptions.txt").read_text(encoding="utf-8")
EXCEPTIONS = dict(line.split(": ", 1) for line in _TEXT.splitlines())


def crowd() -> tuple[Any, Any]:
    """Returns labels `[N, R]` of uneven annotators, -1 for none, and a classifier's `[N, C]`."""
    instances = 120
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, instances)
    right = rng.random((instances, 8)) < np.linspace(0.5, 0.9, 8)
    dense = np.where(right, truth[:, None], rng.integers(0, 3, (instances, 8)))
    dense[rng.random(dense.shape) < 0.4] = -1
    dense[:, 7] = np.where(right[:, 7], truth, dense[:, 7])
    return dense, rng.dirichlet(np.ones(3), instances)


def verdict(difference: float, otherwise: str) -> tuple[str, str]:
    """Returns a difference as a cell and what it says."""
    return f"{difference:.1e}", "agrees" if difference < CLOSE else otherwise


def crowd_kit(kind: str, annotations: Annotations) -> Any:
    """Returns what a class of crowd-kit's makes of a crowd, `[N, C]`."""
    aggregation = importlib.import_module("crowdkit.aggregation")
    probas = getattr(aggregation, kind)().fit(annotations.to_frame()).probas_
    table = probas.reindex(index=annotations.instance_names, columns=annotations.class_names)
    return table.fillna(0.0).to_numpy()


def with_crowd_kit() -> Iterator[Row]:
    """Compares truth inference with crowd-kit's, and shows that its MACE depends on row order."""
    aggregation = importlib.import_module("crowdkit.aggregation")
    labels = Annotations.from_dense(crowd()[0], num_classes=3)
    table = labels.to_frame()
    for name, theirs in CROWD_KIT.items():
        probas = crowd_kit(theirs, labels)
        ours = make_aggregator(name).fit(labels).probas_
        same = float((ours.argmax(axis=1) == probas.argmax(axis=1)).mean())
        yield "crowd-kit", name, *verdict(np.abs(ours - probas).max(), f"{ITERATIONS}: {same:.1%}")
    kind: dict[str, Any] = {"n_restarts": 1, "n_iter": 5, "random_state": 0}
    tables = table, table.sample(frac=1, random_state=1)
    first, second = (aggregation.MACE(**kind).fit(data).probas_.sort_index() for data in tables)
    change = np.abs(first - second[first.columns]).to_numpy().max()
    yield "crowd-kit", "MACE, rows in another order", *verdict(change, "their fault: order counts")
    crowds = (Annotations(*data.to_numpy().T) for data in tables)
    ours, again = (make_aggregator("mace").fit(crowd).probas_ for crowd in crowds)
    change = np.abs(ours - again).max()
    yield "here", "MACE, rows in another order", *verdict(change, "our fault: order counts")


def with_cleanlab() -> Iterator[Row]:
    """Compares CROWDLAB and ActiveLab with cleanlab's, and its temperature with float labels."""
    from cleanlab import multiannotator
    from cleanlab.internal.multiannotator_utils import compute_soft_cross_entropy

    dense, probas = crowd()
    labels = Annotations.from_dense(dense, num_classes=3)
    table = pd.DataFrame(np.where(dense >= 0, dense, np.nan))
    theirs = multiannotator.get_label_quality_multiannotator(table, probas, verbose=False)
    quality = theirs["label_quality"]
    ours = Crowdlab().fit(labels, probabilities=probas)
    change = np.abs(ours.quality_ - quality["consensus_quality_score"].to_numpy()).max()
    yield "cleanlab", "CROWDLAB, quality", *verdict(change, "differs")
    scores, _ = multiannotator.get_active_learning_scores(table, probas)
    change = np.abs(scores - activelab_scores(labels, probas)).max()
    yield "cleanlab", "ActiveLab, scores", *verdict(change, "differs")
    # By hand: minus the mean log-probability of an instance's labels, over log C.
    floats = table.to_numpy()
    by_hand = [
        -np.log(p[row[row >= 0]]).mean() / np.log(3) for p, row in zip(probas, dense, strict=True)
    ]
    change = np.abs(compute_soft_cross_entropy(floats, probas) - by_hand).max()
    subject = "temperature's cross entropy, float labels, by hand"
    yield "cleanlab", subject, *verdict(change, "their fault: right only with integer labels")


def with_scikit_learn() -> Iterator[Row]:
    """Runs scikit-learn's checks of estimators, except those in `EXCEPTIONS`."""
    plugins.register()
    model = registry.method("mv_lr").make()
    results = check_estimator(model, expected_failed_checks=EXCEPTIONS, on_fail=None, on_skip=None)
    failed = [item["check_name"] for item in results if item["status"] == "failed"]
    count = Counter(item["status"] for item in results)
    shown = f"{count['passed']} pass, {count['xfail']} are left out; others: {failed or 'none'}"
    yield "scikit-learn", "check_estimator of mv_lr", str(len(failed)), shown


PEERS: dict[str, Callable[[], Iterator[Row]]] = {
    "crowdkit": with_crowd_kit,
    "cleanlab": with_cleanlab,
    "sklearn": with_scikit_learn,
}


def timed(data_dir: Path, peer: bool) -> Iterator[dict[str, Any]]:
    """Yields accuracy and seconds of each benchmark's methods, ours and crowd-kit's."""
    for name in BENCHMARKS:
        data = published.load(data_dir, name)
        for method, kind in TIMED.items():
            for package in ("here", "crowd-kit")[: 1 + (peer and bool(kind))]:
                with Clock() as clock:
                    if package == "here":
                        probas = make_aggregator(method).fit(data.annotations).probas_
                    else:
                        probas = crowd_kit(kind, data.annotations)
                figures = data.accuracy(probas), clock.seconds, clock.cpu_seconds
                yield dict(zip(TIMES, (name, method, package, *figures), strict=True))


def page(rows: Sequence[Row], missing: Sequence[str], times: Sequence[dict[str, Any]] = ()) -> str:
    """Returns the tables as Markdown."""
    lines = ["## Agreement with other packages", "", "`make peers`", ""]
    lines += [f"Not installed: {', '.join(missing)}.", ""] if missing else []
    lines += markdown_table(HEAD, rows)
    lines += ["", "Checks of scikit-learn that are left out:", ""]
    lines += [f"- `{name}`: {why}." for name, why in EXCEPTIONS.items()]
    if times:
        cells = ([f"{x:.4f}" if isinstance(x, float) else x for x in y.values()] for y in times)
        lines += ["", "## Accuracy and seconds of a whole fit", "", *markdown_table(TIMES, cells)]
    return "\n".join([*lines, ""])


def main() -> None:
    """Compares with the packages that are installed."""
    options = arguments(__doc__, data_dir=Path, output=Path)
    warnings.simplefilter("ignore")
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    agreement = sorted(row for name in PEERS if name not in missing for row in PEERS[name]())
    peer = "crowdkit" not in missing
    times = list(timed(options.data_dir, peer)) if options.data_dir else []
    print(page(agreement, missing, times))
    if options.output is not None:
        table = pd.DataFrame(agreement, columns=list(HEAD))
        write_text(options.output, table.to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()
