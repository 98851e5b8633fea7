"""The user's own tables as a dataset: features, annotations and, where there is any, truth."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.annotations import Annotations, spelt
from neucrowd_tf.datasets.core import Card, CrowdDataset, Split
from neucrowd_tf.datasets.leaks import check_apart, check_no_leak
from neucrowd_tf.datasets.splits import stratified_sample
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.features import FeatureTable, read_features, read_texts
from neucrowd_tf.io.gold import read_true_labels
from neucrowd_tf.io.images import MAX_PIXELS, read_images
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import FLAGS, TableOptions, split_list
from neucrowd_tf.names import typed_names
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEST_SHARE = 0.2
UNKNOWN = "The truth of the test rows is not known."
KINDS = ("features", "images", "texts")
PATHS = (*KINDS, "annotations", "truth", "test_features", "test_texts", "test_truth")
ONE_FILE = "expected a file for --dataset=table, received none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """A user's files.

    Attributes:
        features: table with a row per item and numeric columns, or an NPY array (items are then
            numbered from 0).
        images: instead of `features`, a folder of images named by the items.
        texts: instead of `features`, a table of items and texts.
        annotations: labels in any layout that `read_annotations` reads.
        truth: table of items and true labels, for evaluation only.
        test_features: features of a separate test split.
        test_texts: texts of a separate test split.
        test_truth: true labels of the test split; needs `test_features` or `test_texts`.
        image_size: height and width that images are scaled to; None needs images of one size.
        max_pixels: largest accepted image.
        unmatched: "drop" leaves out, and counts, labels and true labels of items without features;
            "error" rejects them.
        ignore_columns: columns of `features` that are not features, as names or as a flag's text.
    """

    features: str | Path | None = None
    images: str | Path | None = None
    texts: str | Path | None = None
    annotations: str | Path | None = None
    truth: str | Path | None = None
    test_features: str | Path | None = None
    test_texts: str | Path | None = None
    test_truth: str | Path | None = None
    image_size: int | None = None
    max_pixels: int | None = None
    unmatched: Literal["error", "drop"] = "error"
    ignore_columns: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        """Raises UsageError for a value of another type, or files that do not belong together."""
        for name in PATHS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, (str, Path)):
                raise UsageError(f"--{name}: expected a path, received {value!r}")
        for name, size in (("image_size", self.image_size), ("max_pixels", self.max_pixels)):
            if size is not None and (type(size) is not int or size < 1):
                raise UsageError(f"--{name}: expected a whole number from 1, received {size!r}")
            if size is not None and self.images is None:
                raise UsageError(f"--{name}: needs --images. Remove it.")
        if self.unmatched not in ("error", "drop"):
            raise UsageError(f"--unmatched: expected error or drop, received {self.unmatched!r}")
        names = self.ignore_columns
        if not isinstance(names, (str, list, tuple)) or any(
            type(name) is not str for name in names
        ):
            raise UsageError(f"--ignore_columns: expected names, received {names!r}")
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if not kinds:
            raise UsageError(f"--features: {ONE_FILE}")
        if len(kinds) > 1:
            first, second = kinds[:2]
            raise UsageError(f"--{second}: cannot be combined with --{first}")
        if self.annotations is None:
            raise UsageError("--annotations: --dataset=table needs a file of labels.")
        self._check_test(kinds[0])

    def _check_test(self, kind: str) -> None:
        absent = [name for name in (f"test_{kind}", "test_truth") if not getattr(self, name, None)]
        for name in ("test_features", "test_texts", "test_truth"):
            other = kind == "images" or name not in (f"test_{kind}", "test_truth")
            if other and getattr(self, name) is not None:
                raise UsageError(f"--{name}: expected without --{kind}, received both")
        if kind != "images" and len(absent) == 1:
            raise UsageError(
                f"--{absent[0]}: expected --test_{kind} and --test_truth together, received only"
                " one of them"
            )

    @property
    def kind(self) -> str:
        """What the items are: features, images or texts."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    def read(self, path: Path, options: TableOptions) -> FeatureTable:
        """Returns items with their features, images or texts."""
        if self.kind == "features":
            names = self.ignore_columns
            ignored = split_list(names) if names and isinstance(names, str) else tuple(names)
            return read_features(path, options, ignored)
        if self.kind == "texts":
            return FeatureTable(*read_texts(path, options), [])
        return FeatureTable(*read_images(path, self.image_size, self.max_pixels or MAX_PIXELS), [])


FIELDS = tuple(field.name for field in dataclasses.fields(Files))


