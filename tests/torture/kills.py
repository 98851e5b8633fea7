"""Runs that are broken at seeded moments and resumed: SIGKILL, SIGTERM, SIGINT, a full disk and
damaged checkpoints, for a method of each class of estimators; their bytes are an unbroken run's.
`reproduction.smoke` says how each is made tiny.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.record import Record

SECONDS = 150
PLUGINS = ("baselines", "data")
SAVED = ("predictions.csv", "annotators.csv", "metrics.json")
Break = Callable[[], None]


def families() -> tuple[str, ...]:
    """Returns a method for each class of estimators that is registered."""
    from neucrowd_tf import registry
    from neucrowd_tf.harness import plugins

    plugins.register(PLUGINS)
    found: dict[Any, str] = {}
    for method in sorted(registry.methods(), key=lambda m: (len(m.defaults), len(m.name), m.name)):
        found.setdefault(method.factory, method.name)
    return tuple(sorted(found.values()))


def _flags(method: str, out: Path) -> list[str]:
    from neucrowd_tf import registry
    from reproduction.smoke import tiny_arguments

    small = tiny_arguments(registry.method(method))
    return [
        "run", "--dataset=breast_cancer", f"--method={method}", f"--output_dir={out}",
        "--resume", "--noreport", "--checkpoint_seconds=0",
        *(f"--hparam={name}={json.dumps(value)}" for name, value in small.items()),
    ]  # fmt: skip


def _before_rename(count: int, act: Break) -> Break:
    """Returns what makes a process do something where its count-th file is about to appear."""

    def install() -> None:
        left = [count]
        original = os.replace

        def replace(source: Any, target: Any, *rest: Any, **more: Any) -> None:
            left[0] -= 1
            if left[0] == 0:
                act()
            original(source, target, *rest, **more)

        os.replace = replace

    return install


def _counting(path: Path) -> Break:
    """Returns what makes a process write a byte for each file that appears."""

    def note() -> None:
        with path.open("ab") as stream:
            stream.write(b".")

    def install() -> None:
        original = os.replace

        def replace(*given: Any, **more: Any) -> None:
            note()
            original(*given, **more)

        os.replace = replace

    return install


def _signal(number: int) -> Break:
    return lambda: os.kill(os.getpid(), number)


def _full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _later(seconds: float) -> Break:
    """Returns what makes the process end by SIGKILL after some time, whatever it does then."""

    def install() -> None:
        clock = threading.Timer(seconds, _signal(signal.SIGKILL))
        clock.daemon = True
        clock.start()

    return install


def a_break(rng: np.random.Generator, files: int, seconds: float) -> tuple[str, Break, set[int]]:
    """Returns a name, what breaks a process that makes so many files in some seconds, and the exit
    codes that are right.
    """
    kinds: dict[str, tuple[Break, int]] = {
        "SIGKILL": (_signal(signal.SIGKILL), -9),
        "SIGTERM": (_signal(signal.SIGTERM), 143),
        "SIGINT": (_signal(signal.SIGINT), 130),
        "full disk": (_full_disk, 2),
    }
    if rng.random() < 0.12:
        return "SIGKILL at any time", _later(seconds * rng.random()), {-9, 0}
    kind = str(rng.choice(list(kinds), p=[0.76, 0.08, 0.08, 0.08]))
    act, code = kinds[kind]
    return kind, _before_rename(int(rng.integers(1, files + 1)), act), {code, 0}


def damage(folder: Path, rng: np.random.Generator) -> bool:
    """Damages a checkpoint, if there is one: cut off, a flipped byte, other shapes, other keys."""
    files = sorted(folder.rglob("*.npz"))
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
    else:
        from neucrowd_tf.errors import DataError
        from neucrowd_tf.io.files import load_arrays, save_arrays

        try:
            arrays = load_arrays(path)
        except DataError:  # damaged before
            return True
        names = sorted(arrays)
        if kind == 2 and names and path.name == "train.npz":
            chosen = names[int(rng.integers(len(names)))]
            value = arrays[chosen]
            arrays[chosen] = np.concatenate([np.ravel(value), np.ravel(value)[:1]])
        else:
            path.write_bytes(b"PK\x03\x04" + content[:50])
            return True
        save_arrays(path, arrays)
    return True


def _forked(method: str, out: Path, install: Break | None, log: Path) -> int:
    """Runs the command in a forked process; returns its exit code, 124 after too long."""
    from absl import flags as absl_flags

    from neucrowd_tf.harness import cli, flags

    child = os.fork()
    if child == 0:
        code = 99
        try:
            stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGALRM, lambda *_: os._exit(124))
            signal.alarm(SECONDS)
            absl_flags.FLAGS.unparse_flags()
            options = flags.parse(_flags(method, out))
            if install is not None:
                install()
            code = cli.run(options, PLUGINS)
        except BaseException as error:
            os.write(2, f"Traceback: {error!r}\n".encode())
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(out: Path) -> list[bytes]:
    """Returns what has to be the same: the files' bytes, the metrics without their timings."""
    found = []
    for name in SAVED:
        (path,) = out.rglob(name)
        content = path.read_bytes()
        if name == "metrics.json":
            metrics = json.loads(content)
            del metrics["timings"]
            content = json.dumps(metrics).encode()
        found.append(content)
    return found


