"""Archives and folders of files, read safely."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import decode, read_text

# What an archive may unpack to; nothing is written to the disk, so names cannot point anywhere.
MOST_BYTES = 1 << 30
MOST_MEMBERS = 200_000


def open_archive(path: Path) -> zipfile.ZipFile:
    """Opens a zip archive.

    Raises:
        DataError: one that is broken, or holds too much.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise DataError(f"{path}: expected a zip archive, received {error}") from None
    members = archive.infolist()
    if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > MOST_BYTES:
        archive.close()
        raise DataError(
            f"{path}: expected an archive of at most {MOST_MEMBERS:,} files and"
            f" {MOST_BYTES >> 20:,} MB, received more"
        )
    return archive


def members(path: Path, endings: tuple[str, ...]) -> Iterator[tuple[PurePosixPath, str]]:
    """Yields the name and the text of each file with one of the endings in an archive or a folder,
    by name; what an operating system adds is passed over.

    Nothing is unpacked onto the disk, and no more is read than the archive's index promised.

    Raises:
        DataError: an archive that is broken, locked or too large, or a file that is no text.
    """
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            name = PurePosixPath(file.relative_to(path).as_posix())
            if file.is_file() and file.suffix in endings and not _hidden(name):
                yield name, read_text(file)
        return
    with open_archive(path) as archive:
        for member in sorted(archive.infolist(), key=lambda member: member.filename):
            name = PurePosixPath(member.filename)
            if member.is_dir() or name.suffix not in endings or _hidden(name):
                continue
            where = f"{path}: {name}"
            try:
                with archive.open(member) as stream:
                    content = stream.read(member.file_size + 1)
            except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError) as error:
                raise DataError(f"{where}: expected a whole file, received {error}") from None
            if len(content) > member.file_size:
                raise DataError(f"{where}: expected {member.file_size} bytes, received more")
            yield name, decode(content, where)


def _hidden(name: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.parts)
