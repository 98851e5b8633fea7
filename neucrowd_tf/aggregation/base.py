"""What the aggregators share: the scikit-learn contract, gold labels, and confusion counts."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from neucrowd_tf.annotations import MISSING, Annotations, as_annotations
from neucrowd_tf.annotations.statistics import known_codes
from neucrowd_tf.annotations.votes import Ties, majority_labels
from neucrowd_tf.declare.declarations import (
    SEED,
    Constraint,
    check_arguments,
    declared_by_name,
    estimator,
    fitted,
    one_of,
)
from neucrowd_tf.declare.types import Array, Fields, Floats, Indices, Mask
from neucrowd_tf.errors import DataError, UsageError, warn
from neucrowd_tf.names import listed, places_of, positions
from neucrowd_tf.saving.persistent import Persistent
from neucrowd_tf.saving.transaction import transaction

if TYPE_CHECKING:
    import pandas as pd

NOT_CONVERGED = "did not converge"
Codes: TypeAlias = Indices  # of classes, -1 if unknown
GoldLabels: TypeAlias = "Mapping[Hashable, Hashable] | pd.Series | ArrayLike | None"
Prior: TypeAlias = Literal["update", "uniform"] | ArrayLike


tolerance = Constraint(
    "a number",
    lambda value: (
        isinstance(value, (int, float, np.number))
        and not isinstance(value, bool)
        and not np.isnan(value)
    ),
)  # below zero it is never reached


@estimator
class Aggregator(Persistent):
    """Base of the truth-inference methods.

    Results end in `_`; `save(folder)` writes them and `neucrowd_tf.load` reads them.

    Attributes:
        labels_: `[N]` int64 class codes.
        probas_: `[N, C]` probability of each class.
        priors_: `[C]` class prior.
        errors_: `[R, C true class, C observed class]`; each row sums to one. None where it is not
            known who voted.
        skills_: `[R]` probability that an annotator is right; None where it is not known who voted.
        annotated_: `[N]` bool, whether an instance had a label (or a gold label). Those that had
            none get the prior as their probabilities, and its most probable class as their label.
        classes_: `[C]` the class names that the codes stand for.
        instance_names_, annotator_names_: `[N]` and `[R]`.
    """

    needs_identities: ClassVar[bool] = True  # whether it has to know who gave each label
    ordered: ClassVar[bool] = False  # whether labels are medians of ordered classes

    ties: Annotated[
        Ties,
        one_of("random", "first", "prior"),
        'what decides between equally probable classes: "random" (with `seed`), "first" (the lowest'
        ' class code) or "prior" (the class that is commoner over all instances).',
    ] = "first"
    seed: Annotated[int, SEED, "seed of all random draws."] = 0
    labels_: Codes = fitted()
    probas_: Floats = fitted()
    priors_: Floats = fitted()
    errors_: Floats | None = fitted()
    skills_: Floats | None = fitted()
    annotated_: Mask = fitted()
    classes_: Array = fitted()
    instance_names_: Array = fitted()
    annotator_names_: Array = fitted()

    # scikit-learn's contract without its base class, whose import takes longer than all else here.

    def get_params(self, deep: bool = True) -> Fields:
        """Returns the arguments by name, as scikit-learn's estimators do."""
        return {name: getattr(self, name) for name in declared_by_name(self)}

    def set_params(self, **params: object) -> Self:
        """Sets arguments by name.

        Raises:
            ValueError: no argument has that name.
        """
        names = self.get_params()
        for name, value in params.items():
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__}: expected one of the arguments {', '.join(names)},"
                    f" received {name!r}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = (f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)

    def fit(self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels = None) -> Self:
        """Infers labels.

        Args:
            annotations: `Annotations` (with identities, but for methods that do with vote counts
                alone: `MajorityVote`, `Consensus`), or a dense `[N, R]` matrix with -1 for missing.
            gold_labels: see `gold_codes`; these instances keep their labels, and teach methods that
                learn of the annotators.

        Raises:
            IdentitiesError: vote counts only.
            DataError: no annotation, or gold labels or a prior that cannot be used.
            UsageError: an argument out of range.
        """
        with transaction(self):
            self._fit(*self._start(annotations, gold_labels))
        return self

    def decide(self, probas: Floats) -> Codes:
        """Returns `[N]` the labels of posteriors `[N, C]`."""
        return majority_labels(probas, self.ties, self.seed)

    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        """Sets the results.

        Args:
            crowd: at least one annotation.
            gold: codes `[N]`, -1 if unknown, or None without gold labels.
        """
        raise NotImplementedError

    def fit_predict(
        self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels = None
    ) -> pd.Series:
        """Fits, and returns the labels as a Series indexed by task, as crowd-kit does."""
        import pandas as pd

        self.fit(annotations, gold_labels)
        tasks = pd.Index(self.instance_names_, name="task")
        return pd.Series(self.classes_[self.labels_], index=tasks, name="agg_label")

    def fit_predict_proba(
        self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels = None
    ) -> pd.DataFrame:
        """Fits, and returns the probabilities by task and class, as crowd-kit does."""
        import pandas as pd

        self.fit(annotations, gold_labels)
        tasks = pd.Index(self.instance_names_, name="task")
        labels = pd.Index(self.classes_, name="label")
        return pd.DataFrame(self.probas_, index=tasks, columns=labels)

    def _start(
        self, annotations: Annotations | ArrayLike, gold_labels: GoldLabels
    ) -> tuple[Annotations, Codes | None]:
        """Checks the input and stores the names; returns annotations and gold codes.

        The codes are `[N]`, -1 if unknown, or None without gold labels.

        Raises:
            IdentitiesError: there are vote counts only, and that is not enough.
            DataError: there is not one annotation, or a gold label cannot be used.
            UsageError: an argument out of range.
        """
        check_arguments(self)
        crowd = as_annotations(annotations)
        if self.needs_identities:
            crowd.require_identities(type(self).__name__)
        if not crowd.num_annotations:
            raise DataError(
                f"{type(self).__name__}: expected at least one annotation, received none"
            )
        gold = gold_codes(gold_labels, crowd)
        self.classes_ = crowd.class_names
        self.instance_names_ = crowd.instance_names
        self.annotator_names_ = crowd.annotator_names
        self.annotated_ = labelled_rows(crowd, gold)
        return crowd, gold

    def _conclude(self, gold: Codes | None) -> None:
        """Decides the labels, after `probas_` of unlabelled and of gold instances."""
        self.probas_[~self.annotated_] = self.priors_
        apply_gold(self.probas_, gold)
        self.labels_ = self.decide(self.probas_)


