"""Recognising textual entailment (Snow et al., 2008) with the pairs' texts, 164 annotators."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.datasets import CrowdDataset, table

from . import catalogue
from .download import locate

FILES = ("texts", "annotations", "truth")


@catalogue.register("rte_text", simulated=True)
def load(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads the pairs as texts; the seed draws a fifth of them as the test split.

    Raises:
        DataError: a file is missing or cannot be used.
    """
    folder = locate("rte_text", [f"{name}.csv" for name in FILES], data_dir)
    paths = {name: folder / f"{name}.csv" for name in FILES}
    return table.load(seed=seed, **paths).replace(name="rte_text", card=catalogue.card("rte_text"))
