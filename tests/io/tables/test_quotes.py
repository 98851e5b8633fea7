"""Two stray quotes make one cell of all rows between them; comments of several lines are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from neucrowd_tf.io.features.texts import read_texts

from neucrowd_tf.aggregation.engine.source import find_source, vocabulary
from neucrowd_tf.annotations import read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.importers import read_export
from neucrowd_tf.io.tables.format import TableFormat

LONG = (
    "task,worker,label,comment\nt1,a,x,ok\nt1,b,y,{}see note\nt2,a,x,ok\nt2,b,x,ok\n"
    "t3,a,y,a screen of 5{}\nt3,b,y,ok\n"
)
TEXTS = "task,text\nt1,ok\nt2,{}see\nt3,good\nt4,of 5{}\nt5,ok\n"
TOLOKA = (
    "INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\tOUTPUT:remark\n"
    "1.jpg\tyes\ta\t{}see\n1.jpg\tno\tb\tok\n2.jpg\tno\ta\t5{}\n2.jpg\tno\tb\tok\n"
)


def put(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_between_two_quotes(tmp_path: Path) -> None:
    whole = read_annotations(put(tmp_path, LONG.format("", "")))
    assert whole.num_annotations == 6
    path = put(tmp_path, LONG.format('"', '"'))
    with pytest.raises(DataError, match=r"line 3: expected a closing quote, .* up to line 6, "):
        read_annotations(path)
    assert read_annotations(path, layout=TableFormat(exact_names=True)).num_annotations == 3
    windows = put(tmp_path, LONG.format('"', '"').replace("\n", "\r\n"))
    with pytest.raises(DataError, match="line 3"):
        read_annotations(windows)
    neighbours = 'task,worker,label,comment\nt1,a,x,ok\nt1,b,y,"see\nt2,a,x,5"\nt2,b,x,ok\n'
    with pytest.raises(DataError, match=r"line 3.* up to line 4"):
        read_annotations(put(tmp_path, neighbours))


def test_the_engine(tmp_path: Path) -> None:
    (part,) = find_source(put(tmp_path, LONG.format('"', '"'))).parts
    with pytest.raises(DataError, match=r"line 3: expected a closing quote, .* up to line 6"):
        vocabulary(part)
    (part,) = find_source(tmp_path / part.files[0], TableFormat(exact_names=True)).parts
    assert len(vocabulary(part)[0]) == 2
    (part,) = find_source(put(tmp_path, LONG.format('"', '\n\n"'))).parts
    with pytest.raises(DataError, match="line 3"):
        vocabulary(part)
    (part,) = find_source(put(tmp_path, LONG.format("", "").replace("ok\n", '"a\nb"\n'))).parts
    assert len(vocabulary(part)[0]) == 2


def test_texts_and_exports(tmp_path: Path) -> None:
    assert len(read_texts(put(tmp_path, TEXTS.format("", "")))[0]) == 5
    with pytest.raises(DataError, match="line 3: expected a closing quote"):
        read_texts(put(tmp_path, TEXTS.format('"', '"')))
    with pytest.raises(DataError, match="line 2: expected a closing quote"):
        read_export(put(tmp_path, TOLOKA.format('"', '"'), "a.tsv"), "toloka", question="result")
    with pytest.raises(DataError, match="line 2: expected a table"):  # where the quote opens
        read_export(put(tmp_path, TOLOKA.format('"', ""), "a.tsv"), "toloka", question="result")


COMMENTS = (
    "first\nsecond",
    "a list:\n- one, two, three, four\n\n- five",
    "I saw\nyes, no, maybe, and more",
    "two\nand, then, three",
    "one\n\n\n",
    "t9,a,x,ok\nbut no row",
    "\n",
)


@pytest.mark.parametrize("comment", COMMENTS)
def test_comments_of_several_lines(tmp_path: Path, comment: str) -> None:
    text = f'task,worker,label,comment\nt1,a,x,"{comment}"\nt1,b,y,ok\nt2,a,x,"{comment}"\n'
    assert read_annotations(put(tmp_path, text)).num_annotations == 3


@pytest.mark.parametrize(
    "text", ["Dear\nall, I am", "one kilo\n1,5 kg", "Hello\nyes,no", "a\n2,5\n3,5\n", "a, b\nc, d"]
)
def test_texts_of_several_lines(tmp_path: Path, text: str) -> None:
    rows = "".join(f"{i},ok\n" for i in range(2, 9))
    assert read_texts(put(tmp_path, f'task,text\n1,"{text}"\n{rows}'))[1][0] == text
