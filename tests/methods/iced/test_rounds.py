"""A round of ICED, module by module and as `fit` puts them together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.iced import ICED, estimator
from neucrowd_tf.methods.iced.estimator import RoundHistory, settled
from neucrowd_tf.methods.iced.inference import Inference
from neucrowd_tf.methods.iced.networks import ICEDModel, epoch_order
from neucrowd_tf.methods.iced.synthesis import Generated, Generator, choose_candidates
from tests.crowds import array_of, noisy_labels

SIZES, R = (20, 8, 5), 6
TRUTH = np.repeat(np.arange(3), SIZES)
N = len(TRUTH)
NOISE = default_rng(0).normal(size=(N, 3))
EMBEDDINGS = (4 * np.eye(3)[TRUTH] + NOISE).astype(np.float32)
# 18, 9 and 6 candidates: 0, 9 and 12 synthetic instances.
CANDIDATES = np.concatenate([[2, 1], TRUTH[2:]])


def annotations() -> Annotations:
    rng = default_rng(1)
    dense = noisy_labels(rng, TRUTH, R, 0.75, 3)
    return Annotations.from_dense(np.where(rng.random((N, R)) < 0.8, dense, -1), num_classes=3)


def generated(seed: int = 4, index: int = 0, candidates: np.ndarray = CANDIDATES) -> Generated:
    settings = ICED(k=3, annotation_neighbours=4, seed=seed)
    generate = Generator(settings, annotations(), np.linspace(1, 9, N))
    return generate(EMBEDDINGS, candidates, index)


def test_every_class_is_filled_up_between_its_own_candidates() -> None:
    new = generated()
    assert_array_equal(new.counts, [0, 9, 12])
    assert new.points.shape == (21, 3)
    for code, block in ((1, new.points[:9]), (2, new.points[9:])):
        members = EMBEDDINGS[code == CANDIDATES]
        assert (block >= members.min(axis=0) - 1e-5).all()
        assert (block <= members.max(axis=0) + 1e-5).all()


def test_real_annotations_come_first_and_copies_of_near_real_instances_after() -> None:
    new = generated()
    both = new.one_hot.toarray()
    assert_array_equal(both[:N], annotations().one_hot().toarray())
    labels = annotations().to_dense()
    for row, point in zip(both[N:].reshape(-1, R, 3), new.points, strict=True):
        # Real instances, whatever their class.
        near = np.argsort(np.linalg.norm(EMBEDDINGS - point, axis=1))[:4]
        assert row.sum() > 0 and (row.sum(axis=1) <= 1).all()
        for annotator in np.flatnonzero(row.sum(axis=1)):
            assert row[annotator].argmax() in labels[near, annotator]


def test_balanced_candidates_leave_the_annotations_as_they_are() -> None:
    new = generated(candidates=np.arange(N) % 3)
    assert new.points.shape == (0, 3) and not new.counts.any()
    assert_array_equal(new.one_hot.toarray(), annotations().one_hot().toarray())


def test_what_is_made_is_a_function_of_the_seed_and_the_round() -> None:
    def drawn(seed: int, index: int) -> tuple[bytes, bytes]:
        new = generated(seed, index)
        return new.points.tobytes(), new.one_hot[N:].toarray().tobytes()

    first = drawn(4, 0)
    assert drawn(4, 0) == first
    for other in (drawn(4, 1), drawn(5, 0)):
        assert all(a != b for a, b in zip(first, other, strict=True))


def test_candidates_by_classifier_or_inference_and_never_of_an_unused_class() -> None:
    probabilities = np.tile(np.float32([0.1, 0.2, 0.7]), (N, 1))
    inferred, used = TRUTH.astype(np.int16), np.array([True, True, False])
    choose = choose_candidates
    assert (choose("classifier", probabilities, inferred, np.ones(3, bool)) == 2).all()
    assert (choose("classifier", probabilities, inferred, used) == 1).all()
    assert (choose("inferred", probabilities, inferred, used) == TRUTH).all()


def inference(labels: list[int], permutation: tuple[int, int] = (0, 1)) -> Inference:
    return Inference(
        np.eye(2)[labels], np.array([0.5, 0.5]), np.full((3, 2, 2), 0.5), np.array(permutation)
    )


def test_history_by_hand_and_back_from_a_checkpoint() -> None:
    history = RoundHistory(inference([0, 0, 1, 0]))
    # The two last rows are synthetic; of the four real ones, one changes.
    changed = history.add(
        array_of("0 0 0 1"), np.array([0, 2]), inference([0, 1, 1, 0, 1, 1], (1, 0))
    )
    assert changed == 0.25
    assert history.labels.tolist() == [[0, 0, 1, 0], [0, 1, 1, 0]]
    assert history.candidates.tolist() == [[0, 0, 0, 1]]
    assert history.synthetic.tolist() == [[0, 2]]
    assert history.permutations.tolist() == [[0, 1], [1, 0]]
    assert history.labels.dtype == history.candidates.dtype == np.int16
    again = RoundHistory(inference([0, 0, 1, 0]))
    again.set_state({name: value.copy() for name, value in history.get_state().items()})
    for each in (history, again):
        assert each.add(array_of("1 1 1 1"), np.array([0, 0]), inference([1, 1, 1, 0])) == 0.25
    for name, value in history.get_state().items():
        assert_array_equal(again.get_state()[name], value)
        assert again.get_state()[name].dtype == value.dtype


def test_settled_after_a_round_of_few_changes_but_never_the_first() -> None:
    assert not settled([], 0.05) and not settled([0.0], 0.05)
    assert settled([0.3, 0.05], 0.05) and not settled([0.01, 0.06], 0.05)
    assert not settled([0.0, 0.0], None)


def test_epoch_order_by_hand() -> None:
    rows = array_of("3 5 7 9 11")
    order = epoch_order(rows, 4, default_rng(0))
    assert len(order) == 8 and sorted(order[:5]) == rows.tolist()
    assert len(set(order[5:].tolist())) == 3
    # 54 rows are 7 batches of 8: two passes are 112 rows, two of each begun anew.
    twice = epoch_order(np.arange(54), 8, default_rng(0), passes=2)
    assert len(twice) == 112
    for block in np.split(twice, 2):
        assert set(block.tolist()) == set(range(54))
    assert (epoch_order(np.arange(50), 50, default_rng(0)) != np.arange(50)).any()


def noted(monkeypatch: pytest.MonkeyPatch, *places: tuple[Any, str]) -> list[Any]:
    """Notes name, arguments, options and result of each call, without the object of a method."""
    calls: list[Any] = []

    def note(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def called(*values: Any, **named: Any) -> Any:
            result = real(*values, **named)
            calls.append((name, values[isinstance(owner, type) :], named, result))
            return result

        monkeypatch.setattr(owner, name, called)

    for place in places:
        note(*place)
    return calls


SMALL: dict[str, Any] = {
    "encoder": {"hidden_units": (6, 4)},
    "batch_size": 8,
    "autoencoder_epochs": 0,
}


@pytest.mark.parametrize("rule", [pytest.param("classifier", marks=pytest.mark.slow), "inferred"])
def test_a_fit_goes_through_algorithm_1(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    names = ("outputs", "set_rows", "set_epoch")
    places = [(ICEDModel, name) for name in names]
    seen = noted(monkeypatch, (estimator, "infer_labels"), *places)
    options = {"prior": "update", "smoothing": 0.5, "seed": 3}
    model = ICED(
        **SMALL, **options, candidates=rule, rounds=2, epochs_per_round=2, em_iterations=20,
        warm_up_epochs=1,
    ).fit(EMBEDDINGS, annotations())  # fmt: skip
    one_round = ["outputs", "infer_labels", "set_rows", "set_epoch"]
    assert [call[0] for call in seen] == [
        *("set_rows", "set_epoch", "infer_labels", *one_round, *one_round)
    ]
    first = seen[2]
    assert_array_equal(first[1][0].toarray(), annotations().one_hot().toarray())
    options |= {"max_iter": 20, "em": "soft"}
    assert first[2] == options
    assert_array_equal(model.labels_history_[0], first[3].labels)
    for index, start in enumerate((3, 7)):
        (_, _, _, (_, probabilities)), inferred, rows, epoch = seen[start : start + 4]
        candidates, new = model.candidates_history_[index], model.synthetic_history_[index]
        expected = probabilities.argmax(axis=1) if rule == "classifier" else None
        before = model.labels_history_[index]
        assert_array_equal(candidates, before if expected is None else expected)
        # Real instances first, then synthetic ones; the labels of the inference over both.
        size, sizes = N + int(new.sum()), np.bincount(candidates, minlength=3)
        assert_array_equal(sizes + new, np.where(sizes < 2, sizes, sizes.max()))
        assert new.any() and inferred[2] == options
        assert inferred[1][0].shape == (size, 3 * R)
        probas = inferred[3].probas
        assert_array_equal(model.labels_history_[index + 1], probas[:N].argmax(axis=1))
        assert_array_equal(rows[1][0], np.eye(3)[probas.argmax(axis=1)])
        assert len(rows[1][1]) == new.sum()
        # Two passes over all rows, one of the decoder over the real ones.
        orders = epoch[2]
        assert set(orders["classifier"].tolist()) == set(range(size))
        assert len(orders["classifier"]) == 2 * 8 * -(-size // 8)
        assert len(orders["decoder"]) == 40 and set(orders["decoder"].tolist()) == set(range(N))
        assert model.history_["synthetic"][index] == new.sum()
        labels, made = probas.argmax(axis=1), np.repeat(np.arange(3), new)
        assert model.history_["synthetic_as_made"][index] == (labels[N:] == made).sum()
        sizes = np.bincount(labels, minlength=3)
        assert model.history_["balance"][index] == sizes.min() / sizes.max()
        assert model.history_["smallest_class"][index] == np.bincount(candidates).min()
        changed = np.mean(model.labels_history_[index + 1] != before)
        assert model.history_["changed"][index] == changed
    assert (seen[6][2]["classifier"][:N] != seen[10][2]["classifier"][:N]).any()
