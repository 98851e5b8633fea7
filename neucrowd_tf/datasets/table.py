"""The user's own tables as a dataset: features, annotations and, where there is any, truth."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
FILES = (
    *("features", "images", "texts", "annotations", "truth"),
    *("test_features", "test_texts", "test_truth"),
)
OPTIONS = (*FILES, "image_size", "max_pixels", "unmatched", "ignore_columns", *FLAGS)


@register_dataset(
    "table",
    summary="your own files: --features, --annotations and, if there are true labels, --truth",
    simulated=True,
    options=OPTIONS,
)
def load(
    data_dir: Path | None = None,
    seed: int = 0,
    *,
    features: str | Path | None = None,
    images: str | Path | None = None,
    texts: str | Path | None = None,
    annotations: str | Path | None = None,
    truth: str | Path | None = None,
    test_features: str | Path | None = None,
    test_texts: str | Path | None = None,
    test_truth: str | Path | None = None,
    image_size: int | None = None,
    max_pixels: int | None = None,
    unmatched: str = "error",
    ignore_columns: str | Sequence[str] = (),
    **options: Any,
) -> CrowdDataset:
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
        ignore_columns: columns of `features` that are not features.
        options: how the tables are read, see `TableOptions`.

    Raises:
        UsageError: an option that is missing or of another type.
        DataError: a file that cannot be used, with its place.
    """
    paths = dict(zip(FILES, (features, images, texts, annotations, truth), strict=False))
    paths |= {"test_features": test_features, "test_texts": test_texts, "test_truth": test_truth}
    for name, value in paths.items():
        if value is not None and not isinstance(value, (str, Path)):
            raise UsageError(f"--{name}: expected a path, received {value!r}")
    for name, size in (("image_size", image_size), ("max_pixels", max_pixels)):
        if size is not None and (type(size) is not int or size < 1):
            raise UsageError(f"--{name}: expected a whole number from 1, received {size!r}")
        if size is not None and images is None:
            raise UsageError(f"--{name}: needs --images. Remove it.")
    if unmatched not in ("error", "drop"):
        raise UsageError(f"--unmatched: expected error or drop, received {unmatched!r}")
    if isinstance(ignore_columns, str):
        ignore_columns = split_list(ignore_columns) if ignore_columns else ()
    listed = isinstance(ignore_columns, (list, tuple))
    if not listed or not all(isinstance(name, str) for name in ignore_columns):
        raise UsageError(f"--ignore_columns: expected names, received {ignore_columns!r}")
    kind, source = _instance_file(features=features, images=images, texts=texts)
    if annotations is None:
        raise UsageError("--annotations: --dataset=table needs a file of labels.")
    wanted = _test_file(kind, test_truth, features=test_features, texts=test_texts)
    tables = TableOptions.of(**options)
    reader = _Reader(kind, tables, tuple(ignore_columns), image_size, max_pixels or MAX_PIXELS)
    table = reader.read(source)
    drop = unmatched == "drop"
    labels_file = Path(annotations)
    items = table.items.tolist()
    crowd = read_annotations(
        labels_file, tables, items=items, unmatched="drop" if drop else "error"
    ).annotations
    _check_two_classes(crowd, labels_file)
    true = None
    if truth is not None:
        true = _true_labels(Path(truth), items, crowd, tables, drop)
    if kind == "features":
        check_no_leak(table, crowd, source)
    if wanted is not None and test_truth is not None:
        train, test_is_truth = np.arange(len(table.rows)), True
        test = _published_test(reader, table, Path(wanted), Path(test_truth), crowd, drop)
    else:
        train, test, test_is_truth = _drawn_test(table, crowd, true, seed)
    training = crowd[train]
    _check_training(training, labels_file)
    return CrowdDataset(
        name="table",
        features=table.rows[train],
        annotations=training,
        truth=None if true is None else true[train],
        test=test,
        card=Card("Table", f"{source}, {annotations}", notes="" if test_is_truth else UNKNOWN),
        test_is_truth=test_is_truth,
        feature_names=tuple(table.names) or None,
    )


