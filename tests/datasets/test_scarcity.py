"""What `Scarcity` takes from a dataset, and what it leaves as it is."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations, simulation, thinning
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.datasets.scarcity import Scarcity
from neucrowd_tf.errors import DataError

SIZE, CLASSES = 120, 3


def dataset(votes: bool = False) -> CrowdDataset:
    truth = np.repeat(np.arange(CLASSES), SIZE // CLASSES)
    skills = np.full((5, CLASSES), 0.8)
    crowd = simulation.simulate(truth, simulation.from_skills(skills), 0)
    if votes:
        crowd = Annotations.from_votes(crowd.vote_counts())
    features = np.arange(SIZE, dtype=np.float32)[:, None]
    split = Split(features, truth, np.arange(SIZE))
    return CrowdDataset("small", features, crowd, split, truth=truth, validation=split)


@pytest.mark.parametrize("votes", [False, True])
def test_fewer_items_labels_and_flips_come_from_the_seed(votes: bool) -> None:
    whole = dataset(votes)
    scarcity = Scarcity(keep_items=30, labels_per_item=2, flip_labels=0.3, drop_validation=True)
    few, again, other = (scarcity.applied(whole, seed) for seed in (1, 1, 2))
    assert len(few.features) == 30 and few.truth.tolist() == again.truth.tolist()
    assert (few.annotations.vote_counts().sum(axis=1) == 2).all()
    assert (few.annotations.vote_counts() == again.annotations.vote_counts()).all()
    assert few.features.tolist() != other.features.tolist()
    assert few.validation is None and len(few.test) == SIZE
    assert few.annotations.has_identities is not votes
    assert (few.truth == whole.truth[few.features[:, 0].astype(int)]).all()
    assert Scarcity(keep_items=10 * SIZE).applied(whole, 1).features is whole.features


@pytest.mark.parametrize("votes", [False, True])
def test_what_is_kept_is_of_what_was_there(votes: bool) -> None:
    crowd = dataset(votes).annotations
    counts = crowd.vote_counts()
    for fewer in (thinning.limit_labels(crowd, 3, 0), thinning.keep_share(crowd, 0.4, 0)):
        kept = fewer.vote_counts()
        assert (kept <= counts).all() and (kept.sum(axis=1) > 0).all()
    assert thinning.keep_share(crowd, 0.4, 0).vote_counts().sum() == 0.4 * 5 * SIZE
    two = thinning.limit_labels(crowd, 2, 0).vote_counts()
    assert (two <= thinning.limit_labels(crowd, 3, 0).vote_counts()).all()


def test_flips_change_their_share_of_the_labels_to_other_classes() -> None:
    crowd = dataset().annotations
    assert (thinning.flip_labels(crowd, 0.0, 0).labels == crowd.labels).all()
    changed = thinning.flip_labels(crowd, 0.4, 0).labels != crowd.labels
    assert 0.35 < changed.mean() < 0.45
    assert (thinning.flip_labels(crowd, 1.0, 0).labels != crowd.labels).all()
    fewer = thinning.flip_labels(crowd, 0.2, 0).labels != crowd.labels
    assert (changed | ~fewer).all()
    for wrong in (-0.1, 1.1):
        with pytest.raises(DataError, match="flip_labels: expected a share from 0 to 1"):
            thinning.flip_labels(crowd, wrong, 0)


def test_a_long_tail_has_its_ratio_and_needs_the_truth() -> None:
    tail = Scarcity(long_tail=4.0).applied(dataset(), 3)
    assert np.bincount(tail.truth).tolist() == [40, 20, 10]
    assert tail.annotations.num_instances == len(tail.features) == 70
    with pytest.raises(DataError, match="--long_tail: small has training items without true"):
        Scarcity(long_tail=4.0).applied(dataset().replace(truth=None), 3)
    without_last = np.minimum(dataset().truth, CLASSES - 2)
    with pytest.raises(DataError, match="needs an instance of every class, and one class has none"):
        Scarcity(long_tail=4.0).applied(dataset().replace(truth=without_last), 3)