@register_dataset(
    "table",
    summary="your own files: --features, --annotations and, if there are true labels, --truth",
    simulated=True,
    options=(*FIELDS, *FLAGS),
)
def load(data_dir: Path | None = None, seed: int = 0, **options: Any) -> CrowdDataset:
    """Loads a user's tables.

    With `test_features` and `test_truth` those are the test split. Otherwise a fifth of the items
    is drawn with the seed, and their annotations leave training:

    - with `truth`, items with a true label: first those without annotations, then others at
      random, each class in proportion;
    - without, annotated items, in proportion of their majority votes, which are then their labels
      (a run scores them by a model of the crowd).

    Args:
        data_dir: not used.
        seed: of the drawn test split.
        options: the fields of `Files`, and of `TableOptions`, which say how tables are read.

    Raises:
        UsageError: an option that is missing, unknown or of another type.
        DataError: a file that cannot be used, with its place.
    """
    files = Files(**{name: options.pop(name) for name in FIELDS if name in options})
    tables = TableOptions.of(**options)
    source, labels_file = Path(getattr(files, files.kind)), Path(str(files.annotations))
    table = files.read(source, tables)
    items = table.items.tolist()
    crowd = read_annotations(
        labels_file, tables, items=items, unmatched=files.unmatched
    ).annotations
    _check_two_classes(crowd, labels_file)
    true = None
    if files.truth is not None:
        true = _true_labels(Path(files.truth), items, crowd, tables, files)
    if files.kind == "features":
        check_no_leak(table, crowd, source)
    test_is_truth = true is not None or files.test_truth is not None
    if files.test_truth is not None:
        train, test = np.arange(len(table.rows)), _published_test(files, table, crowd, tables)
    else:
        chosen, labels = _drawn_rows(crowd, true, seed)
        train = np.setdiff1d(np.arange(len(table.rows)), chosen)
        test = Split(table.rows[chosen], labels, crowd.instance_names[chosen], crowd[chosen])
    training = crowd[train]
    _check_training(training, labels_file)
    return CrowdDataset(
        name="table",
        features=table.rows[train],
        annotations=training,
        truth=None if true is None else true[train],
        test=test,
        card=Card("Table", f"{source}, {labels_file}", notes="" if test_is_truth else UNKNOWN),
        test_is_truth=test_is_truth,
        feature_names=tuple(table.names) or None,
    )


def _true_labels(
    path: Path, items: Sequence[str], crowd: Annotations, options: TableOptions, files: Files
) -> NDArray[np.int64]:
    """Returns the class codes of true labels, -1 for items without one."""
    classes = [str(name) for name in crowd.class_names.tolist()]
    return read_true_labels(path, items, classes, options, drop=files.unmatched == "drop")


def _check_two_classes(crowd: Annotations, path: Path) -> None:
    """Raises DataError for labels of fewer than two classes."""
    used = crowd.vote_counts().sum(axis=0) > 0
    if used.sum() < 2:
        received = f"only {spelt(crowd.class_names[used][0])}" if used.any() else "no labels"
        raise DataError(f"{path}: expected labels of at least two classes, received {received}")


def _published_test(
    files: Files, training: FeatureTable, crowd: Annotations, options: TableOptions
) -> Split:
    """Returns the test split that the user gives."""
    features, truth = Path(getattr(files, f"test_{files.kind}")), Path(str(files.test_truth))
    table = files.read(features, options)
    missing = [name for name in training.names if name not in table.names]
    extra = [name for name in table.names if name not in training.names]
    if missing or extra:
        problem = f"there is no column {missing[0]!r}" if missing else ""
        problem = problem or f"column {extra[0]!r} is not among the training features"
        raise DataError(f"{features}: {problem}. Give it the columns of the training features.")
    items = table.items.tolist()
    labels = _true_labels(truth, items, crowd, options, files)
    if (labels < 0).any():
        item = table.items[labels < 0][0]
        raise DataError(f"{truth}: test item {item!r} has no true label. Add it.")
    rows = table.rows
    if files.kind == "features":
        rows = rows[:, [table.names.index(name) for name in training.names]]
    check_apart(training, FeatureTable(table.items, rows, training.names), features)
    return Split(rows, labels, typed_names(items))


def _drawn_rows(
    crowd: Annotations, truth: NDArray[np.int64] | None, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the rows of the test split and their labels."""
    size = max(1, round(TEST_SHARE * crowd.num_instances))
    if truth is not None:
        bare = np.flatnonzero((truth >= 0) & ~crowd.annotated)
        others = np.flatnonzero((truth >= 0) & crowd.annotated)
        drawn = others[
            stratified_sample(truth[others], min(max(size - len(bare), 0), len(others)), seed)
        ]
        chosen = np.sort(np.concatenate([bare, drawn]))
        return chosen, truth[chosen]
    votes = majority_labels(crowd.vote_counts(), "random", seed)
    annotated = np.flatnonzero(crowd.annotated)
    chosen = annotated[stratified_sample(votes[annotated], size, seed)]
    return chosen, votes[chosen]


def _check_training(training: Annotations, path: Path) -> None:
    bare = np.flatnonzero(~training.annotated)
    if len(bare) == training.num_instances:
        raise DataError(
            f"{path}: expected annotations of training instances, received none once the test split"
            " is taken out"
        )
    if len(bare):
        name = spelt(training.instance_names[bare[0]])
        warnings.warn(
            f"{path}: {len(bare)} of {training.num_instances} training instances have no"
            f" annotations (the first is task {name}); they are left out of training",
            stacklevel=3,
        )
