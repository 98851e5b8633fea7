"""The command `neucrowd report`: a crowd's labels as one HTML page."""

from __future__ import annotations

from neucrowd_tf.aggregation.base import gold_codes
from neucrowd_tf.aggregation.families import Sources
from neucrowd_tf.cli.command_line import STDOUT, check_outputs, say, write_outputs
from neucrowd_tf.cli.commands.reading import models_of, read_labels
from neucrowd_tf.cli.commands.report_flags import Report
from neucrowd_tf.evaluation.agreement_tables import agreement_csvs, people_only
from neucrowd_tf.evaluation.report.build import build_report
from neucrowd_tf.io.features import read_features


def run(flags: Report) -> list[str]:
    """Writes the page and prints where; returns notes for standard error, of which it has none.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    inputs = {f"--{name}": getattr(flags, name) for name in ("annotations", "gold", "features")}
    check_outputs({"--output": flags.output, "--agreement": flags.agreement}, inputs)
    items = None
    if flags.features is not None:
        items = read_features(flags.features, flags).items.tolist()
    reading, gold = read_labels(
        flags.annotations, flags, flags.gold, scale=flags.scale, items=items
    )
    crowd = reading.annotations
    models = models_of(reading, flags.annotations, flags.model_annotator)
    page = build_report(
        crowd,
        title=f"Crowd report: {flags.annotations.name}",
        sources=Sources(models, flags.family),
        gold=gold_codes(gold, crowd),
        scale=flags.scale,
        texts=reading.texts,
        times=reading.times,
    )
    written = {flags.output: page}
    if flags.agreement is not None:
        people = people_only(crowd, models)
        for name, text in agreement_csvs(people, flags.scale).items():
            path = flags.agreement / name
            check_outputs({"--output": flags.output, "--agreement": path}, {})
            written[path] = text
    write_outputs(written)
    for path in written:
        if path != STDOUT:
            say(str(path))
    return []
