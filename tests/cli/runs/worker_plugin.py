"""What a worker process imports in test_pool.py: the small dataset and methods, registered for good
(the process ends). TensorFlow stays out, for time.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from neucrowd_tf.cli.runs import process
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import UsageError
from tests.cli.runs.conftest import Mean, leave_out_tensorflow, tiny_dataset


class Once(Mean):
    """Its first fit dies, where the environment's DIE_ONCE names a file to note it."""

    def _fit(self, data, run) -> None:
        if "DIE_ONCE" in os.environ:
            with contextlib.suppress(FileExistsError):
                Path(os.environ["DIE_ONCE"]).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        super()._fit(data, run)


def start(options: Options) -> None:
    if options.device != "auto":
        raise UsageError("--device: expected another one")


registry.register_dataset("tiny", summary="for tests", simulated=True)(tiny_dataset)
registry.register_method("mean", summary="for tests")(Mean)
registry.register_method("once", summary="for tests")(Once)
registry.register_method("broken", summary="for tests", defaults={"fail": "error"})(Mean)
registry.register_method("killed", summary="for tests", defaults={"fail": "kill"})(Mean)
leave_out_tensorflow()
process.start = start
