"""At most 16 of our own frames stand between `fit` and the optimizer's update."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import keras
import pytest

from neucrowd_tf import registry
from neucrowd_tf.harness import plugins
from neucrowd_tf.training.run import Run
from tests.test_common import crowd_data, make

plugins.register(("baselines", "data"))

MOST = 16
METHODS = (
    "crowd_layer",
    "annot_mix",
    "wdn",
    "mv_dl",
    "rll",
    "mbem",
    "max_mig",
    "dasc_crowd_layer",
    "neucrowd",
    "iced",
    "crowding",
)
FOLDERS = tuple(str(Path(__file__).parents[1] / name) for name in ("neucrowd_tf", "baselines"))


def ours(frame: Any) -> list[str]:
    """Returns our frames on the stack, outermost first."""
    names = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(FOLDERS):
            names.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return names[::-1]


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Our frames at each update that an optimizer makes."""
    stacks: list[list[str]] = []
    apply = keras.optimizers.Optimizer.apply

    def watched(self: Any, *arguments: Any, **options: Any) -> Any:
        stacks.append(ours(sys._getframe()))
        return apply(self, *arguments, **options)

    monkeypatch.setattr(keras.optimizers.Optimizer, "apply", watched)
    return stacks


@pytest.mark.parametrize(
    ("name", "ensemble"),
    [
        pytest.param(name, size, marks=[] if name == "neucrowd" else pytest.mark.ci)
        for name, size in (*((name, 1) for name in METHODS), ("crowd_layer", 2))
    ],
)
def test_frames_between_fit_and_update(
    name: str, ensemble: int, updates: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    method = registry.method(name)
    x, crowd, _, held, _ = crowd_data(2)
    estimator = make(method) if ensemble == 1 else method.make(ensemble=2, epochs=1)
    profiled: list[list[str]] = []
    code = keras.optimizers.Optimizer.apply.__code__

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is code:
            profiled.append(ours(frame))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "mv_dl":  # of one method by the profiler too, with which a fit takes long
            sys.setprofile(profile)
        try:
            estimator.fit(x, crowd, held, run=Run(progress=False))
        finally:
            sys.setprofile(None)
    frames = max(updates, key=len)
    assert len(frames) <= MOST, f"{len(frames)} frames: {' > '.join(frames)}"
    assert name != "mv_dl" or updates == profiled
