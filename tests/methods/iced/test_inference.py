"""Inference with a held prior, classes that nobody uses, and permuted classes. None of it needs
TensorFlow.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene, majority_labels
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.methods.iced.inference import find_permutation, infer_labels
from tests.cases import cases
from tests.crowds import array_of, one_hot


def crowd(seed: int = 0, sizes: tuple[int, ...] = (300, 30)) -> tuple[np.ndarray, Annotations]:
    truth = np.repeat(np.arange(len(sizes)), sizes)
    matrices = simulation.class_skill_annotators(9, len(sizes), seed)
    return truth, simulation.simulate(truth, matrices, seed)


@pytest.mark.parametrize("prior", ["uniform", "update"])
def test_it_is_dawid_and_skene(prior: str) -> None:
    annotations = crowd()[1]
    got = infer_labels(annotations.one_hot(), 2, prior=prior, tol=1e-6)  # type: ignore[arg-type]
    want = DawidSkene(prior=prior, smoothing=0.01, tol=1e-6).fit(annotations)  # type: ignore[arg-type]
    assert got.probas == pytest.approx(want.probas_)
    assert got.errors == pytest.approx(want.errors_)
    assert (got.permutation == np.arange(len(got.permutation))).all()
    short = infer_labels(annotations.one_hot(), 2, prior=prior, smoothing=0.5, max_iter=2)  # type: ignore[arg-type]
    with pytest.warns(ConvergenceWarning):
        want = DawidSkene(prior=prior, smoothing=0.5, max_iter=2).fit(annotations)  # type: ignore[arg-type]
    assert short.probas == pytest.approx(want.probas_)
    assert short.errors == pytest.approx(want.errors_)


def test_a_class_that_nobody_uses_gets_nothing() -> None:
    rng = default_rng(0)
    dense = rng.integers(0, 2, (60, 5))
    annotations = Annotations.from_dense(dense, num_classes=4)
    result = infer_labels(annotations.one_hot(), 4)
    assert np.isfinite(result.probas).all()
    assert result.probas[:, 2:].max() < 1e-12
    assert result.priors == pytest.approx([0.5, 0.5, 0, 0])
    assert (result.permutation == np.arange(len(result.permutation))).all()


def test_permutations_by_hand() -> None:
    # EM calls 0 what people call 2, 1 what they call 0, 2 what they call 1.
    probas = np.eye(3)[[0, 0, 1, 1, 2]]
    votes = array_of("0 1 4; 0 0 5; 5 0 0; 4 1 0; 0 3 2", float)
    assert find_permutation(probas, votes).tolist() == [2, 0, 1]
    # Half of a common class lost to a rare one is no permutation: rows (1, 0) and (.8, .2) match
    # best as they are.
    probas = np.eye(2)[[0] * 50 + [1] * 50]
    votes = np.array([[9, 0]] * 50 + [[9, 0]] * 40 + [[0, 9]] * 10, dtype=float)
    assert find_permutation(probas, votes).tolist() == [0, 1]
    # A rare class weighs as much as a common one: shares (.6, .4) and (.9, .1) match best
    # crosswise, as votes they would not.
    assert find_permutation(np.eye(2), array_of("60.0 40.0; 9.0 1.0")).tolist() == [1, 0]
    # Equal evidence: nothing moves.
    assert find_permutation(np.full((4, 3), 1 / 3), np.ones((4, 3))).tolist() == [0, 1, 2]
    # A swap that is better by rounding alone: nothing moves either.
    nearly = np.array([[0.5 - 1e-9, 0.5 + 1e-9], [0.5 + 1e-9, 0.5 - 1e-9]])
    assert find_permutation(nearly, np.eye(2)).tolist() == [0, 1]
    # Nobody uses class 2: it stays, though the votes in EM's class 2 are all for class 1 (rows 1 0
    # 0 | .6 .4 0 | 0 1 0).
    votes = array_of("5 0 0; 3 2 0; 0 5 0", float)
    assert find_permutation(np.eye(3), votes).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("order", "permutation"),
    cases("""
[[0, 2, 1], [0, 2, 1]],
[[1, 2, 0], [2, 0, 1]]
"""),
)
@pytest.mark.parametrize("prior", ["uniform", "update"])
def test_permuted_classes_are_mended(
    prior, order: list[int], permutation: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes whose annotators agree on permuting most of their labels: EM cannot tell, the votes
    can.
    """
    truth = np.repeat([0, 1, 2], [200, 40, 40])
    annotations = simulation.simulate(truth, simulation.class_skill_annotators(9, 3, 0, low=0.6), 0)
    straight = infer_labels(annotations.one_hot(), 3, prior=prior)
    assert (straight.permutation == np.arange(len(straight.permutation))).all()
    from neucrowd_tf.methods.iced import inference

    swapped = np.eye(3)[order]  # class c of the votes is EM's class order[c]
    shares = inference.vote_shares  # with others EM starts from a wrong place
    monkeypatch.setattr(inference, "vote_shares", lambda *passed: shares(*passed) @ swapped)
    restored = infer_labels(annotations.one_hot(), 3, prior=prior)
    assert restored.permutation.tolist() == permutation
    assert restored.probas == pytest.approx(straight.probas, abs=1e-3)
    assert restored.errors == pytest.approx(straight.errors, abs=1e-3)
    assert restored.priors == pytest.approx(straight.priors, abs=1e-3)


@pytest.mark.parametrize("kind", ["update", "start"])
def test_hard_em_counts_determinate_labels(kind: str) -> None:
    # Section 2.3's Psi and Phi by hand, over the labels of the step before, until these settle;
    # "start" has an even Phi in the first step alone.
    annotations = crowd(3, (60, 12))[1]
    result = infer_labels(annotations.one_hot(), 2, prior=kind, em="hard", smoothing=0.0)
    said = one_hot(annotations.to_dense(), 2)
    labels = majority_labels(annotations.vote_counts(), "random", 0)
    for step in range(50):
        prior = np.bincount(labels, minlength=2) / len(labels)
        if kind == "start" and step == 0:
            prior = np.array([0.5, 0.5])
        true = np.eye(2)[labels]
        psi = np.einsum("nt,nra->rta", true, said) / true.sum(axis=0)[:, None]
        scores = np.log(prior) + np.einsum("nra,rta->nt", said, np.log(np.maximum(psi, 1e-300)))
        labels = scores.argmax(axis=1)
    assert np.array_equal(result.labels, labels)
    assert result.priors == pytest.approx(np.bincount(labels, minlength=2) / len(labels))


def test_ties_that_hard_em_starts_from_are_broken_by_the_seed() -> None:
    # One annotator per label: every instance is a tie, so the start decides everything.
    one_hot = Annotations.from_dense(np.tile([0, 1], (40, 1))).one_hot()
    for seed in (0, 1):
        start = majority_labels(np.ones((40, 2)), "random", seed)
        prior = infer_labels(one_hot, 2, prior="update", em="hard", max_iter=1, seed=seed).priors
        assert prior == pytest.approx(np.bincount(start, minlength=2) / 40)
