"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from neucrowd_tf.cli.signals import unfinished

FULL = (errno.ENOSPC, errno.EDQUOT)
FREE_SOME = "; free some and start again"


def _check_target(path: Path) -> None:
    """Raises OSError for a path that no file can replace.

    These are a folder, a pipe, and a device (/dev/null, if the user may write there).
    """
    if os.path.isdir(path):
        message = "this is a folder. Name a file to write"
        raise IsADirectoryError(errno.EISDIR, message, str(path))
    if os.path.exists(path) and not os.path.isfile(path):
        message = "this is a pipe or a device. Name a file to write"
        raise OSError(errno.EINVAL, message, str(path))


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`.

    It replaces `path` when the block ends without an error.

    The data is flushed to the disk before the rename, so that a crash leaves the old file or the
    new one. An OSError (a full disk, a folder that cannot be written) goes through to the caller
    and leaves no temporary file behind.
    """
    target = Path(path)
    _check_target(target)
    try:
        with _replacing(target) as temporary:
            yield temporary
    except OSError as error:
        named = error.filename not in (None, str(target))
        if named and not Path(str(error.filename)).name.startswith(f".{target.name}."):
            raise  # of another file, which was written meanwhile
        reason = error.strerror or str(error)  # the user knows nothing of a temporary name
        reason += FREE_SOME if error.errno in FULL else ""
        raise OSError(error.errno, reason, str(target)) from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        message = "this is a file. Name a folder to write to"
        raise NotADirectoryError(errno.ENOTDIR, message, str(folder)) from None


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    _make_folder(target.parent)
    parts = f".{target.name}.", ".part" + target.suffix
    handle, name = tempfile.mkstemp(prefix=parts[0], suffix=parts[1], dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    unfinished.add(temporary)
    try:
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        # mkstemp makes private files; results are as readable as any other.
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
        unfinished.discard(temporary)


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yields a new folder, which takes the place of `path` when the block ends without an error."""
    target = Path(path)
    _make_folder(target.parent)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    fresh, old = temporary / "new", temporary / "old"
    unfinished.add(temporary)
    try:
        fresh.mkdir()
        yield fresh
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(fresh, target)
        except OSError:
            if old.exists():
                os.rename(old, target)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        unfinished.discard(temporary)


def write_text(path: str | Path, text: str) -> None:
    """Writes a UTF-8 text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
