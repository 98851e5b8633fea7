"""The user's own tables: every layout, the split, and one clear line for each way in which a table
can be wrong.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf.datasets import table
from neucrowd_tf.errors import DataError, UsageError
from tests.cases import cases, raises

# Six instances, three annotators; annotator "c" skips t1 and t4.
# Test items may have the ids of training items, but not their features too.
FEATURES = "task,x,y\nt0,1,2\nt1,3,4\nt2,5,6\nt3,7,8.5\nt4,9,10\nt5,11,12\n"
OTHERS = FEATURES.replace(",1", ",7").replace(",3", ",8").replace(",5", ",0").replace(",9", ",6")
OTHERS = OTHERS.replace("t3,7", "t3,2")
LABELS = {"a": "010101", "b": "010011", "c": "1.01.1"}
LONG = "task,worker,label\n" + "".join(
    f"t{i},{w},{c}\n" for w, row in LABELS.items() for i, c in enumerate(row) if c != "."
)
TRUTH = "task,label\n" + "".join(f"t{i},{c}\n" for i, c in enumerate("010101"))


@pytest.fixture
def files(tmp_path: Path):
    """Writes files by name and returns their paths as options of the loader."""

    def write(**texts: str | bytes) -> dict[str, Path]:
        paths = {}
        for name, text in texts.items():
            paths[name] = tmp_path / f"{name}.csv"
            paths[name].write_bytes(text if isinstance(text, bytes) else text.encode())
        return paths

    return write


def load(**options):
    return table.load(None, 0, **options)


def test_ids_are_compared_as_spelt(files) -> None:
    """Annotations alone would read 7 and 12 as numbers; the features table also has 007."""
    paths = files(
        features="task,x\n7,1\n12,2\n007,3\n9,4\n8,5\n",
        annotations="task,worker,label\n7,1,no\n12,1,yes\n8,2,yes\n9,2,no\n",
        truth="task,label\n007,no\n",
    )
    result = load(**paths)
    assert result.test.names.tolist() == ["007"]
    assert result.annotations.instance_names.tolist() == ["7", "12", "9", "8"]
    assert result.class_names.tolist() == ["no", "yes"]
    assert result.annotations.to_dense()[:, 0].tolist() == [0, 1, -1, -1]


def test_split_with_partial_truth_tests_on_all_of_it(files) -> None:
    """Truth for 3 of 20 instances, fewer than a fifth: all of them are tested on, and none stays in
    training.
    """
    features = "task,x\n" + "".join(f"{i},{i}\n" for i in range(20))
    annotations = "task,worker,label\n" + "".join(f"{i},w,{i % 2}\n" for i in range(20))
    result = load(
        **files(features=features, annotations=annotations, truth="task,label\n3,1\n8,0\n11,1\n")
    )
    assert result.test.names.tolist() == [3, 8, 11]
    assert result.test.labels.tolist() == [1, 0, 1]
    assert result.test_is_truth
    assert len(result.features) == 17
    assert not set(result.annotations.instance_names.tolist()) & {3, 8, 11}
    assert result.truth is not None and (result.truth == -1).all()


def test_split_takes_a_fifth_by_class_and_prefers_instances_without_annotations(files) -> None:
    """50 instances, 30 of class 0; 4 without annotations: the test split is those 4 and 6 others,
    10 in all.
    """
    classes = [0] * 30 + [1] * 20
    bare = {0, 1, 30, 31}
    features = "task,x\n" + "".join(f"{i},{i * i + 0.5}\n" for i in range(50))
    annotations = "task,worker,label\n" + "".join(
        f"{i},w,{c}\n" for i, c in enumerate(classes) if i not in bare
    )
    truth = "task,label\n" + "".join(f"{i},{c}\n" for i, c in enumerate(classes))
    paths = files(features=features, annotations=annotations, truth=truth)
    with warnings.catch_warnings(action="error"):
        result = load(**paths)
    assert len(result.test) == 10 and bare <= set(result.test.names.tolist())
    assert np.bincount(result.test.labels).tolist() in ([6, 4], [5, 5])
    assert np.array_equal(
        result.test.features[:, 0], result.test.names.astype(np.float32) ** 2 + 0.5
    )
    assert table.load(None, 1, **paths).test.names.tolist() != result.test.names.tolist()
    assert load(**paths).test.names.tolist() == result.test.names.tolist()


def test_without_truth_the_test_labels_are_votes(files) -> None:
    result = load(**files(features=FEATURES, annotations=LONG))
    assert not result.test_is_truth and result.truth is None and len(result.test) == 1
    assert result.test.labels[0] == result.test.annotations.vote_counts()[0].argmax()


@pytest.mark.parametrize("with_truth", [False, True])
def test_of_few_annotated_items_a_fifth_is_tested(files, with_truth: bool) -> None:
    """Of 100 items 15 have labels: most of these stay in training."""
    features = "task,x\n" + "".join(f"{i},{i * i + 0.5}\n" for i in range(100))
    annotations = "task,worker,label\n" + "".join(f"{i},w,{i % 2}\n" for i in range(15))
    paths = files(features=features, annotations=annotations)
    if with_truth:
        truth = "task,label\n" + "".join(f"{i},{i % 2}\n" for i in range(15))
        paths |= files(truth=truth)
    result = load(**paths)
    assert len(result.test) == 3 and result.annotations.annotated.sum() == 12


def test_annotator_with_one_label_and_named_classes(files) -> None:
    options = files(
        features=FEATURES,
        annotations=LONG + "t0,d,0\n",
        test_features=OTHERS,
        test_truth=TRUTH.replace("t5,1", "t5,2"),
    )
    with pytest.raises(
        DataError, match=r"test_truth\.csv: line 7: label '2' is not one of the classes 0, 1"
    ):
        load(**options)
    result = load(**options, classes="2,1,0")
    assert result.class_names.tolist() == [2, 1, 0]
    assert result.test.labels.tolist() == [2, 1, 2, 1, 2, 0]
    assert result.annotations.labels_per_annotator().tolist() == [6, 6, 4, 1]
    with pytest.raises(
        DataError, match=r"annotations\.csv: line 3: label '1' is not one of the classes 0, 3"
    ):
        load(**options, classes="0,3")


@pytest.mark.parametrize("kind", ["features", "texts"])
def test_labels_may_be_written_otherwise_than_the_rest(files, kind: str) -> None:
    other = LONG.replace("task,worker,label", "img,who,said").replace(",", ";")
    rows = (
        FEATURES
        if kind == "features"
        else "task,text\n" + "".join(f"t{i},text; {i}\n" for i in range(6))
    )
    paths = files(**{kind: rows}, annotations=LONG, truth=TRUTH)
    expected = load(**paths).annotations
    paths["annotations"].write_text(other)
    columns = {"task_column": "img", "worker_column": "who", "label_column": "said"}
    assert load(**paths, **columns, separator=";").annotations == expected


def test_labels_of_items_without_features(files) -> None:
    paths = files(features=FEATURES, annotations=f"{LONG}t9,a,1\n")
    raises(DataError, r"line 18: item 't9' .*--unmatched=drop.*unmatched_item", load, **paths)
    assert "t9" not in load(**paths, unmatched="drop").annotations.instance_names.tolist()
    paths["annotations"].write_text(LONG.replace("\nt", "\nz"))
    raises(DataError, "Ids there look like 't0'", load, **paths, unmatched="drop")


@pytest.mark.parametrize(
    ("name", "value"),
    cases("""
