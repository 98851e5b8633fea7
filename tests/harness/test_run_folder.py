"""What stands in the place of a run's files and folders, and is of another kind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.harness.run_folder import RunFolder, RunKey, locked


def _folder(output: Path) -> RunFolder:
    folder = RunFolder(RunKey("table", "mv_lr", 0).folder(output, 5))
    folder.path.mkdir(parents=True)
    return folder


def _replace(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir(parents=True)
    elif kind == "link":
        path.symlink_to("/nowhere/at/all")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("x")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("metrics.json", "folder"), ("config.json", "folder"), ("predictions.csv", "folder"),
     ("metrics.json", "pipe"), ("evaluation.json", "pipe"),
     ("checkpoints", "file"), ("checkpoints", "link"), ("tensorboard", "file"),
     ("saved_model", "link"), ("checkpoints/train.npz", "folder")],
)  # fmt: skip
def test_another_kind_in_a_place_is_named(tmp_path: Path, name: str, kind: str) -> None:
    folder = _folder(tmp_path)
    folder.check()
    _replace(folder / name, kind)
    with pytest.raises(UsageError, match=r"expected a f.*received a (f|link|pipe)") as error:
        folder.check()
    assert str(folder / name) in str(error.value) and "remove" in str(error.value)


@pytest.mark.parametrize("kind", ["file", "link"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_file_for_a_folder_of_runs(tmp_path: Path, kind: str, depth: int) -> None:
    folder = RunFolder(RunKey("table", "mv_lr", 0).folder(tmp_path / "out", 5))
    place = [folder.path, *folder.path.parents][depth]
    place.parent.mkdir(parents=True, exist_ok=True)
    _replace(place, kind)
    with pytest.raises(UsageError, match=f"expected a folder.*{place}"):
        folder.check()


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_lock(tmp_path: Path, kind: str) -> None:
    _replace(tmp_path / ".lock", kind)
    with pytest.raises(UsageError, match=r"expected a file.*remove"), locked(tmp_path):
        pass


def test_a_lock_that_stayed_behind_locks_nobody_out(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("")
    with locked(tmp_path):
        pass


CHANGES: list[Callable[[dict], object]] = [  # type: ignore[type-arg]
    lambda v: v["test"].update(accuracy=True),
    lambda v: v["test"].update(accuracy="x"),
    lambda v: v["timings"].update(fit_seconds=float("inf")),
]


@pytest.mark.parametrize("change", CHANGES)
def test_metrics_that_are_no_numbers(tmp_path: Path, change: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    folder = _folder(tmp_path)
    whole = {"test": {"accuracy": 0.5}, "timings": {"fit_seconds": 1.0, "resumed": True}}
    (folder / "metrics.json").write_text(json.dumps(whole))
    assert folder.metrics() == whole
    change(whole)
    (folder / "metrics.json").write_text(json.dumps(whole))
    with pytest.raises(DataError, match=r"metrics.json: expected a number for"):
        folder.metrics()


def test_a_digest_that_is_no_text(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "config.json").write_text(json.dumps({"settings": {"digests": {"features": 3}}}))
    with pytest.raises(DataError, match="expected the settings of a run"):
        folder.check_settings({})


@pytest.mark.parametrize(
    ("name", "fine"), [("accuracy", False), ("auc", False), ("log_loss", True)]
)
def test_a_share_above_one_is_no_metric(tmp_path: Path, name: str, fine: bool) -> None:
    folder = _folder(tmp_path)
    whole = {"test": {name: 9.37}, "timings": {}}
    (folder / "metrics.json").write_text(json.dumps(whole))
    if fine:
        assert folder.metrics() == whole
    else:
        with pytest.raises(DataError, match=f"expected a number for '{name}'.*remove"):
            folder.metrics()


@pytest.mark.parametrize(
    ("path", "digest", "same"),
    [("/b/crowd.csv", "1", True), ("/b/crowd.tsv", "1", False), ("/b/crowd.csv", "2", False)],
)
def test_a_file_that_moved_is_the_same_one(
    tmp_path: Path, path: str, digest: str, same: bool
) -> None:
    folder = _folder(tmp_path)
    for hparams in (False, True):

        def settings(path: str, digest: str, hparams: bool = hparams) -> dict[str, Any]:
            named = {"gold": path}
            return {"digests": {"gold": digest}, **({"hparams": named} if hparams else named)}

        config = {"settings": settings("/a/crowd.csv", "1")}
        (folder / "config.json").write_text(json.dumps(config))
        if same:
            folder.check_settings(settings(path, digest))
        else:
            with pytest.raises(UsageError, match=r"gold.*/b/crowd"):
                folder.check_settings(settings(path, digest))
    with pytest.raises(UsageError, match="threads"):
        folder.check_settings({**settings("/b/crowd.csv", "1"), "threads": 2})
