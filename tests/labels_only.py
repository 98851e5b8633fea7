"""What labels need works without TensorFlow, and what needs it says so in one line.

    python -P tests/labels_only.py      # in an environment of requirements-labels.lock

tests/test_labels_only.py runs this with TensorFlow hidden, CI in an environment that lacks it.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

NETWORKS = ("tensorflow", "keras", "tf_keras", "tensorflow_probability")


class Hidden:
    """A finder that does not find what networks need."""

    def find_spec(self, name: str, path=None, target=None) -> None:
        if name.partition(".")[0] in NETWORKS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    """Runs each command on a small table; exits with what was wrong."""
    from neucrowd_tf.__main__ import main as command

    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        rows = [f"t{i},w{j},{'no' if (i + j) % 4 else 'yes'}" for i in range(12) for j in range(3)]
        table = work / "annotations.csv"
        table.write_text("\n".join(["task,worker,label", *rows, ""]))
        answered = {
            "aggregate": command(["aggregate", f"--annotations={table}", f"--output={work}/a.csv"]),
            "report": command(["report", f"--annotations={table}", f"--output={work}/r.html"]),
            "relabel": command(
                ["relabel", f"--annotations={table}", f"--output={work}/l.csv", "--budget=3"]
            ),
            "gold": command(["gold", f"--annotations={table}", f"--output={work}/g.csv"]),
        }
        refused = command(
            ["run", "--dataset=breast_cancer", "--method=mv_dl", f"--output_dir={work}"]
        )
    wrong = [name for name, code in answered.items() if code]
    if wrong or refused != 2:
        sys.exit(f"failed: {wrong}, run ended with {refused} instead of 2")
    try:
        from neucrowd_tf import NeuCrowd
    except ImportError as error:
        if "`pip install .` installs the rest" not in str(error):
            sys.exit(f"not said: {error}")
    else:
        sys.exit(f"{NeuCrowd} was imported")


if __name__ == "__main__":
    if importlib.util.find_spec("tensorflow") is not None:
        sys.meta_path.insert(0, Hidden())
    main()
