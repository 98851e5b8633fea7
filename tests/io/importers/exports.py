"""Small exports of each tool, written from their makers' documentation, in `examples/`.

Each holds the same crowd: four reviews, three annotators, one of whom differs on the third review,
and what the tool has besides (skipped and rejected answers, gold labels).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.cases import cases

TEXTS = {"1": "A joy.", "2": "Dull, and long", "3": "Fine = fine", "4": "Never again!"}
WORKERS = ("ann", "bob", "cy")
BY_ITEM = {"1": "pos pos pos", "2": "neg neg neg", "3": "pos neg pos", "4": "neg neg neg"}
LABELS = {
    (item, worker): label
    for item, labels in BY_ITEM.items()
    for worker, label in zip(WORKERS, labels.split(), strict=True)
}


def write(name: str, folder: Path) -> Path:
    """Copies an example into a folder; one that is a folder named as an archive is packed."""
    (source,) = (Path(__file__).parent / "examples" / name).iterdir()
    target = folder / source.name
    if source.suffix == ".zip":
        shutil.make_archive(str(target.with_suffix("")), "zip", source)
    elif source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
    return target


def label_studio_result(label: str, question: str = "sentiment") -> list[dict[str, Any]]:
    about = {"id": "Dx_aB91ISN", "from_name": question, "to_name": "text", "type": "choices"}
    return [{**about, "value": {"choices": [label]}, "origin": "manual"}]


# The importer, the example, how the tool spells item 3, annotator bob and the label neg.
SPELLINGS = cases("""
["label_studio", "label_studio", "3", "bob", "neg"],
["label_studio", "label_studio_min", "3", "2", "neg"],
["prodigy", "prodigy", "-1000003", "reviews-bob", "neg"],
["doccano", "doccano", "3", "bob", "neg"],
["argilla", "argilla", "record-3", "00000000-bob", "neg"],
["labelbox", "labelbox", "review-3", "bob@example.org", "neg"],
["toloka", "toloka", "t3", "bob", "neg"],
["mturk", "mturk", "3HIT3", "BOB", "neg"],
["sagemaker", "sagemaker", "3", "private.us-east-1.bob", "neg"]
""")
IDS = [name for _, name, *_ in SPELLINGS]
WRITERS: dict[str, Callable[[Path], Path]] = {name: partial(write, name) for name in IDS}
EXPORTS = [(tool, WRITERS[name], *rest) for tool, name, *rest in SPELLINGS]
label_studio, prodigy, toloka = (WRITERS[name] for name in ("label_studio", "prodigy", "toloka"))
mturk = WRITERS["mturk"]
