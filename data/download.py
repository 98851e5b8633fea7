"""Where a dataset's published files are: in the folder that `--data_dir` names, or downloaded once
into a cache.

Addresses are pinned to a commit and every downloaded byte is checked against a SHA-256 that stands
in the dataset's module.
"""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files import atomic_path

BASE = "https://raw.githubusercontent.com"
BASE_VARIABLE = "NEUCROWD_DATA_URL"  # a mirror that serves <dataset>/<file>
CACHE_VARIABLE = "NEUCROWD_CACHE"
ATTEMPTS = 4
WAIT = 0.5  # seconds before the second attempt, doubled before each further one
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class Source:
    """Published files: a repository at a commit, the folder in it, and the SHA-256 of each file by
    name.
    """

    repository: str
    commit: str
    folder: str
    files: Mapping[str, str]

    def address(self, dataset: str, name: str) -> str:
        """Returns the address of a file, on the mirror that `$NEUCROWD_DATA_URL` names where it is
        set.
        """
        mirror = os.environ.get(BASE_VARIABLE)
        if mirror:
            return f"{mirror.rstrip('/')}/{dataset}/{urllib.parse.quote(name)}"
        folder = f"{self.folder}/" if self.folder else ""
        return f"{BASE}/{self.repository}/{self.commit}/{urllib.parse.quote(folder + name)}"


def cache_dir() -> Path:
    """Returns the cache folder: `$NEUCROWD_CACHE`, or `~/.cache/neucrowd_tf`."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "neucrowd_tf"


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
        path = folder / name
        if not (path.is_file() and digest(path) == source.files[name]):
            download(
                source.address(dataset, name), path, source.files[name], what=f"{dataset}/{name}"
            )
    return folder


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


def digest(path: Path) -> str:
    """Returns a file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _WrongBytesError(Exception):
    """What arrived is not what was published; trying again may help, as a proxy may have cut it
    short.
    """


def download(
    address: str,
    path: Path,
    sha256: str,
    *,
    what: str,
    attempts: int = ATTEMPTS,
    wait: float = WAIT,
) -> None:
    """Downloads one file; it appears at `path` whole and checked, or not at all.

    Args:
        address: http or https.
        path: where to put it; its folder is made.
        sha256: the digest it must have.
        what: its name in the progress bar and in errors.
        attempts: how often to try.
        wait: seconds before the second attempt, doubled before each further one.

    Raises:
        DataError: the server is out of reach or refuses, or the bytes are not the published ones.
    """
    if not address.startswith(("http://", "https://")):
        raise DataError(
            f"{BASE_VARIABLE}: expected an address that begins with http:// or https://, received"
            f" {address}"
        )
    reason = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            with atomic_path(path) as temporary:
                found = _fetch(address, temporary, what)
                if found != sha256:
                    raise _WrongBytesError(f"expected SHA-256 {sha256}, received {found}")
            return
        except urllib.error.HTTPError as error:
            reason = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 429):
                break
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            TimeoutError,
            ConnectionError,
            _WrongBytesError,
        ) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
    raise DataError(
        f"{what}: could not be downloaded from {address}: {reason}; when offline, name a local copy"
        " with --data_dir"
    )


def _fetch(address: str, path: Path, what: str) -> str:
    """Writes what `address` serves to `path` and returns its SHA-256."""
    seen = hashlib.sha256()
    size = 0
    request = urllib.request.Request(address, headers={"User-Agent": "neucrowd-tf"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response, path.open("wb") as stream:
        announced = response.headers.get("Content-Length")
        total = int(announced) if announced and announced.isdigit() else None
        with _Bar(what, total) as bar:
            while block := response.read(BLOCK):
                stream.write(block)
                seen.update(block)
                size += len(block)
                bar.show(size)
    if total is not None and size != total:
        raise _WrongBytesError(f"expected {total} bytes, received {size}")
    return seen.hexdigest()


class _Bar:
    """A progress bar on a terminal's stderr; nothing when stderr is a file or a pipe."""

    WIDTH = 30

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total = what, total
        self._shown = sys.stderr.isatty()
        self._last = 0.0

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\n")

    def show(self, size: int) -> None:
        """Draws the bar at `size` bytes, ten times a second at most."""
        now = time.monotonic()
        if not self._shown or (now - self._last < 0.1 and size != self._total):
            return
        self._last = now
        done = f"{size / 1e6:.1f} MB"
        if self._total:
            filled = self.WIDTH * size // self._total
            done = (
                f"[{'=' * filled}{' ' * (self.WIDTH - filled)}] {done} of {self._total / 1e6:.1f}"
            )
        sys.stderr.write(f"\r{self._what} {done}")
        sys.stderr.flush()
