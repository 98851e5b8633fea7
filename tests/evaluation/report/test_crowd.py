"""The items whose consensus labels are the least certain."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.aggregation.families import Sources
from neucrowd_tf.annotations import Annotations, agreement
from neucrowd_tf.certainty.inference import shown as interval
from neucrowd_tf.evaluation.cached_consensus import inferred
from neucrowd_tf.evaluation.report.crowd import _items, crowd_sections
from tests.crowds import Labelled, array_of


def test_doubtful_instances_are_wrong_more_often(crowd: Labelled) -> None:
    annotations, truth = crowd
    doubts = _items(inferred(annotations))
    assert doubts["total"] == annotations.annotated.sum() and len(doubts["rows"]) == 60
    probabilities = [row["probability"] for row in doubts["rows"]]
    assert probabilities == sorted(probabilities)
    named = dict(zip(annotations.instance_names.tolist(), truth, strict=True))
    codes = {name: code for code, name in enumerate(annotations.class_names.tolist())}
    wrong = [codes[row["consensus"]] != named[row["task"]] for row in doubts["rows"]]
    everywhere = inferred(annotations).labels != truth
    assert np.mean(wrong) > 2 * everywhere[annotations.annotated].mean()


def test_items_without_labels_and_with_gold_labels_are_not_doubtful() -> None:
    annotations = Annotations([0, 0, 2, 3], [0, 1, 0, 1], [0, 1, 1, 0], num_instances=4)
    doubts = _items(inferred(annotations, array_of("-1 -1 -1 1")))
    assert {row["task"] for row in doubts["rows"]} == {0, 2} and doubts["total"] == 2


def test_a_models_labels_are_left_out_of_agreement() -> None:
    rng = default_rng(0)
    people = rng.integers(0, 2, (60, 1)) ^ (rng.random((60, 3)) < 0.1)
    model = np.zeros((60, 1), dtype=int)  # says 0 throughout, which agrees with nobody
    crowd = Annotations.from_dense(
        np.concatenate([people, model], axis=1), annotator_names=["a", "b", "c", "gpt"]
    )
    result = crowd_sections(crowd, Sources(["gpt"]))["agreement"]
    alone = Annotations.from_dense(people)
    kappa, alpha = (estimate for _, estimate in result["coefficients"][1:3])
    assert kappa.value == pytest.approx(agreement.fleiss_kappa(alone)) and kappa.low > 0.5
    expected = agreement.agreement_coefficients(alone.vote_counts())
    assert alpha.value == pytest.approx(expected["krippendorff"])
    assert (result["models"], result["overlap"]) == (["gpt"], 60)
    assert {name for pair in result["least"] for name in pair[:2]} == {"a", "b", "c"}
    assert crowd_sections(crowd)["agreement"]["kappa"].value < 0.5
    assert crowd_sections(crowd)["models"] is None


def test_it_is_said_for_how_many_annotators_random_labels_would_show() -> None:
    """Random labels show for annotators of 200 labels, not for those of nine."""
    rng = default_rng(0)
    truth = rng.integers(0, 2, (200, 1))
    dense = np.where(rng.random((200, 8)) < 0.9, truth, 1 - truth)
    dense[9:, 5:] = -1
    result = crowd_sections(Annotations.from_dense(dense))["annotators"]
    assert result["flagged"] == 0 and result["detectable"] == 5
    dense[:, 0] = rng.integers(0, 2, 200)  # what is said for five holds for one of them
    assert crowd_sections(Annotations.from_dense(dense))["annotators"]["suspects"] == [0]


def test_the_plot_has_each_annotator_with_labels_from_the_highest_skill() -> None:
    rng = default_rng(0)
    truth = rng.integers(0, 2, (120, 1))
    rates = array_of("0.9 0.7 0.95 0.8 0.85")
    dense = np.where(rng.random((120, 5)) < rates, truth, 1 - truth)
    crowd = Annotations.from_dense(dense, annotator_names=["a", "b", "llm", "d", "e"])
    plot = crowd_sections(crowd, Sources(["llm"]))["annotators"]["plot"]
    heights = [point["y"] for point in plot["points"]]
    assert heights == sorted(heights) and len(heights) == 5
    assert {point["name"]: point["kind"] for point in plot["points"]}["llm"] == "a model"
    assert all(point["top"] <= point["y"] <= point["bottom"] for point in plot["points"])
    assert plot["points"][-1]["name"] == "b" and plot["chance"] == 75.0


def test_a_model_is_compared_with_what_people_are_likely_to_mean() -> None:
    rng = default_rng(1)
    truth = (rng.random(400) < 0.2).astype(int)
    right = rng.random((400, 4)) < [0.9, 0.9, 0.9, 0.85]
    labels = np.where(right, truth[:, None], 1 - truth[:, None])
    crowd = Annotations.from_dense(labels, annotator_names=["a", "b", "c", "llm"])
    ((name, judged, other),) = crowd_sections(crowd, Sources(["llm"]))["models"]["rows"]
    # Calibrated probabilities allow for mistakes that people share: by them the model has 0.72.
    assert abs(judged.agreement.value - right[:, 3].mean()) < 0.05
    assert abs(judged.shares[1].value - truth.mean()) < 0.04
    assert name == "llm" and other.worth.low < 1 < other.worth.high + 0.5


def test_labels_to_collect_count_each_label_and_accuracies_the_labels_at_hand() -> None:
    rng = default_rng(0)
    source = rng.integers(0, 2, (60, 1))
    labels = np.hstack([source] * 4 + [rng.integers(0, 2, (60, 2))])
    labels[rng.random(labels.shape) < 0.2] = -1
    crowd = Annotations.from_dense(labels, annotator_names=[*"abcd", "p", "q"])
    gold = np.where(np.arange(60) < 30, source[:, 0], -1)
    values = crowd_sections(crowd, Sources(list("abcd")), gold)
    votes = dict(zip(crowd.instance_names.tolist(), crowd.vote_counts().tolist(), strict=True))
    assert values["relabelling"]["rows"] and values["consensus"]["without_gold"]
    for task, _, _, reason in values["relabelling"]["rows"]:
        counts = re.findall(r"(\d+) '([01])'", reason.partition(";")[0])
        assert [sum(int(n) for n, c in counts if c == x) for x in "01"] == votes[task]
    accuracy = inferred(crowd, gold, Sources(list("abcd"))).certainty.accuracy()
    assert values["relabelling"]["now"] == interval(accuracy)
