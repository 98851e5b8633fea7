"""report.html: one self-contained page on a crowd, its annotators, doubtful items and a model.

`write_report(run_folder, dataset, estimator)` writes a run's page. `build_report(annotations)`
returns a crowd's page as text. `neucrowd report --annotations=A.csv` writes it to a file. They are
imported on first use, so that the command reports wrong flags at once.
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
