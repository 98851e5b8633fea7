"""Tables in memory: names decide, float32 loses nothing, and what cannot be decided is an error."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError
from neucrowd_tf.methods import iced, rll  # noqa: F401  (they register methods)
from neucrowd_tf.methods.crowd_layers import crowd_layer  # noqa: F401
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.methods.two_stage import TwoStageClassifier
from tests.cases import cases, raises
from tests.crowds import noisy_labels

ROWS = 60


def tables(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Returns features with the tasks as index, a label in each row, and the truth."""
    rng = default_rng(seed)
    truth = rng.permutation(np.arange(ROWS) % 2)
    x = rng.normal(size=(ROWS, 3)) + 3 * truth[:, None] * [1, -1, 0]
    labels = noisy_labels(rng, truth, 4, 0.85)
    tasks = rng.permutation(ROWS) + 100
    features = pd.DataFrame(x, index=pd.Index(tasks, name="task"), columns=list("abc"))
    wide = pd.DataFrame(labels, index=tasks, columns=[f"w{i}" for i in range(4)])
    long = wide.stack().reset_index().set_axis(["task", "worker", "label"], axis=1)
    return features, long.sample(frac=1, random_state=seed), truth


X, LONG, TRUTH = tables()
WIDE = LONG.pivot(index="task", columns="worker", values="label")
CROWD = Annotations.from_frame(LONG)
Y = pd.Series(TRUTH, index=X.index)


def model() -> TwoStageClassifier:
    return TwoStageClassifier(Cs=(1.0,))


def rows_where(chosen: Callable[[Any], Any]) -> np.ndarray:
    """Returns which cells of `WIDE` are of tasks that are chosen."""
    return np.repeat(chosen(WIDE.index.to_numpy())[:, None], 4, axis=1)


RIGHT = model().fit(X, LONG).predict_proba(X)


def with_column(name: str) -> pd.DataFrame:
    """Returns the features as `read_csv` reads them: the ids in a column."""
    return X.reset_index().rename(columns={"task": name})


# --------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["task", "item", "id", "task_id", "Question", "key", "url"])
@pytest.mark.parametrize("annotations", [LONG, WIDE, WIDE.reset_index(), CROWD])
def test_a_column_of_ids_names_the_rows(name: str, annotations) -> None:
    features = with_column(name)
    fitted = model().fit(features, annotations)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"] and fitted.n_features_in_ == 3
    for table in (features, X, X.to_numpy()):
        assert_allclose(fitted.predict_proba(table), RIGHT, rtol=1e-12)
    shuffled = features.sample(frac=1, random_state=1)
    assert fitted.score(shuffled, Y) == fitted.score(X, TRUTH)
    assert fitted.score(shuffled, LONG) == fitted.score(X, CROWD)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.assign(item=range(ROWS)), "column 'item' and the index both name the rows"),
        (lambda x: with_column("item").assign(id=0, task=1), "'task' and column 'item'|both name"),
        (lambda x: with_column("item").assign(item=1), "row 1: column 'item' has 1 again"),
        (lambda x: with_column("id").assign(id=None), "row 0: column 'id' has no id"),
        (lambda x: x.set_axis(list("aab"), axis=1), "two columns are named 'a'"),
        (lambda x: x.iloc[[0, *range(ROWS)]], "the index has .* twice"),
        (lambda x: x.iloc[:, :0], "expected shape"),
        (lambda x: x.iloc[:0], "instance names: expected one of|received 0"),
        (lambda x: x["a"], r"shape \[instances, features\]"),
        (lambda x: x.assign(a=np.inf), "row 0, column 0: expected a finite number, received inf"),
        (lambda x: x.set_index([x.index, x["a"] > 0]), "instance names"),
    ],
)
def test_tables_that_cannot_be_used(change: Callable[[pd.DataFrame], Any], message: str) -> None:
    raises(DataError, message, model().fit, change(X), LONG)


def test_names_of_several_levels_and_kinds() -> None:
    names = pd.MultiIndex.from_arrays([X.index, X.index % 3])
    long = LONG.assign(task=[(task, task % 3) for task in LONG["task"]])
    named = model().fit(X.set_axis(names, axis=0), long)
    assert_allclose(named.predict_proba(X), RIGHT, rtol=1e-12)
    text = model().fit(X.set_axis(X.index.astype(str), axis=0), LONG.astype({"task": str}))
    assert_allclose(text.predict_proba(X), RIGHT, rtol=1e-12)


