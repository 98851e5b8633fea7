"""The history of a training run, its best epoch, and when to stop waiting for a better one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping


@dataclasses.dataclass
class History:
    """The logs of a training run and its best epoch.

    Attributes:
        logs: by name, a value for each epoch.
        best_epoch: from 0; None without a monitor.
        best_value, best_tie: the best epoch's monitored value (minus it, if the least is best), and
            what decided between equals.
    """

    logs: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    best_epoch: int | None = None
    best_value: float = -math.inf
    best_tie: float = 0.0

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""
        return max(map(len, self.logs.values()), default=0)

    def offer(self, value: float, tie: float = 0.0, min_delta: float = 0.0) -> bool:
        """Makes the latest epoch the best one if it is better; returns whether it is.

        Args:
            value: the greater, the better.
            tie: decides between equal values, the lower being better; the first epoch wins if this
                is equal too.
            min_delta: by how much more than this a better epoch has to be better.
        """
        # What is better by less than `min_delta` is never better, whatever decides between equals.
        if not (value - min_delta, -tie) > (self.best_value, -self.best_tie):
            return False
        self.best_epoch = self.epochs - 1
        self.best_value = value
        self.best_tie = tie
        return True

    def judge(
        self, values: Mapping[str, float], monitor: str, tie_break: str | None, min_delta: float
    ) -> bool:
        """Offers the latest epoch by the figures that `train` names; returns whether it is best."""
        if monitor == "auc" and math.isnan(values["val_auc"]):
            monitor = "log_loss"  # of one class the AUC is undefined in every epoch
        held_out = f"val_{monitor}"
        value = values[held_out if held_out in values else monitor]
        if monitor in ("loss", "log_loss"):
            value = -value
        tie = 0.0
        if tie_break:
            tie = values[f"val_{tie_break}"]
        return self.offer(value, tie, min_delta)

    def waited(self, patience: int | None) -> bool:
        """Returns whether so many epochs have passed without a better one."""
        if patience is None or self.best_epoch is None:
            return False
        return self.epochs - 1 - self.best_epoch >= patience
