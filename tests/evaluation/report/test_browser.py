"""The page in a real browser: no error in its console, nothing wider than the window, nothing run
that a name brings along.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.evaluation.report.build import build_report, write_report

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium: install the system's package `chromium`"
)

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"),
    "--enable-logging=stderr",
)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# Asks the page how wide it is, in a copy without the policy that forbids scripts.
PROBE = """<script>addEventListener("load", () => {
  const right = e => e.getBoundingClientRect().right;
  const wide = [...document.querySelectorAll("body *")].filter(e => right(e) > innerWidth + 1 && !e.closest(".scroll") && !e.closest("svg"));
  const small = [...document.querySelectorAll("p, td, th, figcaption, li")].filter(e => parseFloat(getComputedStyle(e).fontSize) < 12);
  const cut = [...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1);
  document.documentElement.dataset.probe = [innerWidth, document.documentElement.scrollWidth, wide.length, small.length, cut.length].join(" ");
});</script></body>"""  # noqa: E501


def _browse(page: Path, profile: Path, width: int, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},1200"]
    command += [*flags, page.as_uri()]
    environment = {**os.environ, "HOME": str(profile.parent)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=True
    )


def _console(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in result.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture
def pages(
    tmp_path: Path, run_folder: Path, dataset: CrowdDataset, hostile: Annotations
) -> dict[str, Path]:
    metrics = json.loads((run_folder / "metrics.json").read_text())
    names = tmp_path / "hostile.html"
    names.write_text(build_report(hostile), encoding="utf-8")
    return {"run": write_report(run_folder, dataset, metrics), "hostile": names}


@pytest.mark.parametrize(
    "width", [500, pytest.param(1400, marks=pytest.mark.slow)]
)  # the narrowest window of a headless Chromium is 500 wide; a frame makes it 400
def test_it_opens_without_errors_and_fits(
    pages: dict[str, Path], tmp_path: Path, width: int
) -> None:
    for name, page in pages.items():
        assert not _console(_browse(page, tmp_path / f"profile-{name}", width, "--dump-dom"))
        probe = tmp_path / f"probe-{name}.html"
        probe.write_text(
            POLICY.sub("", page.read_text(encoding="utf-8")).replace("</body>", PROBE),
            encoding="utf-8",
        )
        shown = probe
        if width == 500:
            shown = tmp_path / f"frame-{name}.html"
            inner = probe.read_text(encoding="utf-8").replace("&", "&amp;").replace('"', "&quot;")
            script = """<script>addEventListener("load", () => {
              const inside = document.querySelector("iframe").contentDocument.documentElement;
              document.documentElement.dataset.probe = inside.dataset.probe; });</script>"""
            frame = f'<iframe style="width:400px;height:1000px;border:0" srcdoc="{inner}"></iframe>'
            shown.write_text(f"<!doctype html><body>{frame}{script}</body>", encoding="utf-8")
        result = _browse(
            shown, tmp_path / f"profile-{name}", width, "--dump-dom", "--virtual-time-budget=5000"
        )
        probed = re.search(r'<html[^>]* data-probe="(\d+) (\d+) (\d+) (\d+) (\d+)"', result.stdout)
        assert probed is not None, result.stdout[:300]
        inside, scroll, wide, small, cut = (int(number) for number in probed.groups())
        assert inside == (400 if width == 500 else 1400)
        assert (scroll, wide, small) == (inside, 0, 0)
        # With enough room, no table has to be scrolled sideways.
        assert cut == 0 or width == 500 or name == "hostile"
        assert "<title>taken" not in result.stdout and not _console(result)
