"""How a command is stopped: by SIGINT (Ctrl-C), or by SIGTERM from `kill` or a scheduler.

Either signal ends the command's process at once, with one line. Results are written under
temporary names and renamed, and fits have checkpoints, so nothing else is left to do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
RESUME = "start again with --resume to go on"

# Files and folders under a temporary name, which a process that is ended removes.
unfinished: set[Path] = set()
_stderr = 2
_hint = ""


def end_at_signals() -> None:
    """Lets signals end this process with one line, for a command that begins.

    Ignored signals, such as those of a shell's background jobs, stay ignored.
    """
    global _stderr
    # A stream that is closed leads nowhere; otherwise the next file would get its number.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    _stderr = os.dup(2)  # the original leads elsewhere while TensorFlow is imported
    # Python's process that frees what is shared with workers would report the end.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    """Ends the process and those that it began."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    text = "stopped (SIGTERM)" if number == signal.SIGTERM else "interrupted"
    with contextlib.suppress(OSError):  # there is no stderr
        os.write(_stderr, f"{text}{_hint}\n".encode())
    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()
    for path in tuple(unfinished):
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    os._exit(128 + number)


@contextlib.contextmanager
def hinted(hint: str) -> Iterator[None]:
    """Adds a hint how to continue to the line that is printed if the block is stopped."""
    global _hint
    _hint = f": {hint}"
    try:
        yield
    finally:
        _hint = ""
