"""Texts as features: scikit-learn's numbers and the graph's, and estimators that take texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import issparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from neucrowd_tf import load
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.tables import is_text
from neucrowd_tf.cli.runs import plugins
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare import registry
from neucrowd_tf.encoders.tfidf import TextFeatures, fold, normalise
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.methods.dasc import DASC
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.methods.two_stage import TwoStageClassifier
from neucrowd_tf.saving.saved_model import export_saved_model
from tests.cases import raises

ODD = [
    "Hello, WORLD hello",
    "İstanbul ΣΑΣ straße ẞ",
    "naïve café cafe\u0301",
    "日本語 テキスト 𠀀𠮷",
    "",
    "!!!",
    "a b c d",
    "x\0y",
    "emoji 😀😀 flag 🇩🇪 👩‍👩‍👧",
    "हिन्दी में पाठ",
    "tab\tnew\nline\u00a0space\u3000wide",
    "ﬁ ﬂ Ⅷ ① ²",
    "Ǆ ǅ ǆ",
    "العربية ١٢٣",
    "word " * 50,
    "\u200bzero\u200dwidth",
    "\U000e0001tag \uf8ff",
]


def test_the_weights_of_two_texts_by_hand() -> None:
    """Words of "a a b" and "b": a, "a a", "a b" stand in one text of two, b in both, so their
    inverse document frequencies are ln(3/2) + 1 = 1.405 and ln(3/3) + 1 = 1; a counts
    1 + ln 2 = 1.693 of 1.405.
    """
    fitted = TextFeatures().fit(["a a b", "b"])
    assert fitted.word_terms_.tolist() == ["a", "a a", "a b", "b"]
    rare = np.log(3 / 2) + 1
    assert_allclose(fitted.word_weights_, [rare, rare, rare, 1.0])
    weights = np.array([(1 + np.log(2)) * rare, rare, rare, 1.0])
    half = weights / np.linalg.norm(weights)
    size = len(fitted.components_)
    whole = TextFeatures(size=size).fit(["a a b", "b", "c c"])  # not reduced to fewer than it has
    assert whole.transform(["zzz"]).tolist() == [[0.0] * whole.components_.shape[1]]
    vectoriser = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), sublinear_tf=True)
    assert_allclose(vectoriser.fit_transform(["a a b", "b"]).toarray()[0], half)


def test_a_layer_without_a_reduction_needs_components() -> None:
    fitted = TextFeatures(size=None).fit(["a b", "b"])
    raises(UsageError, "pass a matrix", fitted.layer)


def test_letters_digits_marks_and_nothing_else() -> None:
    assert normalise("  Don't  STOP_me, ΟΔΟΣ!\n") == "don t stop_me οδοσ"
    assert normalise("हिन्दी") == "हिन्दी"  # its vowel signs are marks
    assert [fold(ord(c)) for c in "Aé-😀"] == [ord("a"), ord("é"), 32, 32]
    assert fold(0x20BB7) == 0x20BB7 and fold(0x10FFFF) == fold(0xD800) == 32


def test_the_graph_computes_what_scikit_learn_does() -> None:
    fitted = TextFeatures(size=12).fit(ODD)
    assert_allclose(fitted.layer()(tf.constant(ODD)), fitted.transform(ODD), atol=1e-6)
    assert np.abs(fitted.transform(ODD)).max() > 0.3


@pytest.fixture(scope="module")
def odd() -> tuple[TextFeatures, object]:
    fitted = TextFeatures(size=12).fit(ODD)
    return fitted, fitted.layer()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_whatever_the_text(odd: tuple[TextFeatures, object], texts: list[str]) -> None:
    fitted, layer = odd
    texts = [text + " " + ODD[len(text) % len(ODD)] for text in texts]
    assert_allclose(layer(tf.constant(texts)), fitted.transform(texts), atol=1e-6)  # type: ignore[operator]


def test_unseen_texts_change_nothing_that_was_learned() -> None:
    fitted = TextFeatures().fit(ODD)
    before = fitted.transform(ODD[:3])
    fitted.transform(["other words entirely"])
    assert_array_equal(fitted.transform(ODD[:3]), before)
    assert_array_equal(TextFeatures().fit(ODD).transform(ODD[:3]), before)
    assert len(TextFeatures(size=3).fit(ODD).transform(ODD)[0]) == 3


def test_what_is_no_text() -> None:
    assert is_text(["a"]) and is_text(np.array(["a", ""], dtype=object))
    assert not is_text([1.0]) and not is_text([["a"]]) and not is_text(np.array(["a", 1], object))
    raises(DataError, "received nan", TextFeatures().fit, ["a", float("nan"), "b"])
    raises(DataError, "letters or digits", TextFeatures().fit, ["", "?!"])
    raises(DataError, "expected texts", TextFeatures().fit(ODD).transform, np.zeros((2, 3)))


def crowd_of_texts(size: int = 60) -> tuple[list[str], Annotations, np.ndarray]:
    rng = default_rng(0)
    truth = rng.integers(0, 2, size)
    words = np.array([["awful", "broken", "Rude"], ["lovely", "Great", "kind"]])
    texts = [
        f"the {words[c, rng.integers(3)]} {words[c, rng.integers(3)]} place {rng.integers(9)}"
        for c in truth
    ]
    labels = np.where(rng.random((size, 4)) < 0.15, 1 - truth[:, None], truth[:, None])
    return texts, Annotations.from_dense(labels), truth


def test_an_estimator_takes_texts_and_so_does_what_it_exports(tmp_path: Path) -> None:
    texts, crowd, truth = crowd_of_texts()
    fitted = TextClassifier(estimator=TwoStageClassifier()).fit(texts, crowd)
    seeds = [TextClassifier(estimator=TwoStageClassifier(seed=s), seed=5) for s in (0, 3)]
    assert [x.fit(texts, crowd).estimator_.seed for x in seeds] == [5, 3]
    probabilities = fitted.predict_proba([*texts, *ODD])
    assert (probabilities[: len(texts)].argmax(axis=1) == truth).mean() > 0.95
    fitted.save(tmp_path / "saved")
    again = load(tmp_path / "saved").predict_proba([*texts, *ODD])
    assert_allclose(again, probabilities, atol=1e-12)
    folder = export_saved_model(fitted, tmp_path / "served")
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    served = serve(texts=tf.constant([*texts, *ODD]))["probabilities"]
    assert_allclose(served, probabilities, atol=1e-5)
    raises(DataError, "expected texts", fitted.predict, np.zeros((2, 5)))
    raises(DataError, "expected texts", fitted.fit, np.arange(len(texts))[:, None] / 60, crowd)
    with pytest.raises(DataError, match=r"TextClassifier\(estimator=TwoStageClassifier"):
        TwoStageClassifier().fit(texts, crowd)


def test_linear_models_take_tfidf_without_a_reduction() -> None:
    """As scikit-learn's regression on the same weights, whose rows have a squared length of 50."""
    texts, crowd, truth = crowd_of_texts()
    one = TwoStageClassifier(Cs=[0.1])
    fitted = TextClassifier(estimator=one).fit(texts, crowd)
    weights = fitted.encoder_.transform(texts)
    assert issparse(weights) and fitted.encoder_.components_ is None
    assert_allclose(weights.multiply(weights).sum(axis=1), 2.0)
    plain = LogisticRegression(C=0.1, tol=1e-8).fit(5 * weights, fitted.labels_)
    expected = plain.predict_proba(5 * fitted.encoder_.transform(ODD))
    assert_allclose(fitted.predict_proba(ODD), expected, atol=1e-3)
    with_truth = TextClassifier(estimator=TwoStageClassifier()).fit(
        texts, crowd, (texts[:9], crowd.class_names[truth[:9]])
    )
    assert len(with_truth.head_.scores_) > 2
    reduced = TextClassifier(TextFeatures(size=3), estimator=one).fit(texts, crowd)
    assert reduced.head_.kernel_.shape == (3, 2)  # as the user wants it
    assert reduced.predict([]).shape == (0,)
    parts = make_pipeline(TextFeatures(size=3), one).fit(texts, crowd)
    assert_array_equal(parts.predict_proba(texts), reduced.predict_proba(texts))
    network = TextClassifier(estimator=CrowdLayer(epochs=1)).fit(texts, crowd)
    assert network.encoder_.components_ is not None


