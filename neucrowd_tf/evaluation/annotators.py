"""The reliability of annotators: their ranking, and annotators.csv."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.aggregation.base import normalise_log
from neucrowd_tf.annotations import Annotations, as_annotations, statistics
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import wilson_interval
from neucrowd_tf.io.tables.writing import cell, to_csv

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.certainty.inference import Inference

# This many labels, drawn from an annotator's own mix whatever the class, are added to each row of
# its counts: an annotator counts as a spammer until its labels say otherwise.
PSEUDO_LABELS = 1.0

HEADER = (
    *("annotator", "num_labels", "skill", "skill_low", "skill_high", "note"),
    *("agreement_consensus", "agreement_others", "agreement_model"),
)


def spam_scores(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[R]`: 1 if labels do not depend on the true class, 0 for perfect separation.

    This is one minus the score of Raykar and Yu, the mean squared distance between the rows of a
    confusion matrix. An annotator who always swaps two classes is not a spammer; its informedness
    is below 0.

    Args:
        errors: `[R, C true class, C observed class]`.

    References:
        Raykar and Yu (2012), Eliminating spammers and ranking annotators for crowdsourced labeling
        tasks, section 3.
    """
    size = errors.shape[-1]
    if size < 2:
        return np.zeros(len(errors))
    # Sum over pairs of rows of |row - row'|^2 = C * sum of |row|^2 - |sum of rows|^2.
    distances = size * np.einsum("rck,rck->r", errors, errors) - np.einsum(
        "rk,rk->r", errors.sum(axis=1), errors.sum(axis=1)
    )
    return np.clip(1.0 - distances / (size * (size - 1)), 0.0, 1.0)


