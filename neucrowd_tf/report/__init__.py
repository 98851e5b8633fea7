"""report.html: one self-contained page on a crowd, its annotators, its doubtful instances, and a
model trained on it.

`write_report(run_folder, dataset, estimator)` writes a run's page; `build_report(annotations)`
returns a crowd's page as text; `python -m neucrowd_tf.report --annotations=A.csv` writes it to a
file. They are imported when they are first used, so that the command tells of wrong flags at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neucrowd_tf.report.build import build_report, refresh_comparison, write_report

__all__ = ["build_report", "refresh_comparison", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from neucrowd_tf.report import build

    return getattr(build, name)
