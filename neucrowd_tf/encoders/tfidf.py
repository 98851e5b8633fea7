"""Texts as numbers: word and character n-grams, weighted by TF-IDF and reduced.

They are computed in scikit-learn and, equally, inside a SavedModel.
"""

from __future__ import annotations

import hashlib
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from neucrowd_tf.annotations.tables import check_texts
from neucrowd_tf.declare.declarations import SEED, check_arguments, estimator, fitted, none, whole
from neucrowd_tf.declare.types import Array, Fields, Floats, Floats32, Layer, NamedValues
from neucrowd_tf.errors import DataError, UsageError, one_at_a_time
from neucrowd_tf.saving.persistent import Persistent
from neucrowd_tf.saving.transaction import transaction

# How scikit-learn's vectoriser takes the n-grams of words, and of the characters within words.
NGRAMS: dict[str, Fields] = {
    "word": {"analyzer": "word", "token_pattern": r"\S+", "ngram_range": (1, 2)},
    "character": {"analyzer": "char_wb", "ngram_range": (3, 5)},
}
# With more texts, n-grams that only one text has are left out: nothing can be learned from them.
FEW_TEXTS = 50
LEAST = 0.01  # of the largest singular value; smaller components are rounding errors
# Code points from here on, after the Chinese characters, are treated as spaces.
TABLE = 0x34000
_SPACE = 32


def fold(code: int) -> int:
    """Returns the code point that stands for another one in an n-gram.

    Letters become lower case, if that is one letter. Digits, marks and underscores stay. Everything
    else becomes a space.
    """
    if code >= TABLE:
        return _SPACE
    lower = chr(code).lower()
    if len(lower) == 1:
        code = ord(lower)
    category = unicodedata.category(chr(code))
    if category[0] in "LNM" or category == "Pc":
        return code
    return _SPACE


class _Folded(dict[int, int]):
    """`str.translate`'s table, filled as letters occur."""

    def __missing__(self, code: int) -> int:
        self[code] = fold(code)
        return self[code]


_FOLDED = _Folded()


def normalise(text: str) -> str:
    """Returns the folded text from which n-grams are taken, with one space between words."""
    return " ".join(text.translate(_FOLDED).split())


# Results by what they were computed from, the latest last. The methods that are tried on a fold
# share its texts, and counting n-grams is most of the work.
_CACHE: OrderedDict[Hashable, Fields] = OrderedDict()
_MOST = 16
_MOST_BYTES = 1 << 28
_LOCK = threading.RLock()


def _cached(key: Hashable, compute: Callable[[], Fields]) -> Fields:
    """Returns the arrays that `compute` makes of what the key names, from the cache if possible."""
    with _LOCK:  # threads that need the same arrays wait for the one that computes them
        if key not in _CACHE:
            _CACHE[key] = compute()
        _CACHE.move_to_end(key)
        arrays = _CACHE[key]
        while len(_CACHE) > _MOST or sum(map(_bytes, _CACHE.values())) > _MOST_BYTES:
            _CACHE.popitem(last=False)
    return arrays


def _bytes(arrays: NamedValues) -> int:
    """Returns the size of arrays and of sparse matrices' values."""
    return sum(array.data.nbytes for array in arrays.values())


def _vectoriser(kind: str, **options: object) -> TfidfVectorizer:
    """Returns scikit-learn's vectoriser of words, or of the characters within words."""
    return TfidfVectorizer(preprocessor=normalise, sublinear_tf=True, **NGRAMS[kind], **options)


@one_at_a_time()
def _weighted(results: NamedValues, texts: Sequence[str]) -> csr_matrix:
    """Returns TF-IDF `[N, V + W]`, both halves of norm 1, by the results of a fit."""
    blocks = []
    for kind in NGRAMS:
        vectoriser = _vectoriser(kind, vocabulary=results[f"{kind}_terms_"].tolist())
        vectoriser.idf_ = results[f"{kind}_weights_"]
        blocks.append(vectoriser.transform(texts))
    return hstack(blocks, format="csr")


