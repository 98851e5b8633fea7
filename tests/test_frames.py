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


def deepest_update(estimator: Any, *data: Any, **options: Any) -> list[str]:
    """Returns our frames, outermost first, at the deepest update that a fit makes."""
    deepest: list[str] = []
    updates = {keras.optimizers.Optimizer.apply.__code__}

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal deepest
        if event != "call" or frame.f_code not in updates:
            return
        ours = []
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(FOLDERS):
                ours.append(f"{Path(code.co_filename).name}:{code.co_qualname}")
            frame = frame.f_back
        deepest = max(deepest, ours[::-1], key=len)

    sys.setprofile(watch)
    try:
        estimator.fit(*data, **options)
    finally:
        sys.setprofile(None)
    return deepest


@pytest.mark.parametrize(
    ("name", "ensemble"), [*((name, 1) for name in METHODS), ("crowd_layer", 2)]
)
def test_frames_between_fit_and_update(name: str, ensemble: int, tmp_path: Path) -> None:
    method = registry.method(name)
    x, crowd, _, held, _ = crowd_data(2)
    estimator = make(method)
    if ensemble > 1:
        rounds = {"rounds": 1} if "rounds" in (method.parameter_names or ()) else {}
        estimator = method.make(ensemble=2, epochs=1, **rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frames = deepest_update(estimator, x, crowd, held, run=Run(progress=False))
    assert frames and len(frames) <= MOST, f"{len(frames)} frames: {' > '.join(frames)}"
