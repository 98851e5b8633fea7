"""What a process sets once, before TensorFlow computes: threads, devices and precision."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.metadata
import json
import math
import os
import platform
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from neucrowd_tf.cli.command_line import show_warning
from neucrowd_tf.cli.quiet import import_tensorflow
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import UsageError, one_line

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

SETTINGS = ("threads", "device", "mixed_precision", "distribute")
_started: Fields = {}


def start_without_tensorflow(options: Options) -> None:
    """Sets the threads of NumPy and SciPy in this process, for methods without networks.

    Raises:
        UsageError: an earlier call had other settings.
    """
    settings = attributes_of(options, SETTINGS)
    if _started.setdefault("settings", settings) != settings:
        flags = ", ".join(f"--{name}" for name in SETTINGS)
        raise UsageError(f"{flags}: differ from those of this process. Start another process.")
    import threadpoolctl

    # Kept for the process's life: limits end when the object is collected. Again in each call,
    # since libraries that are imported later have threads of their own.
    _started["limits"] = threadpoolctl.threadpool_limits(limits=options.threads)


def start(options: Options) -> Any:
    """Sets threads, devices and precision of this process, once.

    Returns:
        a `tf.distribute.Strategy`, or None without --distribute.

    Raises:
        UsageError: a device that this machine does not have, or a second call with other settings.
    """
    start_without_tensorflow(options)
    if "strategy" in _started:
        return _started["strategy"]
    tf, keras = import_tensorflow()
    # Each run looks for garbage: not among the million objects of what is imported.
    gc.collect()
    gc.freeze()
    # Notes on retracing, which fits of several models in one process cannot avoid.
    tf.get_logger().setLevel("ERROR")
    start_without_tensorflow(options)
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    _choose_device(tf, options)
    tf.config.experimental.enable_op_determinism()
    keras.config.set_dtype_policy("mixed_bfloat16" if options.mixed_precision else "float32")
    strategy = None
    if options.distribute == "mirrored":
        strategy = tf.distribute.MirroredStrategy()
    elif options.distribute == "multi_worker":
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    _started["strategy"] = strategy
    return strategy


def workers() -> int:
    """Returns how many processes TF_CONFIG lists; errors are those of `_tf_config`."""
    return _tf_config()[0]


def first_worker(options: Options) -> bool:
    """Whether this process is the one that writes results."""
    return options.distribute != "multi_worker" or _tf_config()[1]


def _tf_config() -> tuple[int, bool]:
    """Returns how many processes TF_CONFIG lists, and whether this one is the first of them.

    Raises:
        UsageError: it is missing, or TensorFlow could not use it.
    """
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        task = config["task"]
        cluster = config["cluster"]
        kind = task["type"]
        index = int(task["index"])
        cluster[kind][index]
        count = sum(map(len, cluster.values()))
        if index < 0:
            raise IndexError
    except (ValueError, LookupError, TypeError):
        raise UsageError(
            "--distribute=multi_worker: the environment variable TF_CONFIG must be"
            ' {"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}},'
            f" not {text or 'empty'}"
        ) from None
    return count, index == 0 and (kind == "chief" or "chief" not in cluster)


def check_workers(error: Exception) -> None:
    """Ends the process if an error of TensorFlow means that another one has ended."""
    strategy = _started.get("strategy")
    if getattr(strategy, "cluster_resolver", None) is None:
        return
    tf, _ = import_tensorflow()
    lost = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
    if isinstance(error, (*lost, tf.errors.InternalError, tf.errors.DeadlineExceededError)):
        sys.stderr.write(
            "error: a worker of TF_CONFIG was lost. Start all of them again with --resume to"
            f" continue ({one_line(error)[:200]}).\n"
        )
        os._exit(1)  # TensorFlow would wait for the lost worker


def plain_warnings() -> None:
    """Prints each warning once in this process, on one line, without the place in the code."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            show_warning(message)

    warnings.showwarning = show  # type: ignore[assignment]  # called by position


def forget_networks() -> None:
    """Lets Keras number layers from 0 again, as in a new process, and frees earlier networks.

    TensorFlow orders sums by the names of a graph's nodes, which contain the layers' numbers.
    Without this the last bits of a result depend on how many networks its process made before.
    """
    if keras := sys.modules.get("keras"):
        policy = keras.config.dtype_policy()
        keras.utils.clear_session()
        keras.config.set_dtype_policy(policy)


def _choose_device(tf: Any, options: Options) -> None:
    if options.device == "auto":
        return
    kind, _, index = options.device.upper().partition(":")
    devices = tf.config.list_physical_devices(kind)
    if (index and int(index) >= len(devices)) or not devices:
        raise UsageError(
            f"--device={options.device}: this machine has {len(devices)} {kind} devices"
        )
    if kind == "CPU":
        tf.config.set_visible_devices([], "GPU")
    elif index:
        tf.config.set_visible_devices([devices[int(index)]], "GPU")


def peak_memory_mb() -> float:
    """Returns the largest resident memory of this process so far, in MB; NaN on Windows."""
    if resource is None:
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, kibibytes elsewhere


@functools.cache
def versions() -> dict[str, str]:
    """Returns the versions of Python, of this package and of its requirements."""
    names = ["neucrowd-tf"]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for line in importlib.metadata.requires("neucrowd-tf") or ():
            if "extra ==" not in line:
                names.append(re.split(r"[^\w-]", line)[0])
    versions = {"python": platform.python_version()}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


@functools.cache
def machine() -> Fields:
    """Returns what rounding depends on besides versions and threads: processor and oneDNN."""
    name = platform.processor()
    with contextlib.suppress(OSError):  # of Linux; elsewhere it does not exist
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        named = re.search(r"^model name.*?: (.*)$", text, re.MULTILINE)
        name = named[1] if named else name
    # TensorFlow's default is on for x86; other values are those of the environment.
    onednn = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default")
    return {"processor": name or platform.machine(), "cpus": os.cpu_count(), "onednn": onednn}


@functools.cache
def git_revision() -> str | None:
    """Returns the checkout's commit, with "+changes" if files differ; None without git."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+changes"]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