@estimator
class TextFeatures(Persistent, BaseEstimator):
    """TF-IDF of words and characters, reduced by a truncated singular value decomposition.

    Terms are one or two words, and three to five characters within words. Each kind is scaled to
    norm 1. Linear models take it without the reduction (`size=None`), as a sparse matrix.

    Example:
        >>> features = TextFeatures(size=2).fit(texts).transform(texts)  # doctest: +SKIP

    Attributes:
        word_terms_, character_terms_: the n-grams, in the order of their columns.
        word_weights_, character_weights_: `[V]` their inverse document frequencies.
        components_: `[V + W, k]` float32, from weights to features; None without a reduction.
    """

    takes: ClassVar[str] = "texts"

    size: Annotated[
        int | None,
        none | whole(1),
        "k, number of features of a text (fewer for few texts); None does not reduce TF-IDF.",
    ] = 100
    terms: Annotated[int, whole(1), "most n-grams of each kind; frequent ones first."] = 20_000
    seed: Annotated[int, SEED, "seed of the decomposition."] = 0

    word_terms_: Array = fitted()
    word_weights_: Floats = fitted()
    character_terms_: Array = fitted()
    character_weights_: Floats = fitted()
    components_: Floats32 | None = fitted()

    def fit(self, texts: Sequence[str] | Array, y: object = None) -> TextFeatures:
        """Learns n-grams, weights and the reduction from texts `[N]`, and nothing from `y`.

        Raises:
            DataError: not texts, or none with a letter or a digit.
        """
        check_arguments(self)
        checked = check_texts(texts).tolist()
        with transaction(self):
            results = _cached((*checked, "terms", self.terms), lambda: self._terms(checked))
            for name, values in results.items():
                setattr(self, name, values)
            self.components_ = None
            if self.size is not None:
                key = (*checked, *self.get_params().items())
                reduced = _cached(key, lambda: self._reduction(checked))
                self.components_ = reduced["components_"]
        return self

    @one_at_a_time()
    def _terms(self, texts: list[str]) -> Fields:
        """Returns the n-grams and their weights."""
        least = 1
        if len(texts) > FEW_TEXTS:
            least = 2
        if not any(map(normalise, texts)):
            raise DataError("texts: expected letters or digits in one of them, received none")
        results: Fields = {}
        for kind in NGRAMS:
            vectoriser = _vectoriser(kind, max_features=self.terms, min_df=least)
            try:
                vectoriser.fit(texts)
            except ValueError:  # no n-gram occurs in two texts
                vectoriser.set_params(min_df=1).fit(texts)
            results[f"{kind}_terms_"] = np.array(vectoriser.get_feature_names_out(), dtype=object)
            results[f"{kind}_weights_"] = vectoriser.idf_
        return results

    def _weights(self, texts: list[str]) -> csr_matrix:
        """Returns TF-IDF `[M, V + W]`."""
        terms = "\0".join((*self.word_terms_, "", *self.character_terms_)).encode()
        digest = hashlib.sha256(terms)
        digest.update(self.word_weights_.tobytes())
        digest.update(self.character_weights_.tobytes())
        key = (*texts, digest.hexdigest())
        return _cached(key, lambda: {"weights": _weighted(vars(self), texts)})["weights"]

    def _reduction(self, texts: list[str]) -> Fields:
        """Returns `components_` of the reduction."""
        weighted = self._weights(texts)
        size = min(self.size, weighted.shape[1], max(1, weighted.shape[0] - 1))
        with one_at_a_time():
            reduced = TruncatedSVD(size, n_iter=4, random_state=self.seed).fit(weighted)
        significant = reduced.singular_values_ > LEAST * reduced.singular_values_[0]
        return {"components_": reduced.components_[significant].T.astype(np.float32)}

    def transform(self, texts: Sequence[str] | Array) -> Any:
        """Returns features `[M, k]`; a text without a known n-gram becomes zeros.

        Without a reduction they are a sparse matrix `[M, V + W]`.
        """
        if not hasattr(self, "components_"):
            raise NotFittedError("this TextFeatures is not fitted yet: call fit first")
        checked = check_texts(texts).tolist()
        if not checked:  # scikit-learn weights no empty matrix
            return self.transform([""])[:0]
        weighted = self._weights(checked)
        if self.components_ is None:
            return weighted.copy()
        return np.asarray(weighted @ self.components_, dtype=np.float32)

    def layer(self, components: Floats32 | None = None) -> Layer:
        """Returns a Keras layer from a string tensor `[M]` to features `[M, k]`.

        It computes what `transform` does, or multiplies TF-IDF by other components.

        Args:
            components: `[V + W, k]`; None for `components_`.

        Raises:
            UsageError: no components: the fit made no reduction (`size=None`).
        """
        from neucrowd_tf.nn.tfidf_layer import TextVectors

        if components is None:
            components = self.components_
        if components is None:
            raise UsageError("components: TextFeatures(size=None) has none; pass a matrix")
        kinds = []
        for kind, options in NGRAMS.items():
            terms = getattr(self, f"{kind}_terms_").tolist()
            kinds.append((options["ngram_range"], terms, getattr(self, f"{kind}_weights_")))
        letters = np.array(list(map(fold, range(TABLE))), dtype=np.int32)
        return TextVectors(letters, kinds, components)
