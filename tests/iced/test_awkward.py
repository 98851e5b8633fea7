"""A property test of the rounds: whatever crowd is drawn, results are finite and histories
consistent. The networks are stood for by numpy.
"""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.iced.certainty import label_certainty
from neucrowd_tf.iced.history import shortages


class Linear:
    """Stands for ICEDModel: embeddings are a projection, predictions a softmax of another; training
    changes the latter.
    """

    def __init__(self, features: np.ndarray, num_classes: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.features, self.num_instances, self.batch_size = features, len(features), 4
        self.head = self.rng.normal(size=(features.shape[1], num_classes))
        self.rows = self.targets = self.synthetic = None

    def outputs(self) -> tuple[np.ndarray, np.ndarray]:
        scores = np.exp(self.features @ self.head)
        return self.features, scores / scores.sum(axis=1, keepdims=True)

    def decode(self, points: np.ndarray) -> np.ndarray:
        return points

    def set_rows(self, targets: np.ndarray, synthetic: np.ndarray) -> None:
        self.targets, self.synthetic = targets, synthetic

    def set_epoch(
        self, classifier: np.ndarray | None = None, decoder: np.ndarray | None = None
    ) -> None:
        self.rows = classifier
        self.head = self.rng.normal(size=self.head.shape)


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
@example(ONE, "classifier", "literal", "update")
@example(NONE, "inferred", "certainty", "update")
@example(NONE, "inferred", "certainty", "uniform")
@example(FEW, "inferred", "literal", "uniform")
@example(FEW, "classifier", "uniform", "update")
@given(
    crowds(),
    st.sampled_from(["classifier", "inferred"]),
    st.sampled_from(["certainty", "literal", "uniform"]),
    st.sampled_from(["uniform", "update"]),
)
def test_rounds_on_any_crowd(
    case: tuple[np.ndarray, Annotations, int], candidates: str, interpolation: str, prior: str
) -> None:
    from neucrowd_tf.iced.rounds import Options, Rounds

    x, crowd, seed = case
    options = Options(
        k=5,
        annotation_neighbours=9,
        eta=0.1,
        interpolation=interpolation,  # type: ignore[arg-type]
        candidates=candidates,  # type: ignore[arg-type]
        targets="hard",
        prior=prior,  # type: ignore[arg-type]
        smoothing=0.01,
        em_iterations=30,
        epochs_per_round=1,
        decoder_epochs=1,
        tol=None,
        seed=seed,
    )
    model = Linear(x, crowd.num_classes, seed)
    rounds = Rounds(model, crowd, label_certainty(crowd.vote_counts()), options)  # type: ignore[arg-type]
    unused = crowd.vote_counts().sum(axis=0) == 0
    for index in range(3):
        logs = rounds.start(index)
        assert all(np.isfinite(value) for value in logs.values())
        made = int(rounds.synthetic[-1].sum())
        assert len(model.synthetic) == made and np.isfinite(model.synthetic).all()
        assert (
            model.targets.shape == (len(x) + made, crowd.num_classes)
            and (model.targets.sum(axis=1) == 1).all()
        )
        assert set(range(len(x) + made)) == set(model.rows.tolist())
        for found in (rounds.inference.probas, rounds.inference.errors, rounds.inference.priors):
            assert np.isfinite(found).all()
        assert not rounds.synthetic[-1][unused].any()
        assert not np.isin(rounds.labels[-1], np.flatnonzero(unused)).any()
    state = rounds.get_state()
    again = Rounds(model, crowd, rounds.certainty, options)  # type: ignore[arg-type]
    again.set_state(state)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(again.get_state().values(), state.values(), strict=True)
    )
    assert all(
        isinstance(text, str)
        for text in shortages(
            state["candidates"], state["permutations"], ~unused, crowd.class_names, 5
        )
    )
