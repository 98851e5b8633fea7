"""Files of shapes that were read wrongly without a word: what is read, asked or rejected now."""

from __future__ import annotations

import bz2
import json
import lzma
import re
import shlex
import tarfile
from pathlib import Path

import pytest

from neucrowd_tf.cli.commands.reading import check_size
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from tests.io.reading import message, read, rows

RATED = "abccbaab"


# ------------------------------------------------- rows of one item and annotator

SCORES = rows(
    "question,model,judge,score",
    *(f"q{q},m{m},j{j},{(q + m * j) % 4 // 2}" for q in range(5) for m in range(3) for j in (1, 2)),
)


def test_models_that_are_judged_are_chosen_or_their_last_rows_used(tmp_path: Path) -> None:
    assert read(tmp_path, SCORES, question="model=m1").annotations.num_annotations == 10
    last = read(tmp_path, SCORES, duplicates="last")
    assert last.annotations.num_annotations == 10
    assert "Duplicate (item, annotator) pairs: 20, last used" in last.lines[1]


def test_a_wide_table_has_each_item_once_also_by_flags(tmp_path: Path) -> None:
    flags = {"task_column": "item", "label_column": "ann,bob"}
    table = rows("item,ann,bob", *(f"i{row // 2},x,y" for row in range(8)))
    assert "rows repeat the item (item), so the table is not wide" in message(
        tmp_path, table, **flags
    )
    assert read(tmp_path, table, **flags, duplicates="last").annotations.num_annotations == 8


# ------------------------------------------------- lines and columns that are none


SURVEY = rows(
    "Respondent ID,Collector ID,Is text 1 rude?,Is text 2 rude?",
    ",,Response,Response",
    *(f"{100 + r},9,{'yn'[r % 2]},{'yn'[r // 2 % 2]}" for r in range(6)),
)


def test_a_second_header_is_no_item(tmp_path: Path) -> None:
    flags = {"worker_column": "Respondent ID"}
    assert "Further headers are left out: line 2." in read(tmp_path, SURVEY, **flags).lines
    crowd = read(tmp_path, SURVEY, label_column="Is text 1 rude?,Is text 2 rude?").annotations
    assert crowd.num_instances == 6 and crowd.class_names.tolist() == ["n", "y"]
    codes = SURVEY.replace(",,Response,Response", "id,collector,Rude?,Rude?")
    assert "Further headers" in read(tmp_path, codes, **flags).lines[2]
    # A first row like the others stays.
    plain = rows("item,annotator,label", "t1,ann,x", "t1,bob,y", "t2,ann,y", "t2,bob,y")
    assert read(tmp_path, plain).annotations.num_annotations == 4


def test_a_column_without_values_has_no_role(tmp_path: Path) -> None:
    reading = read(tmp_path, rows("item,ann,bob,dee", "1,x,y,", "2,y,y,", "3,x,x,"))
    assert reading.annotations.annotator_names.tolist() == ["ann", "bob"]
    assert "Columns without values: dee." in reading.lines


# ------------------------------------------------- one judge


def test_one_judge_in_one_column(tmp_path: Path) -> None:
    labels = [f"{i},{'pass' if i % 3 else 'fail'}" for i in range(12)]
    crowd = read(tmp_path, rows("id,judge", *labels)).annotations
    assert crowd.annotator_names.tolist() == ["judge"] and crowd.num_annotations == 12
    # A further column of few values may name annotators.
    others = [f"{label},w{n % 2}" for n, label in enumerate(labels)]
    assert "no annotator" in message(tmp_path, rows("task,label,who", *others))


# ------------------------------------------------- several labels, none of them


