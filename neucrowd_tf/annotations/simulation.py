"""Simulated annotators: their confusion matrices, which instances they label, and their labels.

Every draw comes from a seed that is passed. Confusion matrices have the axes (annotator, true
class, observed class), rows sum to 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from neucrowd_tf.annotations.codes import Names
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.declare.types import Floats, Indices
from neucrowd_tf.errors import DataError

# Every draw is from the stream (seed, _PACKAGE, kind of draw), so that under one seed no kind
# repeats another's; `thinning.limit_labels` and `remove_annotations` share REMOVE. Draws by
# TensorFlow Probability take two numbers: (seed, _MISLABEL or _DIFFICULTY).
_PACKAGE = 0x51A
_MISLABEL = 0x51A
_SKILL, _CONFUSION, _SPAM, _ADVERSARY, _ASSIGN, _LABEL, REMOVE, _DIFFICULTY, _SPLIT = range(1, 10)
FLIP = 10

_MASS = 10.0  # sum of the Dirichlet parameters of a confusion matrix's row
_LEAST_PARAMETER = 1e-3  # Dirichlet parameters are positive, also where an accuracy is 0 or 1


def random_stream(seed: int, stream: int) -> np.random.Generator:
    """Returns random numbers of a seed, other ones for each stream."""
    return np.random.default_rng([seed, _PACKAGE, stream])


def from_skills(skills: ArrayLike) -> Floats:
    """Turns P(correct) by annotator and class into confusion matrices.

    Mistakes are spread evenly over the other classes.

    Args:
        skills: `[R, C]`, each within 0 and 1.

    Returns:
        `[R, C, C]`.

    Raises:
        DataError: another shape, or skills outside 0 to 1.
    """
    correct = np.asarray(skills, dtype=np.float64)
    if correct.ndim != 2 or correct.shape[1] < 2:
        raise DataError(
            "skills: expected probabilities of shape [annotators, at least two classes], received"
            f" shape {correct.shape}"
        )
    _check_shares(correct, "skills")
    classes = correct.shape[1]
    matrices = np.repeat(((1.0 - correct) / (classes - 1))[:, :, None], classes, axis=2)
    diagonal = np.arange(classes)
    matrices[:, diagonal, diagonal] = correct
    return matrices


def _check_shares(values: Floats, title: str) -> None:
    """Raises DataError with the first value that is not within 0 and 1."""
    outside = values[~((values >= 0) & (values <= 1))]
    if len(outside):
        raise DataError(f"{title}: expected probabilities from 0 to 1, received {outside[0]:g}")


def mislabelling_annotators(
    num_annotators: int, num_classes: int, seed: int, *, mean_rate: float | None = None
) -> Floats:
    """Draws annotators who mislabel every instance with the same probability.

    Each annotator has one probability, from a normal distribution with mean and standard deviation
    0.1 that is truncated to 0.01 and 0.5.

    Args:
        num_annotators, num_classes: R and C.
        seed: of the draw.
        mean_rate: the mean of the annotators' probabilities, to which all are moved by one step on
            the probit scale; None leaves them as drawn.

    Returns:
        `[R, C, C]`.

    Raises:
        DataError: a mean rate that is not above 0 and below 1.

    References:
        NeuCrowd, section 4.1 (synthetic data).
    """
    import tensorflow_probability as tfp  # stored results were made with its random numbers

    if mean_rate is not None and not 0 < mean_rate < 1:
        raise DataError(f"mean_rate: expected a share above 0 and below 1, received {mean_rate}")
    mean, deviation, low, high = np.array([0.1, 0.1, 0.01, 0.5])  # an array: float64 for TensorFlow
    distribution = tfp.distributions.TruncatedNormal(mean, deviation, low, high)
    rates = np.asarray(distribution.sample(num_annotators, seed=[seed % 2**31, _MISLABEL]))
    if mean_rate is not None:
        probits = ndtri(rates)
        rates = ndtr(probits + brentq(lambda step: ndtr(probits + step).mean() - mean_rate, -9, 9))
    return from_skills(np.repeat(1.0 - rates[:, None], num_classes, axis=1))


def class_skill_annotators(
    num_annotators: int, num_classes: int, seed: int, *, low: float = 0.4, high: float = 0.9
) -> Floats:
    """Draws annotators whose P(correct) differs by class, uniform in `(low, high)`.

    Args:
        num_annotators, num_classes: R and C.
        seed: of the draw.
        low, high: bounds of P(correct), each within 0 and 1.

    Returns:
        `[R, C, C]`.

    Raises:
        DataError: bounds outside 0 to 1 or in the wrong order, or fewer than two classes.

    References:
        ICED, section 3.1.1 (the appendix with the details is not in our text).
    """
    _check_shares(np.array([low, high]), "low and high")
    if low > high:
        raise DataError(f"low: expected at most high ({high}), received {low}")
    return from_skills(
        random_stream(seed, _SKILL).uniform(low, high, size=(num_annotators, num_classes))
    )


def split_annotators(
    num_annotators: int, num_classes: int, seed: int, *, low: float = 0.22, high: float = 0.9
) -> Floats:
    """Draws, for each class, a majority of annotators with P(correct) `high`; others have `low`.

    The defaults give nine annotators of two classes the share of certain instances of ICED's table
    3 for USPS-Syn (103 of 734 with at least seven equal labels).

    Args:
        num_annotators, num_classes: R and C.
        seed: of the draw.
        low, high: P(correct) of the others and of the majority, each within 0 and 1.

    Returns:
        `[R, C, C]`.

    Raises:
        DataError: a `low` or `high` outside 0 to 1, or fewer than two classes.
    """
    better = np.tile(np.arange(num_annotators) <= num_annotators // 2, (num_classes, 1))
    drawn = random_stream(seed, _SPLIT).permuted(better, axis=1).T
    return from_skills(np.where(drawn, high, low))


def confusion_annotators(
    num_annotators: int, num_classes: int, seed: int, *, accuracy: float = 0.75
) -> Floats:
    """Draws a whole confusion matrix for each annotator.

    Rows are from a Dirichlet distribution of mass 10 around `accuracy` on the diagonal.

    Args:
        num_annotators, num_classes: R and C.
        seed: of the draw.
        accuracy: the expected diagonal, from 0 to 1.

    Returns:
        `[R, C, C]`.

    Raises:
        DataError: an accuracy outside 0 to 1, or fewer than two classes.
    """
    _check_shares(np.array([accuracy], dtype=np.float64), "accuracy")
    centre = from_skills(np.full((1, num_classes), accuracy))[0]
    generator = random_stream(seed, _CONFUSION)
    rows = np.maximum(centre * _MASS, _LEAST_PARAMETER)
    return np.stack([generator.dirichlet(row, size=num_annotators) for row in rows], axis=1)


def spammers(
    num_annotators: int,
    num_classes: int,
    seed: int,
    *,
    kind: Literal["uniform", "constant"] = "uniform",
) -> Floats:
    """Draws annotators whose labels do not depend on the true labels.

    Args:
        num_annotators, num_classes: R and C.
        seed: of the draw.
        kind: "uniform" annotators give every class equally often, "constant" ones always one class,
            which is drawn for each of them.

    Returns:
        `[R, C, C]`, all rows of a matrix alike.

    Raises:
        DataError: an unknown kind.
    """
    if kind not in ("uniform", "constant"):
        raise DataError(f"spammers: expected kind 'uniform' or 'constant', received {kind!r}")
    if kind == "uniform":
        return np.full((num_annotators, num_classes, num_classes), 1.0 / num_classes)
    favourite = random_stream(seed, _SPAM).integers(num_classes, size=num_annotators)
    return np.repeat(np.eye(num_classes)[favourite][:, None, :], num_classes, axis=1)


def adversaries(num_annotators: int, num_classes: int, seed: int) -> Floats:
    """Draws annotators who give one fixed wrong class for each true class.

    They do so with a probability uniform in (0.6, 0.95).

    The wrong classes are a cyclic shift drawn for each annotator; the rest of a row is spread
    evenly over all other classes.

    Args:
        num_annotators, num_classes: R and C.
        seed: of the draw.

    Returns:
        `[R, C, C]`.

    Raises:
        DataError: fewer than two classes.
    """
    generator = random_stream(seed, _ADVERSARY)
    rates = generator.uniform(0.6, 0.95, size=(num_annotators, 1))
    matrices = from_skills(np.repeat(rates, num_classes, axis=1))
    shifts = generator.integers(1, num_classes, size=num_annotators)
    columns = (np.arange(num_classes) - shifts[:, None]) % num_classes
    return np.take_along_axis(matrices, columns[:, None, :], axis=2)


def assignment(
    num_instances: int, num_annotators: int, seed: int, rates: ArrayLike
) -> tuple[Indices, Indices]:
    """Draws which instances each annotator labels.

    Annotator r labels each instance with probability `rates[r]`, independently. An instance that no
    annotator labels gets one, drawn in proportion to `rates`.

    Args:
        num_instances, num_annotators: N and R.
        seed: of the draw.
        rates: the probability that an annotator labels an instance; a number or `[R]`.

    Returns:
        instance and annotator codes `[A]`, sorted by instance.

    Raises:
        DataError: rates of another shape, outside 0 to 1, or all 0.
    """
    share = np.asarray(rates, dtype=np.float64)
    if share.shape not in ((), (num_annotators,)):
        raise DataError(
            f"rates: expected a number or one for each of {num_annotators} annotators, received"
            f" shape {share.shape}"
        )
    share = np.broadcast_to(share, num_annotators)
    _check_shares(share, "rates")
    if not share.any():
        raise DataError("rates: expected one above 0, received only 0")
    generator = random_stream(seed, _ASSIGN)
    # Annotator by annotator, so that no N x R matrix of random numbers is needed for a large,
    # sparse crowd.
    chosen = [np.flatnonzero(generator.random(num_instances) < rate) for rate in share]
    instances = np.concatenate(chosen)
    annotators = np.repeat(np.arange(num_annotators), list(map(len, chosen)))
    bare = np.flatnonzero(np.bincount(instances, minlength=num_instances) == 0)
    if len(bare):
        drawn = generator.choice(num_annotators, size=len(bare), p=share / share.sum())
        instances = np.concatenate([instances, bare])
        annotators = np.concatenate([annotators, drawn])
    order = np.lexsort((annotators, instances))
    return instances[order], annotators[order]


def simulate(
    truth: ArrayLike,
    confusions: ArrayLike,
    seed: int,
    *,
    rates: ArrayLike = 1.0,
    dependence: float = 0.0,
    instance_names: Names | None = None,
    class_names: Names | None = None,
) -> Annotations:
    """Lets annotators with given confusion matrices label instances of known truth.

    Args:
        truth: `[N]` class codes.
        confusions: `[R, C, C]`, axes (annotator, true class, observed class), rows sum to 1.
        seed: of the assignment and of the labels.
        rates: of labelling an instance, see `assignment`.
        dependence: the correlation, from 0 to less than 1, of the normal scores behind the labels
            of one instance; each annotator's confusion matrix stays as it is. The score that an
            instance's labels share has a sign, and a high one raises their codes: with two classes,
            instances of class 0 are hard where it is high and those of class 1 where it is low. So
            the order of the classes matters.
        instance_names: `[N]`, as for `Annotations`.
        class_names: `[C]`.

    Raises:
        DataError: truth that is not class codes of these matrices, rows that are no
            distributions, a dependence outside its bounds, or rates or names of a wrong shape or
            range (see `assignment` and `Annotations`).
    """
    if not 0 <= dependence < 1:
        raise DataError(f"dependence: expected 0 to less than 1, received {dependence}")
    codes = np.asarray(truth)
    matrices = np.asarray(confusions, dtype=np.float64)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
        raise DataError(
            "confusions: expected shape [annotators, classes, classes], received shape"
            f" {matrices.shape}"
        )
    _check_shares(matrices, "confusions")
    sums = matrices.sum(axis=2)
    uneven = sums[~np.isclose(sums, 1.0)]
    if len(uneven):
        raise DataError(
            "confusions: expected probabilities that sum to 1 in each row, received a sum of"
            f" {uneven[0]:g}"
        )
    expected = f"truth: expected class codes from 0 to {matrices.shape[1] - 1}, received"
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise DataError(f"{expected} {codes.dtype} of shape {codes.shape}")
    outside = np.flatnonzero((codes < 0) | (codes >= matrices.shape[1]))
    if len(outside):
        raise DataError(f"{expected} {codes[outside[0]]} for instance {outside[0]}")
    instances, annotators = assignment(len(codes), len(matrices), seed, rates)
    # A label is the number of cumulative probabilities at or below a uniform draw.
    cumulative = np.cumsum(matrices, axis=2)[:, :, :-1]
    draws = random_stream(seed, _LABEL).random(len(instances))
    if dependence:
        draws = _dependent(draws, instances, len(codes), seed, dependence)
    labels = (draws[:, None] >= cumulative[annotators, codes[instances]]).sum(axis=1)
    return Annotations(
        instances,
        annotators,
        labels,
        num_instances=len(codes),
        num_annotators=len(matrices),
        num_classes=matrices.shape[1],
        instance_names=instance_names,
        class_names=class_names,
    )


def _dependent(
    uniforms: Floats, instances: Indices, num_instances: int, seed: int, dependence: float
) -> Floats:
    """Returns uniform numbers `[A]` whose normal scores have one part in common per instance."""
    import tensorflow_probability as tfp

    normal = tfp.distributions.Normal(np.float64(0), np.float64(1))
    shared = np.asarray(normal.sample(num_instances, seed=[seed % 2**31, _DIFFICULTY]))
    scores = np.sqrt(1 - dependence) * normal.quantile(uniforms)
    return np.asarray(normal.cdf(scores + np.sqrt(dependence) * shared[instances]))


def remove_annotations(
    annotations: Annotations, keep: float, seed: int, *, at_least_one: bool = True
) -> Annotations:
    """Keeps a random share of the annotations, for studies of sparsity.

    Args:
        annotations: with identities.
        keep: the share to keep, above 0 and at most 1; `round(keep * A)` annotations stay.
        seed: of the draw. With one seed, what a smaller share keeps is a part of what a larger
            share keeps.
        at_least_one: whether every instance that has a label keeps one; then more than `keep` may
            stay.

    Returns:
        annotations of the same instances, annotators and classes.

    Raises:
        DataError: a share outside its bounds.
        IdentitiesError: vote counts (`thinning.keep_share` takes them too).

    References:
        DASC, section 4.3 (figure 6).
    """
    if not 0 < keep <= 1:
        raise DataError(f"keep: expected a share above 0 and at most 1, received {keep}")
    annotations.require_identities("remove_annotations")
    total = annotations.num_annotations
    order = random_stream(seed, REMOVE).permutation(total)
    size = round(keep * total)
    if at_least_one:
        # One label of each instance comes first, so the cut keeps it.
        first = np.zeros(total, dtype=bool)
        first[np.unique(annotations.instances[order], return_index=True)[1]] = True
        order = np.concatenate([order[first], order[~first]])
        size = max(size, int(first.sum()))
    return annotations.select(np.sort(order[:size]))
