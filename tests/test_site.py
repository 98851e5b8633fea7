"""The site has an entry of the API for every public name."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.declare.declarations import declared
from tests.test_pages import script

ROOT = Path(__file__).resolve().parent.parent


def inventory(path: Path) -> set[str]:
    """Returns the names of an inventory: four lines of heading, then compressed ones."""
    packed = path.read_bytes().split(b"\n", 4)[4]
    return {line.split()[0] for line in zlib.decompress(packed).decode().splitlines() if line}


@pytest.fixture(scope="module")
def site() -> Any:
    """The hooks of the site, docs/site.py."""
    pytest.importorskip("mkdocstrings")
    return script("site")


def test_functions_have_spaces_and_primes_stand_in_the_line(site: Any) -> None:
    formula = site.FORMULA.sub(site._mathml, r"$\lambda \log D(y) + \log(1 - N'_c) \min_c a$")
    before, after = formula.split("<mo>&#x0002B;</mo>")
    space = r'<mspace width="[\d.]+em"\s*/>'
    assert re.search(rf"{space}<mi>log</mi>{space}<mi>D</mi>", before)
    assert re.match("<mi>log</mi><mo", after)
    assert "<mi>N</mi><mi>&#x02032;</mi></mrow><mi>c</mi></msub>" in after


def test_code_of_a_table_is_code(site: Any) -> None:
    assert site._table_row(["a `b<c` d", "`"], "td") == (
        "<tr><td>a <code>b&lt;c</code> d</td><td>`</td></tr>"
    )


def test_every_public_name_has_an_entry(tmp_path: Path, site: Any) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=600)
    present = inventory(tmp_path / "objects.inv")
    for module in ("neucrowd_tf", *site.API):
        absent = set(site.public(module).values()) - present - set(site.API)  # modules: pages
        assert not absent, f"{module}: {absent} not in the API reference"
    import neucrowd_tf

    assert set(site.public("neucrowd_tf")) == set(neucrowd_tf.__all__) - {"__version__"}
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'(?<!<span>)<math[^>]*display="inline"', text), (
            f"{page}: a formula breaks"
        )
    for module in site.API:
        text = (tmp_path / "reference" / "api" / f"{module}.html").read_text(encoding="utf-8")
        for name, path in site.public(module).items():
            kind = getattr(importlib.import_module(module), name)
            if f'id="{path}"' in text and dataclasses.is_dataclass(kind) and declared(kind):
                entry = text.partition(f'id="{path}"')[2]
                assert declared(kind)[0].name in entry.partition("Source code")[0], path
    search = (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")
    index = json.loads(search)
    # Without it, prefixes such as "learn" find nothing: so many words make the index collide.
    assert "_" in index["config"]["separator"]
    texts = {entry["location"]: entry["text"] for entry in index["docs"]}
    for uri, words in site.WORDS.items():
        name = uri.replace("README", "index").replace(".md", ".html")
        assert words in texts[name], uri
    assert '"title":"NeuCrowd"' in search.replace('": "', '":"')