def test_label_studios_flat_exports_are_read_as_its_json(tmp_path: Path) -> None:
    flat = [
        {"id": i, "text": f"t{i}", "topics": topics, "annotator": by, "annotation_id": 3 * i + by}
        for i in range(4)
        for by, topics in enumerate(({"choices": ["a", "b"]}, "a", None))
    ]
    del flat[-1]["topics"]
    assert "multi_label=list" in message(tmp_path, flat, "a.json", label_column="topics")
    reading = read(tmp_path, flat, "a.json", label_column="topics", multi_label="list")
    assert reading.annotations.num_annotations == 24
    assert "4 answers have no class" in reading.lines[1]
    cells = ("" if not (topics := row.get("topics")) else topics if topics == "a" else
             json.dumps(topics).replace('"', '""') for row in flat)  # fmt: skip
    table = rows(
        "id,text,topics,annotator,annotation_id",
        *(
            f'{row["id"]},x,"{cell}",{row["annotator"]},1'
            for row, cell in zip(flat, cells, strict=True)
        ),
    )
    again = read(tmp_path, table, label_column="topics", multi_label="list")
    assert again.lines[0].startswith("a.csv: Label Studio, 12 labels of 4 items by 3 annotators")
    frames = [reading.annotations.to_frame(), again.annotations.to_frame()]
    assert len({tuple(sorted(map(str, frame.to_numpy().tolist()))) for frame in frames}) == 1


# ------------------------------------------------- values and bytes


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
    check_size(Path("a.csv"), crowd)
    assert not capsys.readouterr().err
    monkeypatch.setattr("neucrowd_tf.cli.commands.reading.LARGE", 10_000)
    check_size(Path("a.csv"), crowd)
    words = "200 classes x 200 x 2 annotators: confusion matrices of 80,000 cells"
    assert words in capsys.readouterr().err
    monkeypatch.setattr("neucrowd_tf.cli.commands.reading.MOST_CELLS", 79_999)
    with pytest.raises(DataError, match=re.escape(f"a.csv: {words}, more than 79,999.")):
        check_size(Path("a.csv"), crowd)


def test_classes_of_an_answer_in_rows_of_their_own_are_not_dropped(tmp_path: Path) -> None:
    sets = ("x", "xy", "yz", "z", "xz", "y", "xyz", "x")
    table = rows(
        "item,annotator,label",
        *(f"i{i},a{a},{label}" for i in range(8) for a in range(2) for label in sets[(i + a) % 8]),
    )
    shown = message(tmp_path, table)
    assert "8 of 16 pairs of item and annotator have several labels, never one twice" in shown
    assert read(tmp_path, table, duplicates="last").annotations.num_annotations == 16
    again = table + "i0,a0,x\n"  # an item that was labelled again
    assert "Duplicate" in read(tmp_path, again).lines[1]


def test_files_that_are_read_by_parts_are_asked_about_alike(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from neucrowd_tf.aggregation.engine.source import find_source

    path = tmp_path / "a.csv"
    path.write_text(SCORES)
    with pytest.raises(DataError, match="model tells their rows apart"):
        find_source(path)
    found = find_source(path, TableOptions.of(task_column="question,model"))
    assert "item question,model, annotator judge" in found.lines[0]


# ------------------------------------------------- ids that start again, and rows of sums
@pytest.mark.parametrize("column", ["dataset", "batch", "Document ID"])
def test_ids_that_start_again_in_each_part_are_said(column: str, tmp_path: Path) -> None:
    cells = [
        f"{part},{item},{part}{who},{'yn'[item % 2]}"
        for part in ("u", "v")
        for item in range(4)
        for who in "ab"
    ]
    header = "task_id,worker_id,answer"
    text = rows(f"{column},{header}", *cells)
    line = read(tmp_path, text).lines[2]
    assert f"4 of 4 items have several values of {column}, no annotator has" in line
    flag = shlex.split(line)[-1].rstrip(".")
    assert flag == f"--task_column={column},task_id"
    apart = read(tmp_path, text, task_column=f"{column},task_id").lines
    assert "16 labels of 8 items by 4 annotators" in apart[0]
    assert len(apart) == 2
    assert len(read(tmp_path, rows(f"gender,{header}", *cells)).lines) == 2
    shared = text.replace(",va,", ",ua,")
    assert len(read(tmp_path, shared, duplicates="last").lines) == 2
