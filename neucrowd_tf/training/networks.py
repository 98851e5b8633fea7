"""Configurations of networks and arguments of what trains one; nothing needs TensorFlow.

A network is a name ("dense"), a configuration (`{"name": "dense", "dropout": 0.0}`; "dense" needs
no name), a Keras model, or a function that makes one. Keras' parts of them are in
`crowd.bases` and `nn.encoders`.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from neucrowd_tf.declare.declarations import (
    Constraint,
    check_arguments,
    declared_by_name,
    estimator,
    many,
    none,
    number,
    one_of,
    share,
    text,
    whole,
    widths,
)
from neucrowd_tf.declare.types import Network
from neucrowd_tf.errors import DataError, UsageError

_FUNCTION = Constraint("a function", callable)
Kinds = Mapping[str, type]
_CONFIG = Constraint("a Keras configuration", lambda value: isinstance(value, Mapping))


@estimator
class Base:
    """A base classifier, `[None, ...] -> [None, C]`."""

    l2: Annotated[float, number(least=0), "penalty on the squares of the kernels."] = 5e-4


@estimator
class DenseBase(Base):
    """Fully connected layers with a softmax."""

    hidden_units: Annotated[
        Sequence[int],
        many(whole(1), "whole numbers from 1", least=0),
        "widths of the layers; without any the classifier is linear.",
    ] = (128,)
    activation: Annotated[Any, text | _FUNCTION, "a name in Keras, or a function."] = "relu"
    dropout: Annotated[float, number(least=0, below=1), "dropout rate."] = 0.5
    batch_norm: Annotated[bool, "whether batches are normalised in each layer."] = False


@estimator
class SmallCnn(Base):
    """Five convolutions of 16 to 64 filters, for images such as 32 x 32 x 3."""

    dropout: Annotated[float, number(least=0, below=1), "dropout rate."] = 0.5


@estimator
class ResNet18(Base):
    """ResNet-18 in its form for 32 x 32 images."""


@estimator
class DenseEncoder:
    """Fully connected layers, of which the last one is the embedding.

    References:
        NeuCrowd, section 4.3, has the defaults.
    """

    hidden_units: Annotated[
        Sequence[int], widths, "widths of the layers, the last one's the embedding's."
    ] = (64, 32)
    activation: Annotated[Any, text | _FUNCTION | none, "a name in Keras, or a function."] = (
        "sigmoid"
    )
    dropout: Annotated[
        float, number(least=0, below=1), "share of units that a training step leaves out at random."
    ] = 0.2
    l2: Annotated[float, number(least=0), "penalty on the squares of the kernels."] = 1e-2
    initializer: Annotated[
        str,
        one_of("glorot", "normal"),
        'start of the kernels: "glorot" (uniform) or "normal" (standard deviation 0.05).',
    ] = "glorot"


@estimator
class ICEDEncoder(DenseEncoder):
    """ICED's feature extractor, whose mirror is the decoder; images are flattened."""

    hidden_units: Sequence[int] = (128, 64)
    activation: Any = "relu"
    dropout: float = 0.3
    l2: float = 0.0


BASES: Kinds = {"dense": DenseBase, "small_cnn": SmallCnn, "resnet18": ResNet18}
ENCODERS: Kinds = {"dense": DenseEncoder}
ICED_ENCODERS: Kinds = {"dense": ICEDEncoder}


def network_of(kinds: Kinds) -> Constraint:
    """Returns the constraint of an argument that is one of these kinds of networks, or a user's."""
    names = " or ".join(map(repr, kinds))
    return Constraint(
        f"{names}, a configuration of one, a Keras model or a function that makes one",
        lambda value: (
            callable(value)
            or isinstance(value, Mapping)
            or (isinstance(value, str) and (value in kinds or _is_reference(value)))
        ),
    )


def _is_reference(value: object) -> bool:
    """Whether a value is "module:function" or may be a class of `keras.applications`."""
    return isinstance(value, str) and (":" in value or value[:1].isupper())


def _referenced(argument_name: str, value: str) -> Any:
    """Returns the function of "module:function", or one that makes a Keras application."""
    if ":" not in value:
        return functools.partial(_application, argument_name, value)
    try:
        if callable(function := pkgutil.resolve_name(value)):
            return function
        raise ValueError("not a function")
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{argument_name}: {value}: {error}. Write module:function of a module that Python can"
            " import."
        ) from None


