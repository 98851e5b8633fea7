"""KOS: messages between tasks and annotators."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from neucrowd_tf.aggregation.base import Aggregator, Codes, coin_errors
from neucrowd_tf.aggregation.sums import Shard, skills_against
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, whole
from neucrowd_tf.declare.types import Floats


def messages(crowd: Annotations, signs: Floats, reliabilities: Floats, max_iter: int) -> Floats:
    """Returns `[N]` whose sign is the instance's label, from labels +1 and -1.

    Args:
        crowd: the instance and the annotator of each label.
        signs: `[A]` labels.
        reliabilities: `[A]` messages from annotators to begin with.
        max_iter: rounds.

    References:
        Karger, Oh and Shah (2014), Budget-optimal task allocation for reliable crowdsourcing
        systems, algorithm 1.
    """
    instances = crowd.instances
    annotators = crowd.annotators
    for _ in range(max_iter):
        to_instances = signs * reliabilities
        sums = np.bincount(instances, to_instances, crowd.num_instances)
        to_annotators = signs * (sums[instances] - to_instances)
        sums = np.bincount(annotators, to_annotators, crowd.num_annotators)
        reliabilities = sums[annotators] - to_annotators
        # Only their ratios matter; without this they would overflow.
        largest = np.abs(reliabilities).max(initial=0.0)
        if largest == 0.0:
            break
        reliabilities = reliabilities / largest
    sums = np.bincount(instances, signs * reliabilities, crowd.num_instances)
    return sums.astype(np.float64)


# Deviation: KOS, several classes. Paper: C - 1 low-rank approximations. Here: As many runs of the
# messages, as for two classes. Why: One algorithm. Effect: not measured.
@estimator
class Kos(Aggregator):
    """Karger, Oh and Shah's message passing.

    With C classes the C - 1 questions "is the class above c?" are decided, and the label is the
    lowest class that it is not above. So the order of the classes matters.

    Attributes: see `Aggregator`; `probas_` are certain, `skills_` shares of agreement with
    `labels_`.

    References:
        Karger, Oh and Shah (2014), Budget-optimal task allocation for reliable crowdsourcing
        systems; (2013), Efficient crowdsourcing for multi-class labeling, for C classes.
    """

    max_iter: Annotated[int, whole(1), "number of rounds of messages."] = 100

    def _fit(self, crowd: Annotations, gold: Codes | None) -> None:
        """Passes messages; gold labels replace what is inferred."""
        size = crowd.num_classes
        begin = np.random.default_rng([self.seed, 0]).normal(1.0, 1.0, crowd.num_annotations)
        above = np.zeros((crowd.num_instances, max(size - 1, 0)), dtype=bool)
        for threshold in range(size - 1):
            signs = np.where(crowd.labels > threshold, 1.0, -1.0)
            sums = messages(crowd, signs, begin, self.max_iter)
            # No evidence either way: what most annotators say.
            votes = np.bincount(crowd.instances, signs, crowd.num_instances)
            above[:, threshold] = np.where(sums != 0.0, sums, votes) > 0.0
        labels = np.where(above.all(axis=1), size - 1, above.argmin(axis=1) if size > 1 else 0)
        labelled = np.bincount(labels[crowd.annotated], minlength=size)
        self.priors_ = labelled / max(labelled.sum(), 1)
        self.probas_ = np.eye(size)[labels]
        self._conclude(gold)
        shard = Shard(crowd.one_hot(), size)
        self.skills_ = skills_against(shard, self.labels_)
        self.errors_ = coin_errors(self.skills_, size)
