"""Run: where a fit leaves its checkpoints and TensorBoard logs, and on which devices it trains."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.declare.types import Array, Strategy
from neucrowd_tf.errors import DataError, warn
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.training.event_file import EventFile

OWNER = "owner"  # in a checkpoint's arrays: whose it is


def warn_unusable(path: Path, received: str) -> None:
    """Warns of a checkpoint that cannot be used."""
    warn(
        f"{path}: this checkpoint cannot be used, because it is {received}. This part of the run"
        " starts again.",
        stacklevel=3,
    )


@dataclasses.dataclass(frozen=True)
class Run:
    """What surrounds one `fit`; none of it changes the result of the same data.

    Attributes:
        checkpoints: folder for the state from which a killed fit goes on, or None. A fit that finds
            state there resumes.
        tensorboard: folder for TensorBoard's event files, or None.
        progress: whether to show progress bars; None shows them on a terminal.
        checkpoint_seconds: the least time between two checkpoints of a training loop; 0 writes one
            after every epoch.
        strategy: a `tf.distribute.Strategy`, or None. Where it has several processes, all make the
            same fit with the same folder of checkpoints, and the first one writes to it.
        prefix: the stage's name, which precedes its TensorBoard tags.
        owner: a digest of what is fitted, to what data (see `owner.py`): another's checkpoint is
            reported, and not continued.
        callbacks: further Keras callbacks of each training loop, whose logs hold `val_` figures.
            Checkpoints do not hold their state, nor do predictions stay the same if they change
            weights by anything but the logs.
        stop: once set, by another thread, training ends at the next epoch with `KeyboardInterrupt`.
    """

    checkpoints: Path | None = None
    tensorboard: Path | None = None
    progress: bool | None = None
    checkpoint_seconds: float = 5.0
    strategy: Strategy = None
    prefix: str = ""
    owner: str = ""
    callbacks: Sequence[Any] = ()
    stop: threading.Event | None = None
    _writers: dict[Path, EventFile] = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("checkpoints", "tensorboard"):
            if (folder := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(folder))

    def stage(self, name: str) -> Run:
        """Returns the run of one stage (a round, a phase): its checkpoints and tags are its own."""
        folder = self.checkpoints and self.checkpoints / name
        return dataclasses.replace(self, checkpoints=folder, prefix=f"{self.prefix}{name}/")

    def raise_if_stopped(self) -> None:
        """Raises KeyboardInterrupt where another thread wants the fit to end."""
        if self.stop is not None and self.stop.is_set():
            raise KeyboardInterrupt

    @property
    def workers(self) -> int:
        """How many processes train together."""
        resolver = getattr(self.strategy, "cluster_resolver", None)
        if resolver is None:
            return 1
        return sum(map(len, resolver.cluster_spec().as_dict().values())) or 1

    @property
    def first_worker(self) -> bool:
        """Whether this process is the one that writes: the chief, or else the first worker."""
        return self.strategy is None or bool(self.strategy.extended.should_checkpoint)

    def barrier(self) -> None:
        """Waits for the other processes, which have to call this too."""
        if self.workers > 1:
            from neucrowd_tf.nn.steps import agreed

            agreed(self.strategy, {"": 0.0})

    @property
    def verbose(self) -> int:
        """Keras' verbosity: 1 with a bar, 0 without."""
        return int(sys.stderr.isatty() if self.progress is None else self.progress)

    def scope(self) -> contextlib.AbstractContextManager[object]:
        """Returns the context in which variables are made."""
        if self.strategy is None:
            return contextlib.nullcontext()
        return self.strategy.scope()

    def steps_per_call(self, steps: int) -> int:
        """Returns what `compile(steps_per_execution=...)` should be given.

        This is `steps`, or 1 under a distribution strategy.

        TensorFlow fails to run Keras' loop over steps when its body holds collective operations.
        """
        if self.strategy is None:
            return steps
        return 1

    def cached(self, name: str, compute: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """Returns what `compute` gives, and stores it in the checkpoint folder.

        A resumed run does not compute it again.
        """
        if (stored := self.saved(f"{name}.npz")) is not None:
            return stored
        arrays = compute()
        if self.first_worker:
            self.save(f"{name}.npz", arrays)
        return arrays

    def save(self, name: str, arrays: dict[str, Array]) -> None:
        """Writes a checkpoint."""
        if self.checkpoints is not None:
            save_arrays(self.checkpoints / name, {**arrays, OWNER: self._owner(name)})

    def saved(self, name: str) -> dict[str, Array] | None:
        """Returns a checkpoint's arrays, or None.

        A damaged checkpoint and another run's are a warning.
        """
        if self.checkpoints is None or not (path := self.checkpoints / name).exists():
            return None
        try:
            arrays = load_arrays(path)
        except DataError:
            warn_unusable(path, "damaged")
            return None
        if np.array_equal(arrays.pop(OWNER, ()), self._owner(name)):
            return arrays
        warn_unusable(path, "of another run, other data or another version")
        return None

    def _owner(self, name: str) -> NDArray[np.uint8]:
        """Returns whose a checkpoint of this name and stage is."""
        identity = "\0".join((self.owner, self.prefix, name))
        hashed = hashlib.sha256(identity.encode("utf-8", "surrogatepass"))
        return np.frombuffer(hashed.digest(), dtype=np.uint8)

    # ----------------------------------------------------------------- TensorBoard

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes scalars at a step (an epoch or a round) under the stage's prefix."""
        if self.tensorboard is None:
            return
        if self.tensorboard not in self._writers:
            self._writers[self.tensorboard] = EventFile(self.tensorboard)
        tagged = {self.prefix + name: float(value) for name, value in values.items()}
        self._writers[self.tensorboard].scalars(step, tagged)

    def flush(self) -> None:
        """Hands what was written for TensorBoard to the operating system."""
        for writer in self._writers.values():
            writer.flush()
