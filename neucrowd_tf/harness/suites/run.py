"""Runs suites: what is not there yet, as many at once as `--jobs` says, and on again after any interruption."""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neucrowd_tf import registry
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.files import write_json, write_text
from neucrowd_tf.harness import runner
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.results import FAILED
from neucrowd_tf.harness.suites import catalogue, smoke
from neucrowd_tf.harness.suites.papers import ELSEWHERE
from neucrowd_tf.harness.suites.suite import FIRST_SEED, Case, Suite
from neucrowd_tf.harness.suites.table import case_folder, cells, draw, markdown, outcome_counts, write_csv

Report = Callable[[str], None]
RESULTS = "results"


def chosen(names: Sequence[str]) -> list[Suite]:
    """Returns the suites of those names; "all" is every one but smoke.

    Raises:
        UsageError: an unknown name.
    """
    found: list[Suite] = []
    for name in names:
        part = list(catalogue.SUITES) if name == "all" else [smoke.suite()] if name == "smoke" else [catalogue.find(name)]
        found += [suite for suite in part if suite not in found]
    return found


def case_options(options: Options, case: Case) -> Options:
    """Returns the command that makes one case's runs."""
    methods = tuple(name for name in case.methods if any(method.name == name for method in registry.methods()))
    return dataclasses.replace(
        options,
        dataset=case.datasets,
        method=methods,
        seed=FIRST_SEED,
        num_runs=case.seeds,
        hparam=tuple(case.hparams.items()),
        output_dir=case_folder(options.output_dir, case),
        resume=True,
        report=bool(options.report),
        **case.options,
    )


def _available(options: Options, case: Case, report: Report) -> Case:
    """Leaves out datasets that are not in the data folder; the table says so of them."""
    kept = []
    for name in case.datasets:
        if name in ELSEWHERE:
            try:
                registry.dataset(name).load(options.data_dir, FIRST_SEED)
            except (DataError, OSError) as error:
                report(f"{name} is left out: {' '.join(str(error).split())[:200]}")
                continue
        kept.append(name)
    return dataclasses.replace(case, datasets=tuple(kept))


def run_suite(suite: Suite, options: Options, report: Report, rooms: tuple[str, ...] = ()) -> list[str]:
    """Makes a suite's runs and writes its table as CSV, Markdown and PNG into `<output_dir>/results`.

    A run that fails, or a case that cannot be run, is told and keeps no other from being made.

    Returns:
        a line for each run that failed and each case that could not be run.
    """
    started, failures = time.perf_counter(), list[str]()
    for number, case in enumerate(suite.cases, 1):
        report(f"{suite.name}: case {number} of {len(suite.cases)}{f' ({case.setting})' if case.setting else ''}")
        try:
            failures += _run_case(suite, case, options, report, rooms)
        except (UsageError, DataError) as error:
            failures.append(f"{case.folder}: {' '.join(str(error).split())}")
            report(failures[-1])
        write_tables(suite, options, failures)  # after each case, so that what is there can be read while the rest runs
    report(f"{suite.name}: {time.perf_counter() - started:.0f} s")
    return failures


def _run_case(suite: Suite, case: Case, options: Options, report: Report, rooms: tuple[str, ...]) -> list[str]:
    """Makes a case's runs; returns a line for each that failed."""
    case = _available(options, case, report)
    if not case.datasets:
        return []
    command = case_options(options, case)
    absent = set(case.methods) - set(command.method)
    if absent:
        report(f"{suite.name}: not registered here: {', '.join(sorted(absent))}")
    _, outcomes = runner.run_all(command, runner.tasks(command), report, rooms)
    return [f"{case.folder}: {key}: {outcome.reason}" for key, outcome in outcomes.items() if outcome.status == FAILED]


def write_tables(suite: Suite, options: Options, failures: Sequence[str] = ()) -> list[Path]:
    """Writes a suite's table and pictures from the runs that are finished, and what failed; returns the files."""
    root, folder = options.output_dir, options.output_dir / RESULTS
    table = cells(suite, root)
    command = f"python run_experiment.py --suite={suite.name} --data_dir=DATA --output_dir=OUT --jobs=2"
    csv, page, picture = (folder / f"{suite.name}.{ending}" for ending in ("csv", "md", "png"))
    write_csv(csv, table)
    write_text(page, markdown(suite, table, command))
    record = {"title": suite.title, "outcomes": outcome_counts(table), "command": command, "failures": list(failures)}
    write_json(folder / f"{suite.name}.json", record)
    made = [csv, page]
    if draw(suite, table, picture):
        made.append(picture)
    if suite.analysis:
        module, _, function = suite.analysis.partition(":")
        analysis: Any = getattr(importlib.import_module(module), function)
        made += analysis(suite, root, folder)
    return made


def run_suites(names: Sequence[str], options: Options, report: Report, rooms: tuple[str, ...] = ()) -> int:
    """Runs suites one after the other; a failing one does not keep the others from running.

    Returns:
        the exit code: 0, or 1 when some runs failed.
    """
    failures: list[str] = []
    for suite in chosen(names):
        failures += [f"{suite.name}: {line}" for line in run_suite(suite, options, report, rooms)]
        report(f"{suite.name}: {options.output_dir / RESULTS / suite.name}.csv")
    if failures:
        report("\n".join([f"{len(failures)} failed:", *failures]))
    return 1 if failures else 0
