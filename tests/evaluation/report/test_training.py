"""The report's curves of training, and the figures of rounds under plain names."""

from __future__ import annotations

import json
from pathlib import Path

from neucrowd_tf.evaluation.report.training import HEIGHT, WIDTH, by_step, chart, training_sections


def test_a_chart_spans_its_values_and_leaves_out_what_is_no_number() -> None:
    values = {"val_accuracy": [0.5, None, 0.7, float("nan"), 0.9], "val_auc": [0.8]}
    drawn = chart("Validation data", values, ("val_accuracy", "val_auc"), "epoch")
    (line,) = drawn["lines"]
    middle = f"{WIDTH / 2:.1f},{HEIGHT / 2:.1f}"
    assert line["points"] == f"0.0,{HEIGHT:.1f} {middle} {WIDTH:.1f},0.0"
    assert (drawn["low"], drawn["high"], drawn["last"]) == ("0.500", "0.900", 4)
    assert line["label"] == "accuracy on validation data" and line["last"] == "0.900"
    assert chart("Loss", values, ("loss",), "epoch") is None
    level = chart("Loss", {"loss": [1.0, 1.0]}, ("loss",), "epoch")
    assert level["lines"][0]["points"] == f"0.0,{HEIGHT:.1f} 400.0,150.0"


def test_a_run_has_its_curves_and_what_its_method_adds(tmp_path: Path) -> None:
    assert training_sections(tmp_path) == {"charts": [], "bars": [], "bars_title": ""}
    history = {"loss": [2.0, 1.0], "val_accuracy": [0.5, 0.6], "safe_share": [0.8, 0.9]}
    (tmp_path / "history.json").write_text(json.dumps(history))
    titles = [drawn["title"] for drawn in training_sections(tmp_path)["charts"]]
    assert titles[:2] == ["Loss", "Validation data"] and titles[2].startswith("Safety")
    rounds = {"label_accuracy": [0.7, 0.8], "candidate_purity": [None, 0.6]}
    (tmp_path / "history.json").write_text(json.dumps({"synthetic": [3, 4]}))
    (tmp_path / "evaluation.json").write_text(json.dumps({"rounds": rounds}))
    (drawn,) = training_sections(tmp_path)["charts"]
    assert drawn["title"].startswith("Synthetic items") and len(drawn["lines"]) == 1
    (tmp_path / "evaluation.json").unlink()  # without true labels; the history has numbers of items
    history = {"synthetic_as_made": [30.0, 41.0], "balance": [0.2, 0.5]}
    (tmp_path / "history.json").write_text(json.dumps(history))
    (drawn,) = training_sections(tmp_path)["charts"]
    assert [line["label"] for line in drawn["lines"]] == ["smallest class over the largest"]
    by_class = {"by_class": {"confidence": {"no": 0.7, "yes": 0.9}}}
    (tmp_path / "evaluation.json").write_text(json.dumps(by_class))
    assert training_sections(tmp_path)["bars"] == [("no", 0.7), ("yes", 0.9)]


def test_rounds_and_classes_have_plain_names() -> None:
    rounds = {"imbalance_ratio": [2.0, 1.5], "selected": [None, [3, 4]], "best": ["a", None]}
    assert by_step({"rounds": rounds}, ["no", "yes"]) == [
        {"imbalance R of the labels trained on": 2.0},
        {
            "imbalance R of the labels trained on": 1.5,
            "selected labels/no": 3.0,
            "selected labels/yes": 4.0,
        },
    ]
    confidence = {"by_class": {"confidence": {"no": 0.7}}}
    assert by_step(confidence, ["no", "yes"]) == [{"confidence in the labels/no": 0.7}]
    assert by_step({"information_loss": 0.5, "permuted": 1}, []) == [{"information loss": 0.5}]
    assert by_step({}, []) == []
