"""report.html: one self-contained page on a crowd, its annotators, its doubtful instances, and a
model trained on it.

`write_report(run_folder, dataset, estimator)` writes a run's page; `build_report(annotations)`
returns a crowd's page as text; `python -m neucrowd_tf.report --annotations=A.csv` writes it to a
file.
"""

from neucrowd_tf.report.build import build_report, refresh_comparison, write_report

__all__ = ["build_report", "refresh_comparison", "write_report"]
