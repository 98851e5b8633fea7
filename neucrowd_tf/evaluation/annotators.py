"""The reliability of annotators: their ranking, and annotators.csv."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from neucrowd_tf.aggregation.base import labelled_rows
from neucrowd_tf.annotations import Annotations, as_annotations, statistics
from neucrowd_tf.certainty.inference import Inference
from neucrowd_tf.certainty.skills import relative_agreement
from neucrowd_tf.declare.types import Array, Estimator, Indices
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.tables.writing import columns_csv, to_csv

HEADER = (
    *("annotator", "num_labels", "skill", "skill_low", "skill_high", "note"),
    *("agreement_consensus", "agreement_others", "agreement_model"),
)


def rank_annotators(annotations: Annotations | ArrayLike) -> pd.DataFrame:
    """Ranks annotators from best to worst by how well they agree with the others.

    Args:
        annotations: with identities; generated labels are left out.

    Returns:
        one row per annotator (index `annotator`), the best first, with the columns
        - num_labels, and overlap, the number of these that another annotator's label checks;
        - agreement: see `annotations.statistics.leave_one_out_agreement`;
        - beyond_chance: the order of the rows, see `certainty.skills.relative_agreement`: 1 is the
        crowd's mean, 0 is chance, however imbalanced the classes are;
        - rank: from 1.

    Raises:
        IdentitiesError: vote counts only.
        DataError: no annotation.
    """
    crowd = as_annotations(annotations)
    crowd.require_identities("the ranking of annotators")
    crowd = crowd.observed()
    if not crowd.num_annotations:
        raise DataError("annotators: expected at least one annotation to rank by, received none")
    relative, overlap = relative_agreement(crowd)
    columns = {
        "num_labels": crowd.labels_per_annotator(),
        "overlap": overlap.astype(int),
        "agreement": statistics.leave_one_out_agreement(crowd),
        "beyond_chance": relative,
    }
    table = pd.DataFrame(columns, index=pd.Index(crowd.annotator_names, name="annotator"))
    table = table.sort_values("beyond_chance", ascending=False, kind="stable")
    table["rank"] = np.arange(1, len(table) + 1)
    return table


def annotators_csv(inference: Inference, predicted: Indices, estimator: Estimator) -> str:
    """Returns annotators.csv: a row per annotator; no rows without identities.

    The columns are:

    - `annotator`, `num_labels`;
    - `skill` with its 80% interval, and `note`: see `neucrowd_tf.certainty.Skills`;
    - `agreement_consensus`, `agreement_others`, `agreement_model`: the shares of the labels that
      equal the consensus, another annotator's label of the same item, and the model's prediction;
    - `method_skill` and `recall_<class>`: if the method estimates them (the diagonal of the
      confusion matrices).

    Args:
        inference: of N instances.
        predicted: `[N]` class codes that a model predicts for them.
        estimator: the fitted method, of which `annotator_accuracy_` `[R]` and
            `confusion_matrices_` `[R, C, C]` are used.
    """
    crowd = inference.crowd
    skills = inference.skills
    if skills is None:
        return to_csv(HEADER, [])
    size = crowd.num_annotators
    classes = crowd.num_classes
    labels = np.where(labelled_rows(crowd, inference.gold), inference.labels, -1)
    columns: dict[str, Array] = {
        "annotator": crowd.annotator_names,
        "num_labels": crowd.labels_per_annotator().astype(int),
        "skill": skills.skill,
        "skill_low": skills.low,
        "skill_high": skills.high,
        "note": skills.note,
        "agreement_consensus": statistics.annotator_accuracy(crowd, labels)[0],
        "agreement_others": statistics.leave_one_out_agreement(crowd),
        "agreement_model": statistics.annotator_accuracy(crowd, predicted)[0],
    }
    skill = getattr(estimator, "annotator_accuracy_", None)
    if skill is not None and np.shape(skill) == (size,):
        columns["method_skill"] = np.asarray(skill)
    matrices = getattr(estimator, "confusion_matrices_", None)
    if matrices is not None and np.shape(matrices) == (size, classes, classes):
        recalls = np.einsum("rcc->cr", np.asarray(matrices))
        names = crowd.class_names.tolist()
        columns |= {f"recall_{name}": x for name, x in zip(names, recalls, strict=True)}
    return columns_csv(columns.items())
