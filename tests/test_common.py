"""What every registered method has to do, present and future: a few in each run, one of each kind
with `ci`, all of them with `slow`.

A method's fits are shared by its checks: one of two classes with checkpoints and TensorBoard, one
that is interrupted and resumed (the same bytes), and one of three classes without validation data.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from sklearn.base import clone

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.cli.runs import plugins
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.declarations import check_arguments, declared
from neucrowd_tf.errors import DataError, IdentitiesError, UnsupportedDataError, UsageError
from neucrowd_tf.saving.loading import load
from neucrowd_tf.training.reuse import NetworkCache
from neucrowd_tf.training.run import Run
from tests.cases import raises
from tests.crowds import corners, noisy_labels

plugins.register(("baselines", "data"))

# Tiny settings for whichever of these a method's constructor has; whatever is not here keeps its
# default.
TINY: dict[str, Any] = {
    "epochs": 3,
    "steps_per_epoch": 2,
    "batch_size": 16,
    "hidden_units": (8, 4),
    "rounds": 2,
    "weight_epochs": 2,
    "pretrain_epochs": 2,
    "game_pretrain_epochs": 2,
    "embedding_size": 4,
    "auxiliary_units": 8,
    "noise_size": 2,
    "warm_up_epochs": 2,
    "autoencoder_epochs": 2,
    "annotation_neighbours": 3,
    "em_iterations": 10,
    "max_iter": 20,
    "methods": ("mv_lr", "ds_lr"),
    "folds": 2,
    "size": 2,
}
# Of the settings these say how long a method trains, whatever its own defaults.
SIZES = ("epochs", "steps_per_epoch", "batch_size")
TRAINING = (
    "epochs",
    "rounds",
)  # a method with one of these trains by epochs: it writes scalars and checkpoints
ROWS, NEW_ROWS = 48, 20


# A method for each kind of loop. The slow tests try every method, tests/test_digests.py each class.
QUICK = ("ds_lr",)
CI = (
    "auto",
    "crowd_layer",
    "dasc_crowd_layer",
    "ds_dl",
    "gold_lr",
    "iced",
    "neucrowd",
    "raykar",
    "rll",
    "softprob",
    "wdn",
)


def library() -> list[registry.Method]:
    """Returns the registered methods without the controls of studies."""
    return [
        method
        for method in registry.methods()
        if not method.factory.__module__.startswith("reproduction")
    ]


# Of these, the ones that read tables in ways of their own, or standardise them.
TABLES = ("auto", "crowd_layer", "ds_dl", "gold_lr", "raykar", "rll", "softprob")


def _parameters(ci: Collection[str] = CI) -> list[Any]:
    parameters = []
    for method in library():
        marks = [] if method.name in QUICK else [pytest.mark.slow]
        if method.name in ci:
            marks = [pytest.mark.ci]
        parameters.append(pytest.param(method, id=method.name, marks=marks))
    return parameters


def crowd_data(
    classes: int,
) -> tuple[np.ndarray, Annotations, np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Returns features, annotations, truth, a validation pair and new features.

    Five annotators: three fair ones, one with a single label, one without any; two instances
    without annotations.
    """
    rng = default_rng([classes, 0xC0])
    names = np.array(["red", "green", "blue"], dtype=object)[:classes]
    truth = np.arange(ROWS + NEW_ROWS) % classes
    x = corners(rng, truth, 6, 2.5)
    dense = noisy_labels(rng, truth[:ROWS], 5, 0.85, classes)
    dense[rng.random((ROWS, 5)) < 0.25] = -1
    dense[:, 3:] = -1
    dense[2:, 0] = np.where(rng.random(ROWS - 2) < 0.95, truth[2:ROWS], 0)
    dense[5, 3] = truth[5]
    dense[[0, 1]] = -1
    crowd = Annotations.from_dense(
        dense, num_classes=classes, class_names=names, annotator_names=[f"w{i}" for i in range(5)]
    )
    held = (x[ROWS : ROWS + NEW_ROWS // 2], names[truth[ROWS : ROWS + NEW_ROWS // 2]])
    return x[:ROWS], crowd, truth[:ROWS], held, x[ROWS:]


def make(method: registry.Method, seed: int = 0):
    """Returns the method's estimator with the tiny settings that it has and that do not make it
    another method.
    """
    taken = method.parameter_names or []
    return method.make(
        **{
            name: value
            for name, value in TINY.items()
            if name in taken and (name in SIZES or name not in method.defaults)
        },
        seed=seed,
    )


def trains(method: registry.Method) -> bool:
    return any(name in (method.parameter_names or []) for name in TRAINING)


_alone = contextlib.nullcontext()


class Interrupted(BaseException):
    """Stands for a process that ends; no method catches it."""


@contextlib.contextmanager
def _renames(folder: Path, stop_after: int | None = None) -> Iterator[list[str]]:
    """Lists the files that are put into `folder`; ends the fit after some number of them."""
    seen: list[str] = []
    original: Callable[..., None] = os.replace

    def replace(source, target, **options) -> None:
        original(source, target, **options)
        if folder in Path(target).parents:
            seen.append(str(Path(target).relative_to(folder)))
            if len(seen) == stop_after:
                raise Interrupted

    os.replace = replace
    try:
        yield seen
    finally:
        os.replace = original


class Fits:
    """The fits of one method, each made when a check first asks for it."""

    def __init__(self, method: registry.Method, folder: Path) -> None:
        self.method, self.folder = method, folder
        self.features, self.crowd, self.truth, self.validation, self.new = crowd_data(2)
        self.saves: list[str] = []
        self._first: Any = None
        self._networks = NetworkCache()

    def training(self, crowd: Annotations, truth: np.ndarray) -> Annotations:
        """Returns what the method trains on: annotations, or the truth where it is the upper
        bound."""
        if not self.method.uses_truth:
            return crowd
        return Annotations.from_dense(
            truth[:, None], num_classes=crowd.num_classes, class_names=crowd.class_names
        )

    def fit(self, run: Run | None = None, seed: int = 0):
        """Fits on two classes; all these fits share a compiled network where they can."""
        model, labels = make(self.method, seed), self.training(self.crowd, self.truth)
        shared = model.reused(self._networks) if hasattr(model, "reused") else _alone
        with shared, warnings.catch_warnings(action="ignore"):
            return model.fit(self.features, labels, self.validation, run=run)

    @property
    def first(self):
        if self._first is None:
            before = (self.features.copy(), self.validation[0].copy(), self.validation[1].copy())
            run = Run(
                checkpoints=self.folder / "checkpoints",
                tensorboard=self.folder / "tensorboard",
                progress=False,
                checkpoint_seconds=0,
            )
            with _renames(self.folder / "checkpoints") as self.saves:
                self._first = self.fit(run)
            run.flush()
            self.changed = not all(
                np.array_equal(a, b)
                for a, b in zip(before, (self.features, *self.validation), strict=True)
            )
            self.changed |= crowd_data(2)[1] != self.crowd
        return self._first


_FITS: dict[str, Fits] = {}


@pytest.fixture
def fits(method: registry.Method, tmp_path_factory: pytest.TempPathFactory) -> Fits:
    if method.name not in _FITS:
        _FITS.clear()  # the checks of a method come one after the other
        _FITS[method.name] = Fits(method, tmp_path_factory.mktemp(method.name))
    return _FITS[method.name]


every_method = pytest.mark.parametrize("method", _parameters(), scope="module")


@every_method
class TestEveryMethod:
    def test_parameters_clone(self, method: registry.Method) -> None:
        estimator = make(method)
        params = estimator.get_params(deep=False)
        assert set(params) == set(inspect.signature(type(estimator).__init__).parameters) - {"self"}
        copy = clone(estimator)
        assert type(copy) is type(estimator) and repr(copy.get_params(deep=False)) == repr(params)
        assert not [
            name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")
        ]
        assert params["seed"] == 0 and make(method, 3).get_params()["seed"] == 3

    def test_summary(self, method: registry.Method) -> None:
        assert method.summary and "\n" not in method.summary
        certain = method.parameter_names
        for names in (method.defaults, method.space, *method.presets.values()):
            assert certain is None or set(names) <= set(certain)
        for values in method.space.values():
            assert isinstance(values, tuple) and values

    def test_predictions(self, method: registry.Method, fits: Fits) -> None:
        proba = np.asarray(fits.first.predict_proba(fits.new))
        assert proba.shape == (NEW_ROWS, 2) and np.isfinite(proba).all() and (proba >= 0).all()
        assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
        labels = fits.first.predict(fits.new)
        assert labels.tolist() == fits.first.classes_[proba.argmax(axis=1)].tolist()
        assert_allclose(np.asarray(fits.first.predict_proba(fits.new[:1])), proba[:1], atol=1e-5)
        assert 0 <= fits.first.score(fits.new, labels) <= 1
        assert fits.first.score(fits.new, labels) == 1
        if hasattr(fits.first, "transform"):
            embedding = np.asarray(fits.first.transform(fits.new))
            assert embedding.ndim == 2
            assert len(embedding) == NEW_ROWS
            assert np.isfinite(embedding).all()

    def test_inputs_are_left_as_they_were(self, method: registry.Method, fits: Fits) -> None:
        assert fits.first is not None and not fits.changed

    def test_a_second_or_resumed_fit_has_the_same_bytes(
        self, method: registry.Method, fits: Fits, tmp_path: Path
    ) -> None:
        """The second one is interrupted and resumed if the method trains by epochs."""
        expected = [np.asarray(fits.first.predict_proba(x)) for x in (fits.new, fits.features)]
        run = Run(checkpoints=tmp_path / "checkpoints", progress=False, checkpoint_seconds=0)
        if fits.saves:
            with (
                pytest.raises(Interrupted),
                _renames(tmp_path / "checkpoints", stop_after=len(fits.saves) // 2 + 1),
            ):
                fits.fit(run)
            if hasattr(fits.first, "reused"):
                fits.fit(seed=5)  # what the network holds in between does not matter
        assert fits.saves or not trains(method), "a method that trains by epochs leaves checkpoints"
        with _renames(tmp_path / "checkpoints") as saves:
            again = fits.fit(run)
        for rows, values in zip((fits.new, fits.features), expected, strict=True):
            assert np.asarray(again.predict_proba(rows)).tobytes() == values.tobytes()
        assert len(saves) < len(fits.saves) or not fits.saves, "the resumed fit began anew"

    def test_scalars_in_tensorboard(self, method: registry.Method, fits: Fits) -> None:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        assert fits.first is not None
        if not trains(method):
            pytest.skip("does not train by epochs")
        events = EventAccumulator(str(fits.folder / "tensorboard"), size_guidance={"tensors": 0})
        events.Reload()
        tags = events.Tags()["tensors"]
        assert any("loss" in tag for tag in tags), tags
        assert max(len(events.Tensors(tag)) for tag in tags) >= 2

    def test_saved_model(self, method: registry.Method, fits: Fits, tmp_path: Path) -> None:
        import tensorflow as tf

        from neucrowd_tf.saving.saved_model import export_saved_model

        path = export_saved_model(fits.first, tmp_path / "saved_model")
        serve = tf.saved_model.load(str(path)).signatures["serving_default"]
        many = np.tile(fits.new, (50, 1))
        # A network that hardly trained needs a classifier with large weights, which enlarge the
        # last digit of its embedding; a probability changes by a quarter of a logit at most.
        weights = fits.first.inference_model().get_weights()
        largest = max((np.abs(weight).max(initial=0) for weight in weights), default=0)
        atol = max(1e-5, np.finfo(np.float32).eps * largest / 4)
        for rows in (many, fits.new[:1]):
            served = serve(features=tf.constant(rows))
            assert_allclose(served["probabilities"], fits.first.predict_proba(rows), atol=atol)
        if hasattr(fits.first, "transform"):
            assert_allclose(
                serve(features=fits.new)["embedding"], fits.first.transform(fits.new), atol=1e-4
            )

    def test_save_and_load(self, method: registry.Method, fits: Fits, tmp_path: Path) -> None:
        fits.first.save(tmp_path / "model")
        restored = load(tmp_path / "model")
        assert type(restored) is type(fits.first)
        assert_allclose(
            restored.predict_proba(fits.new), fits.first.predict_proba(fits.new), atol=1e-6
        )
        assert restored.classes_.tolist() == fits.first.classes_.tolist()

    def test_three_classes_or_a_clear_refusal(self, method: registry.Method, fits: Fits) -> None:
        """Three classes, no validation data, and vote counts alone where the method does not need
        identities.
        """
        x, crowd, truth, _, new = crowd_data(3)
        passed = fits.training(crowd, truth)
        if not method.requires_identities and not method.uses_truth:
            passed = Annotations.from_votes(crowd.vote_counts(), class_names=crowd.class_names)
        with warnings.catch_warnings(action="ignore"):
            if method.max_classes is not None and method.max_classes < 3:
                raises(UnsupportedDataError, "at most 2 classes", make(method).fit, x, passed)
                return
            fitted = make(method).fit(x, passed)
        proba = np.asarray(fitted.predict_proba(new))
        assert proba.shape == (NEW_ROWS, 3) and np.isfinite(proba).all()
        assert fitted.predict(new).tolist() == crowd.class_names[proba.argmax(axis=1)].tolist()

    def test_identities(self, method: registry.Method) -> None:
        if not method.requires_identities:
            pytest.skip("works on vote counts")
        x, crowd, *_ = crowd_data(2)
        with (
            pytest.raises(IdentitiesError, match="no identities"),
            warnings.catch_warnings(action="ignore"),
        ):
            make(method).fit(
                x, Annotations.from_votes(crowd.vote_counts(), class_names=crowd.class_names)
            )

    def test_bad_input(self, method: registry.Method, fits: Fits) -> None:
        x, crowd, truth, (held, labels), _ = crowd_data(2)
        passed = fits.training(crowd, truth)
        broken = x.copy()
        broken[3, 2] = np.nan
        alone = Annotations.from_dense(
            np.zeros((ROWS, 5), dtype=int), num_classes=2, class_names=crowd.class_names
        )
        cases: list[tuple[Any, Any, Any, str]] = [
            (broken, passed, None, "row 3, column 2"),
            (np.where(np.isnan(broken), np.inf, broken), passed, None, "row 3, column 2"),
            (x[:-1], passed, None, "as many feature rows"),
            (x.astype(str), passed, None, "expected numbers"),
            (x, alone, None, "at least two classes"),
            (x, passed, (held[:, :3], labels), "validation features"),
            (x, passed, (held, np.array(["pink"] * len(held), dtype=object)), "'pink'"),
        ]
        for features, labels_given, validation, message in cases:
            with pytest.raises(DataError, match=message), warnings.catch_warnings(action="ignore"):
                make(method).fit(features, labels_given, validation)
        raises(DataError, "features: expected shape", fits.first.predict_proba, x[:, :2])

    def test_instances_without_annotations_are_told(
        self, method: registry.Method, fits: Fits
    ) -> None:
        class Stop(Exception):
            pass

        def stop(*_) -> None:
            raise Stop

        estimator = make(method)
        estimator._fit = stop
        given = fits.crowd
        if method.uses_truth:
            truth = np.where(given.annotated, fits.truth, -1)
            given = Annotations.from_dense(truth[:, None], class_names=given.class_names)
        with (
            pytest.warns(UserWarning, match="2 instances have no annotations"),
            pytest.raises(Stop),
        ):
            estimator.fit(fits.features, given)


def test_every_argument_is_checked_before_anything_is_computed() -> None:
    kinds = {method.factory: method for method in library()}
    for kind, method in kinds.items():
        for field in declared(kind):
            estimator = method.make()
            setattr(estimator, field.name, object())
            with pytest.raises(UsageError, match=f"^{field.name}: expected .*, received <obj"):
                check_arguments(estimator)


@pytest.mark.parametrize("method", _parameters(TABLES))
def test_order_and_units_of_tables(method: registry.Method, tmp_path: Path) -> None:
    """Rows of labels, rows and columns of new features in any order, and for methods that
    standardise any unit, leave predictions by name as they are."""
    rng = default_rng(0)
    features, crowd, truth, _, new = crowd_data(2)
    columns, names = [f"c{i}" for i in range(6)], [f"i{i}" for i in range(ROWS)]
    frame = pd.DataFrame(features, names, columns)
    labels = Fits(method, tmp_path).training(crowd, truth).align(crowd.instance_names)
    codes = crowd.class_names[labels.labels]
    long = pd.DataFrame(
        {
            "task": [names[i] for i in labels.instances],
            "worker": [str(r) for r in labels.annotators],
            "label": codes,
        }
    )

    estimator = make(method)

    def fitted(table: pd.DataFrame, annotations: pd.DataFrame):
        with warnings.catch_warnings(action="ignore"):
            return estimator.fit(table, annotations)

    later = pd.DataFrame(new, [f"n{i}" for i in range(NEW_ROWS)], columns)
    order = rng.permutation(NEW_ROWS)
    # Both fits are of one shape and share a compiled network where they can.
    with estimator.reused() if hasattr(estimator, "reused") else _alone:
        first = fitted(frame, long)
        expected = first.predict_proba(later)
        moved = later.iloc[order][list(reversed(columns))]
        assert_allclose(first.predict_proba(moved), expected[order], atol=1e-5)
        # Annotators are coded in the order of their first rows, which some initial weights follow.
        start = long.drop_duplicates("worker").index
        rest = long.drop(index=start).sample(frac=1, random_state=1)
        units, shift = np.ones(6), np.zeros(6)
        if getattr(first, "standardise", True) is True and method.name != "auto":
            units, shift = 2.0 ** np.arange(-9, 9, 3), 64.0 * np.arange(6)
        again = fitted(frame * units + shift * units, pd.concat([long.loc[start], rest]))
        changed = again.predict_proba(later * units + shift * units)
        assert_allclose(changed, expected, atol=1e-3)
