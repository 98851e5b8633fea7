"""Files of which labels were once lost, taken or pooled without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.io.test_shapes import message, read
from tests.io.test_shapes import rows as table

HEADER = "item,annotator,label,note"
BESIDE = ("b,x,1,ok", "b,y,1,ok", "c,x,0,ok", "d,x,1,ok", "d,y,0,ok")
LONE = table(HEADER, 'a,x,1,"hm', *BESIDE[:3], 'c,y,0,hm"', *BESIDE[3:])

# By what is wrong: the content, its ending, and words of the message.
REFUSED: dict[str, tuple[Any, str, str]] = {
    "lone marks": (LONE, "csv", "line 2: a quotation mark opens a cell with the row"),
    "of tabs": (LONE.replace(",", "\t"), "tsv", "the row of line 3"),
    "marks alone": (
        table(HEADER, 'a,x,1,"', *BESIDE[:3], 'c,y,0,"', *BESIDE[3:]), "csv", "the row of line 3"
    ),
    "marks in the first column": (
        table("note,item,annotator,label", '",a,x,1', '",a,y,1', "ok,b,x,1", "ok,b,y,0"), "csv",
        "line 2: a quotation mark opens a cell with the row of line 2",
    ),
    "an open mark": (table(HEADER, *BESIDE, 'a,x,1,"hm', "a,y,1,ok"), "csv", "lines 7 to 8: this"),
}  # fmt: skip
BROKEN = table(HEADER, 'a,x,1,"well, I do\nso, a, b, c"', 'a,y,0,"a, b\nc,y,z,c"')
READ: dict[str, tuple[Any, str, str]] = {
    "line breaks": (BROKEN, "csv", "2 labels of 1 item by 2 annotators"),
    "line breaks in the first column": (
        table("note,item,annotator,label", '"so\nwell",a,x,1', '"so\nno",a,y,0'),
        "csv",
        "2 labels of 1 item by 2 annotators",
    ),
    "ids of annotations": (
        table("annotation_id,item,annotator,label", "0,a,x,1", "1,a,y,0", "2,b,x,0", "3,b,y,0"),
        "csv",
        "long table, 4 labels of 2 items by 2 annotators; item item",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, tmp_path: Path) -> None:
    content, end, words = REFUSED[case]
    assert words in message(tmp_path, content, f"a.{end}")


@pytest.mark.parametrize("case", READ)
def test_what_is_read(case: str, tmp_path: Path) -> None:
    content, end, words = READ[case]
    assert words in read(tmp_path, content, f"a.{end}").lines[0]
