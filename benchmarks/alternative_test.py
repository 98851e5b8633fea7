"""Compares the alternative annotator test with what its authors publish.

    python -m benchmarks.alternative_test --data_dir=FOLDER [--output=results/alternative_test.md]

FOLDER is `data/` of https://github.com/nitaytech/AltTest. The figures that are compared are those
printed in its notebook `alt_test_example.ipynb`: the share of people that a model may replace, and
its advantage probability.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.timing import flags, tell
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.alternative_test import alternative_test

# epsilon, whether labels are ratings, and (winning rate, advantage) of each model as published.
MODELS = ("gemini_flash", "gemini_pro", "gpt-4o", "llama-31", "gpt-4o-mini", "mistral-v03")
PUBLISHED: dict[str, tuple[float, bool, str, str]] = {
    "wax": (0.1, False, ".38 .50 .50 .00 .00 .00", ".69 .74 .73 .57 .59 .50"),
    "lgbteen": (0.2, False, ".25 .00 .75 .00 .75 .25", ".71 .67 .77 .72 .76 .75"),
    "mtbench": (0.2, False, ".00 .00 .00 .00 .00 .00", ".72 .76 .77 .69 .74 .68"),
    "framing": (0.15, False, "1.0 1.0 1.0 .50 1.0 .25", ".83 .91 .92 .80 .87 .80"),
    "cebab_aspects": (0.1, False, ".70 .90 .90 .60 .50 .10", ".91 .94 .93 .89 .90 .81"),
    "summeval": (0.2, True, ".00 .00 .00 .00 .00 .00", ".46 .44 .48 .58 .54 .62"),
    "10k_prompts": (0.15, True, ".31 .08 .69 .15 .92 .15", ".67 .63 .76 .67 .80 .67"),
    "cebab_stars": (0.1, True, ".60 .80 .90 .60 .90 .50", ".82 .87 .90 .85 .89 .83"),
    "lesion": (0.15, True, ".17 1.0 .00 - .67 -", ".71 .81 .62 - .73 -"),
}


def read(folder: Path, model: str) -> Annotations:
    """Returns the labels of people and of one model, which is the last annotator."""
    people = json.loads((folder / "human_annotations.json").read_text(encoding="utf-8"))
    answers = json.loads((folder / "llm_annotations.json").read_text(encoding="utf-8"))
    everyone = {**people, "model": answers[model]}
    triples = [
        (item, annotator, label)
        for annotator, labels in everyone.items()
        for item, label in labels.items()
    ]
    columns = (np.array(column, dtype=object) for column in zip(*triples, strict=True))
    return Annotations.from_arrays(*columns)


def compared(data_dir: Path) -> Iterator[tuple[str, str, float, float, float, float]]:
    """Yields dataset, model, winning rate as published and ours, advantage likewise."""
    for name, (epsilon, ratings, rates, advantages) in PUBLISHED.items():
        for model, rate, advantage in zip(MODELS, rates.split(), advantages.split(), strict=True):
            if rate == "-":
                continue
            crowd = read(data_dir / name, model)
            code = crowd.annotator_names.tolist().index("model")
            alike = None
            if ratings:
                numbers = crowd.class_names.astype(np.float64)
                alike = -((numbers[:, None] - numbers) ** 2)
            result = alternative_test(crowd, code, epsilon=epsilon, similarity=alike)
            shares = float(rate), result.winning_rate
            yield name, model, *shares, float(advantage), result.advantage


def page(rows: Sequence[tuple[str, str, float, float, float, float]]) -> str:
    """Returns the page of results."""
    far = sum(abs(a - b) > 0.0051 or abs(c - d) > 0.0051 for _, _, a, b, c, d in rows)
    lines = [
        "# The alternative annotator test on its authors' data",
        "",
        "`python -m benchmarks.alternative_test --data_dir=AltTest/data` makes this page. Published"
        " values are those printed in `alt_test_example.ipynb` of github.com/nitaytech/AltTest.",
        "",
        f"{len(rows) - far} of {len(rows)} pairs of values agree to two digits.",
        "",
        "| data | model | winning rate, published | ours | advantage, published | ours |",
        "|---|---|--:|--:|--:|--:|",
    ]
    lines += [f"| {n} | {m} | {a:.2f} | {b:.2f} | {c:.2f} | {d:.2f} |" for n, m, a, b, c, d in rows]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the comparison."""
    parser = flags(__doc__)
    parser.add_argument("--data_dir", type=Path, required=True, help="`data/` of AltTest")
    parser.add_argument("--output", type=Path, help="a page to write")
    arguments = parser.parse_args(argv)
    rows = list(compared(arguments.data_dir))
    tell(arguments, rows, page(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
