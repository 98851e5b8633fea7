"""Runs a tiny suite as a process of its own, and ends it with SIGKILL at a chosen moment: "fit 3"
in the third fit, "page" in writing tables.

    python -m tests.reproduction.suite_driver OUT [MOMENT]

It leaves TensorFlow out, for time: no TensorBoard logs, and no calibration error, which is
TensorFlow Probability's.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from neucrowd_tf import metrics, registry
from neucrowd_tf.harness import process
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.training.run import Run
from reproduction import curves, run
from reproduction.suite import Case, Suite
from tests.harness.conftest import Mean, tiny_dataset


def _die(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def main(out: str, moment: str = "") -> int:
    kind, _, number = moment.partition(" ")

    class Counted(Mean):
        def _fit(self, data: Any, run: Any) -> None:
            super()._fit(data, run)
            if kind == "fit" and Counted.calls == int(number):
                _die()

    registry.register_dataset("tiny", summary="for tests", simulated=True)(tiny_dataset)
    registry.register_method("mean", summary="for tests")(Counted)
    registry.register_method("shifted", summary="for tests", defaults={"shift": 0.9})(Counted)
    cases = (
        Case(("tiny",), ("mean", "shifted"), seeds=2),
        Case(("tiny",), ("mean",), "shift=0.1", seeds=2, hparams={"shift": 0.1}, x=0.1),
    )
    suite = Suite("tiny", "Tiny", cases, baseline="mean", analysis=curves.over_settings)
    process.start = lambda options: None
    metrics.expected_calibration_error = lambda *_, **__: 0.0
    for name in ("scalars", "hparams", "flush"):
        setattr(Run, name, lambda *_: None)
    if kind == "page":
        run.write_csv = _die
    return len(run.run_suite(suite, Options(output_dir=Path(out)), print))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
