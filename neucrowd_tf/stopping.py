"""How a command is stopped: by SIGINT (Ctrl-C), or by SIGTERM from `kill` or a scheduler.

While a command loads, either signal ends its process at once, with one line. Later both are
exceptions, so that unfinished files are removed; `Stopped` is SIGTERM's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)
RESUME = "start again with --resume to go on"
# A command that was asked to stop and has not ended by then (in a library's long call, or as the
# exception got lost) is ended.
GRACE = 5.0

# Files and folders under a temporary name, which a process that is ended at once removes.
unfinished: set[Path] = set()
_told = threading.Event()
_stderr = 2
# What to say with the line, and whether to end at once.
_hint, _at_once = "", False


class Stopped(KeyboardInterrupt):
    """SIGTERM: what a scheduler sends before it kills."""


# What the block was asked to stop by.
_asked: type[KeyboardInterrupt] | None = None


def while_loading() -> None:
    """Lets signals end this process with one line, for a command that begins.

    Ignored signals, such as those of a shell's background jobs, stay ignored.
    """
    global _stderr
    if threading.current_thread() is not threading.main_thread():
        return
    with contextlib.suppress(OSError):
        _stderr = os.dup(2)  # which may lead elsewhere for a while, as when TensorFlow is imported
    # Python's process that frees what is shared with workers would tell of it.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def end(stop: KeyboardInterrupt) -> int:
    """Prints one line with the exception's hint and ends a command's process.

    In another process, such as a test's, it returns the exit code. Python's own shutdown may hang
    if a signal interrupted a library.
    """
    kind = type(stop)
    if not _told.is_set():
        _told.set()
        with contextlib.suppress(OSError, ValueError, AttributeError):  # there is no stderr
            sys.stderr.write(_line(kind, *stop.args))
            sys.stderr.flush()
    if _of_command(signal.SIGTERM) or _of_command(signal.SIGINT):
        _leave(kind)
    return _code(kind)


def _end(number: int, _: FrameType | None = None) -> None:
    """Ends the process at once, with one line."""
    kind = _kind(number)
    if not _told.is_set():
        _told.set()
        with contextlib.suppress(OSError):  # there is none; sys.stderr may be in use just now
            os.write(_stderr, _line(kind, *([_hint] if _hint else [])).encode())
    _leave(kind)


def _leave(kind: type[KeyboardInterrupt]) -> None:
    """Ends the process and those it began."""
    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()
    for path in tuple(unfinished):
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    os._exit(_code(kind))


def _line(kind: type[KeyboardInterrupt], *hints: object) -> str:
    text = "stopped (SIGTERM)" if issubclass(kind, Stopped) else "interrupted"
    return "".join([text, *(f": {hint}" for hint in hints), "\n"])


def _kind(number: int) -> type[KeyboardInterrupt]:
    return Stopped if number == signal.SIGTERM else KeyboardInterrupt


def _code(kind: type[KeyboardInterrupt]) -> int:
    return 128 + (signal.SIGTERM if issubclass(kind, Stopped) else signal.SIGINT)


def _of_command(number: int) -> bool:
    """Whether this process is a command's, which a signal ends while it loads."""
    return signal.getsignal(number) is _end


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Lets SIGTERM raise `Stopped` in the block, as SIGINT raises KeyboardInterrupt.

    An error that ends a block after a signal becomes that exception. Outside the main thread
    nothing changes.
    """
    global _asked
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _asked = None
    _told.clear()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    stop = _Stop()
    try:
        for number in SIGNALS:
            if _of_command(number) or (
                number == signal.SIGTERM and before[number] is not signal.SIG_IGN
            ):
                signal.signal(number, stop)
        yield
    except Exception:  # what a library made of it
        check_stopped()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        stop.cancel()
        _asked = None


@contextlib.contextmanager
def hinted(hint: str, *, at_once: bool = False) -> Iterator[None]:
    """Adds a hint to the line that is printed when the block is stopped.

    Args:
        hint: how to continue.
        at_once: whether to end a command's process rather than the block.
    """
    global _hint, _at_once
    before = _hint, _at_once
    _hint, _at_once = hint, at_once
    try:
        yield
    except KeyboardInterrupt as stop:
        raise type(stop)(hint) from None
    finally:
        _hint, _at_once = before


class _Stop:
    """A handler that raises once, and ends a process that does not end of it."""

    def __init__(self) -> None:
        self._command = _of_command(signal.SIGTERM)
        self._timer: threading.Timer | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        global _asked
        # An exception gets lost in imports, or leaves a module half made that is needed in the end.
        if self._command and (_at_once or _imports(frame)):
            _end(number)
        if _asked is None:
            _asked = _kind(number)
            self._timer = threading.Timer(GRACE, _end, (number,))
            self._timer.daemon = True
            self._timer.start()
            raise _kind(number)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def check_stopped() -> None:
    """Raises a stopping exception again that was lost, as one raised in `__del__` is."""
    if _asked is not None:
        raise _asked from None
