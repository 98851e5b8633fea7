"""The command `neucrowd relabel`: which labels to ask for next, and of which annotators."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from neucrowd_tf.aggregation.families import Sources
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Estimate
from neucrowd_tf.certainty.inference import FEWEST_GOLD, METHOD, UNLIKE, Inference, infer, shown
from neucrowd_tf.certainty.labelling.belief import (
    Belief,
    belief_of,
    evidence_of,
    with_evidence,
    with_less_lean,
)
from neucrowd_tf.certainty.labelling.inputs import read_costs, read_probabilities
from neucrowd_tf.certainty.labelling.plan import REACHED, Request, accuracy_after, make_plan, reason
from neucrowd_tf.cli.command_line import check_outputs, write_outputs
from neucrowd_tf.cli.commands.reading import models_of, read_labels
from neucrowd_tf.cli.commands.relabel_flags import Relabel
from neucrowd_tf.declare.picking import entries_of
from neucrowd_tf.declare.types import Floats, Mask, Texts
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.run_files import CONFIG, OUT_OF_FOLD, read_config
from neucrowd_tf.io.schema import FLAGS, TableOptions
from neucrowd_tf.io.tables.writing import cell, to_csv

NO_GAIN = 5e-4  # is shown as 0.000
NOTHING_TO_GAIN = (
    " These annotators cannot change a label: none labels an item twice, and one label more leaves"
    " the others in the majority. Name further annotators with --ask."
)
MODEL_DRAWS = 40  # of a crowd's shift, if a model's predictions are used


def run(flags: Relabel) -> list[str]:
    """Writes the list; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    path, options, sources = _source(flags)
    predictions = flags.probabilities
    notes = []
    if predictions is None and flags.run is not None and (flags.run / OUT_OF_FOLD).is_file():
        predictions = flags.run / OUT_OF_FOLD
        notes.append(f"{predictions}: the model's out-of-fold predictions are used.")
    inputs = {"--annotations": path, "--gold": flags.gold, "--probabilities": predictions}
    inputs |= {"--cost": flags.cost, "--run": flags.run and flags.run / CONFIG}
    check_outputs({"--output": flags.output}, inputs)
    needs = "relabel needs one label per annotator."
    reading, gold = read_labels(path, options, flags.gold, scale=flags.scale, identities=needs)
    labels = reading.annotations
    method = "ordinal" if flags.scale == "ordinal" else METHOD
    models = models_of(reading, path, sources.models)
    crowd = labels.with_annotators(flags.ask)
    names = list(map(str, crowd.annotator_names.tolist()))
    people = ~np.isin(names, list(models))
    free = np.isin(names, flags.ask) if flags.ask else people
    if not free.any():
        raise UsageError(
            f"--model_annotator: all {len(names)} annotators are models. Name people who can label"
            " with --ask, or leave out the flag to ask models again."
        )
    costs = None if flags.cost is None else _costs(flags.cost, names, free, options)
    inference = infer(labels, method, gold, flags.seed, models=models, families=sources.families)
    if fresh := names[inference.crowd.num_annotators :]:
        notes.append(f"without labels yet: {', '.join(map(repr, fresh))}")
    has_gold = inference.gold >= 0
    probas = inference.probas
    if method == METHOD and has_gold.sum() < FEWEST_GOLD:
        probas = with_less_lean(probas, labels.vote_counts())
    belief = belief_of(crowd, probas, people)
    evidence = None
    if predictions is not None:
        evidence = evidence_of(crowd, read_probabilities(predictions, crowd, options))
        evidence[has_gold] = 1.0
        belief = dataclasses.replace(belief, probas=with_evidence(belief.probas, evidence))
    plan = make_plan(
        crowd,
        belief,
        flags.budget,
        most_each=flags.most_each,
        per_task=flags.per_task,
        free=free,
        costs=costs,
        least_gain=flags.least_gain / REACHED[0],
    )
    write_outputs({flags.output: _csv(crowd, belief, plan, costs, reading.texts)})
    if inference.certainty.notes:
        notes.append(UNLIKE.format(", ".join(inference.certainty.notes)))
    now = _accuracy(inference, belief, evidence)
    size = int(crowd.annotated.sum())
    cheapest = 1.0 if costs is None else float(costs[free].min())
    return [*notes, *_summary(plan, now, size, flags.budget, costs, cheapest)]


def _costs(path: Path, annotators: Texts, free: Mask, options: TableOptions) -> Floats:
    """Returns the price of each annotator's labels; who is not asked needs none."""
    costs = read_costs(path, annotators, options)
    missing = np.flatnonzero(np.isnan(costs) & free).tolist()
    if missing:
        raise DataError(
            f"{path}: {len(missing)} annotators that can be asked have no cost, such as"
            f" {annotators[missing[0]]!r}. Add them, or name those to ask with --ask."
        )
    return np.where(np.isnan(costs), 1.0, costs)