def test_columns_are_arranged_by_name_and_others_are_refused() -> None:
    fitted = model().fit(X, LONG)
    assert_array_equal(fitted.predict_proba(X[["c", "a", "b"]]), RIGHT)
    held = model().set_params(Cs=(0.01, 1.0)).fit(X, LONG, (X[["c", "b", "a"]], Y))
    same = model().set_params(Cs=(0.01, 1.0)).fit(X, LONG, (X, TRUTH))
    assert_array_equal(held.predict_proba(X), same.predict_proba(X))
    for other, message in (
        (X.rename(columns={"b": "d"}), "column 'b' is missing. Pass the columns of training"),
        (X.assign(d=1), "column 'd' is new"),
        (X[["a", "b"]], "column 'c' is missing"),
    ):
        for use in (fitted.predict, lambda x: fitted.score(x, Y)):
            raises(DataError, message, use, other)


def test_series_are_matched_by_name() -> None:
    fitted, shuffled = model().fit(X, LONG), Y.sample(frac=1, random_state=1)
    assert fitted.score(X, shuffled) == fitted.score(X, TRUTH) > 0.9
    assert fitted.score(X.iloc[:9], Y) == fitted.score(X.iloc[:9], TRUTH[:9])
    chosen = [
        model().set_params(Cs=(1e-4, 1.0)).fit(X, LONG, (X, labels)).head_.C_
        for labels in (Y, shuffled)
    ]
    assert chosen == [1.0, 1.0]
    column = shuffled.to_frame("label")
    held = model().set_params(Cs=(1e-4, 1.0)).fit(X, LONG, (X, column))
    assert held.head_.C_ == 1.0 and held.score(X, column) == fitted.score(X, TRUTH)
    none = (X.iloc[:0], Y.iloc[:0])
    raises(DataError, "validation: expected at least one row", model().fit, X, LONG, none)
    with pytest.raises(
        DataError, match=r"of the features. index has no label\. Add it, or pass labels\.to_n"
    ):
        fitted.score(X, Y.iloc[1:])
    numbers = X.reset_index(drop=True)
    with pytest.raises(DataError, match="in another order, and the labels have no names"):
        fitted.score(numbers.sample(frac=1, random_state=0), Y.reset_index(drop=True))


def test_where_names_cannot_decide_a_warning_says_what_to_do() -> None:
    numbers = {task: row for row, task in enumerate(X.index)}
    for crowd, rule in ((WIDE, "row i is"), (LONG.replace({"task": numbers}), "task k is")):
        with pytest.warns(
            UserWarning, match=f"rows of the features have no names.*{rule}.*set_output"
        ):
            make_pipeline(StandardScaler(), model()).fit(X, crowd)
    kept = make_pipeline(StandardScaler(), model()).set_output(transform="pandas")
    with warnings.catch_warnings(action="error"):
        assert kept.fit(X, WIDE).score(X, Y) == model().fit(X, LONG).score(X, Y)


# --------------------------------------------------------------------------- values of annotations


def test_labels_in_memory_are_read_as_files_are() -> None:
    with pytest.raises(DataError, match="labels 'no' and 'no ' differ only in case, spaces"):
        Annotations.from_arrays(["a", "b"], ["v", "w"], ["no", "no "])
    exact = Annotations.from_arrays(["a", "b"], [0, 1], ["no", "No"], class_names=["no", "No"])
    assert exact.num_classes == 2
    levels = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    ordered = pd.Series(["mid", "low", "high"], dtype=levels)
    frame = pd.DataFrame({"task": [1, 2, 3], "worker": 0, "label": ordered})
    assert Annotations.from_frame(frame).class_names.tolist() == ["low", "mid", "high"]
    wide = pd.DataFrame({"v": ordered, "w": ordered.where(ordered != "low")})
    for dtype in (levels, pd.ArrowDtype(__import__("pyarrow").string())):
        names = Annotations.from_wide_frame(wide.astype(dtype)).class_names.tolist()
        assert names == (["low", "mid", "high"] if dtype is levels else ["high", "low", "mid"])


@pytest.mark.parametrize(
    "wide",
    [
        WIDE.astype(float),
        WIDE.astype("Int64"),
        WIDE.astype("int8[pyarrow]"),
        WIDE.astype("Float64"),
        np.ma.masked_equal(WIDE.to_numpy(), -1),
        WIDE.astype("Int64").mask(rows_where(lambda task: task % 7 == 0)),
    ],
)
def test_codes_of_any_type(wide) -> None:
    crowd = model()._check(X.loc[WIDE.index], wide, None).annotations
    assert crowd.class_names.tolist() == [0, 1]
    expected = WIDE.to_numpy()
    if isinstance(wide, pd.DataFrame) and wide.isna().any(axis=None):
        expected = expected[~wide.isna().any(axis=1).to_numpy(bool)]
    assert crowd.to_dense().tolist() == expected.tolist()


