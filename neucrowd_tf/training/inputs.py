"""The gate of estimators: what `fit`, `score`, `predict` and `transform` are given, by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.annotations.tables import (
    Names,
    align_annotations,
    align_labels,
    as_annotations,
    column_names,
    split_names,
)
from neucrowd_tf.declare.types import Array, Features, Indices
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.training.features import is_dataset


class Inputs(NamedTuple):
    """Features, and what belongs to their rows in the order of the rows.

    Attributes:
        features: `[N, ...]` without a column of item ids: an array, a frame, texts, or a
            `DatasetFeatures`.
        rows: names of the rows; None without names.
        annotations: of N instances; None if none were given.
        validation: features as these, class codes `[M]`, and the codes' kind: "truth", or "votes"
            of the crowd, which are no true labels. None without validation data.
    """

    features: Features
    rows: Names
    annotations: Annotations | None = None
    validation: tuple[Features, Indices, str] | None = None

    @classmethod
    def of(
        cls,
        features: Features,
        annotations: object = None,
        validation: Sequence[object] | None = None,
        *,
        subject: str = "features",
        columns: Names = None,
        num_classes: int | None = None,
    ) -> Self:
        """Returns what a method is given.

        Rows with names are matched by them. Without names they are the annotations' instances in
        order. A frame with a row per label has no such order, so that its tasks must be the rows'
        numbers.

        Args:
            features: see `CrowdEstimator.fit`.
            annotations: in any form that `as_annotations` takes, if there are any.
            validation: features, labels and perhaps the labels' kind, if there are any.
            subject: the features' name in errors.
            columns: names that the columns had in training; None in training itself.
            num_classes: C of annotations that are a matrix of codes.

        Raises:
            DataError: what cannot be matched with certainty, and where.
            UsageError: validation data of another form.
        """
        if is_dataset(features):
            from neucrowd_tf.training.dataset_features import DatasetFeatures

            features = DatasetFeatures(features, subject)
        if annotations is None:
            return cls(*split_names(features, subject, columns))
        crowd = as_annotations(annotations, num_classes)
        tasks = crowd.instance_names.tolist() if crowd.named else ()
        table, rows = split_names(features, subject, columns, tasks)
        crowd = align_annotations(crowd, rows, np.shape(table)[0], annotations)
        inputs = cls(table, rows, crowd)
        if validation is None:
            return inputs
        return inputs._with_validation(validation, crowd.class_names)

    def _with_validation(self, validation: Sequence[object], class_names: Array) -> Self:
        """Returns these inputs with validation data."""
        if not isinstance(validation, (tuple, list)) or not 2 <= len(validation) <= 3:
            raise UsageError(
                f"validation: expected (features, labels) and perhaps the labels' kind, received"
                f" {type(validation).__name__}. Labels are class names, one per row."
            )
        features, labels, kind = (*validation, "truth")[:3]
        if isinstance(labels, Annotations):
            raise UsageError('validation: expected a label per row. Pass np.asarray(it), "votes".')
        if kind not in ("truth", "votes"):
            raise UsageError(f'validation: expected the kind "truth" or "votes", received {kind!r}')
        parts = Inputs.of(
            features, subject="validation features", columns=column_names(self.features)
        )
        size = np.shape(parts.features)[0]
        if not size:
            raise DataError("validation: expected at least one row, received none. Leave it out.")
        labels = parts.of_rows(labels, "validation labels")
        codes = encode_labels(labels, class_names, "validation labels")
        if len(codes) != size:
            raise DataError(
                f"validation: expected as many labels as rows, received {len(codes)} and {size}"
            )
        return self._replace(validation=(parts.features, codes, kind))

    def of_rows(self, labels: Features, subject: str = "labels") -> Features:
        """Returns labels `[N]` in the order of the rows, by name if both sides have names.

        Args:
            labels: `[N]`, or a table of one column.
            subject: their name in errors.
        """
        if np.ndim(labels) == 2 and np.shape(labels)[1] == 1:
            labels = np.squeeze(labels, axis=1)
        return align_labels(labels, self.features, self.rows, subject)