class _Reader(NamedTuple):
    """Reads items of one kind.

    Attributes:
        kind: "features", "images" or "texts".
        options: how tables are read.
        ignored: columns that are not features.
        image_size, max_pixels: of images.
    """

    kind: str
    options: TableOptions
    ignored: tuple[str, ...]
    image_size: int | None
    max_pixels: int

    def read(self, path: Path) -> FeatureTable:
        """Returns items with their features, images or texts."""
        if self.kind == "features":
            return read_features(path, self.options, self.ignored)
        if self.kind == "texts":
            return FeatureTable(*read_texts(path, self.options), [])
        return FeatureTable(*read_images(path, self.image_size, self.max_pixels), [])


def _true_labels(
    path: Path, items: Sequence[str], crowd: Annotations, options: TableOptions, drop: bool
) -> NDArray[np.int64]:
    """Returns the class codes of true labels, -1 for items without one."""
    classes = [str(name) for name in crowd.class_names.tolist()]
    return read_true_labels(path, items, classes, options, drop=drop)


def _instance_file(**paths: str | Path | None) -> tuple[str, Path]:
    """Returns which of the flags names the instances' file, and the file.

    Raises:
        UsageError: none does, or several do.
    """
    named = [(flag, Path(path)) for flag, path in paths.items() if path is not None]
    if not named:
        raise UsageError("--features: expected a file for --dataset=table, received none")
    if len(named) > 1:
        (first, _), (second, _) = named[:2]
        raise UsageError(f"--{second}: expected alone, received together with --{first}")
    return named[0]


def _test_file(
    kind: str, truth: str | Path | None, **paths: str | Path | None
) -> str | Path | None:
    """Returns the file of test instances, which are of the training instances' kind.

    Raises:
        UsageError: one of another kind, or one without its truth, or truth without it.
    """
    wanted = paths.pop(kind, None)
    other = next((flag for flag, path in paths.items() if path is not None), None)
    if other is not None:
        raise UsageError(f"--test_{other}: expected without --{kind}, received both")
    if kind == "images" and truth is not None:
        raise UsageError("--test_truth: expected without --images, received both")
    if (wanted is None) != (truth is None):
        absent = f"test_{kind}" if wanted is None else "test_truth"
        raise UsageError(
            f"--{absent}: expected --test_{kind} and --test_truth together, received only one of"
            " them"
        )
    return wanted


def _check_two_classes(crowd: Annotations, path: Path) -> None:
    """Raises DataError for labels of fewer than two classes."""
    used = crowd.vote_counts().sum(axis=0) > 0
    if used.sum() < 2:
        received = f"only {spelt(crowd.class_names[used][0])}" if used.any() else "no labels"
        raise DataError(f"{path}: expected labels of at least two classes, received {received}")


def _published_test(
    reader: _Reader,
    training: FeatureTable,
    features: Path,
    truth: Path,
    crowd: Annotations,
    drop: bool,
) -> Split:
    table = reader.read(features)
    missing = [name for name in training.names if name not in table.names]
    extra = [name for name in table.names if name not in training.names]
    if missing or extra:
        problem = (
            f"there is no column {missing[0]!r}"
            if missing
            else f"column {extra[0]!r} is not among the training features"
        )
        raise DataError(f"{features}: {problem}. Give it the columns of the training features.")
    items = table.items.tolist()
    labels = _true_labels(truth, items, crowd, reader.options, drop)
    if (labels < 0).any():
        item = table.items[labels < 0][0]
        raise DataError(f"{truth}: test item {item!r} has no true label. Add it.")
    rows = table.rows
    if reader.kind == "features":
        rows = rows[:, [table.names.index(name) for name in training.names]]
    check_apart(training, FeatureTable(table.items, rows, training.names), features)
    return Split(rows, labels, typed_names(items))


def _drawn_test(
    table: FeatureTable, crowd: Annotations, truth: NDArray[np.int64] | None, seed: int
) -> tuple[NDArray[np.int64], Split, bool]:
    """Returns the training rows, the test split, and whether its labels are the truth."""
    chosen, labels = _drawn_rows(crowd, truth, seed)
    train = np.setdiff1d(np.arange(len(table.rows)), chosen)
    test = Split(table.rows[chosen], labels, crowd.instance_names[chosen], crowd[chosen])
    return train, test, truth is not None


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
