"""What can be computed from annotations without changing them: counts, matrices and frames."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neucrowd_tf.declare.types import Array, Codes32, Indices, Mask
from neucrowd_tf.errors import DataError, IdentitiesError

if TYPE_CHECKING:
    import pandas as pd


class AnnotationViews:
    """The views of :class:`neucrowd_tf.annotations.core.Annotations`."""

    num_instances: int
    num_annotators: int
    num_classes: int
    instance_names: Array
    annotator_names: Array
    class_names: Array
    _instances: Codes32
    _annotators: Codes32
    _labels: Codes32
    _generated: Mask | None
    _votes: Codes32 | None
    named: bool

    # ----------------------------------------------------------------- what is stored

    @property
    def has_identities(self) -> bool:
        """Whether each label's annotator is known."""
        return self._votes is None

    def require_identities(self, method: str) -> None:
        """Raises IdentitiesError when there are vote counts only."""
        if not self.has_identities:
            raise IdentitiesError(
                f"{method} needs to know which annotator gave which label, but the data holds vote"
                " counts only (no identities)"
            )

    @property
    def instances(self) -> Codes32:
        """`[A]` instance codes."""
        self.require_identities("this operation")
        return self._instances

    @property
    def annotators(self) -> Codes32:
        """`[A]` annotator codes."""
        self.require_identities("this operation")
        return self._annotators

    @property
    def labels(self) -> Codes32:
        """`[A]` class codes."""
        self.require_identities("this operation")
        return self._labels

    @property
    def generated(self) -> Mask:
        """`[A]` True where a method made the annotation up."""
        if self._generated is None:
            return np.zeros(len(self._labels), dtype=bool)
        return self._generated

    @property
    def shape(self) -> tuple[int, int]:
        return self.num_instances, self.num_annotators

    def __len__(self) -> int:
        return self.num_instances

    @property
    def num_annotations(self) -> int:
        """The number of labels, A."""
        if self._votes is None:
            return len(self._labels)
        return int(self._votes.sum())

    # ----------------------------------------------------------------- derived

    def vote_counts(self) -> Codes32:
        """Returns `[N, C]` int32: how many labels of each class each instance has."""
        if self._votes is not None:
            return self._votes.copy()
        # In blocks: the 64-bit keys and counts of np.bincount would take several times the memory
        # of the labels.
        size = self.num_instances * self.num_classes
        counts = np.zeros(size, dtype=np.int32)
        block = max(1 << 22, size)
        for start in range(0, len(self._labels), block):
            span = slice(start, start + block)
            keys = self._instances[span].astype(np.int64)
            keys *= self.num_classes
            keys += self._labels[span]
            counts += np.bincount(keys, minlength=size).astype(np.int32)
        return counts.reshape(self.num_instances, self.num_classes)

    @cached_property
    def annotated(self) -> Mask:
        """`[N]` True where an instance has at least one label."""
        return self.vote_counts().sum(axis=1) > 0

    def labels_per_annotator(self) -> Indices:
        """Returns `[R]`: how many labels each annotator gave."""
        return np.bincount(self.annotators, minlength=self.num_annotators)

    @cached_property
    def _by_instance(self) -> tuple[Indices, Indices]:
        """Row pointers `[N + 1]` and the order that sorts the triples by instance."""
        pointers = np.zeros(self.num_instances + 1, dtype=np.int64)
        np.cumsum(np.bincount(self._instances, minlength=self.num_instances), out=pointers[1:])
        return pointers, np.argsort(self._instances, kind="stable")

    def cells(self) -> Mask:
        """Returns `[N, R]`: True where an annotator labelled an instance, once or several times."""
        cells = np.zeros(self.shape, dtype=bool)
        cells[self.instances, self.annotators] = True
        return cells

    def to_sparse(self) -> sparse.csr_matrix:
        """Returns `[N, R]` CSR with label + 1 where there is a label (0 is "no label").

        Raises:
            DataError: an annotator labelled an instance twice (`duplicates="all"`).
        """
        cells = (self.instances, self.annotators)
        matrix = sparse.csr_matrix((self.labels + 1, cells), shape=self.shape)
        if matrix.nnz < len(self.labels):
            raise DataError(
                "annotations: several labels of an instance by one annotator, and a matrix has one"
                ' cell for them. Use duplicates="first" or "last".'
            )
        return matrix

    def one_hot(self) -> sparse.csr_matrix:
        """Returns `[N, R * C]` CSR with a one at column `annotator * C + label` for each label.

        The matrix is made once; its arrays are read-only.
        """
        return self._one_hot

    @cached_property
    def _one_hot(self) -> sparse.csr_matrix:
        columns = self.annotators.astype(np.int64) * self.num_classes + self.labels
        one_hot = sparse.csr_matrix(
            (np.ones(len(self._labels)), (self.instances, columns)),
            shape=(self.num_instances, self.num_annotators * self.num_classes),
        )
        for array in (one_hot.data, one_hot.indices, one_hot.indptr):
            array.flags.writeable = False
        return one_hot

    def to_dense(self, dtype: Any = np.int64) -> Array:
        """Returns `[N, R]` labels, -1 if missing; raises as `to_sparse` does."""
        return np.asarray(self.to_sparse().toarray(), dtype=dtype) - 1

    def to_frame(self) -> pd.DataFrame:
        """Returns a row per label with the original ids: task, worker, label."""
        import pandas as pd

        return pd.DataFrame(
            {
                "task": self.instance_names[self.instances],
                "worker": self.annotator_names[self.annotators],
                "label": self.class_names[self.labels],
            }
        )

    def to_wide_frame(self) -> pd.DataFrame:
        """Returns a row per instance and a column per annotator, NaN if missing; see `to_dense`."""
        import pandas as pd

        codes = self.to_dense()
        labelled = codes >= 0
        values = np.full(self.shape, np.nan, dtype=object)
        values[labelled] = self.class_names[codes[labelled]]
        return pd.DataFrame(
            values, index=pd.Index(self.instance_names), columns=pd.Index(self.annotator_names)
        )
