"""Runs a tiny suite again and again in forked processes, each ended with SIGKILL at a moment:
"fit 3" in the third fit, "page" in writing tables, "" not at all.

    python -m tests.reproduction.suite_driver [[OUT, MOMENT], ...]

The argument is JSON; a line of JSON for each process has its exit code, how many metrics.json there
are then, and whether it made runs. TensorFlow stays out, for time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare import registry
from reproduction import figures, run
from reproduction.suite import Case, Suite
from tests.cli.runs.conftest import Mean, leave_out_tensorflow, tiny_dataset


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


class Counted(Mean):
    """Dies in the fit of that number."""

    last = 0

    def _fit(self, data, run) -> None:
        super()._fit(data, run)
        if Counted.calls == Counted.last:
            _die()


def prepare() -> None:
    registry.register_dataset("tiny", summary="for tests", simulated=True)(tiny_dataset)
    registry.register_method("mean", summary="for tests")(Counted)
    registry.register_method("shifted", summary="for tests", defaults={"shift": 0.9})(Counted)
    leave_out_tensorflow()


def make(out: str, moment: str) -> int:
    """Makes the suite in this process, or a part of it."""
    kind, _, number = moment.partition(" ")
    cases = (
        Case(("tiny",), ("mean", "shifted"), seeds=2),
        Case(("tiny",), ("mean",), "shift=0.1", seeds=2, hparams={"shift": 0.1}, x=0.1),
    )
    suite = Suite("tiny", "Tiny", cases, baseline="mean", analysis=figures.over_settings)
    if kind == "fit":
        Counted.last = int(number)
    if kind == "page":
        run.write_csv = _die
    lines: list[str] = []
    failures = run.run_suite(suite, Options(output_dir=Path(out)), lines.append)
    return len(failures) or 10 * any("runs to make" in line for line in lines)


def main(moments: list[list[str]]) -> None:
    prepare()
    for out, moment in moments:
        child = os.fork()
        if child == 0:
            os._exit(make(out, moment))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([code, len(list(Path(out).rglob("metrics.json")))]), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