@pytest.mark.parametrize("name", ["cpc", "ds_lr", "mv_smote", "raykar", "softprob"])
def test_every_kind_of_linear_method_takes_texts(name: str) -> None:
    texts, crowd, _ = crowd_of_texts()
    plugins.register(("baselines",))
    fitted = TextClassifier(estimator=registry.method(name).make(seed=0)).fit(texts, crowd)
    assert fitted.predict_proba(texts).shape == (len(texts), 2)
    assert fitted.predict_proba([]).shape == (0, 2) and fitted.predict([]).shape == (0,)


def test_networks_take_no_sparse_vectors() -> None:
    texts, crowd, _ = crowd_of_texts()
    model = TextClassifier(TextFeatures(size=None), estimator=CrowdLayer(epochs=1))
    raises(UsageError, "CrowdLayer takes dense vectors", model.fit, texts, crowd)


def test_what_an_estimator_of_texts_passes_on() -> None:
    texts, crowd, truth = crowd_of_texts()
    crowd = crowd.select(np.arange(240) % 5 > 0)
    model = TextClassifier(estimator=DASC(CrowdLayer(epochs=2), rounds=1, quota=9))
    named = crowd.align(["none", *crowd.instance_names.tolist()])
    model.fit(["left out", *texts], named)
    assert model.predict_annotators(texts).shape == (60, 4, 2)
    assert model.rows_.tolist() == [*range(1, 61)] and model.history_["round"] == [0, 1]
    split = Split(np.array(texts, object), truth, np.arange(60))
    every = np.array(["left out", *texts], object)
    dataset = CrowdDataset("texts", every, named, split, truth=np.append(1, truth))
    rounds = model.evaluation(dataset)["rounds"]
    assert len(rounds["test_accuracy"]) == 2
    instances, _, labels = model.selections_[0].T
    assert rounds["pseudo_accuracy"][1] == (truth[instances] == labels).mean()
    assert not hasattr(model, "transform") and model.distributed
    raises(DataError, "expected texts", model.predict_annotators, np.zeros((2, 5)))
