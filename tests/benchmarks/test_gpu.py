"""The comparison of a GPU with the CPU, as far as a CPU goes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import gpu
from neucrowd_tf.errors import UsageError

FIRST, OTHER = ("tiny", "CPU", "plain"), ("tiny", "CPU", "xla")


def test_fits_on_a_cpu_have_no_faults_and_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(gpu.CASES, "tiny", gpu.Case("crowd_layer", (200, 8, 5, 3, 2)))
    options = argparse.Namespace(output_dir=tmp_path, data_dir=tmp_path, small=True)
    figures = {fit: gpu.measure(*fit, options) for fit in (FIRST, OTHER)}
    assert figures[FIRST]["faults"] == [] and not figures[FIRST]["resumed"]
    assert figures[OTHER]["same_weights"] < 1e-5 and figures[OTHER]["same_classes"] == 1.0
    assert gpu.problems(figures) == []
    assert gpu.measure(*OTHER, options) == figures[OTHER]  # what ended is kept
    (tmp_path / "tiny" / "CPU-xla" / "figures.json").unlink()  # killed after its fit
    again = gpu.measure(*OTHER, options)
    assert again["resumed"] and again["same_classes"] == 1.0


def test_the_page_says_what_was_not_measured_and_what_differs() -> None:
    wrong = {"seconds": 2.0, "same_weights": 0.5, "faults": ["Python: f"]}
    figures = {FIRST: {"seconds": 4.0}, OTHER: wrong, ("tiny", "GPU", "plain"): {}}
    text = gpu.page(figures, {"CPU": "x"}, "python")
    assert "- GPU: not measured" in text and "| tiny | GPU | plain | not measured |" in text
    assert "- tiny, CPU, xla: other predictions with the same weights" in text
    assert "| tiny | CPU | xla | 2 | 2 |" in text and "- Python: f" in text
    options = argparse.Namespace(cases="rll", settings="plain,xla", device="gpu")
    assert gpu.plan(options) == [("rll", *x.split()) for x in ("CPU plain", "GPU plain", "GPU xla")]
    with pytest.raises(UsageError, match="TPU: no case, setting or device"):
        gpu.plan(argparse.Namespace(**{**vars(options), "device": "tpu"}))
