"""Prints datasets' cards in Markdown.

A card has the provenance, and the computed statistics beside the published ones.

    python -m data [--data_dir=DIR] [--seed=0] [name ...]

Without names, all datasets but `table` and the one-against-rest tasks. What cannot be loaded is
said in its place.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import data
from neucrowd_tf import registry
from neucrowd_tf.errors import DataError, UsageError


def main() -> int:
    """Writes the cards to stdout and returns the exit code.

    It is 2 if a dataset that was named is unknown.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data_dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    names = flags.names or [
        dataset.name
        for dataset in registry.datasets()
        if dataset.name != "table" and "_ovr_" not in dataset.name
    ]
    for name in names:
        try:
            text = data.card_text(registry.dataset(name).load(flags.data_dir, flags.seed))
        except UsageError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        except DataError as error:
            text = f"# {name}\n\nNot loaded: {error}\n"
        sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
