"""Which criterion chooses well without truth, and what an average saves: every candidate of `auto`
on datasets that have truth, then each criterion's choice scored by it.

    python -m benchmarks.choice collect --output=DIR [--data_dir=DIR] [--datasets=labelme,music]
        [--draws=1,2,3] [--crowds=given,half,spam,shared,rare] [--methods=mv_lr,ds_lr,...]
    python -m benchmarks.choice table --input=DIR [--json] [--output=results/choice.md]

`collect` goes on where it was stopped: one file a dataset, draw, crowd and candidate. A draw of
real data is nine tenths of its rows; simulated data is drawn anew. Crowds: `given` as it is; `half`
of the labels; `spam` a third of the annotators answer at random; `shared` for a fifth of the
instances, those at one side of the feature space, seven labels in ten are the same wrong class;
`rare` every second class keeps a tenth of its instances.

Regret is the test accuracy of the best candidate minus that of what was chosen (balanced accuracy
on usps_syn, whose test set is balanced). `auto` is its rule with all candidates that were
collected.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import t

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.choice import calibration, criteria, ranking, search
from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.candidates import candidates, reason_against
from neucrowd_tf.io.files import load_arrays, save_arrays, write_text
from neucrowd_tf.training.consensus import consensus_labels

DEVELOPED = ("labelme", "music", "usps_syn")
CONFIRMED = ("gsad_syn", "syn1", "breast_cancer", "digits", "cifar10n")
REAL = ("labelme", "music", "cifar10n")
BALANCED = ("usps_syn",)
CROWDS = ("given", "half", "spam", "shared", "rare")
METHODS = (
    *("mv_lr", "ds_lr", "crowd_layer", "dasc_crowd_layer", "dasc_anno_reg", "crowd_layer_norm"),
    *("ds_dl", "iced"),
)
IMAGES, FOLDS, SHARE = 2000, 3, 0.9
Table = tuple[NDArray[Any], Annotations, NDArray[np.int64], NDArray[Any], NDArray[np.int64]]


# --------------------------------------------------------------------------- collect


def drawn(name: str, draw: int, data_dir: Path | None) -> Table:
    """Returns features, annotations, truth, test features and test labels of a draw."""
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.datasets.bundled  # noqa: F401
    from neucrowd_tf import registry

    found = registry.dataset(name).load(data_dir, draw)
    x, test = found.features, found.test.features
    rng = np.random.default_rng([draw, 9])
    rows = np.arange(len(x))
    if name in REAL:
        size = IMAGES if name == "cifar10n" else int(SHARE * len(x))
        rows = np.sort(rng.choice(len(x), size, replace=False))
    if x.ndim == 4:
        x, test = _pooled(x), _pooled(test)
    if found.truth is None:
        raise ValueError(f"{name}: expected a dataset with truth, received one without")
    return x[rows], found.annotations[rows], found.truth[rows], test, found.test.labels


def _pooled(images: NDArray[Any]) -> NDArray[np.float32]:
    """Returns means of 4 x 4 pixels, a row an image."""
    size, height, width, channels = images.shape
    blocks = images.reshape(size, height // 4, 4, width // 4, 4, channels)
    return np.asarray(blocks.mean(axis=(2, 4)).reshape(size, -1), dtype=np.float32)


def with_crowd(table: Table, kind: str, draw: int) -> Table:
    """Returns the table with another crowd, without the instances that it leaves unlabelled."""
    x, crowd, truth, test, test_labels = table
    rng = np.random.default_rng([draw, CROWDS.index(kind)])
    labels, keep = np.array(crowd.labels), np.ones(len(crowd.labels), dtype=bool)
    if kind == "half":
        keep = rng.random(len(keep)) < 0.5
    elif kind == "spam":
        count = crowd.num_annotators
        bad = np.isin(crowd.annotators, rng.choice(count, max(1, count // 3), replace=False))
        labels[bad] = rng.integers(0, crowd.num_classes, bad.sum())
    elif kind == "shared":
        flat = x.reshape(len(x), -1)
        side = ((flat - flat.mean(axis=0)) / (flat.std(axis=0) + 1e-6)) @ rng.normal(
            size=flat.shape[1]
        )
        hard = (side > np.quantile(side, 0.8))[crowd.instances] & (rng.random(len(keep)) < 0.7)
        labels[hard] = (truth[crowd.instances[hard]] + 1) % crowd.num_classes
    elif kind == "rare":
        thinned = (truth % 2 == 1) & (rng.random(len(truth)) > 0.1)
        keep = ~thinned[crowd.instances]
    changed = Annotations(
        *(crowd.instances[keep], crowd.annotators[keep], labels[keep]),
        instance_names=crowd.instance_names,
        annotator_names=crowd.annotator_names,
        class_names=crowd.class_names,
    )
    rows = np.flatnonzero(changed.annotated)
    return x[rows], changed[rows], truth[rows], test, test_labels


def collect(options: argparse.Namespace) -> None:
    """Fits every candidate, cross-validated and on all rows, and keeps what it predicts."""
    jobs = [
        (name, draw, crowd)
        for draw in options.draws
        for crowd in options.crowds
        for name in options.datasets
    ]
    for name, draw, crowd in jobs:
        folder = options.output / f"{name}-{draw}-{crowd}"
        table = with_crowd(drawn(name, draw, options.data_dir), crowd, draw)
        x, annotations, truth, test, test_labels = table
        consensus = consensus_labels(annotations, draw, weigh_annotators=True)
        fold = np.random.default_rng([draw, 1]).permutation(len(x)) % FOLDS
        least = min(int((fold != k).sum()) for k in range(FOLDS))
        splits = [(np.flatnonzero(fold != k)[:least], np.flatnonzero(fold == k)) for k in range(3)]
        save_arrays(
            folder / "table.npz",
            {
                "truth": truth,
                "test_labels": test_labels,
                "consensus": consensus,
                "instances": annotations.instances,
                "annotators": annotations.annotators,
                "labels": annotations.labels,
                "fold": fold,
                "shape": np.array([len(x), annotations.num_annotators, annotations.num_classes]),
            },
        )
        for one in candidates(x, annotations):
            path = folder / f"{one.name}.npz"
            unwanted = one.name not in options.methods or path.exists()
            if unwanted or reason_against(one, annotations) is not None:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                task = search.Task(one, x, annotations, splits, draw, Path(scratch))
                outcome = search.held_out(task)
                if outcome.probabilities is None:
                    sys.stderr.write(f"{folder.name} {one.name}: {outcome.reason}\n")
                    continue
                tested = search.loaded(search.fitted(task)).predict_proba(test)
            accuracy = float((tested.argmax(axis=1) == test_labels).mean())
            sys.stderr.write(
                f"{folder.name} {one.name}: {accuracy:.3f} on test, {outcome.seconds:.0f} s\n"
            )
            save_arrays(path, {"held_out": outcome.probabilities, "test": np.asarray(tested)})


# --------------------------------------------------------------------------- table


def accuracy(probabilities: NDArray[Any], labels: NDArray[Any], balanced: bool) -> float:
    """Returns the share that is right, of all rows or averaged over classes."""
    right = probabilities.argmax(axis=1) == labels
    if not balanced:
        return float(right.mean())
    return float(np.mean([right[labels == code].mean() for code in np.unique(labels)]))


def regrets(folder: Path) -> dict[str, float]:
    """Returns each rule's regret on one table, and the calibration errors of `auto`."""
    table = load_arrays(folder / "table.npz")
    files = {path.stem: load_arrays(path) for path in sorted(folder.glob("*.npz"))}
    del files["table"]
    order = [name for name in METHODS if name in files]
    held = {name: _scaled(files[name]["held_out"]) for name in order}
    test = {name: _scaled(files[name]["test"]) for name in order}
    rows, annotators, classes = (int(size) for size in table["shape"])
    crowd = Annotations(
        *(table["instances"], table["annotators"], table["labels"]),
        num_instances=rows,
        num_annotators=annotators,
        num_classes=classes,
    )
    balanced = folder.name.rsplit("-", 2)[0] in BALANCED
    labels, consensus = table["test_labels"], table["consensus"]
    evidence = criteria.Evidence.of(crowd, consensus, 0)
    unknown = ranking.Known.of(np.full(rows, -1), held)
    everything = ranking.rank(held, evidence, unknown, balanced=balanced)
    shifted = {
        name: softmax(np.log(np.maximum(p, 1e-12)) - everything.corrections[name], axis=1)
        for name, p in test.items()
    }
    seen = {
        name: softmax(np.log(np.maximum(p, 1e-12)) - everything.corrections[name], axis=1)
        for name, p in held.items()
    }
    scored = {name: accuracy(p, labels, balanced) for name, p in shifted.items()}
    best = max(max(accuracy(p, labels, balanced) for p in test.values()), *scored.values())
    scores = {
        name: {one: rule(p, evidence) for one, p in seen.items()}
        for name, rule in criteria.SINGLE.items()
    }
    scores["consensus of the others and the crowd"] = criteria.posterior_agreement(
        seen, evidence, balanced=balanced
    )
    scores["mean rank of all these"] = criteria.mean_rank(scores)
    found = {name: best - scored[max(by, key=lambda one: by[one])] for name, by in scores.items()}
    plain = np.exp(mean_logits(list(shifted.values())))
    found["average of all"] = best - accuracy(plain, labels, balanced)
    alive = _not_hopeless(held, consensus, table["fold"])
    kept = {name: held[name] for name in alive}
    chosen = ranking.rank(
        kept, evidence, ranking.Known.of(np.full(rows, -1), kept), balanced=balanced
    )
    fit = calibration.calibrate(
        [held[name] for name in chosen.kept],
        [chosen.corrections[name] for name in chosen.kept],
        evidence,
        unknown.rows,
    )
    logits = mean_logits([test[name] for name in chosen.kept])
    final = softmax(logits / fit.temperature + fit.shift, axis=1)
    found["auto"] = best - accuracy(final, labels, balanced)
    error = calibration.expected_calibration_error
    found["calibration error before"] = error(np.exp(logits), labels)
    found["calibration error after"] = error(final, labels)
    found["best"] = best
    return found


