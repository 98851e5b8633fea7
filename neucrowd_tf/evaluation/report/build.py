"""Builds a self-contained HTML page from a crowd's annotations and a run's results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jinja2

from neucrowd_tf import __version__
from neucrowd_tf.aggregation.families import PEOPLE, Sources
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.agreement import Scale
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare.types import Floats, Indices, NamedValues
from neucrowd_tf.evaluation.cross_validation import whole_crowd
from neucrowd_tf.evaluation.report.crowd import crowd_sections
from neucrowd_tf.evaluation.report.model import model_sections
from neucrowd_tf.evaluation.report.text import number, percent, shown
from neucrowd_tf.evaluation.report.training import training_sections
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.run_files import REPORT


def build_report(
    annotations: Annotations,
    *,
    model: NamedValues | None = None,
    title: str = "Crowd report",
    note: str = "",
    sources: Sources = PEOPLE,
    gold: Indices | None = None,
    scale: Scale = "nominal",
    texts: Mapping[str, str] | None = None,
    times: Floats | None = None,
) -> str:
    """Returns the page.

    Args:
        annotations: of N (training) instances.
        model: a run's results, see `model_sections`.
        title: the page's heading.
        note: a text at the beginning of the page.
        sources: which annotators are models, excluded from statistics of agreement, or count once.
        gold: `[N]` class codes, -1 if unknown; they are certain and calibrate.
        scale: of the classes in their order, for the coefficients of agreement.
        texts: what was labelled, by the name of the instance, for the tables of items.
        times: `[A]` seconds since 1970 of each label, none of which is generated; see `changes` of
            `neucrowd_tf.certainty.drift`.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("neucrowd_tf.evaluation.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent, "shown": shown}
    return environment.get_template("report.html").render(
        crowd=crowd_sections(annotations.observed(), sources, gold, scale, texts, times),
        model=model,
        title=shown(title, 100),
        version=__version__,
        note=note,
    )


def write_report(
    folder: Path,
    dataset: CrowdDataset,
    metrics: NamedValues,
    *,
    crowd: Annotations | None = None,
    sources: Sources = PEOPLE,
    gold: Indices | None = None,
    scale: Scale = "nominal",
) -> Path:
    """Writes a run's report.html into its folder; returns the file's path.

    Args:
        folder: of a run that has written predictions.csv.
        dataset: that the run trained on.
        crowd: the annotations that the page is of; `whole_crowd` by default.
        metrics: the content of metrics.json.
        sources: which annotators are models, excluded from statistics of agreement, or count once.
        gold: class codes of the crowd's instances, -1 if unknown.
        scale: of the classes.
    """
    page = build_report(
        whole_crowd(dataset) if crowd is None else crowd,
        model=model_sections(folder, metrics, dataset.class_names) | training_sections(folder),
        title=f"{dataset.name}: {metrics['method']}",
        note=dataset.card.notes,
        sources=sources,
        gold=gold,
        scale=scale,
    )
    write_text(folder / REPORT, page)
    return folder / REPORT
