"""Locates a dataset's published files, or downloads them once into a cache.

Local files are in the folder that `--data_dir` names.

Addresses are pinned to a commit and every downloaded byte is checked against a SHA-256, which stand
in catalogue.toml.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pooch
import requests

from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.files.cache import cache_dir

BASE = "https://raw.githubusercontent.com"
BASE_VARIABLE = "NEUCROWD_DATA_URL"  # a mirror that serves <dataset>/<file>
ATTEMPTS = 4
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

    def address(self, dataset: str) -> str:
        """Returns the address of a dataset's files, which is followed by a file's name.

        If `$NEUCROWD_DATA_URL` is set, it is on that mirror.
        """
        mirror = os.environ.get(BASE_VARIABLE)
        if mirror:
            return f"{mirror.rstrip('/')}/{dataset}/"
        return f"{BASE}/{self.repository}/{self.commit}/{self.folder}/"


def locate(dataset: str, names: Texts, data_dir: Path | None, source: Source | None = None) -> Path:
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
    return download(dataset, names, source)


def _local(dataset: str, names: Texts, data_dir: Path) -> Path:
    if not data_dir.is_dir():
        raise DataError(f"{data_dir}: there is no such folder. Name another one with --data_dir.")
    for folder in (data_dir / dataset, data_dir):
        if all(map(Path.is_file, map(folder.joinpath, names))):
            return folder
    missing = next(name for name in names if not (data_dir / dataset / name).is_file())
    raise DataError(f"{data_dir}: expected the file {dataset}/{missing}, received none")


def download(dataset: str, names: Texts, source: Source) -> Path:
    """Downloads files into the cache, unless they are there already, and returns their folder.

    A file appears there whole and checked, or not at all.

    Args:
        dataset: the name of the folder.
        names: the files.
        source: where they are published.

    Raises:
        DataError: the server is out of reach or rejects the request, or the bytes
            are not the published ones.
    """
    pooch.get_logger().setLevel("WARNING")
    folder = cache_dir() / dataset
    files = pooch.create(
        folder, source.address(dataset), registry=source.files, retry_if_failed=ATTEMPTS - 1
    )
    fetch = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=TIMEOUT, headers={"User-Agent": "neucrowd-tf"}
    )
    for name in names:
        try:
            files.fetch(name, downloader=fetch)
        except (requests.RequestException, ValueError) as error:  # ValueError: another digest
            raise DataError(
                f"{dataset}/{name}: could not be downloaded from {files.get_url(name)}:"
                f" {one_line(error)}; when offline, name a local copy with --data_dir"
            ) from None
    return folder
