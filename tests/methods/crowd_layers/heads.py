"""Heads of four annotators, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _made(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from neucrowd_tf.saving import keras_objects as parts

        return getattr(parts, name)(4, *arguments, **options)

    return make


HEADS = {
    "MW": _made("CrowdConnection"),
    "anno_reg": _made("ConfusionHead"),
    "anno_reg_columns": _made("ConfusionHead", "column", 0.2, 1.5),
    "trace_reg": _made("SoftplusConfusionHead"),
    "doctors": _made("DoctorHeads", 3, l2=0.1),
    "geocrowdnet_f": _made("GeoCrowdNetHead", "F"),
    "geocrowdnet_w": _made("GeoCrowdNetHead", "W"),
    "unionnet_a": _made("UnionHead", "A"),
    "unionnet_b": _made("UnionHead", "B"),
    "conal": _made("ConalHead", 2),
    "madl": _made("MaDLHead", 3, 4),
    "annot_mix": _made("AnnotMixHead", 3, 4),
    "crowdar": _made("ReliabilityHead", 8),
    "ccc": _made("CoupledHead"),
}
PAIRS = ("conal", "madl", "annot_mix", "crowdar")


def model_with_head(name: str, leading: tuple[int | None, ...] = ()) -> tuple[Any, Any]:
    """Returns a Keras model of three features that ends in a head, and the head."""
    import keras

    inputs = keras.Input((*leading, 3))
    hidden = keras.layers.Dense(8, activation="relu")(inputs)
    classes = keras.layers.Dense(3, activation="softmax", name="classes")(hidden)
    head = HEADS[name]()
    taken: Any = {"doctors": hidden, "ccc": [classes, classes]}.get(name, classes)
    return keras.Model(inputs, head([classes, inputs] if name in PAIRS else taken)), head
