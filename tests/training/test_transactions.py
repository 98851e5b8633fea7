"""Whatever ends a fit with an exception, the estimator is as it was before."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from neucrowd_tf.aggregation.catalogue import AGGREGATORS
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.encoders.tfidf import TextFeatures
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.saving.persistent import Persistent
from neucrowd_tf.training import estimator as contract
from tests.test_common import crowd_data, library, make

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tuple(str(ROOT / name) for name in ("neucrowd_tf", "baselines"))
QUICK = ("ds_lr",)
CI = ("crowd_layer", "raykar")


class Broken(BaseException):
    """Stands for KeyboardInterrupt, which pytest itself listens to."""


@contextlib.contextmanager
def broken_at(call: float) -> Iterator[list[int]]:
    """Raises `Broken` at a call of a function of the packages; gives the number of calls."""
    calls = [0]

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGES):
            calls[0] += 1
            if calls[0] == call:
                raise Broken

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def public(value: Any) -> Any:
    """Returns all that is public in a fitted object, as something that can be compared."""
    keras = sys.modules.get("keras")
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype == object else (str(value.dtype), value.tobytes())
    if isinstance(value, Persistent):
        fields = {name: each for name, each in vars(value).items() if not name.startswith("_")}
        return type(value).__name__, public(fields)
    if isinstance(value, dict):
        return {name: public(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [public(each) for each in value]
    if keras is not None and isinstance(value, keras.Model):
        return [public(np.array(variable.numpy())) for variable in value.variables]
    return repr(value)


def answers(model: Any, rows: Any) -> Any:
    """Returns what a fitted estimator predicts."""
    names = ("predict_proba", "transform", "predict_annotators")
    return [public(getattr(model, name)(rows)) for name in names if hasattr(model, name)]


def _parameters() -> list[Any]:
    marked = []
    for method in library():
        marks = [] if method.name in QUICK else [pytest.mark.slow]
        marks = [pytest.mark.ci] if method.name in CI else marks
        marked.append(pytest.param(method, id=method.name, marks=marks))
    return marked


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", _parameters())
def test_a_fit_that_fails_changes_nothing(
    method: registry.Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, crowd, truth, validation, new = crowd_data(2)
    if method.uses_truth:
        crowd = Annotations.from_dense(truth[:, None], class_names=crowd.class_names)
    names = np.array(["left", "right"], dtype=object)
    codes = (crowd.instances, crowd.annotators, crowd.labels)
    sizes = {"num_instances": len(features), "num_annotators": crowd.num_annotators}
    renamed = Annotations(*codes, num_classes=2, class_names=names, **sizes)
    others = features[::-1].copy(), renamed
    model = make(method).fit(features, crowd, validation)
    expected = public(model), answers(model, new)
    with broken_at(np.inf) as calls:
        make(method).fit(*others)

    def breaks(estimator: Any, place: str) -> None:
        """Fits to the other data until it breaks there."""
        with monkeypatch.context() as patched, contextlib.ExitStack() as stack:
            if place == "check":
                check = type(estimator)._check

                def checked(self: Any, *arguments: Any) -> None:
                    check(self, *arguments)
                    raise Broken

                patched.setattr(type(estimator), "_check", checked)
            elif place == "end":

                def not_finite(_: Any) -> None:
                    raise FloatingPointError

                patched.setattr(contract, "check_finite", not_finite)
            else:
                stack.enter_context(broken_at(int(float(place) * calls[0])))
            with pytest.raises((Broken, FloatingPointError)):
                estimator.fit(*others)

    # Auto's threads are not counted.
    within = () if method.name == "auto" else ("0.25", "0.6")
    for place in ("check", *within, "end"):
        breaks(model, place)
        assert (public(model), answers(model, new)) == expected, place
    for place in (*within[1:], "end"):
        fresh = make(method)
        before = dict(vars(fresh))
        breaks(fresh, place)
        assert vars(fresh) == before
        for ask in (fresh.predict, fresh.predict_proba):
            with pytest.raises(NotFittedError):
                ask(new)
        with pytest.raises(NotFittedError):
            fresh.score(new, names[:1].repeat(len(new)))
    # It learns as if nothing had happened.
    assert answers(model.fit(features, crowd, validation), new) == expected[1]


@pytest.mark.parametrize("name", sorted(AGGREGATORS))
def test_an_aggregator_that_fails_changes_nothing(name: str) -> None:
    _, crowd, *_ = crowd_data(2)
    with warnings.catch_warnings(action="ignore"):
        model = AGGREGATORS[name]().fit(crowd)
        expected = public(model)
        with broken_at(np.inf) as calls:
            AGGREGATORS[name]().fit(crowd_data(3)[1])
        for share in (0.3, 0.6, 0.9):
            with broken_at(int(share * calls[0])), pytest.raises(Broken):
                model.fit(crowd_data(3)[1])
            assert public(model) == expected


def test_texts_and_their_features_stay_too() -> None:
    texts = np.array(["good fine thing", "bad poor thing"] * 8, dtype=object)
    labels = np.array([[0, 0], [1, 1]] * 8)
    features = TextFeatures(size=3).fit(texts)
    weights = features.components_
    with broken_at(12), pytest.raises(Broken):
        features.fit(np.array(["quite another text", "and one more"] * 3, dtype=object))
    assert features.components_ is weights
    model = TextClassifier(estimator=registry.method("mv_lr").make()).fit(texts, labels)
    expected = public(model)
    with broken_at(300), pytest.raises(Broken):
        model.fit(texts[:6], labels[:6])
    assert public(model) == expected


def test_predictions_that_are_not_finite_are_no_fit() -> None:
    """The weights after a step of 1e30 are finite, what they predict is not."""
    features, crowd, *_ = crowd_data(2)
    model = registry.method("crowd_layer").make(
        epochs=1, learning_rate=1e30, optimizer="sgd", batch_size=64
    )
    with pytest.raises(FloatingPointError, match="probabilities are not finite"):
        model.fit(features[2:], crowd[np.arange(2, len(features))])
    assert not hasattr(model, "model_")