["classes", 3],
["features", ["x"]],
["image_size", "big"],
["ignore_columns", 1],
["exact_names", "maybe"],
["unmatched", "keep"],
["truth", 1.5],
["nonsense", "x"]
"""),
)
def test_options_have_types(files, name: str, value) -> None:
    paths = files(features=FEATURES, annotations=LONG)
    raises(UsageError, f"--{name}: ", load, **{**paths, name: value})


def test_bad_truth(files) -> None:
    paths = files(features=FEATURES, annotations=LONG, truth=TRUTH)
    for text, message in (
        (TRUTH.replace("label", "lable"), "no label column. Columns: task, lable"),
        (TRUTH + "t9,1\n", "line 8: item 't9' is not one of .*--unmatched=drop"),
        (TRUTH + "t0,1\n", "line 8: item 't0' occurs twice"),
        (TRUTH.replace("t3,1", "t3,7"), "line 5: label '7' is not one of"),
    ):
        paths["truth"].write_text(text)
        raises(DataError, rf"truth\.csv: {message}", load, **paths)


@pytest.mark.parametrize(
    ("options", "message"),
    cases(r"""
[{"annotations": null}, "--annotations is missing: --dataset=table needs a file"],
[{"test_features": "features"}, "--test_truth is missing: --test_features and --test_tr"],
[{"annotations": "nowhere"}, "nowhere\\.csv: no such file"],
[{"annotations": "alike"}, "at least two classes, received only 1"],
[{"annotations": "bad"}, "bad\\.npy: expected a NumPy array in an NPY file"],
[{"test_features": "other", "test_truth": "truth"}, "other\\.csv: there is no column 'y'"],
[{"test_features": "more", "test_truth": "truth"}, "more\\.csv: column 'w' is not among"],
[{"test_features": "features", "test_truth": "few"}, "test item 't3' has no true label"]
"""),
)
def test_bad_options(files, tmp_path, options, message: str) -> None:
    paths = files(
        features=FEATURES,
        annotations=LONG,
        truth=TRUTH,
        alike="task,worker,label\nt0,a,1\nt1,a,1\n",
        other=FEATURES.replace("y", "z"),
        more=FEATURES.replace("\n", ",1\n").replace("y,1\n", "y,w\n", 1),
        few=TRUTH.replace("t3,1\n", ""),
    )
    paths["nowhere"], paths["bad"] = tmp_path / "nowhere.csv", tmp_path / "bad.npy"
    paths["bad"].write_bytes(b"not an array")
    names = {"features": "features", "annotations": "annotations", **options}
    with pytest.raises((DataError, UsageError), match=message):
        load(**{option: paths[name] for option, name in names.items() if name is not None})


@pytest.mark.parametrize("apart", [False, True])
def test_truth_of_other_tasks(files, apart: bool) -> None:
    """--unmatched=drop leaves it out, unless no task is there."""
    texts = {"features": FEATURES, "annotations": LONG, "truth": TRUTH + "t9,1\nt8,x\n"}
    if apart:
        texts |= {"test_features": FEATURES.replace("\nt", "\nz")}
        texts |= {"test_truth": texts.pop("truth").replace("\nt", "\nz")}
    paths = files(**texts)
    raises(DataError, r"truth\.csv: line 8: .*--unmatched=drop", load, **paths)
    assert load(**paths, unmatched="drop").test_is_truth
    paths["test_truth" if apart else "truth"].write_text("task,label\nx0,1\nx1,0\n")
    raises(DataError, r"truth\.csv: line 2: item 'x0'", load, **paths, unmatched="drop")


def test_features_in_parquet_with_another_column_of_tasks(files, tmp_path) -> None:
    """As those in a CSV: --task_column counts where they have it, else their own."""
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    paths = files(features=FEATURES, annotations=LONG.replace("task", "img"))
    frame = pd.read_csv(paths["features"])
    for name, column in (("plain", "task"), ("item", "item"), ("named", "img")):
        frame.rename(columns={"task": column}).to_parquet(tmp_path / f"{name}.parquet")
        frame.rename(columns={"task": column}).set_index(column).to_parquet(tmp_path / "i.pq")
        for path in (tmp_path / f"{name}.parquet", tmp_path / "i.pq"):
            result = load(features=path, annotations=paths["annotations"], task_column="img")
            assert len(result.features) == 5 and result.feature_names == ("x", "y")