def _accuracy(inference: Inference, belief: Belief, evidence: Floats | None) -> Estimate:
    """Returns the expected accuracy of the labels that the belief names, with 80% interval.

    Args:
        inference: of the labels.
        belief: whose most probable classes are the labels.
        evidence: of a model, `[N, C]`; None without a model.
    """
    certainty = inference.certainty
    if evidence is None:
        return certainty.accuracy()
    rows = np.flatnonzero(inference.crowd.annotated)
    labels = belief.probas.argmax(axis=1)[rows]
    means = []
    for shift in certainty.shifts[:MODEL_DRAWS]:
        drawn = with_evidence(certainty.spread(certainty.right(shift)), evidence)
        means.append(drawn[rows, labels].mean())
    return Estimate.of(float(belief.probas[rows].max(axis=1).mean()), means)


def _source(flags: Relabel) -> tuple[Path, TableOptions, Sources]:
    """Returns the file of labels, how it is read, and which annotators are models."""
    if flags.annotations is not None and flags.run is None:
        return flags.annotations, flags, Sources(flags.model_annotator, flags.family)
    if flags.run is None or flags.annotations is not None:
        raise UsageError("--annotations or --run: name one of them.")
    if flags.changed():
        raise UsageError(f"--{next(iter(flags.changed()))}: not with --run, which has its own.")
    settings = read_config(flags.run).settings
    path = settings.get("annotations")
    models = settings.get("model_annotator") or []
    families = settings.get("family") or []
    lists = isinstance(models, list) and isinstance(families, list)
    if not isinstance(path, str) or not path or not lists:
        raise DataError(
            f"{flags.run}: not a run with --dataset=table. Name a file with --annotations instead."
        )
    options = TableOptions.of(**entries_of(settings, FLAGS))
    return Path(path), options, Sources(flags.model_annotator or models, flags.family or families)


def _csv(
    crowd: Annotations,
    belief: Belief,
    plan: Sequence[Request],
    costs: Floats | None,
    texts: Mapping[str, str],
) -> str:
    """Returns a row per request, with its cost and its item's text if there are any."""
    votes = crowd.vote_counts()
    header = ["task", "annotator", "priority", "gain", "reason"]
    header += ["cost"] * (costs is not None) + ["text"] * bool(texts)
    rows = []
    for priority, request in enumerate(plan, 1):
        task = crowd.instance_names[request.task]
        annotator = crowd.annotator_names[request.annotator]
        gain = REACHED[0] * request.gain
        row = [task, annotator, priority, gain, reason(crowd, belief, votes, request)]
        if costs is not None:
            row.append(costs[request.annotator])
        if texts:
            row.append(" ".join(texts.get(str(task), "").split()))
        rows.append(map(cell, row))
    return to_csv(header, rows)


def _summary(
    plan: Sequence[Request],
    now: Estimate,
    size: int,
    budget: int,
    costs: Floats | None,
    cheapest: float,
) -> list[str]:
    """Returns what is asked for, the accuracy now and then, and when to stop.

    Args:
        plan: the requests.
        now: the accuracy now.
        size: number of items with labels.
        budget: labels, or what they may cost.
        costs: `[R]` prices, if there are any.
        cheapest: the lowest price of an annotator to ask.
    """
    items = set()
    annotators = []
    gains = np.zeros(len(plan))
    for at, request in enumerate(plan):
        items.add(request.task)
        annotators.append(request.annotator)
        gains[at] = request.gain
    prices = np.ones(len(plan)) if costs is None else costs[annotators]
    line = f"{len(plan):,} labels of {len(items):,} items by {len(set(annotators)):,} annotators"
    if costs is not None:
        line += f", cost {prices.sum():g}"
    line += "."
    if prices.sum() + cheapest <= budget:
        line += f" No further label of the budget of {budget:,} is useful or can be asked for."
    if REACHED[0] * gains.max(initial=0.0) < NO_GAIN:
        line += NOTHING_TO_GAIN
    then = Estimate(*accuracy_after(now, gains, size))
    lines = [
        line,
        f"expected accuracy of the consensus: {shown(now)}, then {shown(then)}, 80% intervals.",
    ]
    step = max(1, len(plan) // 10)
    if len(plan) >= 2:
        first = 100 * REACHED[0] * gains[:step].sum() / prices[:step].sum()
        last = 100 * REACHED[0] * gains[-step:].sum() / prices[-step:].sum()
        unit = "labels" if costs is None else "of cost"
        lines.append(
            f"Items corrected per 100 {unit}: {first:.1f} by the first {step:,}, {last:.1f} by the"
            f" last {step:,}. Stop when that costs more than it is worth (--least_gain)."
        )
    return lines