def labelled_rows(crowd: Annotations, gold: Codes | None) -> Mask:
    """Returns `[N]` whether an instance has a label of the crowd, or a gold label."""
    if gold is None:
        return crowd.annotated
    return crowd.annotated | (gold >= 0)


def gold_codes(gold_labels: GoldLabels, annotations: Annotations) -> Codes | None:
    """Returns gold labels as codes `[N]`, -1 for none, or None without gold labels.

    Args:
        gold_labels: `{task: label}` or a Series indexed by task, both with the names that the
            annotations came with; or `[N]` class codes with -1 for unknown.
        annotations: they have the tasks and the classes.

    Raises:
        DataError: a task or a label that the annotations do not have, or two labels for one task;
            the message names it.
    """
    if gold_labels is None:
        return None
    # Mappings and Series have items; a table has them too, by column.
    if not hasattr(gold_labels, "items") or getattr(gold_labels, "ndim", 1) != 1:
        return known_codes(annotations, gold_labels, "gold labels")  # type: ignore[arg-type]
    tasks: dict[Hashable, int] = positions(annotations.instance_names.tolist())
    classes: dict[Hashable, int] = positions(annotations.class_names.tolist())
    codes = np.full(annotations.num_instances, MISSING, dtype=np.int64)
    for task, label in gold_labels.items():  # type: ignore[union-attr]
        row = tasks.get(task, MISSING)
        code = classes.get(label, MISSING)
        problem = ""
        if row == MISSING:
            problem = "no annotation has this task"
        elif code == MISSING:
            shown = listed(list(classes), 8, repr)
            problem = f"the classes are {shown}. Correct the label, or leave the task out."
        elif codes[row] not in (MISSING, code):
            problem = f"the task also has the label {list(classes)[codes[row]]!r}"
        if problem:
            raise DataError(f"gold labels: task {task!r}, label {label!r}: {problem}")
        codes[row] = code
    if len(tasks) < len(codes):  # an instance that is there several times, as in a sample
        codes = codes[places_of(annotations.instance_names.tolist(), tasks)]
    return codes


def apply_gold(probas: Floats, gold: Codes | None) -> Floats:
    """Sets the rows of `probas` `[N, C]` with a gold label to certainty, in place; returns it."""
    if gold is not None:
        rows = np.flatnonzero(gold >= 0)
        probas[rows] = 0.0
        probas[rows, gold[rows]] = 1.0
    return probas


def with_gold(labels: Codes, gold: Codes | None) -> Codes:
    """Returns labels `[N]` with the gold ones in their place."""
    if gold is None:
        return labels
    return np.where(gold >= 0, gold, labels)


def normalise_counts(counts: Array, smoothing: float | Floats = 0.0, axis: int = -1) -> Floats:
    """Returns counts plus pseudo-counts as shares along an axis; even ones without any count."""
    smoothed = counts + smoothing
    total = smoothed.sum(axis=axis, keepdims=True)
    even = np.full_like(smoothed, 1.0 / smoothed.shape[axis])
    return np.divide(smoothed, total, out=even, where=total > 0)


