"""The commands that are broken and resumed: a run of a method, a fit by parts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

PLUGINS = ("baselines", "data")
SAVED = ("predictions.csv", "annotators.csv", "metrics.json")
BY_PARTS = " --engine=local"


def find_command(name: str) -> Run | FitByParts:
    """Returns a method's run, or its fit by parts where the name says so."""
    if name.endswith(BY_PARTS):
        return FitByParts(name.removesuffix(BY_PARTS))
    return Run(name)


@dataclasses.dataclass(frozen=True)
class Run:
    """A method on a small bundled dataset, as tiny as `reproduction.smoke` has it."""

    method: str

    def _flags(self, out: Path) -> list[str]:
        from neucrowd_tf import registry
        from reproduction.smoke import tiny_arguments

        small = tiny_arguments(registry.method(self.method))
        return [
            "--dataset=breast_cancer", f"--method={self.method}", f"--output_dir={out}",
            "--resume", "--noreport", "--checkpoint_seconds=0",
            *(f"--hparam={name}={json.dumps(value)}" for name, value in small.items()),
        ]  # fmt: skip

    def run(self, out: Path) -> int:
        from neucrowd_tf.harness import cli

        return cli.main(self._flags(out), PLUGINS)

    def outcome(self, out: Path) -> list[bytes]:
        """Returns the files' bytes, the metrics without their timings."""
        contents = []
        for name in SAVED:
            (path,) = out.rglob(name)
            content = path.read_bytes()
            if name == "metrics.json":
                metrics = json.loads(content)
                del metrics["timings"]
                content = json.dumps(metrics).encode()
            contents.append(content)
        return contents

    def checkpoints(self, out: Path) -> list[Path]:
        return [path for path in sorted(out.rglob("*.npz")) if path.stat().st_size]


@dataclasses.dataclass(frozen=True)
class FitByParts:
    """Truth inference out of core, on a crowd that it finds beside its output."""

    method: str

    def run(self, out: Path) -> int:
        from neucrowd_tf.commands.aggregate import main

        if not (crowd := out.parent / "crowd.csv").exists():
            crowd.write_text(_crowd())
        flags = [f"--annotations={crowd}", f"--method={self.method}", f"--output={out}"]
        return main([*flags, "--engine=local", "--resume", "--max_iter=12", "--tol=0"])

    def outcome(self, out: Path) -> list[bytes]:
        """Returns the bytes of the results, and the objective after each iteration."""
        fit = json.loads((out / "fit.json").read_text())
        del fit["seconds"]
        files = [path for path in sorted(out.rglob("*")) if path.suffix in (".parquet", ".npz")]
        return [json.dumps(fit).encode(), *(path.read_bytes() for path in files)]

    def checkpoints(self, out: Path) -> list[Path]:
        """Returns no file: a damaged one ends a fit by parts with an error."""
        return []


def _crowd() -> str:
    """Returns a table of 2,000 tasks with three labels each."""
    rng = np.random.default_rng(5)
    tasks = np.repeat(np.arange(2000), 3)
    annotators = np.concatenate([rng.choice(20, 3, replace=False) for _ in range(2000)])
    right = rng.random(len(tasks)) < 0.75
    labels = np.where(right, tasks % 3, rng.integers(0, 3, len(tasks)))
    rows = zip(tasks, annotators, labels, strict=True)
    return "task,worker,label\n" + "".join(f"t{t},w{a},c{c}\n" for t, a, c in rows)