def _application(
    argument_name: str, name: str, input_shape: tuple[int, ...], num_classes: int | None = None
) -> Network:
    """Returns an untrained Keras application, with a softmax if there are classes."""
    import keras

    if not hasattr(keras.applications, name):
        raise UsageError(f"{argument_name}: keras.applications has no network {name!r}")
    if keras.config.image_data_format() != "channels_last":
        raise UsageError(
            f"{argument_name}: images are [height, width, channels], and Keras would build {name}"
            ' for others. Call keras.config.set_image_data_format("channels_last").'
        )
    try:
        model = getattr(keras.applications, name)(
            include_top=False, weights=None, input_shape=input_shape, pooling="avg"
        )
    except ValueError as error:
        raise DataError(f"{argument_name}: {name}: {str(error).splitlines()[0]}") from None
    if num_classes is None:
        return model
    outputs = keras.layers.Dense(num_classes, activation="softmax")(model.output)
    return keras.Model(model.input, outputs)


def configuration(argument_name: str, value: Any, kinds: Kinds) -> Any:
    """Returns the checked configuration object of a name or mapping, or a model or function.

    Args:
        argument_name: of the argument that has the value, for errors.
        value: a key of `kinds`, or a mapping with "name" (the first kind's by default) and options;
            "module:function" and names of `keras.applications` give a function, and Keras models
            and functions stay as they are.
        kinds: configuration classes by name.

    Raises:
        UsageError: an unknown name or option, or an option's value that cannot be used.
    """
    if callable(value):
        return value
    if _is_reference(value):
        return _referenced(argument_name, value)
    options = {"name": value} if isinstance(value, str) else dict(value)
    name = options.pop("name", next(iter(kinds)))
    if name not in kinds:
        raise UsageError(
            f"{argument_name}: expected the name {' or '.join(map(repr, kinds))}, received {name!r}"
        )
    names = list(declared_by_name(kinds[name]))
    for option in options:
        if option not in names:
            raise UsageError(
                f"{argument_name}: {name!r} has no option {option!r}. It has"
                f" {', '.join(names) or 'none'}."
            )
    config = kinds[name](**options)
    check_arguments(config)
    return config


Optimizer = Annotated[
    Any,
    text
    | _CONFIG
    | Constraint(
        "a Keras optimizer or a function that makes one",
        lambda value: callable(value) or hasattr(value, "apply_gradients"),
    ),
    "a name, a Keras optimizer, its configuration, or a function that makes one; each fit makes a"
    " new one. Except for a name, each has its own learning rate, and `learning_rate` is then an"
    " error.",
]
LearningRate = Annotated[
    Any,
    number(above=0)
    | _CONFIG
    | Constraint(
        "a Keras schedule", lambda value: callable(value) and hasattr(value, "get_config")
    ),
    "of an optimizer that is given by name: a number, a Keras schedule or its configuration.",
]
BatchSize = Annotated[int, whole(1), "number of instances per step."]
Epochs = Annotated[int, whole(1), "largest number of epochs."]
StepsPerEpoch = Annotated[int, whole(1), "number of batches per epoch."]
Encoder = Annotated[
    Any,
    network_of(ENCODERS),
    'the embedding network: "dense", a configuration such as `{"hidden_units": [64, 32],'
    ' "dropout": 0.2}`, or a Keras model, which is copied. Also a function of the input shape'
    ' that makes one, "module:function", or a name of keras.applications (untrained).',
]
Standardise = Annotated[
    bool, "whether features get mean 0 and deviation 1, as measured in training."
]
Pretrained = Annotated[
    bool,
    "whether each fit starts from the network's own trainable weights, and not from weights"
    " that the seed draws. Frozen weights and other state are always kept.",
]
Patience = Annotated[
    int | None, whole(1), "stops after this many epochs without a better one; None never stops."
]
MinDelta = Annotated[float, number(least=0), "an epoch is better if it gains more than this."]
ValidationFraction = Annotated[
    float,
    share,
    "the share of instances held out to choose the epoch by, if `fit` gets no validation data.",
]


def check_network(model: Network) -> None:
    """Checks an estimator's networks, which `nested` names, and that its optimizer has one rate.

    Raises:
        UsageError: what cannot be used.
    """
    for name, kinds in model.nested.items():
        configuration(name, getattr(model, name), kinds)
    if not isinstance(model.optimizer, str) and model.learning_rate != type(model).learning_rate:
        raise UsageError(
            "learning_rate: has no effect, because the optimizer has its own learning rate. Set"
            " the rate there, or pass the optimizer by name."
        )
