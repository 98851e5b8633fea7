"""Commands with too little disk or memory: one line, exit code 2, and no broken output."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.torture.cases import command
from tests.torture.forked import Act, forked, tail
from tests.torture.record import Record

LABELS = 20_000


def _limit(kind: int, size: int) -> Act:
    def install() -> None:
        resource.setrlimit(kind, (size, size))

    return install


def _more_memory(megabytes: int) -> Act:
    """Returns what limits a process to some megabytes more than it has."""

    def install() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    return install


def _full_disk() -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.replace = os.rename = full


def limits(folder: Path) -> dict[str, tuple[list[str], Act]]:
    """Returns flags of aggregate and what limits it, by what is tried; writes the files."""
    rows = (f"t{i // 5},w{i % 50},{'yes' if i % 3 else 'no'}\n" for i in range(LABELS))
    (folder / "a.csv").write_text("task,worker,label\n" + "".join(rows))
    shut = folder / "shut"
    shut.mkdir()
    shut.chmod(0o500)
    begin = [f"--annotations={folder}/a.csv", "--method=majority_vote"]
    out = [*begin, f"--output={folder}/out.csv"]
    rows = (f"t{i // 5},w{i % 50},{'yes' if i % 3 else 'no'}\n" for i in range(20 * LABELS))
    (folder / "b.csv").write_text("task,worker,label\n" + "".join(rows))
    large = [f"--annotations={folder}/b.csv", *out[1:]]
    parts = [*begin, "--engine=local", f"--output={folder}/parts"]
    nothing = _limit(resource.RLIMIT_CORE, 0)
    return {
        "full disk": (out, _full_disk),
        "full disk, by parts": (parts, _full_disk),
        "files of 4 kB at most": (out, _limit(resource.RLIMIT_FSIZE, 4096)),
        "files of 4 kB at most, by parts": (parts, _limit(resource.RLIMIT_FSIZE, 4096)),
        "a device that is full": ([*begin, "--output=/dev/full"], nothing),
        "4 MB of memory": (large, _more_memory(4)),
        "a folder without permission": ([*begin, f"--output={shut}/out.csv"], nothing),
    }


def _outputs(folder: Path) -> list[Path]:
    inputs = {"a.csv", "b.csv", "log", "shut", "sound"}
    return [path for path in folder.rglob("*") if path.name not in inputs and path.is_file()]


def _tried(name: str, flags: Sequence[str], before: Act, folder: Path) -> list[str]:
    """Returns what is wrong with what a limited command did, and with what it left."""
    log = folder / "log"
    log.write_text("")
    code = forked(lambda: command("aggregate", flags), log, before)
    text = log.read_text(errors="replace")
    wrong = []
    if code not in (0, 2) or "Traceback" in text:
        wrong.append(f"{name}: exit code {code}: {tail(log)}")
    errors = [line for line in text.splitlines() if line.startswith("error:")]
    if code == 2 and len(errors) != 1:
        wrong.append(f"{name}: {len(errors)} lines of error: {tail(log)}")
    if code:
        left = _outputs(folder)
        whole = [path for path in left if path.suffix == ".csv"]
        if whole:
            wrong.append(f"{name}: it left {whole[0].name}")
        if "--engine=local" in flags:
            again = forked(lambda: command("aggregate", [*flags, "--resume"]), log)
            if again:
                wrong.append(f"{name}: --resume ended with {again}: {tail(log)}")
    return wrong


def try_limits(record: Record) -> None:
    """Records what happens under each limit."""
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        warm = _fresh(Path(scratch), "names")
        names = limits(warm)
        with contextlib.redirect_stderr(io.StringIO()):  # once here, so that all is imported
            command("aggregate", names["4 MB of memory"][0])
        for name in names:
            folder = _fresh(Path(scratch), name.replace(" ", "-"))
            flags, before = limits(folder)[name]
            root = os.geteuid() == 0 and "permission" in name
            wrong = [] if root else _tried(name, flags, before, folder)
            record.add({"limits": int(not root)}, wrong)


def _fresh(scratch: Path, name: str) -> Path:
    folder = scratch / name
    folder.mkdir()
    return folder
