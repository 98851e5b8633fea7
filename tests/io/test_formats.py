"""Files of other formats, texts beside labels, and the size of an inference."""

from __future__ import annotations

import bz2
import lzma
import re
import tarfile
from pathlib import Path

import pytest

from neucrowd_tf.cli.commands.reading import check_size
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from tests.cases import raises
from tests.io.reading import message, read, rows
from tests.io.test_proposals import PASTED

LONG = rows("task,annotator,label", "1,a,x", "1,b,y", "2,a,y", "2,b,y").encode()


def test_packed_files_are_read(tmp_path: Path) -> None:
    expected = read(tmp_path, LONG).annotations
    packed = {"a.csv.bz2": bz2.compress(LONG), "a.csv.xz": lzma.compress(LONG)}
    for name, content in packed.items():
        assert read(tmp_path, content, name).annotations == expected
    pa = pytest.importorskip("pyarrow")
    with pa.CompressedOutputStream(str(tmp_path / "b.zst"), "zstd") as stream:
        stream.write(LONG)
    assert read(tmp_path, (tmp_path / "b.zst").read_bytes(), "a.tsv.zst", separator=",")


FOREIGN = {
    "a.tar": (None, "this is a tar archive. Unpack it and name one of its files"),
    "a.csv": (LONG.decode().encode("utf-16-le"), "UTF-16 without a mark. Save the file as UTF-8"),
    "b.csv": (b"PAR1" + bytes(range(90)), "this is a Parquet file. Name it with the ending"),
    "a.json": (b"\x80\x04\x95\x10" * 9, "this is a pickle, which is never opened"),
    "c.csv": (b"SQLite format 3\0" * 9, "this is a database of SQLite"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_formats_are_named(name: str, tmp_path: Path) -> None:
    content, words = FOREIGN[name]
    if content is None:
        (tmp_path / "x.csv").write_bytes(LONG)
        with tarfile.open(tmp_path / "y.tar", "w") as archive:
            archive.add(tmp_path / "x.csv", "x.csv")
        content = (tmp_path / "y.tar").read_bytes()
    assert words in message(tmp_path, content, name)


def test_standard_input_is_no_file_of_labels(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"standard input cannot be read: .* Write it to a file"):
        read_annotations("-")


def test_texts_of_a_table_reach_its_reader(tmp_path: Path) -> None:
    texts = {
        "1": "Good and long enough",
        "2": "Bad but long enough too",
        "3": "Another that is long",
    }
    table = rows("item,review,ann,bob", *(f"{item},{text},x,y" for item, text in texts.items()))
    wide = read(tmp_path, table, task_column="item", label_column="ann,bob")
    assert wide.texts == texts
    long = read(tmp_path, rows("item,text,annotator,label", "1,t1,a,x", "1,t1,b,y", "2,t2,a,y"))
    assert long.texts == {"1": "t1", "2": "t2"}
    notes = read(tmp_path, rows("item,comment,annotator,label", "1,u,a,x", "1,v,b,y", "2,w,a,y"))
    assert not notes.texts  # they are the annotators'


def test_the_size_of_an_inference_is_said_and_bounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rows("task,annotator,label", *(f"t{i // 2},a{i % 2},c{i // 4}" for i in range(800)))
    crowd = read(tmp_path, table).annotations
    capsys.readouterr()
    check_size(Path("a.csv"), crowd)
    assert not capsys.readouterr().err
    monkeypatch.setattr("neucrowd_tf.cli.commands.reading.LARGE", 10_000)
    check_size(Path("a.csv"), crowd)
    words = "200 classes x 200 x 2 annotators: confusion matrices of 80,000 cells"
    assert words in capsys.readouterr().err
    monkeypatch.setattr("neucrowd_tf.cli.commands.reading.MOST_CELLS", 79_999)
    with pytest.raises(DataError, match=re.escape(f"a.csv: {words}, more than 79,999.")):
        check_size(Path("a.csv"), crowd)


def test_files_that_are_read_by_parts_are_asked_about_alike(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from neucrowd_tf.aggregation.engine.source import find_source

    path = tmp_path / "a.csv"
    path.write_text(PASTED["models that are judged"]["table"])
    raises(DataError, "model tells their rows apart", find_source, path)
    found = find_source(path, TableOptions.of(task_column="question,model"))
    assert "item question,model, annotator judge" in found.lines[0]
