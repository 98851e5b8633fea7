"""Builds a self-contained HTML page from a crowd's annotations and a model's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf import __version__
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty.coefficients import Scale
from neucrowd_tf.commands.run_files import COMPARISON
from neucrowd_tf.evaluation.cross_validation import whole_crowd, whole_truth
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.report.crowd import crowd_sections
from neucrowd_tf.report.model import METRICS, model_sections
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
    gold: NDArray[np.int64] | None = None,
    scale: Scale = "nominal",
) -> str:
    """Returns the page; sections without data are left out.

    Args:
        annotations: of N (training) instances, or None for a model alone.
        truth: `[N]` class codes, -1 if unknown, or None; shown next to inferred labels.
        model: a run's results.
        title: the page's heading.
        notes: sentences at the beginning of the page.
        model_annotators: annotators that are models, excluded from statistics of agreement.
        gold: `[N]` class codes, -1 if unknown; they are certain and calibrate.
        scale: of the classes, for the coefficients of agreement.
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
        sections = None
        if crowd is not None:
            sections = crowd_sections(crowd, truth, model, page, model_annotators, gold, scale)
        values = {
            "crowd": sections,
            "model": None if model is None else model_sections(model),
            "title": shown(title, 100),
            "version": __version__,
            "notes": list(notes),
            "digest": "" if model is None else model.digest,
            "missing": missing,
        }
        return _environment().get_template("report.html").render(values)

    text = rendered(page, page.missing)
    if len(text.encode("utf-8", "replace")) > LARGEST_PAGE:  # pictures and downloads are the bulk
        left_out = (
            "Pictures and downloads are left out, because the page would be larger than 5 MB."
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
    gold: NDArray[np.int64] | None = None,
) -> Path:
    """Writes a run's report.html into its folder.

    Args:
        run_folder: of a finished run, or of one that has written predictions.csv.
        dataset: that the run trained on. Without it the page has only the model's results.
        estimator: the fitted method.
        metrics: the content of metrics.json, if it has not been written yet.
        model_annotators: annotators that are models, excluded from statistics of agreement.
        gold: class codes of `whole_crowd`'s instances, -1 if unknown.

    Returns:
        the file's path.

    Raises:
        DataError: the folder does not have a run's files.
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
        gold=gold,
    )
    write_text(folder / FILE, page)
    return folder / FILE


def refresh_comparison(run_folder: str | Path) -> bool:
    """Updates the comparison in a run's report.html with methods that have finished since.

    Returns:
        whether the page has changed; False without a page.
    """
    folder = Path(run_folder)
    path = folder / FILE
    if not path.is_file():
        return False
    # A page that another program wrote, in any encoding, lacks these marks and is not changed.
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    head, begin, rest = text.partition(COMPARISON[0])
    _, end, tail = rest.partition(COMPARISON[1])
    if not begin or not end:
        return False
    context = {"comparison": siblings(folder), "method_metrics": METRICS}
    context["method"] = read_method(folder)
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
    filters = (number, percent, shown, tooltip)
    environment.filters |= {function.__name__: function for function in filters}
    return environment
