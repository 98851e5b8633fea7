"""The user's own tables as a dataset: features, annotations and, where there is any, truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations, spelt
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.datasets.core import Card, CrowdDataset, Split
from neucrowd_tf.datasets.files import TableFiles
from neucrowd_tf.datasets.leaks import check_apart, check_no_leak
from neucrowd_tf.datasets.splits import stratified_sample
from neucrowd_tf.declare.dataset_registration import register_dataset
from neucrowd_tf.declare.declarations import declared_by_name
from neucrowd_tf.declare.types import Indices, Texts
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.features import FeatureTable, read_features, read_texts
from neucrowd_tf.io.gold import read_true_labels
from neucrowd_tf.io.images import read_images
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import FLAGS, TableOptions
from neucrowd_tf.names import typed_names, without

TEST_SHARE = 0.2
UNKNOWN = "The truth of the test rows is not known."
FIELDS = tuple(declared_by_name(TableFiles))


@register_dataset(
    "table",
    summary="your own files: --features, --annotations and, if there are true labels, --truth",
    simulated=True,
    options=(*FIELDS, *FLAGS),
)
def load(data_dir: Path | None = None, seed: int = 0, **options: object) -> CrowdDataset:
    """Loads a user's tables.

    With `test_features` and `test_truth` those are the test split. Otherwise a fifth of the items
    is drawn with the seed, and their annotations leave training:

    - with `truth`, items with a true label: first those without annotations, then others at
      random, each class in proportion, but a fifth of the annotated items at most;
    - without, a fifth of the annotated items, in proportion of their majority votes, which are then
      their labels (a run scores them by a model of the crowd).

    Args:
        data_dir: not used.
        seed: of the drawn test split.
        options: the fields of `TableFiles`, and of `TableOptions`, which say how tables are read.

    Raises:
        UsageError: an option that is missing, unknown or of another type.
        DataError: a file that cannot be used, with its place.
    """
    files = TableFiles.of(**{name: options.pop(name) for name in FIELDS if name in options})
    tables = TableOptions.of(**options)
    source = Path(getattr(files, files.kind))
    labels_file = Path(str(files.annotations))
    table = _read(files, source, tables)
    items = table.items.tolist()
    reading = read_annotations(labels_file, tables, items=items, unmatched=files.unmatched)
    crowd = reading.annotations
    _check_two_classes(crowd, labels_file)
    true = None
    if files.truth is not None:
        true = _true_labels(Path(files.truth), items, crowd, tables, files)
    if files.kind == "features":
        check_no_leak(table, crowd, source)
    test_is_truth = true is not None or files.test_truth is not None
    if files.test_truth is not None:
        train = np.arange(len(table.rows))
        test = _published_test(files, table, crowd, tables)
    else:
        chosen, labels = _drawn_rows(crowd, true, seed)
        train = np.setdiff1d(np.arange(len(table.rows)), chosen)
        test = Split(table.rows[chosen], labels, crowd.instance_names[chosen], crowd[chosen])
    training = crowd[train]
    if not training.annotated.any():
        raise DataError(f"{labels_file}: no labels of training items, only of test items.")
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


def _read(files: TableFiles, path: Path, options: TableOptions) -> FeatureTable:
    """Returns items with their features, images or texts."""
    if files.kind == "features":
        return read_features(path, options, files.ignore_columns)
    if files.kind == "texts":
        return FeatureTable(*read_texts(path, options), [])
    return FeatureTable(*read_images(path, files.image_size), [])


def _true_labels(
    path: Path, items: Texts, crowd: Annotations, options: TableOptions, files: TableFiles
) -> Indices:
    """Returns the class codes of true labels, -1 for items without one."""
    classes = list(map(str, crowd.class_names.tolist()))
    return read_true_labels(path, items, classes, options, drop=files.unmatched == "drop")


def _check_two_classes(crowd: Annotations, path: Path) -> None:
    """Raises DataError for labels of fewer than two classes."""
    used = crowd.vote_counts().sum(axis=0) > 0
    if used.sum() < 2:
        received = "no labels"
        for name in crowd.class_names[used]:
            received = f"only {spelt(name)}"
        raise DataError(f"{path}: expected labels of at least two classes, received {received}")


def _published_test(
    files: TableFiles, training: FeatureTable, crowd: Annotations, options: TableOptions
) -> Split:
    """Returns the test split that the user gives."""
    features = Path(getattr(files, f"test_{files.kind}"))
    truth = Path(str(files.test_truth))
    table = _read(files, features, options)
    problems = [f"there is no column {name!r}" for name in without(training.names, table.names)]
    for name in without(table.names, training.names):
        problems.append(f"column {name!r} is not among the training features")
    if problems:
        raise DataError(f"{features}: {problems[0]}. Give it the columns of the training features.")
    items = table.items.tolist()
    labels = _true_labels(truth, items, crowd, options, files)
    if (labels < 0).any():
        item = table.items[labels < 0][0]
        raise DataError(f"{truth}: test item {item!r} has no true label. Add it.")
    rows = table.rows
    if files.kind == "features":
        rows = rows[:, list(map(table.names.index, training.names))]
    check_apart(training, FeatureTable(table.items, rows, training.names), features)
    return Split(rows, labels, typed_names(items))


def _drawn_rows(crowd: Annotations, truth: Indices | None, seed: int) -> tuple[Indices, Indices]:
    """Returns the rows of the test split and their labels."""
    annotated = np.flatnonzero(crowd.annotated)
    most = max(1, round(TEST_SHARE * len(annotated)))
    if truth is not None:
        size = max(1, round(TEST_SHARE * crowd.num_instances))
        bare = np.flatnonzero((truth >= 0) & ~crowd.annotated)
        others = np.flatnonzero((truth >= 0) & crowd.annotated)
        left = min(max(size - len(bare), 0), len(others), most)
        drawn = others[stratified_sample(truth[others], left, seed)]
        chosen = np.sort(np.concatenate([bare, drawn]))
        return chosen, truth[chosen]
    votes = majority_labels(crowd.vote_counts(), "random", seed)
    chosen = annotated[stratified_sample(votes[annotated], most, seed)]
    return chosen, votes[chosen]
