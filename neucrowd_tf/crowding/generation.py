"""What a trained generator is used for: further annotations, and what it expects of each
annotator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations, factorize
from neucrowd_tf.crowding.crowd import fold, observed_cells
from neucrowd_tf.crowding.generator import draw_labels, pair_noise
from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.crowding.estimator import CrowdInG
    from neucrowd_tf.crowding.generator import Generator
    from neucrowd_tf.crowding.network import Players

_CELLS_AT_ONCE = 1 << 17


def expected_confusions(players: Players) -> NDArray[np.float32]:
    """Returns `[R, C true, C observed]`: the mean of what the generator answers for each annotator,
    at the noise's mean, over the training instances weighted by the classifier's probability of
    each class.
    """
    crowd, generative = players.crowd, players.game.generative
    flat, latent, annotators = crowd.flat, generative.classify_all(), crowd.annotators
    size, columns = int(crowd.num_instances), int(annotators.shape[0])
    total = np.zeros((columns, latent.shape[1], latent.shape[1]))
    rows = max(1, _CELLS_AT_ONCE // columns)
    for first in range(0, size, rows):
        z = latent[first : first + rows]
        logits = _at_mean(players.generator, flat[first : first + rows], z, annotators)
        total += np.einsum(
            "nc,nrk->rck", np.asarray(z, np.float64), np.asarray(tf.nn.softmax(logits), np.float64)
        )
    return (total / total.sum(axis=2, keepdims=True)).astype(np.float32)


def _at_mean(generator: Generator, flat: Any, latent: Any, annotators: Any) -> Any:
    noise = tf.zeros([tf.shape(flat)[0], tf.shape(annotators)[0], generator.noise_size])
    return generator.all_pairs(flat, latent, annotators, noise)


def annotator_probabilities(
    estimator: CrowdInG, features: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Returns `[M, R, C]` at the noise's mean."""
    generator, table = _generator(estimator), estimator.annotator_table_
    result = np.empty((len(features), len(table), len(estimator.classes_)), np.float32)
    for part, flat, latent in _blocks(estimator, features, len(table)):
        result[part] = np.asarray(
            tf.nn.softmax(_at_mean(generator, flat, latent, tf.constant(table)))
        )
    return result


def generated_annotations(
    estimator: CrowdInG,
    features: NDArray[np.float32],
    annotators: ArrayLike | None,
    annotations: Annotations | None,
    seed: int,
) -> Annotations:
    """Returns annotations with generated ones in the empty cells of the chosen annotators; see
    `CrowdInG.generate`.
    """
    names, classes = estimator.annotator_names_, estimator.classes_
    if annotations is None:
        empty = np.zeros(0, np.int32)
        annotations = Annotations(
            empty,
            empty,
            empty,
            num_instances=len(features),
            annotator_names=names,
            class_names=classes,
        )
    if annotations.num_instances != len(features):
        raise DataError(
            f"generate: expected annotations of {len(features)} instances, received"
            f" {annotations.num_instances}"
        )
    if (
        annotations.annotator_names.tolist() != names.tolist()
        or annotations.class_names.tolist() != classes.tolist()
    ):
        raise DataError(
            "generate: expected annotations by the annotators and with the classes that fit was"
            " given, received others"
        )
    columns = (
        np.arange(len(names))
        if annotators is None
        else np.unique(factorize(annotators, names, "annotator", sort=False)[0])
    )
    free = ~observed_cells(annotations)
    generator, table = _generator(estimator), estimator.annotator_table_[columns]
    rows, codes, labels = [], [], []
    for part, flat, latent in _blocks(estimator, features, len(columns)):
        own = fold(tf.constant([seed % 2**31, 0x6E]), part.start)
        noise = pair_noise(own, [len(flat), len(columns), generator.noise_size])
        drawn = np.asarray(
            draw_labels(generator.all_pairs(flat, latent, tf.constant(table), noise), fold(own, 1))
        )
        row, column = np.nonzero(free[part][:, columns])
        rows.append(row + part.start)
        codes.append(columns[column])
        labels.append(drawn[row, column])
    if not rows:
        return annotations
    return annotations.with_generated(
        *(np.concatenate(parts).astype(np.int32) for parts in (rows, codes, labels))
    )


def _generator(estimator: CrowdInG) -> Generator:
    """Returns the trained generator, rebuilt from its weights."""
    from neucrowd_tf.crowding.network import build_generator
    from neucrowd_tf.training.state import write_variables

    weights = estimator.generator_weights_
    cached = estimator.__dict__.get("_generator")
    if cached is None or cached[0] is not weights:
        size = int(np.prod(estimator.feature_shape_))
        generator = build_generator(
            estimator, len(estimator.classes_), size, estimator.annotator_table_.shape[1]
        )
        write_variables(generator.variables, weights)
        cached = (weights, generator)
        estimator._generator = cached
    return cached[1]


def _blocks(
    estimator: CrowdInG, features: NDArray[np.float32], columns: int
) -> Iterator[tuple[slice, Any, Any]]:
    """Yields blocks of instances: where they stand, their standardised features `[B, d]` and z-hat
    `[B, C]`.
    """
    rows = max(1, _CELLS_AT_ONCE // max(columns, 1))
    for first in range(0, len(features), rows):
        part = slice(first, min(first + rows, len(features)))
        x = features[part]
        latent = estimator._predict_proba(x)
        if estimator.square_root:
            x = np.sign(x) * np.sqrt(np.abs(x))
        flat = ((x - estimator.mean_) / estimator.scale_).reshape(len(x), -1)
        yield part, tf.constant(flat, tf.float32), tf.constant(latent)
