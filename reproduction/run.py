"""Runs suites.

Only missing runs are made, `--jobs` at once; an interrupted suite is continued.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections import Counter
from collections.abc import Sequence

from neucrowd_tf.cli.command_line import say
from neucrowd_tf.cli.runs import process, runner
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.cli.runs.results import FAILED, aligned
from neucrowd_tf.cli.runs.runner import Report
from neucrowd_tf.cli.runs.work import Work
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.names import among, without
from reproduction import right
from reproduction.collect import case_folder, suite_runs
from reproduction.panels import RESULTS
from reproduction.printed import ELSEWHERE
from reproduction.suite import FIRST_SEED, Case, Suite
from reproduction.table import Cell, cells, draw, markdown, rows_shown, write_csv, write_seeds

WRITE_SECONDS = 60.0


def case_options(options: Options, case: Case) -> Options:
    """Returns the command that makes one case's runs."""
    methods = tuple(among(case.methods, registry.entries("method")))
    return dataclasses.replace(
        options,
        dataset=case.datasets,
        method=methods,
        seed=case.first_seed,
        num_runs=min(case.seeds, options.num_runs or case.seeds),
        hparam=tuple(case.hparams.items()),
        output_dir=case_folder(options.output_dir, case),
        resume=True,
        report=bool(options.report),
        **{"bases": "papers", **case.options},
    )


def _available(options: Options, suite: Suite) -> dict[str, str]:
    """Returns the datasets that cannot be loaded, and why.

    One that is not part of the usual data folder is no failure.
    """
    reasons = {}
    names = dict.fromkeys(itertools.chain.from_iterable(case.datasets for case in suite.cases))
    for name in names:
        try:
            dataset = registry.dataset(name)
            if dataset.simulated:  # by TensorFlow, which takes threads before it computes
                process.start(options)
            dataset.load(options.data_dir, FIRST_SEED)
        except (DataError, UsageError, OSError) as error:
            reasons[name] = one_line(error)
    return reasons


def planned(suite: Suite, options: Options, report: Report) -> tuple[list[Work], list[str]]:
    """Returns a suite's missing runs, and a line for each that cannot be run.

    Every case's first seed comes first, so that an interrupted suite has some of every row rather
    than all of some rows.
    """
    works = []
    failures = []
    missing = _available(options, suite)
    for name, reason in missing.items():
        report(f"{name} is left out: {reason[:200]}")
        if name not in ELSEWHERE:
            failures.append(f"{name}: {reason}")
    for case in suite.cases:
        case = dataclasses.replace(case, datasets=tuple(without(case.datasets, missing)))
        command = case_options(options, case)
        if absent := set(case.methods) - set(command.method):
            report(f"{suite.name}: not registered here: {', '.join(sorted(absent))}")
            failures += [f"{name}: no such method" for name in sorted(absent) if suite.file]
        label = case.row_name("")
        try:
            finished, missing_runs = runner.plan(command, runner.works(command, False, label))
        except (UsageError, DataError) as error:
            failures.append(f"{case.folder}: {one_line(error)}")
            report(failures[-1])
            continue
        runner.keep_finished(finished)
        works += missing_runs
    return sorted(works, key=lambda work: work.key.seed), failures


def run_suite(
    suite: Suite, options: Options, report: Report, modules: Sequence[str] = ()
) -> list[str]:
    """Makes a suite's runs and writes its table into `<output_dir>/results`.

    The table is written as CSV, Markdown and PNG.

    A run that fails, or a case that cannot be run, is reported and does not stop the others.

    Returns:
        a line for each run that failed and each case that could not be run.
    """
    started = written = time.monotonic()
    selected = suite.with_rows(options.rows) if options.rows else suite
    if options.rows and not selected.cases:
        row = f"{suite.cases[0].datasets[0]}/{suite.cases[0].row_name(suite.cases[0].methods[0])}"
        return [f"--rows={','.join(options.rows)}: no such row. The first one is {row}."]
    works, failures = planned(selected, options, report)
    if works:
        report(f"{suite.name}: {len(works)} runs to make")
    for work, outcome in runner.make_all(works, options, report, modules, keep_going=True):
        if outcome.status == FAILED:
            failures.append(f"{work.label}{work.key}: {outcome.reason}")
        # So that what is there can be read while the rest runs.
        if time.monotonic() - written > WRITE_SECONDS:
            write_tables(suite, options, failures)
            written = time.monotonic()
    write_tables(suite, options, failures)
    report(f"{suite.name}: {time.monotonic() - started:.0f} s")
    report(f"{suite.name}: {options.output_dir / RESULTS / suite.name}.csv")
    if options.rows or options.table:
        table = cells(selected, options.output_dir, only_rows=True)
        lines = rows_shown(selected, map(Cell.row, table))
        text = "\n".join(aligned(lines, options.table, ""))
        say(text)
        if options.table == "tex":
            write_text(options.output_dir / RESULTS / f"{suite.name}.tex", f"{text}\n")
    return failures


def write_tables(suite: Suite, options: Options, failures: Sequence[str]) -> None:
    """Writes a suite's table and pictures from the finished runs.

    Failures are listed in the table.
    """
    root = options.output_dir
    folder = options.output_dir / RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    listed = sorted(failures)
    table = cells(suite, root)
    if suite.cases:
        write_csv(folder / f"{suite.name}.csv", table)
        write_seeds(folder / f"{suite.name}_seeds.csv", table)
        right.write(folder, suite.name, right.of_suite(suite, root))
        draw(suite, table, folder / f"{suite.name}.png")
    rows = list(map(Cell.row, table))
    write_text(folder / f"{suite.name}.md", markdown(suite, rows, suite.command))
    if suite.analysis:
        try:
            suite.analysis(suite, options)
        except (DataError, OSError) as error:  # a figure of data that is not there
            listed.append(f"figure: {one_line(error)}")
    revisions = Counter(run.revision for run in suite_runs(suite, root))
    record = {
        "title": suite.title,
        "command": suite.command,
        "failures": listed,
        "revisions": dict(sorted(revisions.items())),
    }
    write_json(folder / f"{suite.name}.json", record)
