"""Label commands need no TensorFlow, and the lock that leaves it out is part of the whole one."""

from __future__ import annotations

from pathlib import Path

from tests.processes import python


def test_labels_need_no_tensorflow_and_networks_say_so(repository: Path) -> None:
    done = python(repository, "tests/labels_only.py")
    assert done.returncode == 0, done.stderr + done.stdout
    refusal = "error: this command needs tensorflow, which is not installed"
    assert done.stderr.count("error:") == 1 and refusal in done.stderr.replace(
        "keras", "tensorflow"
    )


def test_the_lock_for_labels_is_part_of_the_whole_lock(repository: Path) -> None:
    lines = (repository / "requirements-labels.lock").read_text(encoding="utf-8").splitlines()
    every = (repository / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert set(lines) <= set(every)
    names = {line.partition("==")[0] for line in lines}
    assert {"numpy", "pandas", "scikit-learn"} <= names and not names & {"tensorflow", "keras"}


def test_aggregate_starts_without_slow_modules(repository: Path) -> None:
    slow = ("scipy.optimize", "scipy.stats", "pandas", "sklearn")
    code = f"import sys, neucrowd_tf.cli.commands.aggregate; print(*sys.modules.keys() & {slow})"
    assert python(repository, "-c", code).stdout.strip() == ""


def test_a_warning_of_iterations_does_not_load_scikit_learn(repository: Path) -> None:
    code = (
        "import sys; from neucrowd_tf import Annotations, DawidSkene;"
        " DawidSkene(max_iter=1).fit(Annotations.from_dense([[0, 1]]));"
        " print('sklearn' in sys.modules)"
    )
    done = python(repository, "-c", code)
    assert done.stdout.strip() == "False" and "did not converge" in done.stderr
