"""The smoke suite: every registered method for one tiny seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.cli.runs.runner import Report
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.picking import by_name, entries_of
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.names import among
from reproduction.run import run_suite
from reproduction.suite import Case, Suite

TITLE = "Every method once, tiny"
# What makes a fit tiny, where a method has such an argument.
TINY: Fields = settings_in(Path(__file__).with_suffix(".toml"))


def tiny_arguments(method: registry.Method) -> Fields:
    """Returns those of TINY's settings that a method has."""
    return entries_of(TINY, among(TINY, method.parameter_names or ()))


def suite(methods: Sequence[registry.Method]) -> Suite:
    """Returns the suite of these methods."""
    hparams = {}
    for method in methods:
        for name, value in tiny_arguments(method).items():
            hparams[f"{method.name}.{name}"] = value
    names = tuple(by_name(methods))
    case = Case(("breast_cancer",), names, "smoke", seeds=1, hparams=hparams)
    return Suite("smoke", TITLE, (case,), ("accuracy",))


def run(options: Options, report: Report, modules: Sequence[str] = ()) -> list[str]:
    """Runs every method once."""
    return run_suite(suite(registry.methods()), options, report, modules)
