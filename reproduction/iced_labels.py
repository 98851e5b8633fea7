"""`python -m reproduction.iced_labels`: how many labels are right before any synthesis, by reading
of ICED's inference (section 2.3 and 2.4), on the draws of USPS-Syn that `iced_rivals` has.

What is printed also stands, draw by draw, in results/iced_first_labels.csv.
"""

from __future__ import annotations

from pathlib import Path

from absl import app, flags

from neucrowd_tf import registry
from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.evaluation.intervals import mean_interval
from neucrowd_tf.harness import plugins
from neucrowd_tf.iced.inference import infer_labels
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import to_csv

_DRAWS = flags.DEFINE_integer("draws", 10, "how many draws, from 10100 on.")
_DATA = flags.DEFINE_string("data", None, "folder of the datasets.")
_TO = flags.DEFINE_string("to", "results/iced_first_labels.csv", "the table.")

HEADER = ("prior", "em", "smoothing", "seed", "label_accuracy")
READINGS = (
    ("update", "hard", 0.0),
    ("start", "hard", 0.0),
    ("start", "soft", 0.0),
    ("start", "soft", 1.0),
    ("update", "soft", 1.0),
    ("uniform", "hard", 0.0),
    ("uniform", "soft", 1.0),
)


def main(_: list[str]) -> None:
    plugins.register(("baselines", "data"))
    found: dict[tuple[str, str, str], list[float]] = {}
    seeds = range(10100, 10100 + _DRAWS.value)
    for seed in seeds:
        drawn = registry.dataset("usps_syn").load(_DATA.value, seed)
        one_hot = drawn.annotations.one_hot()
        for prior, em, smoothing in READINGS:
            labels = infer_labels(one_hot, 2, prior=prior, em=em, smoothing=smoothing).labels
            right = float((labels == drawn.truth).mean())
            found.setdefault((prior, em, f"{smoothing:g}"), []).append(right)
        votes = majority_labels(drawn.annotations.vote_counts(), "random", 0)
        found.setdefault(("majority vote", "", ""), []).append(float((votes == drawn.truth).mean()))
    rows = [
        [*reading, str(seed), f"{share:.3f}"]
        for reading, shares in found.items()
        for seed, share in zip(seeds, shares, strict=True)
    ]
    write_text(Path(_TO.value), to_csv(HEADER, rows))
    for reading, shares in found.items():
        mean = mean_interval(shares)
        print(f"{' '.join(reading):20s} {mean.estimate:.3f} [{mean.low:.3f}, {mean.high:.3f}]")


if __name__ == "__main__":
    app.run(main)