def test_masked_and_missing_labels() -> None:
    matrix = np.ma.masked_array([[0, 1], [1, 1]], mask=[[0, 1], [0, 0]])
    assert Annotations.from_dense(matrix).to_dense().tolist() == [[0, -1], [1, 1]]
    with pytest.raises(DataError, match="column 'label': expected a value, received a missing"):
        Annotations.from_arrays([0, 1], [0, 0], matrix[0])
    with pytest.raises(DataError, match="row 1, column 1: expected a finite number, received nan"):
        masked = np.ma.masked_array(X.to_numpy(), mask=np.arange(3 * ROWS).reshape(-1, 3) == 4)
        model().fit(masked, CROWD)
    floats = WIDE.mask(rows_where(lambda task: task < 105), -1.0)
    assert model().fit(X, floats).classes_.tolist() == [0, 1]
    with pytest.raises(DataError, match=r"both -1 and NaN\. Use frame\.replace"):
        model().fit(X, floats.mask(rows_where(lambda task: task == 110)))
    gaps = LONG.assign(label=LONG["label"].where(LONG["worker"] != "w1"))
    with pytest.warns(UserWarning) as caught:
        fitted = model().fit(X, gaps)
    assert [str(one.message)[:20] for one in caught] == ["60 of 240 labels are"]
    assert len(fitted.classes_) == 2
    raises(DataError, "at least one row", Annotations.from_frame, LONG.assign(label=None))


def test_a_column_may_have_the_name_of_an_attribute() -> None:
    frame = X.set_axis(["digest", "dataset", "shape"], axis=1)
    assert (
        model().fit(frame, CROWD).predict(frame).tolist()
        == model().fit(X, CROWD).predict(X).tolist()
    )


# --------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("name", ["mv_lr", "softprob"])
@pytest.mark.parametrize(
    ("scale", "shift"),
    cases("""
[1e-08, 0],
[1e-30, 0],
[1e+300, 0],
[86400.0, 1700000000.0],
[1e-06, 5]
"""),
)
def test_units_of_features_do_not_matter(name: str, scale: float, shift: float) -> None:
    model = registry.method(name).make(Cs=(1.0,))
    right = model.fit(X, LONG).predict_proba(X)
    moved = X * [scale, 1, 1] + [shift, 0, 0]
    fitted = model.fit(moved, LONG)
    assert_allclose(fitted.predict_proba(moved), right, atol=1e-3)
    assert_allclose(fitted.predict_proba(moved.iloc[:1]), right[:1], atol=1e-3)
    assert fitted.predict(moved.iloc[:0]).shape == (0,)


def test_float32_is_made_of_images_as_of_rows() -> None:
    images = X.to_numpy()[:, None] + 1.7e9
    fitted = model().fit(images, CROWD)
    probabilities = fitted.predict_proba(images)
    expected = model().fit(images[:, 0], CROWD).predict_proba(images[:, 0])
    assert_allclose(probabilities, expected, atol=1e-6)
    graph = fitted.inference_model()(images)["probabilities"]
    assert_allclose(graph, probabilities, atol=1e-4)


def test_what_keeps_its_scale_refuses_what_float32_does_not_hold() -> None:
    model = registry.method("crowd_layer").make(epochs=1, standardise=False)
    seconds = X.assign(b=X["b"] + 1.7e9)
    raises(DataError, r"column 1: float32 does not hold .* 1\.7e\+09\)", model.fit, seconds, CROWD)


def test_a_number_beyond_float32_among_others_is_named() -> None:
    wrong = X.astype(float)
    wrong.iloc[2, 1] = 1e39
    with pytest.raises(DataError, match=r"row 2, column 1: 1e\+39 is out of reach of float32"):
        registry.method("mv_lr").make().fit(wrong, LONG)
    wide = X * [1, 1e300, 1]
    wide.iloc[2, 1] = 0.0
    registry.method("mv_lr").make(Cs=(1.0,)).fit(wide, LONG)


QUICK = {"mv_lr": {}, "iced": {"rounds": 1, "warm_up_epochs": 2, "autoencoder_epochs": 2}}


@pytest.mark.parametrize("name", ["mv_lr", "crowd_layer", "rll", "iced"])
def test_exported_graphs_take_any_scale(name: str) -> None:
    model = registry.method(name).make(**QUICK.get(name, {"epochs": 2}))
    with getattr(model, "reused", contextlib.nullcontext)():
        expected = model.fit(X, LONG).predict_proba(X)
        for scale in (1e-12, 1e20, 1e60):
            fitted = model.fit(X * scale, LONG)
            graph = fitted.inference_model()((X * scale).to_numpy())["probabilities"]
            assert_allclose(graph, fitted.predict_proba(X * scale), atol=1e-4)
            if scale < 1e38:
                assert_allclose(graph, expected, atol=1e-2)


