"""A round of ICED put together, with a stand-in for the networks. None of it needs TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.iced.inference import infer_labels
from neucrowd_tf.iced.rounds import Options, Rounds, epoch_order

OPTIONS = Options(
    k=3, annotation_neighbours=4, eta=0.1, interpolation="certainty", candidates="classifier", targets="hard", prior="uniform",  # noqa: E501
    smoothing=0.5, em_iterations=20, epochs_per_round=2, decoder_epochs=1, tol=0.05, seed=4,
)  # fmt: skip
SIZES, R = (20, 8, 5), 6
TRUTH = np.repeat(np.arange(3), SIZES)
N = len(TRUTH)


class Networks:
    """What a round reads and sets: the classifier finds the truth but for two instances, and
    decoding doubles.
    """

    batch_size = 8

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.embeddings = (4 * np.eye(3)[TRUTH] + rng.normal(size=(N, 3))).astype(np.float32)
        said = TRUTH.copy()
        said[:2] = [2, 1]
        self.probabilities = (0.8 * np.eye(3)[said] + 0.2 / 3).astype(np.float32)

    def outputs(self) -> tuple[np.ndarray, np.ndarray]:
        return self.embeddings, self.probabilities

    def decode(self, points: np.ndarray) -> np.ndarray:
        return 2 * points

    def set_rows(self, targets: np.ndarray, synthetic: np.ndarray) -> None:
        self.targets, self.synthetic = targets, synthetic

    def set_epoch(self, *, classifier: Any, decoder: Any) -> None:
        self.classifier_rows, self.decoder_rows = classifier, decoder


def annotations() -> Annotations:
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((N, R)) < 0.75, TRUTH[:, None], rng.integers(0, 3, (N, R)))
    return Annotations.from_dense(np.where(rng.random((N, R)) < 0.8, dense, -1), num_classes=3)


def make(**changes: Any) -> tuple[Rounds, Networks]:
    networks = Networks()
    certainty = np.linspace(1, 9, N)
    return (
        Rounds(networks, annotations(), certainty, dataclasses.replace(OPTIONS, **changes)),
        networks,
    )  # type: ignore[arg-type]


def test_a_round_balances_the_candidates_and_trains_on_inferred_labels() -> None:
    rounds, networks = make()
    real = annotations().one_hot()
    start = infer_labels(real, 3, smoothing=0.5, max_iter=20)
    np.testing.assert_array_equal(rounds.labels[0], start.labels)
    logs = rounds.start(0)
    # Candidates are what the classifier says: 18, 9 and 6 of them, so 0, 9 and 12 synthetic
    # instances.
    np.testing.assert_array_equal(rounds.candidates[0], networks.probabilities.argmax(axis=1))
    np.testing.assert_array_equal(rounds.synthetic[0], [0, 9, 12])
    assert (logs["synthetic"], logs["smallest_class"]) == (21.0, 6.0)
    # They stand class after class, each between two candidates of its class.
    points = networks.synthetic / 2
    assert points.shape == (21, 3)
    for code, part in ((1, points[:9]), (2, points[9:])):
        own = networks.embeddings[rounds.candidates[0] == code]
        assert (part >= own.min(axis=0) - 1e-5).all() and (part <= own.max(axis=0) + 1e-5).all()
    # Real instances first, then synthetic ones; hard labels of the inference over both.
    inferred = rounds.inference.probas
    assert inferred.shape == (N + 21, 3) and networks.targets.shape == (N + 21, 3)
    np.testing.assert_array_equal(networks.targets, np.eye(3)[inferred.argmax(axis=1)])
    np.testing.assert_array_equal(rounds.labels[1], inferred[:N].argmax(axis=1))
    assert (inferred[N:].argmax(axis=1) == np.repeat([1, 2], [9, 12])).mean() > 0.8
    assert logs["changed"] == np.mean(rounds.labels[1] != rounds.labels[0])


def test_the_inference_sees_real_and_copied_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    from neucrowd_tf.iced import rounds as module

    seen: list[Any] = []

    def infer(one_hot: Any, num_classes: int, **options: Any) -> Any:
        seen.append((one_hot.toarray(), options))
        return infer_labels(one_hot, num_classes, **options)

    monkeypatch.setattr(module, "infer_labels", infer)
    rounds, networks = make(prior="update")
    rounds.start(0)
    (real, options), (both, _) = seen
    assert options == {"prior": "update", "smoothing": 0.5, "max_iter": 20}
    np.testing.assert_array_equal(both[:N], real)
    labels = annotations().to_dense()
    for row, point in zip(both[N:].reshape(-1, R, 3), networks.synthetic / 2, strict=True):
        near = np.argsort(np.linalg.norm(networks.embeddings - point, axis=1))[
            :4
        ]  # real instances, whatever their class
        assert row.sum() > 0 and (row.sum(axis=1) <= 1).all()
        for annotator in np.flatnonzero(row.sum(axis=1)):
            assert row[annotator].argmax() in labels[near, annotator]


def test_an_epoch_passes_over_all_rows_and_the_decoders_over_real_ones() -> None:
    rounds, networks = make()
    rounds.start(0)
    size = N + 21  # 54 rows are 7 batches of 8: two passes are 112 rows, two of them begun anew
    assert len(networks.classifier_rows) == 112
    for part in np.split(networks.classifier_rows, 2):
        assert set(part.tolist()) == set(range(size)) and len(part) == 56
    assert len(networks.decoder_rows) == 40 and set(networks.decoder_rows.tolist()) == set(range(N))
    idle, networks = make(decoder_epochs=0)
    idle.start(0)
    assert networks.decoder_rows is None


def test_candidates_by_inference_and_soft_targets() -> None:
    rounds, networks = make(candidates="inferred", targets="soft")
    rounds.start(0)
    np.testing.assert_array_equal(rounds.candidates[0], rounds.labels[0])
    np.testing.assert_array_equal(networks.targets, rounds.inference.probas)
    rounds.start(1)
    np.testing.assert_array_equal(rounds.candidates[1], rounds.labels[1])


def test_a_class_that_nobody_uses_has_no_candidates() -> None:
    rounds, networks = make()
    rounds.used[2] = False
    networks.probabilities = np.tile(np.float32([0.1, 0.2, 0.7]), (N, 1))
    rounds.start(0)
    assert (rounds.candidates[0] == 1).all() and rounds.synthetic[0].sum() == 0
    assert networks.targets.shape == (N, 3)


def test_rounds_differ_and_are_functions_of_the_seed_and_their_number() -> None:
    def drawn(seed: int, index: int) -> tuple[Any, ...]:
        rounds, networks = make(seed=seed)
        rounds.start(index)
        return (
            networks.synthetic.tobytes(),
            networks.classifier_rows.tobytes(),
            networks.decoder_rows.tobytes(),
        )

    first = drawn(4, 0)
    assert drawn(4, 0) == first
    for other in (drawn(4, 1), drawn(5, 0)):
        assert all(a != b for a, b in zip(first, other, strict=True))


def test_settled_after_a_round_of_few_changes_but_never_the_first() -> None:
    rounds, _ = make(tol=0.05)
    assert not rounds.settled([]) and not rounds.settled([0.0])
    assert rounds.settled([0.3, 0.05]) and not rounds.settled([0.01, 0.06])
    assert not make(tol=None)[0].settled([0.0, 0.0])


def test_a_round_goes_on_from_a_checkpoint() -> None:
    rounds, networks = make(candidates="inferred")
    for index in range(2):
        rounds.start(index)
    state = {name: value.copy() for name, value in rounds.get_state().items()}
    rounds.start(2)
    again, others = make(candidates="inferred")
    again.set_state(state)
    again.start(2)
    for name, value in rounds.get_state().items():
        np.testing.assert_array_equal(again.get_state()[name], value)
    np.testing.assert_array_equal(others.synthetic, networks.synthetic)
    np.testing.assert_array_equal(others.classifier_rows, networks.classifier_rows)


def test_epoch_order_by_hand() -> None:
    rows = np.array([3, 5, 7, 9, 11])
    order = epoch_order(rows, 4, np.random.default_rng(0))
    assert (
        len(order) == 8 and sorted(order[:5]) == rows.tolist() and len(set(order[5:].tolist())) == 3
    )
    assert len(epoch_order(rows, 4, np.random.default_rng(0), steps=4)) == 16
    assert len(epoch_order(rows[:0], 4, np.random.default_rng(0))) == 0
    assert (epoch_order(np.arange(50), 50, np.random.default_rng(0)) != np.arange(50)).any()
