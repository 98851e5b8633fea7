"""Runs that are broken at seeded moments and resumed; their bytes must be an unbroken run's.

What breaks them: SIGKILL, SIGTERM, SIGINT, a full disk and damaged checkpoints. The runs are of one
method per class of estimators, and fits by parts.
"""

from __future__ import annotations

import errno
import importlib
import itertools
import os
import pkgutil
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import methods
from tests.torture.commands import BY_PARTS, PLUGINS, FitByParts, Run, find_command
from tests.torture.forked import Act, forked, tail
from tests.torture.record import Record

BREAKS = 3  # of a run, before it is resumed to its end


def families() -> tuple[str, ...]:
    """Returns a method for each class of estimators that is registered, and fits by parts."""
    from neucrowd_tf.harness import plugins

    plugins.register(PLUGINS)
    return (*methods(), f"dawid_skene{BY_PARTS}", f"bwa{BY_PARTS}")


# ------------------------------------------------------------------ what breaks a process


def _at_file(count: int, place: str, act: Act) -> Act:
    """Returns what makes a process act at its count-th file.

    It acts "before" the file appears, "within" its writing (half of it is there), or "after".
    """

    def install() -> None:
        numbers = itertools.count(1)
        original = os.replace

        def replace(source: Any, target: Any, *rest: Any, **more: Any) -> None:
            here = next(numbers) == count  # of whichever thread
            if here and place == "within" and os.path.isfile(source):
                os.truncate(source, os.path.getsize(source) // 2)
            if here and place != "after":
                act()
            original(source, target, *rest, **more)
            if here:
                act()

        os.replace = replace

    return install


def _counting(path: Path) -> Act:
    """Returns what makes a process write a byte for each file that appears."""

    def install() -> None:
        original = os.replace

        def replace(*paths: Any, **more: Any) -> None:
            with path.open("ab") as stream:
                stream.write(b".")
            original(*paths, **more)

        os.replace = replace

    return install


def _signal(number: int) -> Act:
    return lambda: os.kill(os.getpid(), number)


def _full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _later(seconds: float) -> Act:
    """Returns what makes the process end by SIGKILL after some time, whatever it does then."""

    def install() -> None:
        clock = threading.Timer(seconds, _signal(signal.SIGKILL))
        clock.daemon = True
        clock.start()

    return install


KINDS: dict[str, tuple[Act, int, float]] = {  # what it does, the exit code, how often
    "SIGKILL": (_signal(signal.SIGKILL), -9, 0.82),
    "SIGTERM": (_signal(signal.SIGTERM), 143, 0.06),
    "SIGINT": (_signal(signal.SIGINT), 130, 0.06),
    "full disk": (_full_disk, 2, 0.06),
}


def a_break(rng: np.random.Generator, files: int, seconds: float) -> tuple[str, Act, set[int]]:
    """Returns the name of a break, what makes it, and the exit codes that are right.

    Args:
        rng: draws the break.
        files: how many files the process makes.
        seconds: how long it takes.
    """
    if rng.random() < 0.2:
        return "SIGKILL at any time", _later(seconds * rng.random()), {-9, 0}
    kind = str(rng.choice(list(KINDS), p=[often for _, _, often in KINDS.values()]))
    act, code, _ = KINDS[kind]
    place, count = "before", int(rng.integers(1, files + 1))
    if kind == "SIGKILL":
        place = str(rng.choice(["before", "within", "after"]))
        name = f"SIGKILL {place} a file" + (" appears" if place == "before" else "")
        return name.replace("within", "within the writing of"), _at_file(count, place, act), {-9, 0}
    return kind, _at_file(count, place, act), {code, 0}


def damage(files: Sequence[Path], rng: np.random.Generator) -> bool:
    """Damages one of the files that a command continues from; returns whether there is one.

    The file is cut off, or has a flipped byte, other shapes or other keys.
    """
    from neucrowd_tf.errors import DataError
    from neucrowd_tf.io.files.arrays import load_arrays, save_arrays

    if not files:
        return False
    path = files[int(rng.integers(len(files)))]
    content = bytearray(path.read_bytes())
    kind = int(rng.integers(4))
    if kind == 0:
        path.write_bytes(content[: int(rng.integers(len(content)))])
    elif kind == 1:
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
    elif kind == 2 and path.name == "train.npz":
        try:
            arrays = load_arrays(path)
        except DataError:  # damaged before
            return True
        name = str(rng.choice([name for name in arrays if name.startswith("variables/")]))
        arrays[name] = np.concatenate([np.ravel(arrays[name]), np.ravel(arrays[name])[:1]])
        save_arrays(path, arrays)
    else:
        path.write_bytes(b"PK\x03\x04" + content[:50])
    return True


# ------------------------------------------------------------------ runs


def _unbroken(command: Run | FitByParts, folder: Path) -> tuple[list[bytes], int, float]:
    """Returns the outcome, the number of files and the seconds of an unbroken run, made once."""
    if not (folder / "seconds").exists():
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        code = forked(
            lambda: command.run(folder / "whole"), folder / "log", _counting(folder / "count")
        )
        if code:
            raise RuntimeError(f"the unbroken run ended with {code}: {tail(folder / 'log')}")
        (folder / "seconds").write_text(str(time.monotonic() - began))
    files = (folder / "count").stat().st_size
    return command.outcome(folder / "whole"), files, float((folder / "seconds").read_text())


def _broken(method: str, chain: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Breaks a run some times, then resumes it; returns counts and what was wrong."""
    command = find_command(method)
    rng = np.random.default_rng([seed, chain, *method.encode()])
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    try:
        whole, files, seconds = _unbroken(command, folder)
    except RuntimeError as error:
        return counts, [f"{method}: {error}"]
    out, log = folder / f"broken-{chain}", folder / f"log-{chain}"
    name = ""
    for again in range(2 * BREAKS):
        # What is left to do after a break is about half of what was.
        left = max(files >> counts["broken"], 1)
        name, install, right = a_break(rng, left, seconds / (1 + counts["broken"]))
        code = forked(lambda: command.run(out), log, install)
        if code:
            counts.update(["broken", name])
        if code not in right:
            wrong.append(f"{method}: {name} ended with {code}: {tail(log)}")
        if rng.random() < 0.35 and damage(command.checkpoints(out), rng):
            counts["damaged checkpoints"] += 1
            if rng.random() < 0.5:
                for path in out.rglob("metrics.json"):
                    path.unlink()
        if counts["broken"] == BREAKS or (again >= BREAKS and not code):
            break
    code = forked(lambda: command.run(out), log)
    counts["resumed"] += 1
    if code:
        wrong.append(f"{method}: --resume ended with {code}: {tail(log)}")
    elif command.outcome(out) != whole:
        wrong.append(f"{method}: other bytes after {name}")
    else:
        counts["bytes equal"] += 1
    if "Traceback" in log.read_text(errors="replace"):
        wrong.append(f"{method}: a traceback after {name}: {tail(log)}")
    shutil.rmtree(out, ignore_errors=True)
    return counts, wrong


def _begin() -> None:
    """Imports what runs import, so that a forked one need not.

    Nothing is computed yet: a fork would not survive that.
    """
    from neucrowd_tf.cli.quiet import quiet
    from neucrowd_tf.harness import plugins

    quiet()
    plugins.register(PLUGINS)
    import keras  # noqa: F401
    import tensorflow  # noqa: F401
    import tensorflow_probability  # noqa: F401

    for package in map(importlib.import_module, ("neucrowd_tf", *PLUGINS)):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _recorded(job: tuple[str, int, int, str]) -> tuple[Counter[str], list[str]]:
    method, chain, seed, folder = job
    return _broken(method, chain, seed, Path(folder) / method)


def try_kills(
    kills: int, seed: int, workers: int, methods: tuple[str, ...], record: Record
) -> None:
    """Breaks `kills` runs and records the outcomes.

    Every method is broken once before any is broken a second time.
    """
    import multiprocessing

    chains = ((method, chain) for chain in range(kills) for method in methods)
    jobs = [next(chains) for _ in range(-(-kills // BREAKS))]
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        context = multiprocessing.get_context("spawn")
        with context.Pool(min(workers, len(jobs)), _begin) as pool:
            for outcome in pool.imap_unordered(_recorded, [(*job, seed, folder) for job in jobs]):
                record.add(*outcome)
