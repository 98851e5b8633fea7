"""All suites in one place, as data."""

from __future__ import annotations

from functools import partial

from neucrowd_tf import registry
from reproduction import (
    crowding_suites,
    dasc_suites,
    dataset_tables,
    iced_suites,
    neucrowd_suites,
    rivals,
    smoke,
    truth_inference,
)
from reproduction.run import run_suite
from reproduction.suite import Suite

SUITES: tuple[Suite, ...] = (
    *neucrowd_suites.SUITES,
    *dasc_suites.SUITES,
    *crowding_suites.SUITES,
    *iced_suites.SUITES,
    *truth_inference.SUITES,
    *rivals.SUITES,
    Suite(
        "dataset_tables",
        "Datasets, table 1 of NeuCrowd, DASC and ICED and table 3 of DASC, recomputed",
        (),
        analysis=dataset_tables.write,
        note=(
            "Statistics of the public data, and the means over several draws of simulated crowds,"
            " beside the printed ones. Kappa and class ratio are those of all rows that the crowd"
            " labelled, test and validation rows too."
        ),
    ),
)


def register() -> None:
    """Registers all suites, and `smoke`, whose methods are those that are registered when it
    runs.
    """
    for suite in SUITES:
        registry.register_suite(registry.Suite(suite.name, partial(run_suite, suite), suite.title))
    registry.register_suite(registry.Suite("smoke", smoke.run, smoke.TITLE, in_all=False))
