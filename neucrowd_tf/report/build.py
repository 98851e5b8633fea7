"""From a crowd's annotations and a model's results to one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf import __version__
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.evaluation.cross_validation import whole_crowd, whole_truth
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.run_files import COMPARISON
from neucrowd_tf.report.crowd_part import crowd_part
from neucrowd_tf.report.model_part import METRICS, model_part
from neucrowd_tf.report.pictures import Page, Pictures
from neucrowd_tf.report.results import ModelResults, read_method, read_run, siblings
from neucrowd_tf.report.text import number, percent, shown, tooltip

if TYPE_CHECKING:
    import jinja2
    from numpy.typing import NDArray

    from neucrowd_tf.datasets import CrowdDataset

FILE = "report.html"
LARGEST_PAGE = 5_000_000


def build_report(
    annotations: Annotations | None = None,
    *,
    truth: NDArray[np.int64] | None = None,
    model: ModelResults | None = None,
    title: str = "Crowd report",
    notes: Sequence[str] = (),
    model_annotators: Sequence[str] = (),
) -> str:
    """Returns the page: statistics, annotators ranked, instances by doubt, and a model's results;
    parts without data are left out.

    Args:
        annotations: of N (training) instances, or None for a model alone.
        truth: `[N]` class codes, -1 where unknown, or None; shown beside what is inferred.
        model: a run's results.
        title: the page's heading.
        notes: sentences that the page begins with.
        model_annotators: annotators that are models, counted apart in statistics of agreement.
    """
    page = Page()
    try:
        page = Page(Pictures())
    except ImportError:
        page.missing.append(
            "Pictures need matplotlib, which is not installed: pip install 'neucrowd-tf[plots]'."
        )
    crowd = None if annotations is None else annotations.observed()

    def rendered(page: Page, missing: list[str]) -> str:
        parts = {
            "crowd": (
                None if crowd is None else crowd_part(crowd, truth, model, page, model_annotators)
            ),
            "model": None if model is None else model_part(model, page),
        }
        heading = {"title": shown(title, 100), "version": __version__, "notes": list(notes)}
        heading["digest"] = "" if model is None else model.digest
        template = _environment().get_template("report.html")
        return template.render(heading | parts | {"missing": missing})

    text = rendered(page, page.missing)
    if len(text.encode("utf-8", "replace")) > LARGEST_PAGE:  # pictures and downloads are the bulk
        left_out = (
            "Pictures and downloads are left out, as the page would have been larger than 5 MB."
        )
        text = rendered(Page(downloads=False), [*page.missing, left_out])
    return text


def write_report(
    run_folder: str | Path,
    dataset: CrowdDataset | None = None,
    estimator: Any = None,
    metrics: Mapping[str, Any] | None = None,
    *,
    model_annotators: Sequence[str] = (),
) -> Path:
    """Writes a run's report.html into its folder.

    Args:
        run_folder: of a finished run (or one that has written predictions.csv).
        dataset, estimator: what the run trained on and the fitted method. Without them the page has
            the model's results alone.
        model_annotators: annotators that are models, counted apart in statistics of agreement.
        metrics: what metrics.json is going to hold, where it has not been written yet.

    Returns:
        the file's path.

    Raises:
        DataError: the folder does not hold a run's files.
    """
    folder = Path(run_folder)
    model = read_run(folder, dataset, estimator, metrics)
    name = (
        dataset.name
        if dataset is not None
        else folder.resolve().parents[2 if folder.name.startswith("fold-") else 1].name
    )
    notes = [dataset.card.notes] if dataset is not None and dataset.card.notes else []
    page = build_report(
        None if dataset is None else whole_crowd(dataset),
        truth=None if dataset is None else whole_truth(dataset),
        model=model,
        title=f"{name}: {model.method}",
        notes=notes,
        model_annotators=model_annotators,
    )
    write_text(folder / FILE, page)
    return folder / FILE


def refresh_comparison(run_folder: str | Path) -> bool:
    """Brings the comparison in a run's report.html up to date, with methods that have finished
    since it was written.

    Returns:
        whether the page has changed; False where there is none.
    """
    folder = Path(run_folder)
    path = folder / FILE
    if not path.is_file():
        return False
    # A page that something else wrote, in whatever bytes, has no such place, and stays.
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    head, begin, rest = text.partition(COMPARISON[0])
    _, end, tail = rest.partition(COMPARISON[1])
    if not begin or not end:
        return False
    context = {
        "comparison": siblings(folder),
        "method_metrics": METRICS,
        "method": read_method(folder),
    }
    table = _environment().get_template("comparison.html").render(context)
    page = f"{head}{begin}\n{table}{end}{tail}"
    if page == f"{head}{begin}{rest}":
        return False
    write_text(path, page)
    return True


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("neucrowd_tf.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "shown": shown,
        "tooltip": tooltip,
    }
    return environment
