"""Scoring a table with an exported model: the estimator's numbers, names and all, or one clear
line.
"""

from __future__ import annotations

import csv
import io
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.cli.commands import call
from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from neucrowd_tf.saving.saved_model import NAMES, export_saved_model
from tests.cases import cases

Printed = pytest.CaptureFixture[str]

COLUMNS = ("width", "height", "=weight")
CLASSES = ("=cat", "dog", "owl")


@pytest.fixture(scope="module")
def fitted() -> tuple[TwoStageClassifier, np.ndarray]:
    rng = default_rng([11, 1])
    truth = rng.integers(0, 3, 120)
    features = (np.eye(3)[truth] + 0.4 * rng.normal(size=(120, 3))).astype(np.float32)
    crowd = Annotations.from_arrays(
        np.repeat(np.arange(120), 2),
        np.tile([0, 1], 120),
        np.array(CLASSES, dtype=object)[np.repeat(truth, 2)],
    )
    return TwoStageClassifier().fit(features, crowd), features


@pytest.fixture(scope="module")
def model(
    fitted: tuple[TwoStageClassifier, np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return export_saved_model(fitted[0], tmp_path_factory.mktemp("run") / "saved_model", COLUMNS)


def _table(path: Path, features: np.ndarray, columns: tuple[str, ...] = COLUMNS) -> Path:
    rows = [
        f"{'=t' if i == 0 else 't'}{i}," + ",".join(repr(float(value)) for value in row)
        for i, row in enumerate(features)
    ]
    path.write_text("\n".join([",".join(("task", *columns)), *rows]) + "\n", encoding="utf-8")
    return path


def _run(model: Path, features: Path, output: Path, *more: str) -> int:
    return call(
        "predict", [f"--model={model}", f"--features={features}", f"--output={output}", *more]
    )


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


Fitted = tuple[TwoStageClassifier, np.ndarray]


def test_the_estimators_numbers(
    fitted: Fitted, model: Path, tmp_path: Path, capsys: Printed
) -> None:
    estimator, features = fitted
    output = tmp_path / "new" / "y.csv"
    assert _run(model, _table(tmp_path / "x.csv", features), output) == 0
    assert capsys.readouterr().out == f"{output}: 120 rows\n"
    header, rows = _read(output)
    assert header == ["task", "predicted", "p_=cat", "p_dog", "p_owl"]
    wanted = estimator.predict_proba(features)
    assert_allclose(np.array([row[2:] for row in rows], dtype=float), wanted, atol=1e-6)
    assert [row[0] for row in rows[:2]] == ["'=t0", "t1"]
    assert {row[1] for row in rows} == {"'=cat", "dog", "owl"}
    assert [row[1].lstrip("'") for row in rows] == estimator.classes_[
        wanted.argmax(axis=1)
    ].tolist()


def test_columns_in_another_order_give_the_same(
    fitted: Fitted, model: Path, tmp_path: Path
) -> None:
    features = fitted[1]
    tables = (
        _table(tmp_path / "x.csv", features),
        _table(tmp_path / "turned.csv", features[:, ::-1], COLUMNS[::-1]),
    )
    output = tmp_path / "y.csv"
    first, second = (
        [row[2:] for row in _read(output)[1]] for table in tables if _run(model, table, output) == 0
    )
    assert_allclose(np.array(first, dtype=float), np.array(second, dtype=float), atol=1e-6)


def test_a_folder_of_images(tmp_path: Path, cli) -> None:
    """Dark pictures are class 0 and bright ones class 1, trained on at 4 x 4 pixels; new ones of 8
    x 8 are scaled.
    """
    image = pytest.importorskip("PIL.Image")
    features = np.repeat(np.arange(20) % 2, 4 * 4 * 3).reshape(20, 4, 4, 3).astype(np.float32)
    crowd = Annotations.from_arrays(
        np.repeat(np.arange(20), 2), np.tile([0, 1], 20), np.repeat(np.arange(20) % 2, 2)
    )
    model = export_saved_model(TwoStageClassifier().fit(features, crowd), tmp_path / "saved_model")
    folder = tmp_path / "new"
    folder.mkdir()
    for name, brightness in (("night", 0), ("day", 255)):
        pixels = np.full((8, 8, 3), brightness, dtype=np.uint8)
        image.fromarray(pixels).save(folder / f"{name}.png")
    flags = [f"--model={model}", f"--images={folder}"]
    cli("predict", [*flags, f"--output={tmp_path / 'y.csv'}"])
    assert [row[:2] for row in _read(tmp_path / "y.csv")[1]] == [["day", "1"], ["night", "0"]]
    before = (folder / "day.png").read_bytes()
    (folder / "dusk.tif").write_bytes(b"")
    (folder / "more").mkdir()
    refused = cli("predict", [*flags, f"--output={folder / 'day.png'}"], 2).err
    assert "would overwrite --images=" in refused
    assert (folder / "day.png").read_bytes() == before
    printed = cli("predict", [*flags, "--output=-"])
    assert printed.out == (tmp_path / "y.csv").read_text() and printed.err == "2 rows\n"
    table = _table(tmp_path / "x.csv", np.ones((2, 3)))
    two = cli("predict", [*flags, f"--features={table}", "--output=-"], 2).err
    assert "name one of them" in two


@pytest.mark.parametrize(
    ("columns", "message"),
    cases("""
[["width", "height", "weight"], "column '=weight' is missing"],
[["width", "height", "=weight", "age"], "Leave it out with --ignore_columns=age"],
[["width", "height"], "column '=weight' is missing"]
"""),
)
def test_other_columns_are_an_error(
    model: Path, tmp_path: Path, columns: list[str], message: str, capsys: Printed
) -> None:
    output = tmp_path / "y.csv"
    output.write_text("before")
    assert _run(model, _table(tmp_path / "x.csv", np.ones((2, len(columns))), columns), output) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and output.read_text() == "before"


def test_other_errors_are_a_line_each(model: Path, tmp_path: Path, cli) -> None:
    good = _table(tmp_path / "x.csv", np.ones((2, 3)))
    np.save(tmp_path / "wide.npy", np.ones((2, 5)))
    header = "task,width,height,=weight\n"
    (tmp_path / "latin.csv").write_bytes(f"{header}naïve,1,2,3\n".encode("latin-1"))
    twins = tmp_path / "twins.csv"
    twins.write_text(f"{header}a,1,2,3\na ,1,2,3\n")
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "saved_model.pb").write_bytes(b"nothing")
    output = tmp_path / "y.csv"
    for folder, features, message in (
        (tmp_path / "saved_model", good, "Runs write one with --export"),
        (tmp_path / "fake", good, "not a SavedModel from features to probabilities"),
        (model, tmp_path / "none.csv", "no such file"),
        (model, tmp_path / "wide.npy", "trained on rows of shape (3,)"),
        (model, tmp_path / "latin.csv", "the bytes are not UTF-8"),
        (model, twins, "item 'a' occurs twice"),
    ):
        flags = [f"--model={folder}", f"--features={features}", f"--output={output}"]
        error = cli("predict", flags, 2).err
        assert message in error and error.count("\n") == 1, error
    assert not output.exists()
    into = [f"--model={model}", f"--features={good}", f"--output={tmp_path}"]
    assert "--output" in cli("predict", into, 2).err and "--model" in cli("predict", [], 2).err
    for flags, message in (
        (("--encoder=x",), "--encoder: only with --texts"),
        (("--bins=3",), "--bins: predict reads no labels"),
        (("--header=none",), "--header: predict reads no labels"),
    ):
        assert message in cli("predict", [*into[:2], f"--output={output}", *flags], 2).err
    (tmp_path / "signs.csv").write_text(good.read_text().replace(",", "^"))
    assert _run(model, tmp_path / "signs.csv", output, "--separator=^") == 0
    assert _run(model, good, output, "--separator=^") == 0
    (tmp_path / "a.json").write_text('[{"task": "a", "width": 1}]')
    assert _run(model, tmp_path / "a.json", output) == 2
    assert _run(model, twins, output, "--exact_names") == 0
    assert [row[0] for row in _read(output)[1]] == ["a", "a "]


def test_paths_that_are_not_utf8(
    model: Path, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = _table(tmp_path / "x.csv", np.ones((2, 3)))
    shutil.copytree(model, tmp_path / "m\udce9")
    assert _run(tmp_path / "m\udce9", rows, tmp_path / "y.csv") == 2
    error = capsys.readouterr().err
    assert "not UTF-8. Rename the file." in error and error.count("\n") == 1
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    monkeypatch.setattr(sys, "stdout", shown)
    assert _run(model, rows, tmp_path / "y\udce9.csv") == 0
    assert shown.buffer.getvalue().endswith(b"y\\udce9.csv: 2 rows\n")


def test_a_damaged_model_is_a_line(model: Path, tmp_path: Path, capfd: Printed) -> None:
    table = _table(tmp_path / "x.csv", np.ones((2, 3)))
    damages: tuple[tuple[str, bytes], ...] = (
        ("variables/variables.index", b"a,b\n" * 50),
        ("variables/variables.data-00000-of-00001", b"a,b"),
        ("saved_model.pb", b""),
        (str(NAMES), b'{"classes": [], "features": null}'),
        (str(NAMES), b'{"classes": ["a", "b", "c"], "features": ["width"]}'),
        (str(NAMES), b'{"classes": 3}'),
        (str(NAMES), b"{"),
    )
    for number, (name, content) in enumerate(damages):
        folder = shutil.copytree(model, tmp_path / str(number))
        (folder / name).write_bytes(content)
        assert _run(folder, table, tmp_path / "y.csv") == 2
        error = capfd.readouterr().err
        assert error.startswith(f"error: {folder}") and error.count("\n") == 1, error
        assert error.endswith("Export the model again.\n")
    folder = shutil.copytree(model, tmp_path / "older")
    (folder / "fingerprint.pb").unlink()
    assert _run(folder, table, tmp_path / "y.csv") == 0
