"""The consensus of a crowd that runs and reports use, inferred once per crowd and process."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from neucrowd_tf.aggregation.families import PEOPLE, Sources, named_families
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.agreement import Scale
from neucrowd_tf.certainty import Calibration, Certainty
from neucrowd_tf.certainty.inference import METHOD, Inference, infer
from neucrowd_tf.declare.types import Array, Indices
from neucrowd_tf.errors import quietly
from neucrowd_tf.io.files.arrays import array_digest

MOST_LABELS = 50_000  # of which the default method takes half a minute
LARGE_METHOD = "dawid_skene"
REMEMBERED = 4
_inferred: dict[tuple[Any, ...], Inference] = {}


def consensus_method(crowd: Annotations, scale: Scale = "nominal") -> str:
    """Returns the method: of ordered classes, of many labels, of vote counts, or the default."""
    if not crowd.has_identities:
        return "majority_vote"
    if scale != "nominal" and crowd.num_annotations <= MOST_LABELS:
        return "ordinal"
    if crowd.num_annotations <= MOST_LABELS:
        return METHOD
    return LARGE_METHOD


def inferred(
    crowd: Annotations,
    gold: Indices | None = None,
    sources: Sources = PEOPLE,
    scale: Scale = "nominal",
) -> Inference:
    """Infers a crowd's labels; those of the last few crowds are remembered.

    Args:
        crowd: the annotations of N instances, without generated ones.
        gold: `[N]` class codes, -1 if unknown.
        sources: which annotators are models, or count once.
        scale: of the classes; ordered ones get ordered labels.
    """
    method = consensus_method(crowd, scale)
    arrays: list[Array] = [crowd.vote_counts()]
    if crowd.has_identities:
        arrays = [crowd.instances, crowd.annotators, crowd.labels]
    if gold is not None:
        arrays += [gold]
    models = set(sources.models) & set(map(str, crowd.annotator_names.tolist()))
    if models:
        arrays += [np.isin(crowd.annotator_names.astype(str), list(models))]
    if sources.families:
        arrays += named_families(crowd, sources.families)
    classes = tuple(crowd.class_names.tolist())  # estimates of class shares have these names
    key = (method, crowd.shape, classes, bool(models), *map(array_digest, arrays))
    if key not in _inferred:
        with quietly():  # the method is not the user's choice
            inference = infer(crowd, method, gold, models=models, families=sources.families)
        while len(_inferred) >= REMEMBERED:
            _inferred.pop(next(iter(_inferred)))
        _inferred[key] = inference
    # Crowds with equal labels may have other names of items and annotators.
    return dataclasses.replace(_inferred[key], crowd=crowd)


def certainty_without_gold(
    crowd: Annotations,
    gold: Indices | None = None,
    sources: Sources = PEOPLE,
    scale: Scale = "nominal",
) -> Certainty:
    """Returns how sure labels are that are inferred without gold labels, which only calibrate it.

    Args:
        crowd, gold, sources, scale: see `inferred`.
    """
    certainty = inferred(crowd, sources=sources, scale=scale).certainty
    if gold is None:
        return certainty
    calibration = Calibration.learned(consensus_method(crowd, scale))
    recalibrated = calibration.fitted(certainty.posteriors, certainty.votes, gold)
    return dataclasses.replace(
        recalibrated.apply(certainty.posteriors, certainty.votes),
        ordered=certainty.ordered,
        least=certainty.least,
    )
