"""TF-IDF and a sentence encoder on texts with few labels each.

    python -m benchmarks.texts --encoder=DIR --train=MD-Agreement_train.json
        --test=MD-Agreement_test.json [--labels=2] [--seed=20000] [--num_runs=5] [--json]

The files are LeWiDi's. A run keeps some labels of each training text, drawn with its seed, and fits
mv_lr and ds_lr to both representations. The accuracy is that on the test texts, against the
majority of all of their labels; texts with a tie are left out. Of an annotator's labels of one text
the first counts. `seconds` and `cpu_seconds` are those of encoding all texts, or 0 for texts that
are in the cache.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.crowds import thinned
from benchmarks.timing import Clock, arguments, show
from neucrowd_tf import registry
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.encoders import SentenceEncoder
from neucrowd_tf.harness import plugins
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.training.run import Run

METHODS = ("mv_lr", "ds_lr")


def texts_and_crowd(path: Path) -> tuple[NDArray[Any], Annotations]:
    """Returns the texts of a LeWiDi file and the labels of these."""
    entries = json.loads(path.read_text("utf-8"))
    crowd = read_annotations(path, TableOptions(duplicates="first")).annotations
    order = [str(name) for name in crowd.instance_names.tolist()]
    return np.array([entries[name]["text"] for name in order], object), crowd


def main() -> None:
    """Prints the accuracy of each run."""
    files: dict[str, Any] = dict.fromkeys(("encoder", "train", "test"), Path)
    options = arguments(__doc__, **files, labels=2, seed=20_000, num_runs=5)
    plugins.register()
    texts, crowd = texts_and_crowd(options.train)
    test_texts, test_crowd = texts_and_crowd(options.test)
    votes = test_crowd.align(class_names=crowd.class_names).vote_counts()
    clear = np.flatnonzero((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1)
    encoder = SentenceEncoder(str(options.encoder)).fit()
    with Clock() as clock:
        encoder.transform([*texts, *test_texts])
    results: dict[str, Any] = {
        "texts": len(texts) + len(test_texts),
        "seconds": round(clock.seconds, 1),
        "cpu_seconds": round(clock.cpu_seconds, 1),
        "runs": [],
    }
    for seed in range(options.seed, options.seed + options.num_runs):
        few = thinned(crowd, options.labels, np.random.default_rng(seed))
        row: dict[str, float] = {"seed": seed}
        for method in METHODS:
            for name, used in (("tfidf", None), ("encoder", encoder)):
                model = registry.method(method).make(seed=seed)
                model.fit(texts, few, run=Run(encoder=used))
                right = model.predict_proba(test_texts[clear]).argmax(axis=1)
                row[f"{method} {name}"] = float((right == votes[clear].argmax(axis=1)).mean())
        results["runs"].append(row)
        print(row, file=sys.stderr, flush=True)
    show(options, results, "")


if __name__ == "__main__":
    main()