def informedness(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[R]` mean recall, scaled so that 1 is perfect and 0 is chance.

    Any spammer has 0; below 0 is worse than chance.
    """
    size = errors.shape[-1]
    recall = np.einsum("rcc->r", errors) / size
    return np.ones(len(errors)) if size < 2 else statistics.chance_corrected(recall, 1.0 / size)


def leave_one_out_posteriors(crowd: Annotations, model: DawidSkene) -> NDArray[np.float64]:
    """Returns `[A, C]` the class posterior from an instance's other annotators, for each label.

    Raises:
        DataError: the model has no error matrices.
    """
    if model.errors_ is None:
        raise DataError(
            "leave-one-out posteriors: expected a model with error matrices, received one without"
        )
    log_errors = np.log(np.maximum(model.errors_, 1e-300))
    total = crowd.one_hot() @ log_errors.transpose(0, 2, 1).reshape(-1, crowd.num_classes)
    posteriors: NDArray[np.float64] = (
        total[crowd.instances] - log_errors[crowd.annotators, :, crowd.labels]
    )
    normalise_log(posteriors, np.log(np.maximum(model.priors_, 1e-300)))
    return posteriors


def leave_one_out_agreement(crowd: Annotations) -> NDArray[np.float64]:
    """Returns `[R]` the share of the other labels on an annotator's instances that equal its own.

    NaN if there is no other label.
    """
    votes = crowd.vote_counts()
    same = votes[crowd.instances, crowd.labels] - 1
    others = votes.sum(axis=1)[crowd.instances] - 1
    agreed = np.bincount(crowd.annotators, weights=same, minlength=crowd.num_annotators)
    met = np.bincount(crowd.annotators, weights=others, minlength=crowd.num_annotators)
    return np.divide(agreed, met, out=np.full(len(met), np.nan), where=met > 0)


def _confusions(crowd: Annotations, posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns confusion matrices `[R, C true, C observed]` from posteriors `[A, C]` of labels.

    They are shrunk towards labels that do not depend on the class.
    """
    size = crowd.num_classes
    keys = crowd.annotators.astype(np.int64) * size + crowd.labels
    counts = np.stack(
        [
            np.bincount(keys, weights=posteriors[:, c], minlength=crowd.num_annotators * size)
            for c in range(size)
        ]
    )
    counts = counts.reshape(size, crowd.num_annotators, size).transpose(1, 0, 2)
    labels = counts.sum(axis=1, keepdims=True)
    total = labels.sum(axis=2, keepdims=True)
    mix = np.divide(labels, total, out=np.full_like(labels, 1.0 / size), where=total > 0)
    matrices: NDArray[np.float64] = (counts + PSEUDO_LABELS * mix) / (
        counts.sum(axis=2, keepdims=True) + PSEUDO_LABELS
    )
    return matrices


def rank_annotators(
    annotations: Annotations | ArrayLike,
    *,
    consensus: ArrayLike | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Ranks annotators from best to worst, with or without true labels.

    Args:
        annotations: with identities; generated labels are left out.
        consensus: `[N]` class codes to judge by (for example true labels), -1 if unknown. By
            default Dawid-Skene's labels; the scores then use, for each label, the posterior of
            the instance's *other* annotators.
        confidence: of the intervals of accuracy.

    Returns:
        one row per annotator (index `annotator`), the best first, with the columns
        - num_labels, and overlap, the number of these that another annotator's label checks;
        - accuracy, accuracy_low, accuracy_high: share of labels that equal the consensus, with
          Wilson's interval; NaN without any;
        - agreement: see `leave_one_out_agreement`;
        - informedness: the order of the rows; 0 is chance, however imbalanced the classes are;
        - spam_score: see `spam_scores`;
        - rank: from 1.

    Raises:
        IdentitiesError: vote counts only.
        DataError: a consensus that cannot be used, or no annotation.
    """
    crowd = as_annotations(annotations)
    crowd.require_identities("the ranking of annotators")
    crowd = crowd.observed()
    if consensus is None:
        with warnings.catch_warnings():  # a ranking does not need the last digits
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = DawidSkene().fit(crowd)
        judged, posteriors = model.labels_, leave_one_out_posteriors(crowd, model)
    else:
        judged = statistics.known_codes(crowd, consensus, "consensus")
        posteriors = np.vstack([np.eye(crowd.num_classes), np.zeros(crowd.num_classes)])[
            judged[crowd.instances]
        ]
    size = crowd.num_annotators
    labelled = judged[crowd.instances] >= 0
    correct = labelled & (judged[crowd.instances] == crowd.labels)
    trials = np.bincount(crowd.annotators[labelled], minlength=size)
    hits = np.bincount(crowd.annotators[correct], minlength=size)
    low, high = wilson_interval(hits, trials, confidence)
    errors = _confusions(crowd, posteriors)
    several = crowd.vote_counts().sum(axis=1)[crowd.instances] > 1
    columns: dict[str, Any] = {
        "num_labels": crowd.labels_per_annotator(),
        "overlap": np.bincount(crowd.annotators[several], minlength=size),
        "accuracy": np.divide(hits, trials, out=np.full(len(hits), np.nan), where=trials > 0),
        "accuracy_low": low,
        "accuracy_high": high,
        "agreement": leave_one_out_agreement(crowd),
        "informedness": informedness(errors),
        "spam_score": spam_scores(errors),
    }
    table = pd.DataFrame(columns, index=pd.Index(crowd.annotator_names, name="annotator"))
    table = table.sort_values("informedness", ascending=False, kind="stable")
    table["rank"] = np.arange(1, len(table) + 1)
    return table


def annotators_csv(
    inference: Inference, predicted: NDArray[np.int64] | None = None, estimator: Any = None
) -> str:
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
    crowd, skills = inference.crowd, inference.skills
    if skills is None:
        return to_csv(HEADER, [])
    size, classes = crowd.num_annotators, crowd.num_classes
    labels = np.where(crowd.annotated | (inference.gold >= 0), inference.labels, -1)
    columns: dict[str, NDArray[Any]] = {
        "num_labels": crowd.labels_per_annotator().astype(int),
        "skill": skills.skill,
        "skill_low": skills.low,
        "skill_high": skills.high,
        "note": skills.note,
        "agreement_consensus": statistics.annotator_accuracy(crowd, labels)[0],
        "agreement_others": leave_one_out_agreement(crowd),
        "agreement_model": np.full(size, np.nan)
        if predicted is None
        else statistics.annotator_accuracy(crowd, predicted)[0],
    }
    skill = getattr(estimator, "annotator_accuracy_", None)
    if skill is not None and np.shape(skill) == (size,):
        columns["method_skill"] = np.asarray(skill)
    matrices = getattr(estimator, "confusion_matrices_", None)
    if matrices is not None and np.shape(matrices) == (size, classes, classes):
        recalls = np.einsum("rcc->cr", np.asarray(matrices))
        names = crowd.class_names.tolist()
        columns |= {f"recall_{name}": x for name, x in zip(names, recalls, strict=True)}
    rows = zip(crowd.annotator_names.tolist(), *columns.values(), strict=True)
    return to_csv(["annotator", *columns], (map(cell, row) for row in rows))
