"""Trains methods on datasets and writes results.

Example: `python run_experiment.py --dataset=breast_cancer --method=neucrowd,mv_lr`.
"""

from __future__ import annotations

# The checkout's plug-ins: methods, datasets and suites register themselves when these packages are
# imported, here and in worker processes.
PLUGINS = ("baselines", "data", "reproduction")

if __name__ == "__main__":
    from neucrowd_tf.cli.signals import end_at_signals

    end_at_signals()
    from neucrowd_tf.cli.runs.run_command import start

    start(PLUGINS)
