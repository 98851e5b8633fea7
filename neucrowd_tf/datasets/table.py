"""The user's own tables as a dataset: features, annotations and, where there is any, truth."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.annotations import Annotations, spelt
from neucrowd_tf.datasets.core import Card, CrowdDataset, Split
from neucrowd_tf.datasets.leaks import check_apart, check_no_leak
from neucrowd_tf.datasets.splits import stratified_sample
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.features import FeatureTable, read_features, read_texts
from neucrowd_tf.io.images import MAX_PIXELS, read_images
from neucrowd_tf.io.labels.files import read_annotations
from neucrowd_tf.io.names.ids import typed_names
from neucrowd_tf.io.tables.format import TableFormat
from neucrowd_tf.io.tables.tasks import read_truth
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEST_SHARE = 0.2
UNKNOWN = "The truth of the test rows is not known."
TABLE_OPTIONS = (
    *("separator", "task_column", "worker_column", "label_column", "missing", "classes"),
    *("exact_names", "question", "first"),
)
OPTIONS = (
    "features",
    "images",
    "image_size",
    "texts",
    "annotations",
    "truth",
    "test_features",
    "test_texts",
    "test_truth",
    "unmatched",
    "ignore_columns",
    *TABLE_OPTIONS,
    "max_pixels",
)


@register_dataset(
    "table",
    summary="your own CSV files: --features, --annotations and, if known, --truth",
    simulated=True,
    options=OPTIONS,
)
def load(
    data_dir: Path | None = None,
    seed: int = 0,
    *,
    features: str | Path | None = None,
    images: str | Path | None = None,
    image_size: int | None = None,
    texts: str | Path | None = None,
    annotations: str | Path | None = None,
    truth: str | Path | None = None,
    test_features: str | Path | None = None,
    test_texts: str | Path | None = None,
    test_truth: str | Path | None = None,
    classes: str | None = None,
    task_column: str | None = None,
    worker_column: str | None = None,
    label_column: str | None = None,
    separator: str | None = None,
    unmatched: str = "error",
    missing: str | None = None,
    exact_names: bool = False,
    question: str | None = None,
    first: bool = False,
    ignore_columns: str | None = None,
    max_pixels: int = MAX_PIXELS,
) -> CrowdDataset:
    """Loads a user's tables.

    With `test_features` and `test_truth` those are the test split. Otherwise the test split is
    drawn from `features` with the seed, a fifth of the rows, and its annotations leave training:

    - with `truth`, from the instances whose truth is known: first all that have no annotations
      (training has no use for them), then others at random, each class in proportion;
    - without, from the annotated instances, in proportion of their majority votes, which are then
      their labels (a run scores them by what a model of the crowd believes).

    Args:
        data_dir: not used.
        seed: of the test split, where it is drawn.
        features: CSV or Parquet with `task` and numeric columns, or an NPY array with a row a task
            (numbered from 0).
        images: in place of `features`, a folder of images whose names (without endings) are the
            tasks.
        texts: in place of `features`, a CSV `task,text`; `test_texts` likewise.
        image_size: the height and width that images are scaled to; None needs images of one size.
        annotations: labels in any layout that `read_annotations` knows.
        truth: CSV `task,label` for some or all tasks of `features`; evaluation only.
        test_features, test_truth: a test split of its own, both or none.
        classes: all classes in their order, separated by commas; by default those that annotators
            used, sorted.
        task_column, worker_column, label_column: the columns' names in these files, where they are
            others than the aliases.
        separator: the sign between the columns of CSVs; None for commas or tabs.
        unmatched: "drop" leaves labels and truth of tasks that are not in `features` out, with a
            warning that counts them; "error" does not take them.
        missing: what stands for a label that is missing, beside an empty cell, separated by commas;
            by default what often does is refused.
        exact_names: whether classes or annotators whose names differ in case, spaces or how a
            number is spelt only are others, rather than refused.
        question, first: which question's answers of an annotation tool's export, and whether the
            first of several choices in an answer is taken.
        ignore_columns: columns of `features` that are no features, separated by commas.
        max_pixels: of an image; larger ones are refused.

    Raises:
        UsageError: a file that has to be named is not.
        DataError: what is wrong with a file, with its name and, where possible, row and column.
    """
    if unmatched not in ("error", "drop"):
        raise UsageError(f"--unmatched: expected error or drop, received {unmatched!r}")
    kind, source = _instance_file(features=features, images=images, texts=texts)
    given = {"image_size": image_size is not None, "max_pixels": max_pixels != MAX_PIXELS}
    for name in given if kind != "images" else ():
        if given[name]:
            raise UsageError(f"--{name}: expected --images with it, received --{kind}={source}")
    if annotations is None:
        raise UsageError("--annotations: expected a file for --dataset=table, received none")
    wanted = _test_file(kind, test_truth, features=test_features, texts=test_texts)
    layout = TableFormat.of(
        separator=separator,
        task_column=task_column,
        worker_column=worker_column,
        label_column=label_column,
        missing=missing,
        classes=classes,
        exact_names=exact_names,
        ignore_columns=ignore_columns,
        question=question,
        first=first,
    )
    table = _read_instances(kind, source, layout, image_size, max_pixels)
    labels_file = Path(annotations)
    crowd, known = _read_labels(labels_file, truth, table.items, layout, unmatched)
    if kind == "features":
        check_no_leak(table, crowd, source)
    if wanted is not None and test_truth is not None:
        train, test_is_truth = np.arange(len(table.rows)), True
        files = Path(wanted), Path(test_truth)
        drop = unmatched == "drop"
        test = _published_test(kind, table, *files, crowd.class_names, layout, drop)
    else:
        train, test, test_is_truth = _drawn_test(table, crowd, known, seed)
    training = crowd[train]
    _check_training(training, labels_file)
    return CrowdDataset(
        name="table",
        features=table.rows[train],
        annotations=training,
        truth=None if known is None else known[train],
        test=test,
        card=Card("Table", f"{source}, {annotations}", notes="" if test_is_truth else UNKNOWN),
        test_is_truth=test_is_truth,
        feature_names=tuple(table.names) or None,
    )


def _read_labels(
    path: Path, truth: str | Path | None, tasks: NDArray[Any], layout: TableFormat, unmatched: str
) -> tuple[Annotations, NDArray[np.int64] | None]:
    """Returns the annotations of the tasks, and the codes `[N]` of the truth (-1 where it is not
    known) or None without a file of it.
    """
    crowd = read_annotations(
        path, tasks, layout=layout, unmatched="drop" if unmatched == "drop" else "error"
    )
    _check_two_classes(crowd, path)
    known = None
    if truth is not None:
        drop = unmatched == "drop"
        known = read_truth(Path(truth), tasks, crowd.class_names, others=drop, layout=layout)
    return crowd.replace(instance_names=typed_names(tasks.tolist())), known


def _instance_file(**given: str | Path | None) -> tuple[str, Path]:
    """Returns which of the flags names the instances' file, and the file.

    Raises:
        UsageError: none does, or several do.
    """
    named = [(flag, Path(path)) for flag, path in given.items() if path is not None]
    if not named:
        raise UsageError("--features: expected a file for --dataset=table, received none")
    if len(named) > 1:
        (first, _), (second, _) = named[:2]
        raise UsageError(f"--{second}: expected alone, received together with --{first}")
    return named[0]


def _test_file(
    kind: str, truth: str | Path | None, **given: str | Path | None
) -> str | Path | None:
    """Returns the file of test instances, which are of the training instances' kind.

    Raises:
        UsageError: one of another kind, or one without its truth, or truth without it.
    """
    wanted = given.pop(kind, None)
    other = next((flag for flag, path in given.items() if path is not None), None)
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


def _read_instances(
    kind: str,
    path: Path,
    layout: TableFormat,
    image_size: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> FeatureTable:
    """Returns tasks, features or texts, and the names of columns of `--features`."""
    if kind == "features":
        return read_features(path, layout.options, layout.ignored)
    if kind == "texts":
        return FeatureTable(*read_texts(path, layout.options), [])
    return FeatureTable(*read_images(path, image_size, max_pixels), [])


def _published_test(
    kind: str,
    training: FeatureTable,
    features: Path,
    truth: Path,
    class_names: NDArray[np.generic],
    layout: TableFormat,
    others: bool,
) -> Split:
    table = _read_instances(kind, features, layout)
    columns, found = training.names, table.names
    for column in columns:
        if column not in found:
            raise DataError(
                f"{features}: expected the column {column!r} of the training features, received a"
                " table without it"
            )
    if len(found) != len(columns):
        extra = next(name for name in found if name not in columns)
        raise DataError(
            f"{features}: expected the {len(columns)} feature columns of the training table,"
            f" received also {extra!r}"
        )
    labels = read_truth(truth, table.items, class_names, others=others, layout=layout)
    if (labels < 0).any():
        raise DataError(
            f"{truth}: expected a label for each test task, received none for task"
            f" {table.items[labels < 0][0]!r}"
        )
    rows = table.rows
    if kind == "features":
        rows = rows[:, [found.index(column) for column in columns]]
    check_apart(training, FeatureTable(table.items, rows, columns), features)
    return Split(rows, labels, typed_names(table.items.tolist()))


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
