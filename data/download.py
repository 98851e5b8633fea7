"""Locates a dataset's published files, or downloads them once into a cache.

Local files are in the folder that `--data_dir` names.

Addresses are pinned to a commit and every downloaded byte is checked against a SHA-256, which stand
in catalogue.toml.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path

import pooch
import requests

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.cache import cache_dir

BASE = "https://raw.githubusercontent.com"
BASE_VARIABLE = "NEUCROWD_DATA_URL"  # a mirror that serves <dataset>/<file>
ATTEMPTS = 4
WAIT = 0.5  # seconds before the second attempt, doubled before each further one
TIMEOUT = 30.0  # seconds without a byte


@dataclasses.dataclass(frozen=True)
class Source:
    """Address and checksums of published files.

    They are a repository at a commit, the folder in it, and the SHA-256 of each file by name.
    """

    repository: str
    commit: str
    folder: str
    files: Mapping[str, str]

    def address(self, dataset: str, name: str) -> str:
        """Returns the address of a file.

        If `$NEUCROWD_DATA_URL` is set, it is on that mirror.
        """
        mirror = os.environ.get(BASE_VARIABLE)
        if mirror:
            return f"{mirror.rstrip('/')}/{dataset}/{urllib.parse.quote(name)}"
        folder = f"{self.folder}/" if self.folder else ""
        return f"{BASE}/{self.repository}/{self.commit}/{urllib.parse.quote(folder + name)}"


def locate(
    dataset: str, names: Sequence[str], data_dir: Path | None, source: Source | None = None
) -> Path:
    """Returns the folder that holds a dataset's files.

    Args:
        dataset: the name of its folder ("hotel").
        names: the files needed.
        data_dir: a folder that holds the dataset's folder, or that folder itself; None for the
            cache, where files that are missing or damaged are downloaded from `source`.
        source: where they are published, or None where they cannot be downloaded.

    Raises:
        DataError: a file is missing from `data_dir`, cannot be downloaded, or is not the published
            one.
    """
    if data_dir is not None:
        return _local(dataset, names, Path(data_dir))
    if source is None:
        wanted = f"{dataset}/{names[0]}"
        raise DataError(
            f"{dataset}: expected --data_dir to name a folder with {wanted}, received none (these"
            " files cannot be downloaded)"
        )
    folder = cache_dir() / dataset
    for name in names:
        download(
            source.address(dataset, name),
            folder / name,
            source.files[name],
            title=f"{dataset}/{name}",
        )
    return folder


def find(dataset: str, name: str, data_dir: Path | None, places: Sequence[str] = ("",)) -> Path:
    """Returns the path of one of a dataset's files that cannot be downloaded.

    Args:
        dataset: the name of its folder.
        name: the file.
        data_dir: a folder that holds the dataset's folder, or that folder itself.
        places: folders in it that may hold the file.

    Raises:
        DataError: the file is missing.
    """
    if data_dir is None:
        return locate(dataset, [name], None) / name
    paths = [root / place / name for root in (data_dir / dataset, data_dir) for place in places]
    path = next((path for path in paths if path.is_file()), None)
    return path or _local(dataset, [name], data_dir) / name


def _local(dataset: str, names: Sequence[str], data_dir: Path) -> Path:
    if not data_dir.is_dir():
        raise DataError(
            f"{data_dir}: expected a folder (--data_dir), received"
            f" {'a file' if data_dir.exists() else 'nothing there'}"
        )
    for folder in (data_dir / dataset, data_dir):
        missing = [name for name in names if not (folder / name).is_file()]
        if not missing:
            return folder
        if folder.name == dataset and folder.is_dir():
            raise DataError(
                f"{folder}: expected the file {missing[0]}, received a folder without it"
            )
    raise DataError(
        f"{data_dir}: expected the file {dataset}/{names[0]}, received a folder without {dataset}/"
    )


def download(
    address: str,
    path: Path,
    sha256: str,
    *,
    title: str,
    attempts: int = ATTEMPTS,
    wait: float = WAIT,
) -> None:
    """Downloads one file, unless it is at `path` already.

    The file appears there whole and checked, or not at all.

    Args:
        address: http or https.
        path: where to put it; its folder is made.
        sha256: the digest it must have.
        title: its name in the progress bar and in errors.
        attempts: how often to try.
        wait: seconds before the second attempt, doubled before each further one.

    Raises:
        DataError: the server is out of reach or rejects the request, or the bytes
            are not the published ones.
    """
    if not address.startswith(("http://", "https://")):
        raise DataError(
            f"{BASE_VARIABLE}: expected an address that begins with http:// or https://, received"
            f" {address}"
        )
    fetch = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=TIMEOUT, headers={"User-Agent": "neucrowd-tf"}
    )
    pooch.get_logger().setLevel("WARNING")
    reason = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            pooch.retrieve(
                address, f"sha256:{sha256}", fname=path.name, path=path.parent, downloader=fetch
            )
            return
        except requests.HTTPError as error:
            answer = error.response
            if answer is None:
                reason = _cause(error)
                continue
            reason = f"the server answered {answer.status_code} {answer.reason}"
            if answer.status_code < 500 and answer.status_code not in (408, 429):
                break
        except (requests.RequestException, ValueError) as error:  # ValueError: another digest
            reason = _cause(error)
    raise DataError(
        f"{title}: could not be downloaded from {address}: {reason}; when offline, name a local"
        " copy with --data_dir"
    )


def _cause(error: Exception) -> str:
    """Returns what lies under an error of several layers, on one line."""
    seen = str(error)
    if "does not match the known hash: expected " in seen:
        wanted, _, received = seen.partition("expected sha256:")[2].partition(" but got ")
        return f"expected SHA-256 {wanted}, received {received.partition('.')[0]}"
    cut = re.search(r"IncompleteRead\((\d+) bytes read, (\d+) more expected\)", seen)
    if cut:
        return f"expected {int(cut[1]) + int(cut[2])} bytes, received {cut[1]}"
    return " ".join(seen.split()) or type(error).__name__
