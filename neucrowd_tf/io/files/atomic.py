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
SYSTEM = (Path("/dev"), Path("/proc"))  # whose links and devices are the system's
SHARED_MEMORY = Path("/dev/shm")
MOST_LINKS = 40  # of a chain, as Linux follows them


def resolved(path: str | Path) -> Path:
    """Returns the file or folder that is written: where links lead, step by step.

    Raises:
        OSError: a step that is the system's, such as /dev/stdout, or links that end nowhere.
    """
    target = Path(os.path.abspath(path))
    for _ in range(MOST_LINKS):
        target = Path(os.path.realpath(target.parent)) / target.name
        system = not set(SYSTEM).isdisjoint(target.parents)
        if system and SHARED_MEMORY not in target.parents:
            message = "this is the system's. To print, use -"
            raise OSError(errno.EINVAL, message, str(path))
        if not target.is_symlink():
            return target
        target = target.parent / os.readlink(target)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _check_target(path: Path) -> None:
    """Raises OSError for a path that no file can replace: a folder, a pipe or a device."""
    if os.path.isdir(path):
        message = "this is a folder. Name a file to write"
        raise IsADirectoryError(errno.EISDIR, message, str(path))
    if os.path.exists(path) and not os.path.isfile(path):
        message = "this is a pipe or a device. Name a file to write"
        raise OSError(errno.EINVAL, message, str(path))


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`.

    It replaces `path` when the block ends without an error; a link stays, and what it leads to is
    replaced.

    The data is flushed to the disk before the rename, so that a crash leaves the old file or the
    new one. An OSError (a full disk, a folder that cannot be written) goes through to the caller
    and leaves no temporary file behind.
    """
    target = resolved(path)
    _check_target(target)
    try:
        with _replacing(target) as temporary:
            yield temporary
    except OSError as error:
        named = error.filename not in (None, str(path), str(target))
        if named and not Path(str(error.filename)).name.startswith(f".{target.name}."):
            raise  # of another file, which was written meanwhile
        reason = error.strerror or str(error)  # the user knows nothing of a temporary name
        if error.errno in FULL:
            reason += FREE_SOME
        raise OSError(error.errno, reason, str(path)) from None


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
    target = resolved(path)
    _make_folder(target.parent)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    fresh = temporary / "new"
    old = temporary / "old"
    unfinished.add(temporary)
    try:
        fresh.mkdir()
        yield fresh
        unfinished.discard(temporary)  # a signal would remove what was there before, too
        if target.exists():
            os.rename(target, old)
        os.rename(fresh, target)
    finally:
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(temporary, ignore_errors=True)
        unfinished.discard(temporary)


def write_text(path: str | Path, text: str) -> None:
    """Writes a UTF-8 text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
