"""Configurations of networks, of which nothing needs TensorFlow.

A network is a name ("dense"), a configuration (`{"name": "dense", "dropout": 0.0}`; "dense" needs
no name), a Keras model, or a function that makes one. Keras' parts of them are in
`crowd_layers.bases` and `nn.encoders`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neucrowd_tf.arguments import (
    Constraint,
    argument,
    check_arguments,
    declared,
    estimator,
    flag,
    many,
    none,
    number,
    one_of,
    text,
    whole,
    widths,
)
from neucrowd_tf.errors import UsageError

_FUNCTION = Constraint("a function", callable)
Kinds = Mapping[str, type]
_CONFIG = Constraint("a Keras configuration", lambda value: isinstance(value, Mapping))
OPTIMIZER = (
    text
    | _CONFIG
    | Constraint(
        "a Keras optimizer or a function that makes one",
        lambda value: callable(value) or hasattr(value, "apply_gradients"),
    )
)
OPTIMIZER_MEANING = (
    "a name, a Keras optimizer, its configuration, or a function that makes one; each fit makes a"
    " new one. All but a name have a learning rate of their own."
)
LEARNING_RATE = (
    number(above=0)
    | _CONFIG
    | Constraint("a Keras schedule", lambda value: callable(value) and hasattr(value, "get_config"))
)
LEARNING_RATE_MEANING = (
    "of an optimizer that is given by name: a number, a Keras schedule or its configuration."
)


@estimator
class Base:
    """A base classifier, `[None, ...] -> [None, C]`."""

    l2: float = argument(5e-4, number(least=0), "penalty on the squares of the kernels.")


@estimator
class DenseBase(Base):
    """Fully connected layers with a softmax."""

    hidden_units: Sequence[int] = argument(
        (128,),
        many(whole(1), "whole numbers from 1", least=0),
        "widths of the layers; without any the classifier is linear.",
    )
    activation: Any = argument("relu", text | _FUNCTION, "by Keras' name, or a function.")
    dropout: float = argument(0.5, number(least=0, below=1), "share of the units dropped.")
    batch_norm: bool = argument(False, flag, "whether batches are normalised in each layer.")


@estimator
class SmallCnn(Base):
    """Five convolutions of 16 to 64 filters, for images such as 32 x 32 x 3."""

    dropout: float = argument(0.5, number(least=0, below=1), "share of the units dropped.")


@estimator
class ResNet18(Base):
    """ResNet-18 in its form for 32 x 32 images."""


@estimator
class DenseEncoder:
    """Fully connected layers, of which the last one is the embedding.

    References:
        NeuCrowd, section 4.3, has the defaults.
    """

    hidden_units: Sequence[int] = argument(
        (64, 32), widths, "widths of the layers, the last one's the embedding's."
    )
    activation: Any = argument("sigmoid", text | _FUNCTION | none, "by Keras' name, or a function.")
    dropout: float = argument(
        0.2, number(least=0, below=1), "share of units that a training step leaves out at random."
    )
    l2: float = argument(1e-2, number(least=0), "penalty on the squares of the kernels.")
    initializer: str = argument(
        "glorot",
        one_of("glorot", "normal"),
        'of the kernels: "glorot" (uniform) or "normal" (standard deviation .05).',
    )
    normal_biases: bool = argument(
        False, flag, "whether biases start from N(0, 1), as released, and not at 0."
    )
    embedding_dropout: bool = argument(
        False, flag, "whether the embedding is dropped out too, as released."
    )


BASES: Kinds = {"dense": DenseBase, "small_cnn": SmallCnn, "resnet18": ResNet18}
ENCODERS: Kinds = {"dense": DenseEncoder}


def _is_network(value: Any) -> bool:
    return callable(value) or isinstance(value, Mapping)


def network(kinds: Kinds) -> Constraint:
    """Returns the constraint of an argument that is one of these kinds of networks, or a user's."""
    names = " or ".join(map(repr, kinds))
    return Constraint(
        f"{names}, a configuration of one, a Keras model or a function that makes one",
        lambda value: (
            callable(value)
            or isinstance(value, Mapping)
            or (isinstance(value, str) and value in kinds)
        ),
    )


def options_of(kind: type) -> list[str]:
    """Returns the names of a configuration's options."""
    return [field.name for field in declared(kind)]


def configuration(argument_name: str, value: Any, kinds: Kinds) -> Any:
    """Returns the checked configuration object that a name or a mapping stands for.

    Args:
        argument_name: of the argument that has the value, for errors.
        value: a key of `kinds`, or a mapping with "name" (the first kind's by default) and options.
        kinds: configuration classes by name.

    Raises:
        UsageError: an unknown name or option, or an option's value that cannot be used.
    """
    options = {"name": value} if isinstance(value, str) else dict(value)
    name = options.pop("name", next(iter(kinds)))
    if name not in kinds:
        raise UsageError(
            f"{argument_name}: expected the name {' or '.join(map(repr, kinds))}, received {name!r}"
        )
    names = options_of(kinds[name])
    unknown = [option for option in options if option not in names]
    if unknown:
        raise UsageError(
            f"{argument_name}: {name!r} has no option {unknown[0]!r}. It has"
            f" {', '.join(names) or 'none'}."
        )
    config = kinds[name](**options)
    check_arguments(config)
    return config
