"""The command `neucrowd relabel`: which items to label again, and by whom."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.aggregation.families import Sources
from neucrowd_tf.cli.command_line import (
    SCALE,
    STDOUT,
    LabelFlags,
    check_models,
    check_order,
    check_outputs,
    run_command,
    write_outputs,
)
from neucrowd_tf.cli.run_files import CONFIG, OUT_OF_FOLD, read_config
from neucrowd_tf.declare import number, whole
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.gold import read_gold
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv
from neucrowd_tf.labelling.inputs import read_costs, read_probabilities

if TYPE_CHECKING:
    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.certainty import Estimate
    from neucrowd_tf.certainty.inference import Inference
    from neucrowd_tf.labelling.belief import Belief
    from neucrowd_tf.labelling.plan import Request

HEADER = ("task", "annotator", "priority", "gain", "reason")  # and cost and text, if there are any
MODEL_DRAWS = 40  # of a crowd's shift, if a model's predictions are used


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(LabelFlags):
    """Lists the labels to ask for next, the most useful first: item, annotator and reason."""

    run: Annotated[Path | None, "Run with --dataset=table that has the labels."] = None
    budget: Annotated[int, whole(1), "Number of labels; with --cost, the sum of their prices."]
    output: Annotated[
        Path, f"CSV to write: {','.join(HEADER)}, and cost and text if there are any. `-` prints."
    ] = STDOUT
    probabilities: Annotated[
        Path | None, "CSV task,p_<class>: a model's held-out predictions. Default: --run's oof.csv."
    ] = None
    cost: Annotated[Path | None, "CSV annotator,cost: price of a label. Default: 1."] = None
    least_gain: Annotated[
        float, number(least=0), "Leaves out labels whose gain (per cost) is smaller than this."
    ] = 0.0
    seed: Annotated[int, whole(0), "Seed of the consensus' random draws."] = 0
    most_each: Annotated[int | None, whole(1), "Most labels per annotator."] = None
    scale: Annotated[Literal["nominal", "ordinal"], SCALE] = "nominal"
    per_task: Annotated[int, whole(1), "Largest number of labels per item."] = 2
    ask: Annotated[
        tuple[str, ...],
        "Annotators that can be asked, also new ones. Default: all that are not models.",
    ] = ()


def relabel(flags: Flags) -> list[str]:
    """Writes the list; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    path, options, sources = _source(flags)
    inputs = {f"--{name}": getattr(flags, name) for name in ("gold", "probabilities", "cost")}
    notes: list[str] = []
    predictions = flags.probabilities
    if predictions is None and flags.run is not None and (flags.run / OUT_OF_FOLD).is_file():
        predictions = inputs["--probabilities"] = flags.run / OUT_OF_FOLD
        notes.append(f"{predictions}: the model's out-of-fold predictions are used.")
    inputs["--run"] = flags.run and flags.run / CONFIG
    check_outputs({"--output": flags.output}, {"--annotations": path, **inputs})
    # Errors in the flags are reported before slow imports.
    from neucrowd_tf.certainty.inference import METHOD, UNLIKE, infer
    from neucrowd_tf.labelling.belief import belief_of, evidence_of, with_evidence
    from neucrowd_tf.labelling.plan import REACHED, make_plan

    reading = read_annotations(path, options)
    crowd = reading.annotations
    if not crowd.has_identities:
        raise DataError(
            f"{path}: vote counts do not name annotators. relabel needs one label per annotator."
        )
    check_models(sources.models, crowd.annotator_names.tolist())
    gold = None if flags.gold is None else read_gold(flags.gold, crowd, options)
    check_order(options, flags.scale, path, crowd.class_names.tolist())
    inference = infer(
        crowd,
        "ordinal" if flags.scale == "ordinal" else METHOD,
        gold,
        flags.seed,
        models=sources.models,
        families=sources.families,
    )
    size = crowd.num_annotators
    crowd = crowd.with_annotators(flags.ask)
    everyone = list(map(str, crowd.annotator_names.tolist()))
    if everyone[size:]:
        notes.append(f"without labels yet: {', '.join(map(repr, everyone[size:]))}")
    people = np.array([name not in sources.models for name in everyone])
    free = np.isin(everyone, flags.ask) if flags.ask else people
    belief, evidence = belief_of(crowd, inference.probas, people), None
    if predictions is not None:
        evidence = evidence_of(crowd, read_probabilities(predictions, crowd, options))
        evidence[inference.gold >= 0] = 1.0
        belief = dataclasses.replace(belief, probas=with_evidence(belief.probas, evidence))
    costs = None if flags.cost is None else _costs(flags.cost, everyone, free, options)
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
    further: dict[str, list[str]] = {}
    if costs is not None:
        further["cost"] = [number_cell(float(costs[one.annotator])) for one in plan]
    if reading.texts:
        names = list(map(str, crowd.instance_names.tolist()))
        texts = [reading.texts.get(names[one.task], "") for one in plan]
        further["text"] = [text_cell(" ".join(text.split())) for text in texts]
    columns = zip(*further.values(), strict=True) if further else [()] * len(plan)
    rows = ([*row, *more] for row, more in zip(_rows(crowd, belief, plan), columns, strict=True))
    write_outputs({flags.output: to_csv((*HEADER, *further), rows)})
    now = _accuracy(inference, belief, evidence)
    if inference.certainty.notes:
        notes.append(UNLIKE.format(", ".join(inference.certainty.notes)))
    return [*notes, *_summary(plan, now, int(crowd.annotated.sum()), flags.budget, costs)]