# --------------------------------------------------------------------------- searches

GRID = {"Cs": [(1e-6,), (1.0,)]}


@pytest.mark.parametrize("annotations", [CROWD.align(X.index), WIDE.loc[X.index].to_numpy()])
def test_cross_validation(annotations) -> None:
    x = X.to_numpy()
    assert cross_val_score(model(), x, annotations).mean() > 0.8
    assert (cross_val_predict(model(), x, annotations) == TRUTH).mean() > 0.8
    assert GridSearchCV(model(), GRID).fit(x, annotations).score(x, TRUTH) > 0.8
    if isinstance(annotations, Annotations):
        with pytest.raises(DataError, match='method="predict"'):
            cross_val_predict(model(), x, annotations, method="predict_proba")
    else:  # scikit-learn takes annotators for classes
        with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
            assert cross_val_predict(model(), x, annotations, method="predict_proba").shape == (
                ROWS,
                4,
            )


def test_scorers_are_against_the_crowd() -> None:
    crowd = CROWD.align(X.index)
    search = GridSearchCV(model(), GRID, scoring="accuracy").fit(X, crowd)
    assert search.best_score_ == pytest.approx(
        GridSearchCV(model(), GRID).fit(X, crowd).best_score_
    )
    with pytest.warns(UserWarning, match="One or more of the test scores are non-finite"):
        GridSearchCV(model(), GRID, scoring="accuracy").fit(X, WIDE.loc[X.index].to_numpy())
    bare = CROWD.align([*X.index, "new"])
    with pytest.raises(DataError, match="received none of 'new'"):
        GridSearchCV(model(), GRID).fit(np.zeros((ROWS + 1, 2)), bare)


class Own(ClassifierMixin, BaseEstimator):
    """An estimator of somebody's own, which makes a matrix of labels within its fit."""

    def fit(self, features: Any, truth: Any) -> Own:
        self.classes_ = np.unique(truth)
        self.inner_ = model().fit(features, np.repeat(np.asarray(truth)[:, None], 3, axis=1))
        return self

    def predict(self, features: Any) -> np.ndarray:
        return self.inner_.predict(features)

    def predict_proba(self, features: Any) -> np.ndarray:
        return self.inner_.predict_proba(features)


def test_own_estimators_make_matrices_within_any_cross_validation() -> None:
    x = X.to_numpy()
    scores = cross_val_score(Own(), x, TRUTH, scoring="accuracy", error_score="raise")
    assert scores.mean() > 0.8
    assert cross_val_predict(Own(), x, TRUTH, method="predict_proba").shape == (ROWS, 2)


# --------------------------------------------------------------------------- other containers


def test_what_is_no_table_says_so() -> None:
    for features in (None, {"a": [1.0]}, (row for row in X.to_numpy()), "text"):
        with pytest.raises(DataError, match="features: expected an array or a table, received"):
            model().fit(features, CROWD)
    fitted = model().fit(X, LONG)
    for use in (fitted.predict, lambda x: fitted.score(x, Y), fitted.predict_proba):
        raises(DataError, "expected an array or a table, received NoneType", use, None)
    raises(DataError, r"annotations: expected one column .*received None", model().fit, X, None)
    held = (None, TRUTH)
    with pytest.raises(DataError, match="validation features: expected an array or a table"):
        model().fit(X, LONG, held)


def test_texts_that_are_missing_are_named_by_row() -> None:
    texts = pd.Series(["good one", "bad two"] * 5)
    labels = np.array([[0, 0], [1, 1]] * 5)
    classifier = TextClassifier(estimator=model())
    expected = classifier.fit(texts, labels).predict_proba(texts)
    for missing in (None, np.nan, b"good"):
        broken = texts.astype(object)
        broken[3] = missing
        raises(DataError, "row 3: expected a text, received", classifier.fit, broken, labels)
    raises(DataError, "Pass a column of texts by itself", classifier.fit, texts.to_frame(), labels)
    kinds = np.array(texts.tolist(), np.dtypes.StringDType())
    assert classifier.fit(kinds, labels).predict_proba(kinds).tolist() == expected.tolist()


def test_tensors_and_arrow_columns_are_labels_and_ids() -> None:
    fitted = model().fit(X, LONG)
    for labels in (tf.constant(TRUTH), pa.chunked_array([TRUTH])):
        assert fitted.score(X.to_numpy(), labels) == fitted.score(X, TRUTH)
    columns = (["a", "b", "a"], ["v", "v", "w"], ["no", "yes", "no"])
    crowd = Annotations.from_arrays(*columns)
    assert Annotations.from_arrays(*map(tf.constant, columns)) == crowd
    assert Annotations.from_arrays(*(pa.array(column) for column in columns)) == crowd