def expected_counts(by_label: sparse.spmatrix, beliefs: Floats) -> Floats:
    """Returns `[R, C observed, C true]`, how often annotators give a label where a class is true.

    Args:
        by_label: `[R * C, N]` the transposed one-hot matrix of the annotations.
        beliefs: `[N, C]` probabilities of the true classes.
    """
    size = beliefs.shape[1]
    counts: Floats = (by_label @ beliefs).reshape(-1, size, size)
    return counts


def expected_skills(errors: Floats, priors: Floats) -> Floats:
    """Returns `[R]`, the probability that each annotator is right.

    It is the sum over classes of the prior times the diagonal.
    """
    return np.einsum("rcc,c->r", errors, priors)


def resolve_prior(prior: Prior, num_classes: int) -> Floats | None:
    """Returns the class prior to hold as `[C]` probabilities, or None to estimate it.

    Args:
        prior: "update", "uniform", or `[C]` numbers in the order of the classes.
        num_classes: C.

    Raises:
        UsageError: another word.
        DataError: numbers that are no distribution, or have names.
    """
    if hasattr(prior, "items"):
        raise DataError("prior: expected an array in the order of the classes, received names")
    if isinstance(prior, str):
        if prior == "update":
            return None
        if prior == "uniform":
            return np.full(num_classes, 1.0 / num_classes)
        raise UsageError(
            f"prior: expected 'update', 'uniform' or probabilities, received {prior!r}"
        )
    array = as_numbers(prior, "prior")
    if (
        array.shape != (num_classes,)
        or not np.isfinite(array).all()
        or (array < 0).any()
        or not abs(array.sum() - 1.0) < 1e-3
    ):
        raise DataError(
            f"prior: expected {num_classes} probabilities that sum to 1, received {array.tolist()}"
        )
    return array / array.sum()


def as_numbers(values: object, title: str) -> Floats:
    """Returns values as float64.

    Raises:
        DataError: they are no numbers.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{title}: expected numbers, received {reprlib.repr(values)}") from None


def coin_errors(skills: Floats, num_classes: int) -> Floats:
    """Returns `[R, C, C]` error matrices with the skills `[R]` on the diagonal.

    The other cells of a row are equal.
    """
    classes = np.arange(num_classes)
    wrong = (1.0 - skills) / max(num_classes - 1, 1)
    errors = np.tile(wrong[:, None, None], (num_classes, num_classes))
    errors[:, classes, classes] = skills[:, None]
    return errors


def count_votes(one_hot: sparse.csr_matrix, num_classes: int) -> Floats:
    """Returns `[N, C]` (weighted) votes from the `[N, R * C]` one-hot matrix."""
    labels = (one_hot.data, one_hot.indices % num_classes, one_hot.indptr)
    votes = sparse.csr_matrix(labels, shape=(one_hot.shape[0], num_classes))
    return votes.toarray()


def vote_shares(one_hot: sparse.csr_matrix, num_classes: int) -> Floats:
    """Returns `[N, C]` shares of `count_votes`, even for instances without votes."""
    return normalise_counts(count_votes(one_hot, num_classes))


def normalise_log(scores: Floats, log_prior: Floats, block: int = 8192) -> Floats:
    """Turns `[N, C]` log likelihoods into posteriors, in place; returns the log evidence `[N]`.

    Works down the columns of blocks that fit into the processor's cache: C is small, and reductions
    along rows of a few numbers cost several times more.
    """
    evidence = np.empty(len(scores))
    for start in range(0, len(scores), block):
        span = slice(start, start + block)
        columns = np.ascontiguousarray(scores[span].T)
        columns += log_prior[:, None]
        top = columns.max(axis=0)
        columns -= top
        np.exp(columns, out=columns)
        total = columns.sum(axis=0)
        columns /= total
        scores[span] = columns.T
        evidence[span] = top + np.log(total)
    return evidence


def warn_not_converged(name: str, max_iter: int, change: float, tol: float) -> None:
    """Warns that an iterative method ran out of iterations.

    The class is scikit-learn's `ConvergenceWarning` if scikit-learn is imported, else its base.
    """
    # Code that filters scikit-learn's class has imported it, which takes a second and 60 MB.
    loaded = sys.modules.get("sklearn.exceptions")
    if loaded is None:
        category: type[Warning] = UserWarning
    else:
        category = loaded.ConvergenceWarning
    if np.isinf(change):
        reason = "a rise takes two iterations. Raise max_iter."
    else:
        reason = (
            f"the objective still rose by {change:.3g} per annotation, more than tol={tol:g}. Raise"
            " max_iter or tol."
        )
    warn(f"{name} {NOT_CONVERGED} in {max_iter} iterations: {reason}", category, stacklevel=4)
