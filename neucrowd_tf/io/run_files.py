"""The files of a run: their names in its folder, and those of the user's that it was made from."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.images import IMAGES

# metrics.json is written last: it is the mark of a finished run.
FINISHED = "metrics.json"
CONFIG, STATUS = "config.json", "status.json"
SAVED_MODEL = "saved_model"
HISTORY, EVALUATION, CURVES = "history.json", "evaluation.json", "curves.csv"
PREDICTIONS, ANNOTATORS, TUNING = "predictions.csv", "annotators.csv", "tuning.csv"
LABELS = "labels.csv"  # of --dataset=table
REPORT = "report.html"
# What stands around the comparison in the report; a name cannot hold it, as names are escaped.
COMPARISON = ("<!-- comparison -->", "<!-- end of comparison -->")
FILES = (
    *(FINISHED, CONFIG, STATUS, HISTORY, EVALUATION, CURVES, PREDICTIONS, ANNOTATORS, TUNING),
    *(LABELS, REPORT),
)
DIGESTS = "digests"  # of what is said of instances and annotators, in metrics.json
CHECKPOINTS = "checkpoints"
FOLDERS = (CHECKPOINTS, "tensorboard", SAVED_MODEL)
WAY_OUT = {
    FINISHED: "remove it to make the run again",
    CONFIG: "remove the folder to make the run afresh",
}
# What config.json's settings name of the user's: of --dataset=table, and of any method.
TABLES = (
    *("features", "images", "texts", "annotations", "truth"),
    *("test_features", "test_texts", "test_truth"),
)
OF_METHODS = ("weights", "gold")


def read_object(path: Path) -> dict[str, Any]:
    """Returns what a run's metrics.json or config.json holds.

    Raises:
        DataError: no such file, or something else; says what to do.
    """
    try:
        if isinstance(found := read_json(path), dict):
            return found
        raise DataError(f"{path}: expected an object, as a run writes it, received another value")
    except DataError as error:
        raise DataError(f"{error}; {WAY_OUT[path.name]}") from None


def read_config(run: Path) -> dict[str, Any]:
    """Returns a run's config.json, whose `settings` may hold `digests` of files by name.

    Raises:
        DataError: something else is there.
    """
    config = read_object(run / CONFIG)
    settings = config.get("settings")
    digests = settings.get("digests", {}) if isinstance(settings, dict) else None
    if not isinstance(digests, dict) or not all(isinstance(d, str) for d in digests.values()):
        raise DataError(
            f"{run / CONFIG}: expected the settings of a run, received something else;"
            f" {WAY_OUT[CONFIG]}"
        )
    return config


def digests_of(metrics: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Returns the digests of the files of results, by name, that a run's metrics hold; of earlier
    versions' runs those of the predictions at most.

    Raises:
        DataError: something else is there; `path` is the file's.
    """
    before = {PREDICTIONS: metrics["predictions_digest"]} if "predictions_digest" in metrics else {}
    digests = metrics.get(DIGESTS, before)
    texts = isinstance(digests, dict) and all(isinstance(d, str) for d in digests.values())
    if texts and digests.keys() <= {*FILES}:
        return dict(digests)
    raise DataError(
        f"{path}: expected the digests of a run's files, received something else;"
        f" {WAY_OUT[FINISHED]}"
    )


def other_results(run: Path, digests: Mapping[str, str]) -> list[Path]:
    """Returns the files that are there and are not as the run wrote them. What figures are made of
    has no digest, as a resumed run may know less of it; it is an object in JSON.
    """
    tables = {name: run / name for name in digests if (run / name).exists()}
    others = [path for name, path in tables.items() if digest(path) != digests[name]]
    return others + [
        run / name
        for name in (EVALUATION, HISTORY)
        if (run / name).exists() and not _is_object(run / name)
    ]


def is_other_report(run: Path, digests: Mapping[str, str]) -> bool:
    """Whether in the report's place stands what is no report of the run's predictions, or not a
    whole one. Those of earlier versions do not say of which predictions they are.
    """
    path = run / REPORT
    if not path.is_file():
        return os.path.lexists(path)
    page = path.read_bytes()
    if COMPARISON[1].encode() not in page or not page.rstrip().endswith(b"</html>"):
        return True
    named = re.search(rb'<meta name="predictions" content="(\w+)">', page)
    expected = digests.get(PREDICTIONS)
    return named is not None and expected is not None and named[1].decode() != expected


def _is_object(path: Path) -> bool:
    try:
        return isinstance(read_json(path), dict)
    except DataError:
        return False


def _config(run: Path) -> dict[str, Any]:
    """Returns a run's config.json, one without settings where there is none of a run."""
    with contextlib.suppress(DataError):
        return read_config(run)
    return {"settings": {}}


def files_read(run: Path) -> dict[str, Path]:
    """Returns the user's files and folders that a run was made from, by the flags' names; none
    where its config.json cannot be read.
    """
    settings = _config(run)["settings"]
    hparams = settings.get("hparams")
    named = {name: settings.get(name) for name in TABLES}
    if isinstance(hparams, dict):
        named |= {name: hparams.get(name) for name in OF_METHODS}
    return {name: Path(path) for name, path in named.items() if isinstance(path, str) and path}


def run_that_holds(path: Path) -> Path | None:
    """Returns the folder of the run whose file a path is, None for any other path; a report, which
    is made again from the other files, is none.
    """
    real = Path(os.path.realpath(path))
    names = {*FILES, *FOLDERS} - {REPORT}
    for folder in real.parents:
        if real.relative_to(folder).parts[0] in names and "versions" in _config(folder):
            return folder
    return None


def digest_given(name: str, path: Path) -> str:
    """Returns the digest of a user's file or folder that a flag names; only images count in a
    folder of these.
    """
    return digest(path, IMAGES if name == "images" else None)


def changed(run: Path, given: Mapping[str, Path] | None = None) -> list[str]:
    """Returns a line for each file that is another than when the run was made.

    Args:
        run: its folder.
        given: the files to look at, by the flags' names; None for all the run's own.
    """
    now = files_read(run) if given is None else given
    told = []
    for name, before in _config(run)["settings"].get("digests", {}).items():
        path = now.get(name)
        if path is None or not os.access(path, os.R_OK):
            continue  # who reads it says so
        if digest_given(name, path) != before:
            told.append(
                f"warning: {path}: expected --{name} as when the run in {run} was made (SHA-256"
                f" {before[:12]}), received another: the run's results are not of these"
            )
    return told
