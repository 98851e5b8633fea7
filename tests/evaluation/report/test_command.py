"""neucrowd report: what it reads, and one line for whatever is wrong."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.cli.commands import call

pytestmark = pytest.mark.usefixtures("inferred_once")


def test_names_and_signs_of_the_users_own(tmp_path: Path, cli) -> None:
    rows = [f"{task};gpt;{'xy'[task % 2]}" for task in range(8)]
    rows += [f"{task};{who};{'xy'[task % 2]}" for task in range(8) for who in "uv"]
    (tmp_path / "a.csv").write_text("\n".join(["text id;who;said", *rows]) + "\n")
    (tmp_path / "t.csv").write_text("text id;said\n0;x\n1;y\n")
    output = tmp_path / "page.html"
    flags = [f"--annotations={tmp_path / 'a.csv'}", f"--gold={tmp_path / 't.csv'}"]
    flags += ["--separator=;", "--task_column=text id"]
    flags += ["--worker_column=who", "--label_column=said"]
    named = [*flags, "--model_annotator=gpt"]
    assert cli("report", [*named, f"--output={output}"]).out.strip() == str(output)
    page = output.read_text(encoding="utf-8")
    assert "is a model and is left out" in page and "Model &#39;gpt&#39;: " in page
    assert cli("report", [*named, "--output=-"]).out == page
    unknown = [*flags, "--model_annotator=claude", f"--output={output}"]
    assert "--model_annotator: no annotator is named" in cli("report", unknown, 2).err


def test_flags(tmp_path: Path, cli) -> None:
    wrong = {
        "--anotations=x": "flag 'anotations'. Did you mean: annotations",
        "--annotations=/none.csv": "no such file",
        "--gold=t.csv": "--annotations is missing",
    }
    for flags, message in (([flag], message) for flag, message in wrong.items()):
        error = cli("report", flags, 2).err
        assert message in error and error.count("\n") == 1
    assert call("report", [f"--annotations={tmp_path}/a.csv", f"--output={tmp_path}"]) == 2


CASES = {
    "ordinal": "task,A,B,C,D\nu1,1,1,,1\nu2,2,2,3,2\nu3,3,3,3,3\nu4,3,3,3,3\nu5,2,2,2,2\nu6,1,2,3,4"
    "\nu7,4,4,4,4\nu8,1,1,2,1\nu9,2,2,2,2\nu10,,5,5,5\nu11,,,1,1\nu12,,3,,\n",
    "votes": "item,votes_1,votes_3\nt0,0,5\nt1,0,4\nt2,0,4\nt3,0,4\nt4,1,4\n",
    "texts": "task,worker,label\n"
    + "".join(f"{i},{w},{x}\n" for i in range(4) for w, x in zip("abc", "lmh", strict=True)),
    "one": "task,worker,label\n" + "".join(f"{i},{w},high\n" for i in range(3) for w in "abc"),
    "ten": "task,worker,label\n"
    + "".join(f"{i},{w},{(i + k * i) % 10 + 1}\n" for i in range(40) for k, w in enumerate("abc")),
    "halves": "task,worker,label\n"
    + "".join(f"{i},{w},{1 + (i * k) % 3 / 2}\n" for i in range(40) for k, w in enumerate("abc")),
}


def _reported(tmp_path: Path, name: str, *flags: str) -> tuple[int, str, dict[str, float]]:
    """Returns the exit code, the page, and the coefficients in the file."""
    (tmp_path / "a.csv").write_text(CASES[name])
    files = [f"--output={tmp_path / 'p.html'}", f"--agreement={tmp_path / 'agreement'}"]
    code = call("report", [f"--annotations={tmp_path / 'a.csv'}", *files, *flags])
    if code:
        assert not (tmp_path / "agreement").exists()
        return code, "", {}
    table = (tmp_path / "agreement" / "coefficients.csv").read_text().splitlines()[1:]
    values = {row.split(",")[0]: float(row.split(",")[2] or "nan") for row in table}
    return code, html.unescape((tmp_path / "p.html").read_text(encoding="utf-8")), values


def test_the_page_does_not_overwrite_a_table_of_agreement(tmp_path: Path, cli) -> None:
    (tmp_path / "a.csv").write_text(CASES["votes"])
    page = tmp_path / "agreement" / "items.csv"
    flags = [f"--annotations={tmp_path / 'a.csv'}", f"--output={page}"]
    error = cli("report", [*flags, f"--agreement={page.parent}"], 2).err
    assert f"--agreement={page}: --output writes to the same place" in error
    assert not page.exists()


def test_krippendorffs_example_in_a_file(tmp_path: Path) -> None:
    flags = ["--scale=ordinal", "--label_column=A,B,C,D"]
    _, page, values = _reported(tmp_path, "ordinal", *flags)
    assert values["Krippendorff's alpha"] == pytest.approx(0.815, abs=5e-4)
    assert values["percent agreement"] == pytest.approx(0.818, abs=5e-4)
    assert "The order of the classes is 1 < 2 < 3 < 4 < 5." in page
    for piece in ("class against all others", "0.815", "<td>percent agreement</td>"):
        assert piece in page
    assert len((tmp_path / "agreement" / "pairs.csv").read_text().splitlines()) == 7


def test_vote_counts_have_agreement(tmp_path: Path) -> None:
    _, page, values = _reported(tmp_path, "votes")
    assert values["Fleiss' kappa"] == pytest.approx(-1 / 24)
    assert "−0.042" in page and "Pairs are not compared" not in page
    assert not (tmp_path / "agreement" / "pairs.csv").exists()


def test_an_order_of_texts_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _reported(tmp_path, "texts", "--scale=ordinal")[0] == 2
    error = capsys.readouterr().err
    assert "Name h,l,m from the least to the most" in error and "--classes=LEAST" in error
    assert _reported(tmp_path, "texts", "--scale=interval")[0] == 2
    _, page, first = _reported(tmp_path, "texts", "--scale=ordinal", "--classes=l,m,h")
    assert "The order of the classes is l < m < h." in page
    _, page, other = _reported(tmp_path, "texts", "--scale=ordinal", "--classes=m,l,h")
    assert "The order of the classes is m < l < h." in page
    assert other["Gwet's AC2"] == pytest.approx(first["Gwet's AC2"])  # one of each, whatever order
    assert _reported(tmp_path, "texts")[0] == 0


@pytest.mark.parametrize(
    ("name", "order"),
    [("ten", "1 < 2 < 3 < 4 < 5 < 6 < 7 < 8 < 9 < 10"), ("halves", "1 < 1.5 < 2")],
)
def test_numbers_have_their_order(tmp_path: Path, name: str, order: str) -> None:
    _, page, values = _reported(tmp_path, name, "--scale=ordinal")
    assert f"The order of the classes is {order}." in page
    assert values != _reported(tmp_path, name, "--scale=interval")[2]


@pytest.mark.filterwarnings("error")
def test_one_class_prints_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, page, values = _reported(tmp_path, "one")
    assert code == 0 and "warning" not in capsys.readouterr().err.lower()
    assert values["percent agreement"] == 1 and np.isnan(values["Fleiss' kappa"])
    assert "nan" not in page.lower()


def test_texts_of_items_and_ties(tmp_path: Path, cli) -> None:
    labels = ["yes no", *(["no no no", "yes yes yes"] * 3)]
    rows = [f"{task},{who},{label}" for task, row in enumerate(labels)
            for who, label in enumerate(row.split())]  # fmt: skip
    path, output = tmp_path / "a.csv", tmp_path / "p.html"
    table = [f"{row},the text <{row[0]}>" for row in rows]
    path.write_text("\n".join(["item,annotator,label,text", *table]) + "\n")
    assert call("report", [f"--annotations={path}", f"--output={output}"]) == 0
    page = output.read_text(encoding="utf-8")
    assert "the text &lt;0&gt;" in page and "tie of 2" in page
    # The interval of the expected accuracy is on its tile.
    tile = r"<b>0\.\d+</b><span>\[0\.\d+, [01]\.\d+\]<br></span><span>expected"
    assert re.search(tile, page)
    plan = cli("relabel", [f"--annotations={path}", "--budget=2"]).out.splitlines()
    assert any(row.endswith(",the text <0>") for row in plan)


def test_decimal_commas_are_numbers_of_a_scale(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Item;Rater;Score\n0;a;2,5\n0;b;1,0\n1;a;2,5\n1;b;1,0\n")
    output = f"--output={tmp_path / 'p.html'}"
    assert call("report", [f"--annotations={tmp_path / 'a.csv'}", "--scale=interval", output]) == 0
