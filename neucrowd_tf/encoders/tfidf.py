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
from neucrowd_tf.declare.declarations import check_arguments, estimator, fitted, none, whole
from neucrowd_tf.declare.types import Array, Fields, Floats, Floats32, Layer, NamedValues
from neucrowd_tf.errors import DataError, one_at_a_time
from neucrowd_tf.saving.persistent import Persistent
from neucrowd_tf.saving.transaction import transaction

KINDS = ("word", "character")
WORDS = (1, 2)  # the lengths of n-grams
CHARACTERS = (3, 5)
# Of an n-gram that one text alone has nothing can be learned; beyond this many texts.
FEW_TEXTS = 50
LEAST = 0.01  # of the largest singular value: components below are rounding
# Letters are looked up up to here, the end of the Chinese characters; the rest is no text.
TABLE = 0x34000
_SPACE = 32


def fold(code: int) -> int:
    """Returns the code point that stands for another one in an n-gram.

    Letters (small ones if there is one small letter), digits, marks and underscores stand for
    themselves; all else is a space.
    """
    if code >= TABLE:
        return _SPACE
    small = chr(code).lower()
    if len(small) == 1:
        code = ord(small)
    kind = unicodedata.category(chr(code))
    if kind[0] in "LNM" or kind == "Pc":
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


# The methods that are tried on a fold share its texts, and counting n-grams is most of the work.
_REMEMBERED: OrderedDict[Hashable, Fields] = OrderedDict()
_MOST = 16
_MOST_BYTES = 1 << 28
_LOCK = threading.RLock()


def _remembered(key: Hashable, make: Callable[[], Fields]) -> Fields:
    """Returns the arrays that `make` makes of what the key names: the last ones are kept."""
    with _LOCK:  # threads that need the same arrays wait for the one that makes them
        result = _REMEMBERED[key] = _REMEMBERED.pop(key, {}) or make()
        while len(_REMEMBERED) > _MOST or sum(map(_bytes, _REMEMBERED.values())) > _MOST_BYTES:
            _REMEMBERED.popitem(last=False)
    return result


def _bytes(arrays: NamedValues) -> int:
    """Returns the size of arrays and of sparse matrices' values."""
    size = 0
    for array in arrays.values():
        if isinstance(array, csr_matrix):
            array = array.data
        size += array.nbytes
    return size


def _vectoriser(kind: str, most: int | None = None, least: int = 1) -> TfidfVectorizer:
    """Returns scikit-learn's vectoriser of words, or of the characters within words."""
    chosen: Fields = (
        {"analyzer": "word", "token_pattern": r"\S+", "ngram_range": WORDS}
        if kind == "word"
        else {"analyzer": "char_wb", "ngram_range": CHARACTERS}
    )
    return TfidfVectorizer(
        preprocessor=normalise, sublinear_tf=True, max_features=most, min_df=least, **chosen
    )


@one_at_a_time()
def _weighted(fitted: NamedValues, texts: Sequence[str]) -> csr_matrix:
    """Returns TF-IDF `[N, V + W]`, both halves of length 1, by the results of a fit."""
    blocks = []
    for kind in KINDS:
        vectoriser = _vectoriser(kind)
        vectoriser.set_params(vocabulary=fitted[f"{kind}_terms_"].tolist())
        vectoriser.idf_ = fitted[f"{kind}_weights_"]
        blocks.append(vectoriser.transform(texts))
    return hstack(blocks, format="csr")


@estimator
class TextFeatures(Persistent, BaseEstimator):
    """TF-IDF of words and characters, reduced by a truncated singular value decomposition.

    Terms are one or two words, and three to five characters within words. Each kind is scaled to
    length 1. Linear models take it without the reduction (`size=None`), as a sparse matrix.

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
    seed: Annotated[int, whole(0), "seed of the decomposition."] = 0

    word_terms_: Array = fitted()
    word_weights_: Floats = fitted()
    character_terms_: Array = fitted()
    character_weights_: Floats = fitted()
    components_: Floats32 | None = fitted()

    def fit(self, texts: Sequence[str] | Array) -> TextFeatures:
        """Learns n-grams, weights and the reduction from texts `[N]`.

        Raises:
            DataError: not texts, or none with a letter or a digit.
        """
        check_arguments(self)
        checked = check_texts(texts).tolist()
        with transaction(self):
            results = _remembered((*checked, "terms", self.terms), lambda: self._terms(checked))
            for name, values in results.items():
                setattr(self, name, values)
            self.components_ = None
            if self.size is not None:
                key = (*checked, *self.get_params().items())
                reduced = _remembered(key, lambda: self._reduction(checked))
                self.components_ = reduced["components_"]
        return self

    @one_at_a_time()
    def _terms(self, texts: list[str]) -> Fields:
        """Returns the n-grams and their weights."""
        if len(texts) > FEW_TEXTS:
            least = 2
        else:
            least = 1
        if not any(map(normalise, texts)):
            raise DataError("texts: expected letters or digits in one of them, received none")
        results: Fields = {}
        for kind in KINDS:
            vectoriser = _vectoriser(kind, self.terms, least)
            try:
                vectoriser.fit(texts)
            except ValueError:  # nothing stands in two texts
                vectoriser = _vectoriser(kind, self.terms).fit(texts)
            results[f"{kind}_terms_"] = np.array(vectoriser.get_feature_names_out(), dtype=object)
            results[f"{kind}_weights_"] = vectoriser.idf_
        return results

    def _weights(self, texts: list[str]) -> csr_matrix:
        """Returns TF-IDF `[M, V + W]`."""
        terms = "\0".join((*self.word_terms_, "", *self.character_terms_)).encode()
        ends = self.word_weights_.tobytes(), self.character_weights_.tobytes()
        key = (*texts, hashlib.sha256(b"".join((terms, *ends))).hexdigest())
        return _remembered(key, lambda: {"weights": _weighted(vars(self), texts)})["weights"]

    def _reduction(self, texts: list[str]) -> Fields:
        """Returns the components."""
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
        weighted = self._weights(check_texts(texts).tolist())
        if self.components_ is None:
            return weighted.copy()
        return np.asarray(weighted @ self.components_, dtype=np.float32)

    def layer(self, components: Floats32 | None = None) -> Layer:
        """Returns a Keras layer from a string tensor `[M]` to features `[M, k]`.

        It computes what `transform` does, or multiplies TF-IDF by other components `[V + W, k]`.
        """
        from neucrowd_tf.nn.tfidf_layer import TextVectors

        letters = np.array(list(map(fold, range(TABLE))), dtype=np.int32)
        word_terms = WORDS, self.word_terms_.tolist(), self.word_weights_
        characters = CHARACTERS, self.character_terms_.tolist(), self.character_weights_
        chosen: Any = self.components_ if components is None else components
        return TextVectors(letters, [word_terms, characters], chosen)
