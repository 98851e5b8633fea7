"""Fitted estimators as arrays, for methods that refit one in rounds and go back to a round."""

from __future__ import annotations

import copy
from typing import Any, Self


class Snapshots:
    """An estimator with a Keras model `model_`, whose fitted state can be kept and taken back."""

    model_: Any

    def snapshot(self) -> dict[str, Any]:
        """Returns the fitted state as arrays and plain values, so that the estimator may be
        refitted in place.
        """
        from neucrowd_tf.training.state import read_variables

        state = {
            name: copy.copy(value)
            for name, value in vars(self).items()
            if name.endswith("_") and name != "model_" and not name.startswith("_")
        }
        return {"state": state, "weights": read_variables(self.model_.variables)}

    def from_snapshot(self, snapshot: dict[str, Any]) -> Self:
        """Returns a fitted estimator of its own that is as this one was then."""
        import keras
        from sklearn.base import clone

        made: Self = clone(self)
        made.model_ = keras.models.clone_model(self.model_)
        return made.load_snapshot(snapshot)

    def load_snapshot(self, snapshot: dict[str, Any]) -> Self:
        """Takes a snapshot's state in place; `model_` must be this estimator's own."""
        from neucrowd_tf.training.state import write_variables

        for name, value in snapshot["state"].items():
            setattr(self, name, value)
        write_variables(self.model_.variables, snapshot["weights"])
        return self
