"""A property test of the rounds: whatever crowd is drawn, results are finite and histories
consistent. The networks are stood for by random numbers.
"""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.iced import ICED
from neucrowd_tf.iced.estimator import RoundHistory, shortages
from neucrowd_tf.iced.inference import infer_labels, label_certainty
from neucrowd_tf.iced.synthesis import Generator, choose_candidates


@st.composite
def crowds(draw: st.DrawFn) -> tuple[np.ndarray, Annotations, int]:
    n, r, c = draw(st.integers(2, 24)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    truth = np.where(np.arange(n) < draw(st.integers(1, n)), 0, rng.integers(c, size=n))
    skill = draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))
    dense = np.where(rng.random((n, r)) < skill, truth[:, None], rng.integers(c, size=(n, r)))
    dense[rng.random((n, r)) < draw(st.sampled_from([0.0, 0.6]))] = -1
    dense[:, 0] = np.where((dense == -1).all(axis=1), truth, dense[:, 0])
    if draw(st.booleans()):
        dense[dense == c - 1] = 0  # a class that no annotator uses
    x = (
        np.zeros((n, 3), np.float32)
        if draw(st.booleans())
        else rng.normal(size=(n, 3)).astype(np.float32)
    )
    return x, Annotations.from_dense(dense, num_classes=c), seed


def drawn(dense: np.ndarray, identical: bool = False) -> tuple[np.ndarray, Annotations, int]:
    """Returns a case that is drawn in every run."""
    x = np.random.default_rng(0).normal(size=(len(dense), 3)).astype(np.float32)
    return np.ones_like(x) if identical else x, Annotations.from_dense(dense, num_classes=3), 7


ONE = drawn(
    np.repeat(np.where(np.arange(12) == 5, 1, 0)[:, None], 3, axis=1)
)  # a minority of one, all agree, nobody uses class 2
NONE = drawn(np.where(np.arange(36).reshape(12, 3) == 4, 1, 0))  # one stray vote for the minority
FEW = drawn(
    np.repeat(np.repeat([0, 1, 2], [9, 3, 2])[:, None], 3, axis=1), identical=True
)  # fewer than k, all points the same


@settings(max_examples=40, deadline=None)
@example(ONE, "inferred", "certainty", "uniform")
@example(ONE, "classifier", "printed", "update")
@example(NONE, "inferred", "certainty", "update")
@example(NONE, "inferred", "certainty", "uniform")
@example(FEW, "inferred", "printed", "uniform")
@example(FEW, "classifier", "uniform", "update")
@given(
    crowds(),
    st.sampled_from(["classifier", "inferred"]),
    st.sampled_from(["certainty", "printed", "uniform"]),
    st.sampled_from(["uniform", "update"]),
)
def test_rounds_on_any_crowd(
    case: tuple[np.ndarray, Annotations, int], candidates: str, interpolation: str, prior: str
) -> None:
    x, crowd, seed = case
    classes, votes = crowd.num_classes, crowd.vote_counts()
    unused = votes.sum(axis=0) == 0
    rng = np.random.default_rng(seed)
    options = ICED(annotation_neighbours=9, interpolation=interpolation, seed=seed)
    generate = Generator(options, crowd, label_certainty(votes))

    def infer(one_hot: object) -> object:
        return infer_labels(one_hot, classes, prior=prior, max_iter=30)  # type: ignore[arg-type]

    history = RoundHistory(infer(generate.real))  # type: ignore[arg-type]
    for index in range(3):
        scores = rng.random((len(x), classes)).astype(np.float32)
        chosen = choose_candidates(candidates, scores, history.labels[-1], ~unused)
        new = generate(x, chosen, index)
        changed = history.add(chosen, new.counts, infer(new.one_hot))  # type: ignore[arg-type]
        assert 0 <= changed <= 1
        size = len(x) + int(new.counts.sum())
        assert new.points.shape == (size - len(x), 3) and np.isfinite(new.points).all()
        assert new.one_hot.shape[0] == size
        assert (np.diff(new.one_hot.indptr) > 0).all()  # no instance without any label
        inference = history.inference
        assert inference.probas.shape == (size, classes)
        for values in (inference.probas, inference.errors, inference.priors):
            assert np.isfinite(values).all()
        assert not new.counts[unused].any()
        assert not np.isin(history.labels[-1], np.flatnonzero(unused)).any()
    state = history.get_state()
    again = RoundHistory(infer(generate.real))  # type: ignore[arg-type]
    again.set_state(state)
    assert again.get_state().keys() == state.keys()
    for name, value in again.get_state().items():
        assert np.array_equal(value, state[name])
    messages = shortages(history, ~unused, crowd.class_names)
    assert any("no annotator used" in text for text in messages) == unused.any()
