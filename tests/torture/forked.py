"""Commands in forked processes, with a limit of time."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from neucrowd_tf.stopping import end_at_signals

HUNG = 124  # the exit code after too long
Act = Callable[[], None]


def forked(
    work: Callable[[], int], log: Path, before: Act | None = None, seconds: int = 150
) -> int:
    """Runs something in a forked process.

    Args:
        work: returns the exit code.
        log: file to which the output of the process is appended.
        before: what the process does first.
        seconds: after which it is ended.

    Returns:
        the exit code; 99 after an exception, whose name is in the log, and `HUNG` after too long.
    """
    child = os.fork()
    if child == 0:
        code = 99
        try:
            stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            # pytest has replaced these by its own.
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)
            end_at_signals()
            signal.signal(signal.SIGALRM, lambda *_: os._exit(HUNG))
            signal.alarm(seconds)
            if before is not None:
                before()
            code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException as error:
            os.write(2, f"Traceback: {error!r}\n".encode())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-700:]
