"""All suites in one place, as data."""

from __future__ import annotations

from neucrowd_tf.errors import UsageError
from reproduction import crowding_suites, dasc_suites, iced_suites, neucrowd_suites
from reproduction.suite import Suite

SUITES: tuple[Suite, ...] = (
    *neucrowd_suites.SUITES,
    *dasc_suites.SUITES,
    *crowding_suites.SUITES,
    *iced_suites.SUITES,
    Suite(
        "dataset_tables",
        "Datasets, table 1 of NeuCrowd, DASC and ICED and table 3 of DASC, recomputed",
        (),
        analysis="reproduction.dataset_tables:write",
        note=(
            "Statistics of the public data, and the means over several draws of simulated crowds,"
            " beside the printed ones. Kappa and class ratio are those of all rows that the crowd"
            " labelled, test and validation rows too."
        ),
    ),
)


def names() -> list[str]:
    """Returns every suite's name, and "smoke" and "all"."""
    return [*(suite.name for suite in SUITES), "smoke", "all"]


def find(name: str) -> Suite:
    """Returns the suite of that name.

    Raises:
        UsageError: there is none.
    """
    for suite in SUITES:
        if suite.name == name:
            return suite
    raise UsageError(f"--suite: expected one of {', '.join(names())}, received {name!r}")
