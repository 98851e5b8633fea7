"""Runs one command again and again in forked processes, each killed with SIGKILL at another moment;
see test_resume.py.

Usage: python kill_driver.py <moments as JSON> <flags...>. A moment is [file name, count]: the
process is killed when it is about to give a file or folder of that name its name for the count-th
time; an empty name lets it end. The exit codes of the processes are printed as JSON. Modules are
imported once, before the forks, and compute nothing there.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from neucrowd_tf.cli.quiet import quiet
from neucrowd_tf.cli.runs import plugins, run_command


def kill_before(name: str, count: int) -> None:
    """Makes this process kill itself before the count-th rename to that name."""
    left = [count]
    for function in ("replace", "rename"):
        original = getattr(os, function)

        def patched(source, target, *rest, original=original):
            if os.path.basename(os.fspath(target)) == name:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return original(source, target, *rest)

        setattr(os, function, patched)


def main() -> None:
    quiet()
    plugins.register(("baselines", "data"))
    import keras  # noqa: F401
    import tensorflow  # noqa: F401
    import tensorflow_probability  # noqa: F401

    codes = []
    for name, count in json.loads(sys.argv[1]):
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)
            if name:
                kill_before(name, count)
            code = run_command.main(sys.argv[2:], ("baselines", "data"))
            sys.stderr.flush()
            os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(json.dumps(codes))


if __name__ == "__main__":
    main()