def _scaled(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    values = np.asarray(probabilities, dtype=np.float64)
    return values / values.sum(axis=1, keepdims=True)


def _not_hopeless(
    held: Mapping[str, NDArray[Any]], consensus: NDArray[Any], fold: NDArray[Any]
) -> list[str]:
    """Returns the candidates that `auto` would have tried on all folds."""
    first = fold == 0
    right = {name: p[first].argmax(axis=1) == consensus[first] for name, p in held.items()}
    base = right["mv_lr"].astype(np.float64)
    return [
        name
        for name, hits in right.items()
        if (hits - base).mean() + search.ERRORS * (hits - base).std(ddof=1) / np.sqrt(first.sum())
        > -search.HOPELESS
    ]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns mean and half width of the 95 % interval (t); infinite for one value."""
    if len(values) < 2:
        return float(np.mean(values)), float("inf")
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return float(np.mean(values)), float(t.ppf(0.975, len(values) - 1)) * error


def report(found: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the page: regret by rule and half, and `auto` by table."""
    halves = {
        "developed on": [f for f in found if f.rsplit("-", 2)[0] in DEVELOPED],
        "confirmed on": [f for f in found if f.rsplit("-", 2)[0] in CONFIRMED],
    }
    figures = ("best", "calibration error before", "calibration error after")
    rules = [rule for rule in next(iter(found.values())) if rule not in figures]
    lines = [
        "# Choosing without truth",
        "",
        "Made by `python -m benchmarks.choice`, which says what is measured. Regret in points: mean"
        " over tables with its 95 % interval (t), and the largest. A negative one is better than"
        " every single candidate.",
        "",
        "| rule | "
        + " | ".join(f"{half} ({len(halves[half])}) | largest" for half in halves)
        + " |",
        "|---|" + "---|" * 4,
    ]
    for rule in rules:
        cells = []
        for names in halves.values():
            values = [100 * found[name][rule] for name in names]
            if not values:
                cells += ["", ""]
                continue
            middle, half = interval(values)
            cells += [f"{middle:.1f} ± {half:.1f}", f"{max(values):.1f}"]
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    lines += [
        "",
        "`auto`, table by table (dataset, draw, crowd); calibration error without and with the"
        " temperature, on test truth.",
        "",
        "| table | best candidate | auto's regret | consensus' regret | calibration error |",
        "|---|---|---|---|---|",
    ]
    for name, row in found.items():
        lines.append(
            f"| {name} | {100 * row['best']:.1f} | {100 * row['auto']:.1f}"
            f" | {100 * row['consensus']:.1f} | {row['calibration error before']:.3f} to"
            f" {row['calibration error after']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def _several(kind: type, text: str) -> list[Any]:
    return [kind(one) for one in text.split(",")]


def main() -> None:
    """Reads the arguments and collects, or writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("collect")
    first.add_argument("--output", type=Path, required=True)
    first.add_argument("--data_dir", type=Path)
    names = (*DEVELOPED, *CONFIRMED)
    for flag, default, kind in (
        ("datasets", names, str),
        ("draws", (1, 2, 3), int),
        ("crowds", CROWDS[:1], str),
        ("methods", METHODS, str),
    ):
        first.add_argument(
            f"--{flag}", default=list(default), type=functools.partial(_several, kind)
        )
    second = commands.add_parser("table")
    second.add_argument("--input", type=Path, required=True)
    second.add_argument("--output", type=Path)
    second.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.command == "collect":
        collect(options)
        return
    folders = sorted(path.parent for path in options.input.glob("*/table.npz"))
    found = {folder.name: regrets(folder) for folder in folders if (folder / "mv_lr.npz").exists()}
    page = report(found)
    if options.output is not None:
        write_text(options.output, page)
    if options.json:
        sys.stdout.write(json.dumps(found) + "\n")
    (sys.stderr if options.json else sys.stdout).write(page)


if __name__ == "__main__":
    main()