def _costs(
    path: Path, annotators: Sequence[str], free: NDArray[np.bool_], options: TableOptions
) -> NDArray[np.float64]:
    """Returns the price of a label of each annotator; of those that are not asked, any."""
    costs = read_costs(path, annotators, options)
    missing = [annotators[code] for code in np.flatnonzero(np.isnan(costs) & free).tolist()]
    if missing:
        raise DataError(
            f"{path}: {len(missing)} annotators that can be asked have no cost, such as"
            f" {missing[0]!r}. Add them, or name those to ask with --ask."
        )
    return np.where(np.isnan(costs), 1.0, costs)


def _accuracy(
    inference: Inference, belief: Belief, evidence: NDArray[np.float64] | None
) -> Estimate:
    """Returns the expected accuracy of the labels that the belief names, with 80% interval.

    Args:
        inference: of the labels.
        belief: whose most probable classes are the labels.
        evidence: of a model, `[N, C]`; None without a model.
    """
    from neucrowd_tf.certainty import Estimate
    from neucrowd_tf.labelling.belief import with_evidence

    certainty = inference.certainty
    if evidence is None:
        return inference.accuracy
    rows = np.flatnonzero(inference.crowd.annotated)
    labels, means = belief.probas.argmax(axis=1)[rows], []
    for shift in certainty.shifts[:MODEL_DRAWS]:
        drawn = with_evidence(certainty.spread(certainty.right(shift)), evidence)
        means.append(drawn[rows, labels].mean())
    return Estimate.of(float(belief.probas[rows].max(axis=1).mean()), means)


def _source(flags: Flags) -> tuple[Path, TableOptions, Sources]:
    """Returns the file of labels, how it is read, and which annotators are models."""
    if flags.annotations is not None and flags.run is None:
        return flags.annotations, flags, Sources(flags.model_annotator, flags.family)
    if flags.run is None or flags.annotations is not None:
        raise UsageError("--annotations or --run: name one of them.")
    if flags.changed():
        raise UsageError(f"--{next(iter(flags.changed()))}: not with --run, which has its own.")
    settings = read_config(flags.run).settings
    path = settings.get("annotations")
    models, families = (settings.get(name) or [] for name in ("model_annotator", "family"))
    lists = isinstance(models, list) and isinstance(families, list)
    if not isinstance(path, str) or not path or not lists:
        raise DataError(
            f"{flags.run}: not a run with --dataset=table. Name a file with --annotations instead."
        )
    names = {field.name for field in dataclasses.fields(TableOptions)} & settings.keys()
    options = TableOptions.of(**{name: settings[name] for name in names})
    return Path(path), options, Sources(flags.model_annotator or models, flags.family or families)


def _rows(crowd: Annotations, belief: Belief, plan: Sequence[Request]) -> Iterator[list[str]]:
    """Yields a row of `HEADER` per request."""
    from neucrowd_tf.labelling.plan import REACHED, reason

    tasks, workers = crowd.instance_names.tolist(), crowd.annotator_names.tolist()
    votes = crowd.vote_counts()
    for priority, request in enumerate(plan, 1):
        yield [
            text_cell(tasks[request.task]),
            text_cell(workers[request.annotator]),
            str(priority),
            number_cell(REACHED[0] * request.gain),
            text_cell(reason(crowd, belief, votes, request)),
        ]


def _summary(
    plan: Sequence[Request],
    now: Estimate,
    size: int,
    budget: int,
    costs: NDArray[np.float64] | None,
) -> list[str]:
    """Returns what is asked for, the accuracy now and then, and when to stop.

    Args:
        plan: the requests.
        now: the accuracy now.
        size: number of items with labels.
        budget: labels, or what they may cost.
        costs: `[R]` prices, if there are any.
    """
    from neucrowd_tf.certainty import Estimate
    from neucrowd_tf.certainty.inference import shown
    from neucrowd_tf.labelling.plan import rise

    prices = np.array([1.0 if costs is None else costs[one.annotator] for one in plan])
    gains = np.array([one.gain for one in plan])
    line = (
        f"{len(plan):,} labels of {len({r.task for r in plan}):,} items by"
        f" {len({r.annotator for r in plan}):,} annotators"
    )
    line += f", cost {prices.sum():g}." if costs is not None else "."
    if prices.sum() + prices.max(initial=1.0) <= budget:
        line += f" No further label of the budget of {budget:,} is useful or can be asked for."
        if not plan:
            line += " No annotator labels an item twice; name further ones with --ask."
    then = Estimate(
        *(min(each + more, 1.0) for each, more in zip(now, rise(gains, size), strict=True))
    )
    lines = [
        line,
        f"expected accuracy of the consensus: {shown(now)}, then {shown(then)}, 80% intervals.",
    ]
    step = max(1, len(plan) // 10)
    if len(plan) >= 2:
        first, last = (
            100 * rise(gains[at], 1)[0] / prices[at].sum()
            for at in (slice(step), slice(-step, None))
        )
        unit = "labels" if costs is None else "of cost"
        lines.append(
            f"Items corrected per 100 {unit}: {first:.1f} by the first {step:,}, {last:.1f} by the"
            f" last {step:,}. Stop when that costs more than it is worth (--least_gain)."
        )
    return lines


main = functools.partial(run_command, Flags, relabel, "neucrowd relabel")
