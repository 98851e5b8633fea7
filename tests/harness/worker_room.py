"""What a worker process imports in test_jobs.py: the small dataset and methods, registered for good
(the process ends).
"""

from __future__ import annotations

from neucrowd_tf import registry
from tests.harness.conftest import Mean, tiny_dataset

registry.register_dataset("tiny", summary="for tests", simulated=True)(tiny_dataset)
registry.register_method("mean", summary="for tests")(Mean)
registry.register_method("broken", summary="for tests", defaults={"fail": "error"})(Mean)
registry.register_method("killed", summary="for tests", defaults={"fail": "kill"})(Mean)
