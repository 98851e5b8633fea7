"""Prints datasets' cards in Markdown.

A card has the provenance, and the computed statistics (seed 0) beside the published ones.

    python -m data [--data_dir=DIR] [name ...]

Without names, all datasets but `table` and the one-against-rest tasks. What cannot be loaded is
said in its place.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, UsageError

from .cards import card_text


def main() -> None:
    """Writes the cards to stdout."""
    parser = argparse.ArgumentParser(prog="python -m data")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data_dir", type=Path)
    flags = parser.parse_args()
    every = [dataset.name for dataset in registry.datasets() if "_ovr_" not in dataset.name]
    every.remove("table")
    for name in flags.names or every:
        try:
            text = card_text(registry.dataset(name).load(flags.data_dir))
        except UsageError as error:
            parser.error(str(error))
        except DataError as error:
            text = f"# {name}\n\nNot loaded: {error}\n"
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
