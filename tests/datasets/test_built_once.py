"""Between a user's files and `fit`, each file is read once and annotations are made once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# A process of its own: an audit hook sees every file that is opened, and stays.
COUNT = """
import collections, json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
opened = collections.Counter()

def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, pathlib.Path)):
        path = pathlib.Path(arguments[0])
        if path.parent == folder and path.suffix == ".csv":
            opened[path.name] += 1

sys.addaudithook(hook)
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.harness import cli
from neucrowd_tf.training import CrowdEstimator

made, at_fit = [], []
construct, fit = Annotations.__init__, CrowdEstimator.fit

def counted(self, *arguments, **options):
    made.append(1)
    construct(self, *arguments, **options)

def watched(self, *arguments, **options):
    at_fit.append((len(made), dict(opened)))
    return fit(self, *arguments, **options)

Annotations.__init__, CrowdEstimator.fit = counted, watched
files = [f"--{path.stem}={path}" for path in sorted(folder.glob("*.*"))]
command = ["--dataset=table", "--method=mv_lr", f"--output_dir={folder / 'runs'}", *files]
code = cli.main([*command, *sys.argv[2:]])
print("\\n" + json.dumps([code, at_fit, dict(opened)]))
"""


def tables(folder: Path) -> None:
    """60 tasks and three annotators who are right four times in five."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 2))
    truth = (x[:, 0] > 0).astype(int)
    given = truth[:, None] ^ (generator.random((60, 3)) < 0.2)
    (folder / "features.csv").write_text(
        "task,x,y\n" + "".join(f"t{i},{a},{b}\n" for i, (a, b) in enumerate(x))
    )
    (folder / "truth.csv").write_text(
        "task,label\n" + "".join(f"t{i},{c}\n" for i, c in enumerate(truth))
    )
    (folder / "annotations.csv").write_text(
        "task,worker,label\n"
        + "".join(f"t{i},w{w},{c}\n" for i, row in enumerate(given) for w, c in enumerate(row))
    )


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--classes=1,0"], marks=pytest.mark.slow),
        pytest.param([], marks=pytest.mark.slow),
    ],
)
def test_a_file_is_read_and_annotations_are_made_once(
    tmp_path: Path, repository: Path, options: list[str]
) -> None:
    tables(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(tmp_path), *options],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    code, at_fit, opened = json.loads(done.stdout.splitlines()[-1])
    # Once for its digest and once to be read; of annotations the head is looked at first.
    times = {"features.csv": 2, "annotations.csv": 3, "truth.csv": 2}
    assert code == 0 and at_fit == [[1, times]] and opened == times
