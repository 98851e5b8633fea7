"""Sentence encoders: vectors by hand, the cache, and models that are trained on vectors."""

from __future__ import annotations

import csv
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.cli.commands.predict import Scorer
from neucrowd_tf.encoders import SentenceEncoder, sentences
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.auto import Auto
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.methods.two_stage import TwoStageClassifier
from neucrowd_tf.saving.loading import load
from neucrowd_tf.saving.saved_model import export_saved_model
from tests.cases import raises
from tests.crowds import array_of

pytest.importorskip("onnxruntime", reason="pip install .[encoder]")
tokenizers = pytest.importorskip("tokenizers", reason="pip install .[encoder]")

WORDS = {"[UNK]": 0, "good": 1, "bad": 2, "food": 3}
TABLE = array_of("0 0; 2 0; 0 2; 1 1", np.float32)


def _field(number: int, value: int | str | bytes) -> bytes:
    """Returns a field of a protocol buffer."""

    def varint(size: int) -> bytes:
        return bytes([size]) if size < 128 else bytes([size % 128 + 128]) + varint(size // 128)

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def _values(name: str, kind: int, sizes: tuple[int | str, ...]) -> bytes:
    """Returns an ONNX description of a network's input or output."""
    dims = [_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in sizes]
    tensor = _field(1, kind) + _field(2, b"".join(dims))
    return _field(1, name) + _field(2, _field(1, tensor))


def make_encoder(
    folder: Path, table: np.ndarray = TABLE, vocabulary: dict[str, int] = WORDS
) -> Path:
    """Writes an encoder whose token vectors are a table's rows."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = b"".join(_field(1, size) for size in table.shape) + _field(2, 1)
    weights += _field(8, "table") + _field(9, table.astype("<f4").tobytes())
    node = _field(1, "table") + _field(1, "input_ids") + _field(2, "tokens") + _field(4, "Gather")
    graph = _field(1, node) + _field(2, "graph") + _field(5, weights)
    graph += _field(11, _values("input_ids", 7, ("B", "T")))
    graph += _field(12, _values("tokens", 1, ("B", "T", table.shape[1])))
    model = _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))
    (folder / "model.onnx").write_bytes(model)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.enable_padding(length=8)
    words.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NEUCROWD_CACHE", str(tmp_path / "cache"))
    yield


def test_vectors_by_hand(tmp_path: Path) -> None:
    encoder = SentenceEncoder(str(make_encoder(tmp_path / "mean"))).fit()
    assert encoder.transform([]).shape == (0, 2)
    texts = ["good", "good bad", "food", "good food", "?", ""]
    assert make_pipeline(encoder).fit_transform(texts, texts).shape == (6, 2)
    sums = array_of("1 0; 1 1; 1 1; 3 1; 0 0; 0 0")
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    assert_allclose(encoder.transform(texts), sums / np.maximum(lengths, 1), atol=1e-6)
    folder = make_encoder(tmp_path / "first")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    first = SentenceEncoder(str(folder)).fit()
    assert_allclose(first.transform(["good bad", "bad good"]), array_of("1 0; 0 1"))
    assert first.digest_ != encoder.digest_
    (folder / "config.json").write_text('{"max_position_embeddings": 1}')  # tokens
    cut = SentenceEncoder(str(folder)).fit()
    assert_allclose(cut.transform(["bad good good"]), [[0, 1]])


def test_a_text_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, seen = make_encoder(tmp_path / "encoder"), []
    of_folder = sentences._of_folder

    def watched(path: Path):
        encode = of_folder(path)
        return lambda text: seen.append(text) or encode(text)

    monkeypatch.setattr(sentences, "_of_folder", watched)
    first = SentenceEncoder(str(folder)).fit()
    before = first.transform(["good", "bad", "good"])
    assert_array_equal(SentenceEncoder(str(folder)).transform(["good"]), before[:1])
    assert sorted(seen) == ["bad", "good"]
    first.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert_array_equal(again.transform(["bad", "food"])[:1], before[1:2])
    assert sorted(seen) == ["bad", "food", "good"]
    make_encoder(folder, TABLE + 1)
    other = load(tmp_path / "saved")
    for _ in range(2):
        with pytest.raises(DataError, match="not the encoder that the model was trained with"):
            other.transform(["good"])


def test_what_is_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--encoder=.*no: model\.onnx is missing"):
        SentenceEncoder(str(tmp_path / "no")).fit()
    folder = make_encoder(tmp_path / "encoder")
    (folder / "model.onnx").write_bytes(b"damaged")
    raises(DataError, "not an encoder", SentenceEncoder(str(folder)).transform, ["good"])
    (folder / "tokenizer.json").unlink()
    raises(UsageError, r"tokenizer\.json is missing", SentenceEncoder(str(folder)).fit)
    with pytest.raises(DataError, match="texts"):
        SentenceEncoder(str(make_encoder(tmp_path / "other"))).transform([1])
    with pytest.raises(UsageError, match="needs sentence-transformers"):
        SentenceEncoder("sentence-transformers:no").fit()


def test_a_network_or_a_configuration_that_cannot_be_used(tmp_path: Path) -> None:
    folder = make_encoder(tmp_path / "encoder")
    (folder / "config.json").write_text('{"max_seq_length": "many"}')
    with pytest.raises(DataError, match=r"not an encoder .*Export it again"):
        SentenceEncoder(str(folder)).transform(["good"])
    (folder / "config.json").unlink()
    network = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(network.replace(b"input_ids", b"pixel_ids"))
    with pytest.raises(DataError, match=r"not an encoder .*pixel_ids.* Export it again"):
        SentenceEncoder(str(folder)).transform(["good"])


def test_a_package_that_cannot_load_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise OSError(f"{name} is not a local folder")

    package = types.SimpleNamespace(SentenceTransformer=unknown)
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    with pytest.raises(DataError, match="--encoder=sentence-transformers:no: cannot be loaded"):
        SentenceEncoder("sentence-transformers:no").fit()


@pytest.mark.parametrize("method", ["mv_lr", "auto"])
def test_a_model_takes_vectors_and_predict_makes_them(tmp_path: Path, method: str, cli) -> None:
    rng = default_rng(0)  # no two texts share a word
    texts = np.array(["".join(rng.choice(list("abcdefgh"), 7)) for _ in range(48)], object)
    labels = np.arange(48) % 2
    crowd = Annotations.from_dense(np.stack([labels, labels, labels ^ (np.arange(48) % 7 == 0)], 1))
    vocabulary = WORDS | {text: 4 + row for row, text in enumerate(texts)}
    table = np.concatenate([TABLE, 2 * np.eye(2)[labels] + rng.normal(size=(48, 2)) / 5])
    folder = make_encoder(tmp_path / "encoder", table, vocabulary)
    encoder = SentenceEncoder(str(folder)).fit()
    model = TextClassifier(encoder, estimator=TwoStageClassifier())
    if method == "auto":
        model = Auto(("ds_lr",), encoder=encoder)
    model.fit(texts, crowd)
    expected = model.predict_proba(texts)
    assert (expected.argmax(axis=1) == labels).all()
    if method == "auto":
        scores = model.recommendation_["representations"]
        assert scores["encoder"] > scores["tfidf"]
        assert model.recommendation_["text"].endswith("represented by the encoder's vectors.")
    saved = export_saved_model(model, tmp_path / "model")
    names = json.loads((saved / "assets.extra" / "names.json").read_text())
    assert names["encoder"] == {"source": str(folder), "digest": encoder.digest_}
    scorer = Scorer(saved)
    assert scorer.shape == (2,) and not scorer.takes_texts
    assert_allclose(scorer.probabilities(encoder.transform(texts)), expected, atol=1e-5)
    (tmp_path / "texts.csv").write_text("task,text\n1,good\n2,bad\n")
    flags = [f"--model={saved}", f"--texts={tmp_path / 'texts.csv'}", "--output=-"]
    rows = list(csv.reader(cli("predict", flags).out.splitlines()))
    assert [row[1] for row in rows[1:]] == ["0", "1"]
    other = make_encoder(tmp_path / "other", TABLE + 1)
    assert "not the encoder that" in cli("predict", [*flags, f"--encoder={other}"], 2).err


def test_the_shared_encoder(data_dir: Path) -> None:
    if not (data_dir / "sentence_encoder" / "model.onnx").exists():
        pytest.skip("needs the shared sentence encoder")
    encoder = SentenceEncoder(str(data_dir / "sentence_encoder")).fit()
    texts = ["A cat sits on the mat.", "A kitten rests on a rug.", "Shares fell on Monday."]
    near, far = encoder.transform(texts)[1:] @ encoder.transform(texts[:1])[0]
    assert near > 0.5 > 0.2 > far
