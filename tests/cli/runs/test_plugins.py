"""Plug-ins of other packages: found by their entry points, and told where they are broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from neucrowd_tf.cli.runs import plugins
from neucrowd_tf.declare import registration, registry
from tests.cli.runs.conftest import Mean
from tests.processes import python


def install(folder: Path, name: str, code: str) -> None:
    """Makes a distribution of one module, as pip would leave it."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[neucrowd_tf.plugins]\n{name} = {name}\n")


def test_an_installed_package_registers_and_a_broken_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "METHODS", dict(registration.METHODS))
    code = (
        "from neucrowd_tf.declare.registry import register_method\n"
        "from tests.cli.runs.conftest import Mean\n"
        "register_method('acme_mean', summary='of another house')(Mean)\n"
    )
    install(tmp_path, "acme_crowd", code)
    install(tmp_path, "broken_crowd", "import nothing_of_that_name\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match=r"plug-in broken_crowd \(broken_crowd\): not imported"):
        plugins.register()
    assert registry.method("acme_mean").factory is Mean
    assert "  acme_mean " in plugins.listing()


def test_loading_a_dataset_runs_nothing_of_the_users(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "data.py").write_text("raise SystemExit('the user file ran')")
    code = (
        "import signal, sys; sys.argv[0] = '-m'; before = signal.getsignal(signal.SIGTERM);"
        "import neucrowd_tf; assert signal.getsignal(signal.SIGTERM) == before;"
        "print(type(neucrowd_tf.load_dataset('breast_cancer')).__name__)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{repository}"}
    done = python(repository, "-c", code, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (0, "CrowdDataset\n"), done.stderr
