"""The page: what stands in it, and that nothing in a file can do harm."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.report.build import build_report, write_report
from tests.crowds import Labelled, array_of

pytestmark = pytest.mark.usefixtures("inferred_once")

ADDRESSES = ("href", "src", "xlink:href", "action", "data", "poster", "srcset", "formaction")


class _Page(HTMLParser):
    """Collects a page's elements and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.text: list[str] = []
        self.links: dict[str, str] = {}  # of the navigation, and the headings that they lead to
        self.headings: list[tuple[str, str]] = []
        self._open: tuple[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attributes if name in ADDRESSES]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        named = dict(attributes)
        if tag == "h2" or (tag == "a" and (named.get("href") or "").startswith("#")):
            self._open = tag, (named.get("id") or named.get("href") or "").removeprefix("#")

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._open is not None:
            tag, place = self._open
            self._open = None
            if tag == "h2":
                self.headings.append((place, data))
            else:
                self.links[place] = data


def _check_harmless(page: str) -> _Page:
    result = _Page(page)
    assert not {"script", "iframe", "object", "embed", "base", "form"} & set(result.tags)
    assert not result.handlers
    assert all(address.startswith(("#", "data:")) for address in result.addresses)
    assert "default-src 'none'" in page and "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert len(page.encode()) < 1_000_000
    return result


def test_a_crowd_alone(crowd: Labelled) -> None:
    annotations, _ = crowd
    page = build_report(annotations, title="A crowd")
    result = _check_harmless(page)
    text = " ".join(result.text)
    for piece in ("A crowd", "Fleiss' kappa", "Gwet's AC1", "pairs that agree least"):
        assert piece in text
    assert "Fleiss' kappa of annotators on these items is 0." in text
    assert "Mistakes that annotators share cannot be seen without gold labels" in text
    assert result.links == dict(result.headings)
    assert list(result.links.values()) == [
        *("Data", "Consensus labels", "Agreement", "Annotator reliability"),
        *("Labels to collect next", "Doubtful items", "How to read this page"),
    ]
    suspects, others = {"spam0", "spam1", "adversary"}, {f"good{i}" for i in range(8)}
    ranked = text[text.rindex("annotator, note") : text.rindex("Labels to collect next")]
    assert max(ranked.rindex(name) for name in suspects) < min(map(ranked.index, others))
    assert result.text.count("unreliable") == len(suspects)
    assert f"of {annotations.annotated.sum()} labelled items" in text


def test_few_items_with_two_labels_are_said_first() -> None:
    """Eight items have two labels, which are the same: kappa is 1 and says nothing."""
    dense = np.full((200, 3), -1)
    dense[np.arange(200), np.arange(200) % 3] = np.arange(200) % 2
    dense[:8, 0] = dense[:8, 1] = np.arange(8) % 2
    text = " ".join(_check_harmless(build_report(Annotations.from_dense(dense))).text)
    section = text[text.rindex("Agreement") :]
    assert section.index("8 of 200 items") < section.index("too few to judge agreement")
    assert "Fleiss' kappa of" not in text and "No annotator of 3 is shown to be unreliable" in text


def test_vote_counts_have_no_annotators_to_rank() -> None:
    page = build_report(Annotations.from_votes(array_of("3 1; 0 4; 2 2")))
    text = " ".join(_check_harmless(page).text)
    assert "Annotator reliability" not in text and "vote counts without annotators" in text
    assert "labels per annotator" not in text and "sparsity" not in text


def test_who_shares_no_instance_with_anybody_is_not_accused() -> None:
    """Annotators 0 to 3 label instances 0 to 19 alike; annotator 4 alone labels 20 to 39, of whom
    nothing can be said.
    """
    instances = np.concatenate([np.repeat(np.arange(20), 4), np.arange(20, 40)])
    annotators = np.concatenate([np.tile(np.arange(4), 20), np.full(20, 4)])
    page = build_report(Annotations(instances, annotators, instances % 2))
    result = _check_harmless(page)
    assert result.text.count("no shared items") == 1
    assert "No annotator of 5 is shown to be unreliable" in " ".join(result.text)


def test_gold_labels_are_kept_and_scales_have_weights() -> None:
    rng = default_rng(3)
    truth = rng.integers(0, 3, 80)
    dense = np.clip(truth[:, None] + rng.choice([-1, 0, 0, 0, 1], (80, 4)), 0, 2)
    crowd = Annotations.from_dense(dense, class_names=[1, 2, 4])
    gold = np.full(80, -1)
    gold[:30] = truth[:30]
    page = build_report(crowd, gold=gold, scale="interval")
    text = " ".join(" ".join(_check_harmless(page).text).split())
    assert "30 gold labels are kept as they are" in text and "of 30 items: " in text
    assert "Gwet's AC2" in text and "interval scale" in text
    assert "of 50 labelled items" in text
    assert "use --scale=ordinal" in " ".join(" ".join(_Page(build_report(crowd)).text).split())
    with pytest.raises(DataError, match="--scale=interval: a class is not a number"):
        build_report(Annotations.from_dense(dense, class_names=["a", "b", "c"]), scale="interval")


def test_generated_annotations_are_left_out(crowd: Labelled) -> None:
    annotations, _ = crowd
    dense = annotations.to_dense()
    instances, annotators = np.nonzero(dense < 0)
    more = annotations.with_generated(
        instances[:200], annotators[:200], np.zeros(200, dtype=np.int64)
    )
    assert build_report(more) == build_report(annotations)


def test_hostile_names(hostile: Annotations) -> None:
    page = build_report(hostile, title=hostile.instance_names[0])
    result = _check_harmless(page)
    text = "".join(result.text)
    assert "<script>document.title" in text and "{{ 7*7 }}" in text  # as text, not as elements
    assert "x" * 1000 not in page and "\u202e" not in page and "\x07" not in page


def test_many_annotators_and_classes_stay_small() -> None:
    rng = default_rng([7, 5])
    size, annotators, classes = 2000, 600, 40
    instances = np.repeat(np.arange(size), 5)
    workers = np.concatenate([rng.choice(annotators, 5, replace=False) for _ in range(size)])
    labels = np.where(
        rng.random(len(instances)) < 0.7,
        instances % classes,
        rng.integers(0, classes, len(instances)),
    )
    names = [f"annotator with a long name, number {i}" * 3 for i in range(annotators)]
    crowd = Annotations(instances, workers, labels, num_classes=classes, annotator_names=names)
    page = build_report(crowd)
    _check_harmless(page)
    assert "400 annotators of lower skill are not shown." in page


def test_a_run_s_page(run_folder: Path, dataset: CrowdDataset) -> None:
    metrics = json.loads((run_folder / "metrics.json").read_text())
    path = write_report(run_folder, dataset, metrics)
    result = _check_harmless(path.read_text(encoding="utf-8"))
    text = " ".join(result.text)
    assert path.name == "report.html"
    for piece in ("mine, which chose ds_lr", "Confusion matrix", "needs <b>more</b>"):
        assert piece in text
    assert "Recommended: ds_lr." in text and "0.800" in text
    assert result.links == dict(result.headings)
    assert list(result.links.values()) == [
        *("Recommendation", "Data", "Consensus labels", "Agreement", "Annotator reliability"),
        *("Labels to collect next", "Doubtful items", "Model", "Calibration"),
        "How to read this page",
    ]
