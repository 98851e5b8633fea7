"""Whose a checkpoint is."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from neucrowd_tf.training.run import Run, owner_of
from tests.processes import python

DENSE = np.array([[0, 1], [1, 1], [0, -1], [1, 0]])
X = np.arange(8, dtype=np.float32).reshape(4, 2)
TEXTS = np.array([f"a text of {row}" for row in range(4)], dtype=object)


class Given:
    """What has arguments."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.arguments


def test_other_arguments_or_data_are_another_owner() -> None:
    crowd, votes = Annotations.from_dense(DENSE), Annotations.from_votes(np.array([[1, 1]] * 4))
    plain = Given(seed=0, rate=0.1, sizes=(3, 4), model=None)
    owners = [
        owner_of(plain, X, crowd),
        owner_of(Given(**plain.arguments | {"seed": 1}), X, crowd),
        owner_of(Given(**plain.arguments | {"sizes": (4, 3)}), X, crowd),
        owner_of(Given(**plain.arguments | {"model": Given(seed=1)}), X, crowd),
        owner_of(Given(**plain.arguments | {"model": Given(seed=2)}), X, crowd),
        owner_of(Given(**plain.arguments | {"model": "dense"}), X, crowd),
        owner_of(Given(**plain.arguments | {"model": keras.optimizers.SGD(0.1)}), X, crowd),
        owner_of(Given(**plain.arguments | {"model": keras.optimizers.SGD(0.2)}), X, crowd),
        owner_of(TwoStageClassifier(), X, crowd),
        owner_of(plain, X + 1, crowd),
        owner_of(plain, TEXTS, crowd),
        owner_of(plain, X, crowd.select(np.arange(crowd.num_annotations) > 0)),
        owner_of(plain, X, votes),
        owner_of(plain, X, crowd, X[:1], np.array([1])),
    ]
    assert len(set(owners)) == len(owners)
    again = Given(**plain.arguments | {"model": keras.optimizers.SGD(0.1)})
    assert owner_of(again, X, crowd) == owners[6]


def test_an_owner_is_the_same_in_each_process(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = f"""
from typing import Any
import numpy as np
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.training.run import owner_of
DENSE, TEXTS = np.array({DENSE.tolist()}), np.array({TEXTS.tolist()}, dtype=object)
{inspect.getsource(Given)}
inner = Given(weights={{np.int64(0): 2.0, "b": (1, None)}})
given = Given(act=np.tanh, each=[len, Given], a={{np.int64(1): len, "b": 2}}, inner=inner)
print(owner_of(given, TEXTS, Annotations.from_dense(DENSE)))
"""
    done = python(repository, "-c", program, check=True)
    exec(program, {"__name__": "__main__"})
    assert capsys.readouterr().out == done.stdout


@pytest.mark.parametrize("features", [X, TEXTS])
def test_a_fits_checkpoints_are_its_own(
    features: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(seed: int = 0) -> Any:
        model = TwoStageClassifier(seed=seed)
        return model if features is X else TextClassifier(estimator=model)

    owners: list[str] = []
    monkeypatch.setattr(TwoStageClassifier, "_fit", lambda self, _, run: owners.append(run.owner))
    run = Run(checkpoints=tmp_path)
    for seed, passed in ((0, run), (0, run), (1, run), (0, Run(checkpoints=tmp_path, owner="x"))):
        make(seed).fit(features, Annotations.from_dense(DENSE), run=passed)
    assert owners[0] == owners[1] != owners[2] and owners[3] == "x"
    make().fit(features, Annotations.from_dense(DENSE))
    assert owners[4] == ""  # no checkpoints are anybody's


def test_texts_and_their_encoder_decide_and_not_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Encoder:
        takes = "texts"

        def __init__(self, digest: str, value: float) -> None:
            self.digest_, self.value = digest, value

        def transform(self, texts: np.ndarray) -> np.ndarray:
            return np.full((len(texts), 2), self.value, np.float32)

    owners: list[str] = []
    monkeypatch.setattr(TwoStageClassifier, "_fit", lambda self, _, run: owners.append(run.owner))
    crowd, held = Annotations.from_dense(DENSE), (TEXTS[:2], [0, 1])
    for digest, value, validation in (
        ("a", 1.0, held),
        ("a", 1.0 + 1e-7, held),
        ("b", 1.0, held),
        ("a", 1.0, (TEXTS[2:], [0, 1])),
    ):
        model = TextClassifier(Encoder(digest, value), estimator=TwoStageClassifier())
        model.fit(TEXTS, crowd, validation, run=Run(checkpoints=tmp_path))
    assert owners[0] == owners[1] and len(set(owners)) == 3