def _family(method: str, kills: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Breaks runs of one method again and again; returns counts and what was wrong."""
    rng = np.random.default_rng([seed, *method.encode()])
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix=f"torture-{method}-"))
    try:
        log = folder / "log"
        began = time.monotonic()
        code = _forked(method, folder / "whole", _counting(folder / "count"), log)
        seconds = time.monotonic() - began
        if code:
            return counts, [f"{method}: the unbroken run ended with {code}: {_tail(log)}"]
        whole = outcome(folder / "whole")
        files = (folder / "count").stat().st_size
        tries = number = 0
        while counts["broken"] < kills and tries < 4 * kills:
            out, number = folder / f"broken-{number}", number + 1
            for again in range(int(rng.integers(1, 4))):
                tries += 1
                # What is left to do after a break is about half of what was.
                left = max(files >> again, 1)
                name, install, right = a_break(rng, left, seconds / (1 + again))
                code = _forked(method, out, install, log)
                counts["broken"] += code != 0
                counts[name] += code != 0
                if code not in right:
                    wrong.append(f"{method}: {name} ended with {code}: {_tail(log)}")
                if rng.random() < 0.35 and damage(out, rng):
                    counts["damaged checkpoints"] += 1
                    with contextlib.suppress(StopIteration):
                        if rng.random() < 0.5:
                            next(out.rglob("metrics.json")).unlink()
            code = _forked(method, out, None, log)
            counts["resumed"] += 1
            if code:
                wrong.append(f"{method}: --resume ended with {code}: {_tail(log)}")
            elif outcome(out) != whole:
                wrong.append(f"{method}: other bytes after {name}")
            else:
                counts["bytes equal"] += 1
            if "Traceback" in log.read_text(errors="replace"):
                wrong.append(f"{method}: a traceback after {name}: {_tail(log)}")
                log.write_text("")
            shutil.rmtree(out, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counts, wrong


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-700:]


def _begin() -> None:
    from neucrowd_tf.harness import plugins, process

    process.quiet()
    plugins.register(PLUGINS)
    import keras  # noqa: F401
    import tensorflow  # noqa: F401
    import tensorflow_probability  # noqa: F401


def _recorded(job: tuple[str, int, int]) -> dict[str, Any]:
    method, kills, seed = job
    counts, wrong = _family(method, kills, seed)
    return {"method": method, "seed": seed, "kills": kills, "counts": dict(counts), "wrong": wrong}


def try_kills(
    kills: int, seed: int, workers: int, methods: tuple[str, ...], record: Record
) -> None:
    """Breaks `kills` runs over methods, and records each method's that are not there."""
    import multiprocessing

    each = -(-kills // len(methods))
    done = record.broken(seed, each)
    left = [method for method in methods if method not in done]
    if not left:
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(workers, len(left)), _begin) as pool:
        for item in pool.imap_unordered(_recorded, [(method, each, seed) for method in left]):
            record.add(item)
