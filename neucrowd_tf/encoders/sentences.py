"""Sentence encoders: texts to vectors by a trained network, run once for each text."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from tqdm import tqdm

from neucrowd_tf.aggregation.blas import one_blas_thread
from neucrowd_tf.annotations.tables import check_texts
from neucrowd_tf.declare.declarations import check_arguments, estimator, fitted, text
from neucrowd_tf.declare.types import Array, Fields, Floats32
from neucrowd_tf.encoders.base import Encoder
from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.checks import install
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.saving.transaction import transaction

PACKAGE = "sentence-transformers:"
MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
# Where Hugging Face and sentence-transformers write how token vectors are pooled, and the length.
CONFIGS = ("config.json", "sentence_bert_config.json", "1_Pooling/config.json")
LONGEST = 512  # tokens, if no file says
# What tokenizers know of a text, by the names that networks give their inputs.
TOKEN_FIELDS = {
    "input_ids": "ids",
    "attention_mask": "attention_mask",
    "token_type_ids": "type_ids",
}
Encode = Callable[[str], "Floats32"]


@estimator
class SentenceEncoder(Encoder):
    """A trained network from texts to unit vectors.

    Texts are encoded one at a time. A vector then does not depend on other texts, which it would
    with 8-bit weights. Vectors are kept in memory, and on disk in the cache folder
    (`$NEUCROWD_CACHE`, or `~/.cache/neucrowd_tf`).

    Attributes:
        digest_: SHA-256 of the network, its tokenizer and its configuration.

    Example:
        >>> encoder = SentenceEncoder("all-MiniLM-L6-v2").fit()  # doctest: +SKIP
        >>> features = encoder.transform(["a text", "another text"])  # doctest: +SKIP
    """

    source: Annotated[
        str,
        text,
        "a folder with model.onnx and tokenizer.json, as Hugging Face exports them; or"
        f' "{PACKAGE}NAME" with that package installed.',
    ] = dataclasses.field(kw_only=False)

    takes: ClassVar[str] = "texts"
    digest_: str = fitted()

    def fit(self, texts: object = None, y: object = None) -> SentenceEncoder:
        """Finds the network and computes its digest; nothing is learned from texts, nor from `y`.

        Raises:
            UsageError: no such folder or file, or a package that is not installed.
        """
        check_arguments(self)
        with transaction(self):
            self._find()
        return self

    def _find(self) -> None:
        """Finds the network and computes its digest."""
        self._vectors: dict[bytes, bytes] = {}
        self._encode: Encode | None = None
        if self.source.startswith(PACKAGE):
            self._encode, self.digest_ = _of_package(self.source.removeprefix(PACKAGE))
            return
        digests = ""
        for name in (MODEL, TOKENIZER, *CONFIGS):
            path = Path(self.source, name)
            if path.is_file():
                digests += digest(path)
            elif name in CONFIGS:
                digests += "-"
            else:
                raise UsageError(
                    f"--encoder={self.source}: {name} is missing. Name a folder with {MODEL} and"
                    f" {TOKENIZER}, or {PACKAGE}NAME."
                )
        self.digest_ = hashlib.sha256(digests.encode()).hexdigest()

    def transform(self, texts: Sequence[str] | Array) -> Floats32:
        """Returns the vectors of texts `[M]`, from the cache if they are there.

        Returns:
            `[M, d]` unit vectors.

        Raises:
            DataError: not texts, or the network cannot be read or is another one than before.
        """
        checked = check_texts(texts).tolist()
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in checked]
        return self._cached(keys, checked)

    def layer(self) -> None:
        """Returns None: an exported model takes vectors and does not contain the network."""

    def _blank(self) -> object:
        return ""

    def _encoded(self, texts: list[str]) -> Iterator[Floats32]:
        if self._encode is None:
            self._encode = _of_folder(Path(self.source))
        bar = tqdm(total=len(texts), desc="encoding texts", disable=None, leave=False)
        with bar, one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
            for vector in pool.map(self._encode, texts):
                bar.update()
                yield _unit(vector)


def _unit(vector: Array) -> Floats32:
    """Returns the unit vector in the same direction."""
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)


def _of_folder(folder: Path) -> Encode:
    """Returns the function from a text to its vector, by the ONNX network in a folder.

    Raises:
        UsageError: onnxruntime or tokenizers is not installed.
        DataError: a file that cannot be read, or a network that takes more than tokens.
    """
    try:
        import onnxruntime
        import tokenizers
    except ImportError as error:
        how = install("encoder")
        raise UsageError(f"--encoder={folder}: needs {error.name}. {how}") from None
    config: Fields = {}
    try:
        for name in CONFIGS:
            if (folder / name).is_file():
                config |= json.loads((folder / name).read_text("utf-8"))
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(folder / MODEL), options, providers=["CPUExecutionProvider"]
        )
        tokenizer.no_padding()
        if tokenizer.truncation is None or "max_seq_length" in config:
            most = config.get("max_seq_length") or config.get("max_position_embeddings") or LONGEST
            tokenizer.enable_truncation(int(most))
        fields = {}
        for node in session.get_inputs():
            if node.name not in TOKEN_FIELDS:
                raise ValueError(f"its input {node.name} is not among {', '.join(TOKEN_FIELDS)}")
            fields[node.name] = TOKEN_FIELDS[node.name]
    except Exception as error:  # of the tokenizer, JSON and ONNX, or of an input that is no token's
        raise DataError(
            f"{folder}: not an encoder ({one_line(error)[:200]}). Export it again."
        ) from None
    pools_first_token = bool(config.get("pooling_mode_cls_token"))

    def encode(text: str) -> Floats32:
        tokens = tokenizer.encode(text)
        inputs = {}
        for name, field in fields.items():
            inputs[name] = np.array([getattr(tokens, field)], np.int64)
        output = np.asarray(session.run(None, inputs)[0][0], np.float32)
        if output.ndim == 1:  # pooled by the network
            return output
        if not len(output):  # a text without a token
            return np.zeros(output.shape[1], np.float32)
        if pools_first_token:
            return output[0]
        return output.mean(axis=0)

    return encode


def _of_package(name: str) -> tuple[Encode, str]:
    """Returns sentence-transformers' function from a text to its vector, and its digest.

    Raises:
        UsageError: sentence-transformers is not installed.
        DataError: the model cannot be loaded.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise UsageError(
            f"--encoder={PACKAGE}{name}: needs sentence-transformers. Install it, or name a folder"
            f" with {MODEL} and {TOKENIZER}."
        ) from None
    try:
        model = SentenceTransformer(name)
    except Exception as error:  # of the download, and of the files
        raise DataError(
            f"--encoder={PACKAGE}{name}: cannot be loaded ({one_line(error)[:200]}). Check the name"
            " and the connection."
        ) from None
    checksum = hashlib.sha256(name.encode())
    for weights in model.state_dict().values():
        checksum.update(np.ascontiguousarray(weights.cpu().numpy()).tobytes())

    def encode(text: str) -> Floats32:
        return model.encode(text, show_progress_bar=False)

    return encode, checksum.hexdigest()
