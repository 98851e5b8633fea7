"""CrowdInG's arguments, its presets by dataset (chosen on validation data), and its variants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.arguments import (
    argument,
    estimator,
    flag,
    many,
    nest,
    none,
    number,
    one_of,
    share,
    text,
    whole,
)
from neucrowd_tf.crowd_layers import CrowdLayer
from neucrowd_tf.errors import DataError
from neucrowd_tf.training.networks import BASES, network

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.annotations import Annotations

_rate = number(above=0)

PAPER = "Chu and Wang: Improve learning from crowds via generative augmentation, KDD 2021"

PRESETS: dict[str, dict[str, Any]] = {
    "labelme": {"square_root": True},
    "music": {
        "dropout": 0.0,
        "batch_norm": True,
        "pretrain_epochs": 80,
        "label_correlation": False,
    },
    "cifar10n": {"base": "small_cnn", "dropout": 0.3, "pretrain_batch": 128, "pretrain_epochs": 20},
    "cifar10h": {"base": "small_cnn", "dropout": 0.3, "pretrain_batch": 128, "pretrain_epochs": 20},
}
SPACE: dict[str, tuple[Any, ...]] = {
    "information": (0.1, 0.3, 0.5, 1.0),
    "threshold": (0.2, 0.4, 0.5, 0.6, 0.8),
    "classifier_learning_rate": (3e-5, 1e-4, 3e-4),
    "generator_learning_rate": (1e-4, 3e-4),
    "pretrain_epochs": (15, 25, 50),
    "noise_size": (4, 8, 16),
}
# Name, summary, and the arguments that make it.
VARIANTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "dl_cl",
        (
            "DL-CL: the crowd-layer classifier that CrowdInG starts from (same seed, same"
            " pre-training)"
        ),
        {"epochs": 0},
    ),
    (
        "crowding_no_lca",
        "CrowdInG without label-correlation aggregation",
        {"label_correlation": False},
    ),
    (
        "crowding_one_step",
        "CrowdInG with generator and classifier updated together (figure 2b)",
        {"two_step": False},
    ),
    (
        "crowdingr",
        "CrowdInG with generated annotations selected at random (table 2)",
        {"selection": "random"},
    ),
    (
        "crowdingi",
        "CrowdInG whose generator does not know the annotator (table 2)",
        {"annotator_identities": False},
    ),
    (
        "crowdingu",
        "CrowdInG whose generator does not see the instance (table 2)",
        {"instance_features": False},
    ),
    ("crowdg", "CrowdInG without the information loss (table 2)", {"information": 0.0}),
    (
        "crowding",
        (
            "CrowdInG: generated annotations, judged for authenticity and information, teach the"
            " classifier"
        ),
        {},
    ),
)


@estimator
class ClassifierArguments:
    """The arguments that say which classifier DL-CL trains."""

    base: Any = argument(
        "dense", network(BASES), "the classifier, as for `CrowdLayer`.", positional=True
    )
    hidden_units: Sequence[int] = argument(
        (128,), many(whole(1), "whole numbers from 1", 0), "widths of the dense base."
    )
    activation: str = argument("relu", text, "of the dense base.")
    dropout: float = argument(0.5, number(least=0, below=1), "of the dense base and of small_cnn.")
    batch_norm: bool = argument(False, flag, "of the dense base.")
    l2: float = argument(5e-4, number(least=0), "weight penalty on the base's kernels.")
    square_root: bool = argument(
        False, flag, "take the signed square root of features before standardising."
    )
    standardise: bool = argument(
        True, flag, "scale features to mean 0 and standard deviation 1 on the training instances."
    )
    annotator_learning_rate: float | None = argument(
        None,
        none | number(least=0),
        "of DL-CL's annotators before anything else is trained; None is the rate of all.",
    )

    def dl_cl(
        self,
        *,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
        monitor: str | None = None,
    ) -> CrowdLayer:
        """Returns the untrained DL-CL that these arguments describe."""
        options = ("hidden_units", "activation", "dropout", "batch_norm", "l2")
        values = {
            "base": self.base,
            "standardise": "square_root" if self.square_root else self.standardise,
            "epochs": epochs,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "annotator_learning_rate": self.annotator_learning_rate,
            "monitor": monitor,
            "seed": seed,
        }
        return CrowdLayer(
            **nest(CrowdLayer, values, {name: getattr(self, name) for name in options})
        )


@estimator
class GameArguments:
    """The arguments that say how CrowdInG pre-trains its networks and plays its game."""

    pretrain_epochs: int = argument(15, whole(1), "of DL-CL.")
    pretrain_batch: int = argument(64, whole(1), "instances in a batch of DL-CL.")
    pretrain_learning_rate: float = argument(1e-3, _rate, "Adam's for DL-CL.")
    generator_pretrain_epochs: int = argument(
        10, whole(0), "passes of the generator over the authentic annotations before the game."
    )
    generator_pretrain_batch: int = argument(64, whole(1), "annotations in a batch of them.")
    generator_pretrain_learning_rate: float = argument(1e-3, _rate, "Adam's for them.")
    discriminator_pretrain_passes: int = argument(
        10,
        whole(0),
        "passes of the discriminative module before the game, each with a fresh selection.",
    )
    embedding_size: int = argument(
        32, whole(1), "length of all embeddings of instances, annotators and labels."
    )
    generator_units: int = argument(64, whole(1), "hidden units of g.")
    auxiliary_units: int = argument(128, whole(1), "hidden units of h.")
    noise_size: int = argument(8, whole(1), "length of the noise vector.")
    information: float = argument(
        0.5, number(least=0), "lambda, the weight of the information loss (eq. 4); 0 is CrowdG."
    )
    threshold: float = argument(
        0.5,
        share,
        "t, the share of instances, those with the lowest entropy, that update the generator.",
    )
    passes: int = argument(5, whole(1), "inner passes of each turn.")
    discriminator_passes: int | None = argument(
        None, none | whole(1), "of the discriminative module's turn; None is `passes`."
    )
    generator_passes: int | None = argument(
        None, none | whole(1), "of the generator's turn; None is `passes`."
    )
    classifier_passes: int | None = argument(
        None,
        none | whole(1),
        "of the classifier's turn; None is `passes`. A turn of both together has the larger of the"
        " two counts, and twice the batches of one of them.",
    )
    latent: Literal["soft", "class"] = argument(
        "soft",
        one_of("soft", "class"),
        'what the generator is fed of the classifier: "soft", its probabilities, given which a'
        ' label tells nothing of z beyond the instance; or "class", a class drawn from them, as in'
        " InfoGAN.",
    )
    risk: Literal["counterfactual", "exact"] = argument(
        "counterfactual",
        one_of("counterfactual", "exact"),
        '"counterfactual" learns from logged draws, as the paper does; "exact" sums over all labels'
        " (and classes): no draws, mu, ratios or replay.",
    )
    likelihood: float = argument(
        0.0,
        number(least=0),
        "weight of -log G of the authentic annotations in the generator's turn, which keeps it near"
        " them.",
    )
    equal_inputs: bool = argument(
        False,
        flag,
        "whether the generator's first layer starts with as much of the instance, the annotator,"
        " the classifier's output and the noise.",
    )
    penalised: bool = argument(
        False, flag, "whether the classifier keeps its weight penalty `l2` in the game."
    )
    taught_by: Literal["generator", "crowd_layer"] = argument(
        "generator",
        one_of("generator", "crowd_layer"),
        'who teaches the classifier after DL-CL: the "generator", or, as a control, the'
        ' "crowd_layer" again, with as many steps, the same rate, average and choice of the epoch.',
    )
    multiplier: float | Literal["mean", "search"] = argument(
        "mean",
        one_of("mean", "search") | number(),
        'mu of eqs. 5 and 6: a number, "mean" (of the losses at hand) or "search" (the best of'
        " several).",
    )
    ratio_cap: float = argument(10.0, number(above=0), "the largest importance ratio.")
    probability_floor: float = argument(
        1e-3, number(above=0), "the least probability under the logging policy."
    )
    selection: Literal["entropy", "random", "observed"] = argument(
        "entropy",
        one_of("entropy", "random", "observed"),
        'which cells the discriminator sees generated annotations of: empty ones by "entropy"'
        ' (section 3.3.1) or at "random" (CrowdInGR), or those "observed", whose instance and'
        " annotator do not give them away.",
    )
    instance_features: bool = argument(
        True, flag, "whether the generator sees the instance; False is CrowdInGU."
    )
    annotator_identities: bool = argument(
        True, flag, "whether the generator knows the annotator; False is CrowdInGI."
    )
    annotator_features: ArrayLike | None = argument(
        None, None, "`[R, e]` numbers in the order of the annotators, in place of one-hot vectors."
    )
    label_correlation: bool = argument(True, flag, "whether the discriminator has the LCA decoder.")
    output_penalty: float = argument(
        1.0, number(least=0), "weight of the discriminator's mean squared output."
    )
    discriminator_loss: Literal["multi_label", "literal", "density_ratio"] = argument(
        "multi_label",
        one_of("multi_label", "literal", "density_ratio"),
        '"multi_label", "literal" for eq. 4 entry by entry, which gains less and decays sooner, or'
        ' "density_ratio", eq. 4 with log p(y) - log G(y) as the logit of D(y), p a softmax of'
        ' eq. 2; it is a test of authenticity with `selection="observed"` and `output_penalty=0`.',
    )
    generated_term: float = argument(
        1.0,
        number(least=0),
        "weight of generated annotations in the discriminator's loss; 0, a control, leaves a model"
        " of the authentic ones alone.",
    )
    two_step: bool = argument(
        True, flag, "False updates generator and classifier together, on all instances."
    )
    generator_learning_rate: float = argument(3e-4, _rate, "Adam's for the generator.")
    classifier_learning_rate: float = argument(1e-4, _rate, "Adam's for the classifier.")
    discriminator_learning_rate: float = argument(
        1e-3, _rate, "Adam's for the discriminative module."
    )
    batch_size: int = argument(
        100, whole(1), "instances in a batch of the generative module, each with all annotators."
    )
    pair_batch_size: int = argument(
        512, whole(1), "annotations in a batch of the discriminative module."
    )
    averaging: float = argument(
        0.8,
        number(least=0, below=1),
        "what predicts is a running average of the classifier's weights over epochs, which keeps"
        " this share of itself each epoch; 0 predicts with the classifier as it stands, as in the"
        " paper. It is only read: the game goes on with the present one.",
    )
    epochs: int = argument(12, whole(0), "of the game; 0 stops after DL-CL.")
    monitor: Literal["accuracy", "log_loss"] = argument(
        "accuracy",
        one_of("accuracy", "log_loss"),
        'which validation figure chooses the epoch, "accuracy" or "log_loss"; the start is a'
        " candidate too.",
    )
    collapse_drop: float = argument(
        0.1,
        number(above=0),
        "the guard stops when validation accuracy falls so far below the best one, or when the"
        " entropy of the predicted classes falls below half of what it was.",
    )
    refit: bool = argument(
        True,
        flag,
        "where `fit` gets no validation data, train again on all instances for the number of"
        " epochs that held-out instances chose.",
    )
    validation_fraction: float = argument(0.2, share, "the share held out for that choice.")
    measured: bool = argument(
        False,
        flag,
        "whether `information_` tells how much labels say of classes before and after the game.",
    )

    def annotator_table(self, annotations: Annotations) -> NDArray[np.float32]:
        """Returns what stands for the annotators `[R, e]`: their features, or one-hot vectors where
        there are none.

        Raises:
            DataError: not finite numbers with a row for each annotator.

        References:
            CrowdInG, section 3.2 (e_r).
        """
        features, count = self.annotator_features, annotations.num_annotators
        if features is None:
            return np.eye(count, dtype=np.float32)
        try:
            table: NDArray[Any] = np.asarray(features, dtype=np.float32)
        except (TypeError, ValueError):
            raise DataError(
                f"annotator_features: expected numbers, received {features!r}"[:200]
            ) from None
        if table.ndim != 2 or len(table) != count or not np.isfinite(table).all():
            raise DataError(
                f"annotator_features: expected finite numbers of shape [{count}, *], received"
                f" shape {table.shape}"
            )
        return table
