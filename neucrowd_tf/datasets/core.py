"""CrowdDataset: features, annotations and splits.

The true labels of training and test instances are for evaluation only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Indices
from neucrowd_tf.errors import DataError

UNKNOWN = -1


@dataclasses.dataclass(frozen=True)
class Card:
    """The description of a dataset.

    Attributes:
        source: where it comes from; licence and citation as far as known.
        paper: statistics that the papers print, by name ("kappa", "class_ratio", ...), to compare
            with the computed ones.
        notes: whatever a user has to know (labels that are votes, duplicated rows).
    """

    title: str
    source: str = ""
    licence: str = "unknown"
    citation: str = ""
    paper: Mapping[str, float] = dataclasses.field(default_factory=dict)
    notes: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Instances with labels.

    `features` are `[M, ...]` float32, `labels` `[M]` class codes, `names` `[M]` item ids.

    `annotations` are the crowd's labels of these instances where there are any (hotel's votes), so
    that cross-validation over pooled rows can train on them; a plain split leaves them alone.
    """

    features: Array
    labels: Indices
    names: Array
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        sizes = [len(self.features), len(self.labels), len(self.names)]
        if len(set(sizes)) > 1:
            raise DataError(
                "split: expected features, labels and names of one length, received"
                f" {sizes[0]}, {sizes[1]} and {sizes[2]}"
            )
        crowd = self.annotations
        if crowd is not None and (other := crowd.num_instances) != sizes[0]:
            raise DataError(
                f"split: expected annotations of {sizes[0]} instances, received {other}"
            )

    def __len__(self) -> int:
        return len(self.labels)


@dataclasses.dataclass(frozen=True, eq=False)
class CrowdDataset:
    """One benchmark or one user's tables.

    Attributes:
        name: as in `--dataset`.
        features: `[N, ...]` float32, the training instances in the order of
            `annotations.instance_names`.
        annotations: who gave which label to which training instance.
        test: the test split.
        validation: a split with labels that may be used for choices, or None where the dataset
            publishes none.
        truth: `[N]` class codes of the training instances, -1 where unknown, or None. Evaluation
            only.
        card: provenance and the papers' statistics.
        validation_is_truth: whether the validation labels are ground truth (LabelMe) rather than
            majority votes (hotel).
        test_is_truth: likewise for the test labels.
        feature_names: the columns of a user's features table, None elsewhere.
    """

    name: str
    features: Array
    annotations: Annotations
    test: Split
    validation: Split | None = None
    truth: Indices | None = None
    card: Card = dataclasses.field(default_factory=lambda: Card("unnamed"))
    validation_is_truth: bool = True
    test_is_truth: bool = True
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        size = self.annotations.num_instances
        shape = self.features.shape[1:]
        for title, rows in (("feature rows", self.features), ("true labels", self.truth)):
            if rows is not None and len(rows) != size:
                raise DataError(f"{self.name}: expected {size} {title}, received {len(rows)}")
        for title, split in (("test", self.test), ("validation", self.validation)):
            if split is not None and (received := split.features.shape[1:]) != shape:
                problem = f"expected {title} features of shape {shape}, received {received}"
                raise DataError(f"{self.name}: {problem}")

    @property
    def class_names(self) -> Array:
        return self.annotations.class_names

    @property
    def num_classes(self) -> int:
        return self.annotations.num_classes

    def validation_pair(self) -> tuple[Array, Array, str] | None:
        """Returns what `fit(validation=...)` takes, or None.

        That is features, labels (as class names) and their kind, "truth" or "votes".
        """
        if (split := self.validation) is None:
            return None
        kind = "truth" if self.validation_is_truth else "votes"
        return split.features, self.class_names[split.labels], kind

    def test_pair(self) -> tuple[Array, Array]:
        """Returns what `score` takes: the test features and labels (as class names)."""
        return self.test.features, self.class_names[self.test.labels]

    def replace(self, **changes: Any) -> CrowdDataset:
        """Returns a copy with some fields changed."""
        return dataclasses.replace(self, **changes)
