"""A user's tables through the command: labels.csv, texts, refitting, outside labels, scores without
truth.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from neucrowd_tf.cli.commands import call
from neucrowd_tf.cli.runs import process, run_command
from neucrowd_tf.errors import UsageError

RIGHT = 0.85


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 texts of two kinds, three labels each by five people, and all by a model."""
    folder, rng = tmp_path_factory.mktemp("tables"), default_rng(0)
    truth = rng.integers(0, 2, 90)
    words = [["awful", "broken", "Rude"], ["lovely", "Great", "kind"]]
    texts = [f"The {words[c][rng.integers(3)]}, {words[c][rng.integers(3)]} place" for c in truth]
    pd.DataFrame({"task": [f"t{i}" for i in range(90)], "text": texts}).to_csv(
        folder / "texts.csv", index=False
    )
    rows = []
    for i, c in enumerate(truth):
        for who in [*(f"w{w}" for w in rng.choice(5, 3, replace=False)), "gpt"]:
            rows.append((f"t{i}", who, ["no", "yes"][c if rng.random() < RIGHT else 1 - c]))
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    frame.to_csv(folder / "annotations.csv", index=False)
    return folder


Run_ = Callable[..., int]


@pytest.fixture
def run(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run_:
    monkeypatch.setattr(process, "start", lambda options: None)  # other tests computed before
    monkeypatch.setattr(process, "start_without_tensorflow", lambda options: None)

    def created(*more: str) -> int:
        passed = [f"--texts={tables / 'texts.csv'}", f"--annotations={tables / 'annotations.csv'}"]
        passed += ["--dataset=table", "--method=mv_lr", f"--output_dir={tmp_path}"]
        return run_command.main([*passed, *more])

    return created


def test_texts_to_a_model_that_takes_strings(
    run: Run_, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--export", "--model_annotator=gpt") == 0
    assert "No true labels are available" in capsys.readouterr().out
    folder = tmp_path / "table" / "mv_lr" / "seed-0"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["test_labels"] == "expected by the crowd"
    assert metrics["test"]["accuracy"] > 0.8 and "annotators share" in metrics["test_meaning"]
    labels = pd.read_csv(folder / "labels.csv")
    assert len(labels) == 90 and set(labels["label"]) == {"no", "yes"}
    assert (labels["num_labels"] == 4).all()
    assert (labels["model_held_out"] == "yes").sum() == 18
    assert len(pd.read_csv(folder / "annotators.csv")) == 6
    assert "is a model and is left out" in (folder / "report.html").read_text()
    scored = tmp_path / "scored.csv"
    texts = f"--texts={tables / 'texts.csv'}"
    assert call("predict", [f"--model={folder / 'saved_model'}", texts, f"--output={scored}"]) == 0
    served = pd.read_csv(scored)
    assert (
        served["predicted"] == labels.set_index("task")["label"].loc[served["task"]].values
    ).mean() > 0.9
    tested = pd.read_csv(folder / "predictions.csv").set_index("task")["p_yes"]
    same = served.set_index("task")["p_yes"].loc[tested.index]
    np.testing.assert_allclose(same, tested, atol=1e-5)
    assert (
        call("predict", [f"--model={folder / 'saved_model'}", "--features=x.csv", "--output=y.csv"])
        == 2
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--model_annotator=nobody", "no annotator is named 'nobody'"),
        ("--features=texts.csv", "--dataset=table needs exactly one"),
    ],
)
def test_what_cannot_be(
    run: Run_, capsys: pytest.CaptureFixture[str], flag: str, message: str
) -> None:
    try:
        assert run(flag) == 2
        assert message in capsys.readouterr().err
    except UsageError as error:
        assert message in str(error)
