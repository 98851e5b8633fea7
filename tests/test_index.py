"""The index is what modules register, and asking it imports none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.declare import registration, registry
from neucrowd_tf.errors import UsageError
from tests.processes import python


def test_an_entry_says_what_the_method_does() -> None:
    entry = registry.read_index("neucrowd_tf.declare")["method"]["dasc_crowd_layer"]
    assert entry.requires_identities and "quota" in (entry.parameter_names or ())


def test_a_stale_index_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = registry.Entry("gone", "neucrowd_tf.errors", "of nobody")
    monkeypatch.setitem(registry.read_index("neucrowd_tf.declare")["method"], "gone", entry)
    with pytest.raises(UsageError, match=r"neucrowd_tf\.errors does not register it\. Run `make"):
        registry.method("gone")


def test_the_index_names_the_module_that_registers_not_that_of_the_class() -> None:
    assert registry.method("dasc_conal").factory.__module__ == "neucrowd_tf.methods.dasc.estimator"
    assert registry.entry("method", "dasc_conal").module == "neucrowd_tf.methods.dasc.over_layers"


def test_a_cell_that_runs_again_replaces_its_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "METHODS", dict(registration.METHODS))

    def cell() -> type[Any]:
        @registry.register_method("mine", summary="of a notebook")
        class Mine:
            pass

        return Mine

    cell()
    assert cell() is registry.method("mine").factory


def test_the_name_of_another_module_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = registry.method("mv_lr").factory
    monkeypatch.setattr(registration, "METHODS", dict(registration.METHODS))
    with pytest.raises(ValueError, match=r"'mv_lr' is registered already, by neucrowd_tf.*labels"):
        registry.register_method("mv_lr", summary="mine")(type("Mine", (), {}))
    assert registry.method("mv_lr").factory is theirs


@pytest.mark.parametrize("register", [registry.register_method, registry.register_dataset])
def test_what_is_no_class_or_function_is_not_registered(register: Any) -> None:
    with pytest.raises(TypeError, match=r"'mine': expected a class or .*, received 'my:Mine'"):
        register("mine", summary="by its name", module="my")("my:Mine")


CASES = {
    "--list": "main(['--list'], ('baselines', 'data', 'reproduction'))",
    "a misspelt method": "main(['--dataset=hotel', '--method=neucrwd'])",
    "a misspelt hyper-parameter": (
        "main(['--dataset=hotel', '--method=conal', '--hparam=x=1'], ('baselines', 'data'))"
    ),
    "a misspelt suite": "main(['--suite=tabel'], ('reproduction',))",
}


def test_questions_about_names_import_no_method(repository: Path, tmp_path: Path) -> None:
    code = (
        "import os, sys; from neucrowd_tf.cli.runs.run_command import main; os.chdir(sys.argv[1])\n"
    )
    for case in CASES.values():
        code += f"{case}\n"
    code += (
        "heavy = {'tensorflow', 'keras', 'neucrowd_tf.methods.crowd_layers.conal',"
        " 'neucrowd_tf.methods.neucrowd'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)\n"
    )
    done = python(repository, "-c", code, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Did you mean neucrowd" in done.stderr and "  dasc_conal " in done.stdout


def test_a_method_costs_the_import_of_its_module(repository: Path) -> None:
    code = (
        "import sys, baselines; from neucrowd_tf import registry\n"
        "registry.method('raykar').make(smoothing=1)\n"
        "others = [m for m in sys.modules if m.startswith('baselines.')]\n"
        "others += [m for m in ('keras', 'neucrowd_tf.methods.rll') if m in sys.modules]\n"
        "sys.exit(str(others) if others != ['baselines.raykar'] else 0)"
    )
    done = python(repository, "-c", code)
    assert done.returncode == 0, done.stderr
