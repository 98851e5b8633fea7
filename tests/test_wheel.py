"""What `pip install` gives is enough for a practitioner: the wheel in an environment without a
checkout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.test_documents import tables

ROOT = Path(__file__).resolve().parent.parent


def _run(command: list[str | Path], folder: Path) -> str:
    """Runs a command without this checkout in its path; returns what it prints."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return done.stdout


def test_a_practitioner_needs_the_wheel_alone(tmp_path: Path) -> None:
    """Built from a copy, installed into an empty environment that borrows the dependencies of this
    one.
    """
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".*", "runs", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignored)
    dist = tmp_path / "dist"
    _run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", dist, source], tmp_path)
    (wheel,) = dist.glob("*.whl")
    place = tmp_path / "environment"
    venv.create(place, with_pip=False, symlinks=os.name != "nt")
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    python = programs / "python"
    library = Path(
        _run([python, "-c", "import site; print(site.getsitepackages()[0])"], tmp_path).strip()
    )
    # After what the wheel brings: an editable install of the checkout, which a finder would put
    # first, is not followed, as only `site` reads the .pth files that set one up.
    (library / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    _run([*pip, "--no-index", "--ignore-installed", wheel], tmp_path)
    code = (
        "import neucrowd_tf; [getattr(neucrowd_tf, name) for name in neucrowd_tf.__all__];"
        "print(neucrowd_tf.__file__)"
    )
    assert Path(_run([python, "-c", code], tmp_path).strip()).is_relative_to(library)
    assert (library / "neucrowd_tf" / "py.typed").exists()
    assert not (library / "data").exists() and not (library / "tests").exists()

    code = (
        "from neucrowd_tf import load_dataset, registry\n"
        "print(registry.method('raykar').make().__module__)\n"
        "try:\n    load_dataset('hotel', data_dir='.')\n"
        "except ValueError as error:\n    print(error)"
    )
    rival, error = _run([python, "-c", code], tmp_path).splitlines()
    assert rival == "neucrowd_tf.plugins.baselines.raykar"
    assert "hotel/train.csv" in error and "--" not in error

    assert "relabel" in _run([programs / "neucrowd"], tmp_path)
    listed = _run([programs / "neucrowd", "--list"], tmp_path).split()
    wanted = "raykar labelme music auto mv_lr ds_lr softprob mv_dl table breast_cancer digits"
    assert set(wanted.split()) <= set(listed)
    work = tmp_path / "work"
    work.mkdir()
    tables(work)
    files = [f"--{name}={work / name}.csv" for name in ("annotations", "features", "truth")]
    _run([programs / "neucrowd", "--dataset=table", "--method=auto", "--export", *files], work)
    run = work / "runs" / "table" / "auto" / "seed-0"
    assert (run / "report.html").is_file()
    model, scores = run / "saved_model", work / "scores.csv"
    command = [python, "-m", "neucrowd_tf", "predict", f"--model={model}", f"--output={scores}"]
    assert "120 rows" in _run([*command, f"--features={work / 'features.csv'}"], work)
    assert scores.read_text().startswith("task,predicted,p_no,p_yes\n")
