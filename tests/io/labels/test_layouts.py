"""Annotation files: spellings that survive, aliases, and one clear line for whatever is wrong."""

from __future__ import annotations

import gzip
import json
import pathlib
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import long
from neucrowd_tf.io.tables.format import TableFormat


def csv(tmp_path: pathlib.Path, text: str | bytes) -> pathlib.Path:
    path = tmp_path / "a.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def triples(crowd: Annotations) -> list[tuple]:
    return list(crowd.to_frame().astype(object).itertuples(index=False, name=None))


# A cell's text and what it is read as when the whole column is spelt like that.
SPELLINGS = [
    ("007", "007"),
    ("7", 7),
    ("-3", -3),
    ("+7", "+7"),
    ("-0", "-0"),
    ("--5", "--5"),
    ("7.0", "7.0"),
    ("1e3", "1e3"),
    ("True", True),
    ("true", "true"),
    ("NA", "NA"),
    ("nan", "nan"),
    ("12345678901234567890123", "12345678901234567890123"),
    ('"a,b"', "a,b"),
    ("ü日", "ü日"),
    (" 7", " 7"),
    ("²", "²"),
]


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize(("text", "value"), SPELLINGS)
def test_spelling_is_kept(tmp_path, text, value, column) -> None:
    """Whichever column holds it, alone or after a hundred plain numbers have promised that the
    column is numeric.
    """
    row = ["1", "2", "3"]
    row[column] = text
    crowd = Annotations.from_csv(csv(tmp_path, "task,worker,label\n" + ",".join(row) + "\n"))
    found = triples(crowd)[0][column]
    assert found == value and isinstance(found, type(value))
    plain = "".join(f"{number},{number},{number}\n" for number in range(1000, 1150))
    crowd = Annotations.from_csv(
        csv(tmp_path, "task,worker,label\n" + plain + ",".join(row) + "\n")
    )
    expected = value if isinstance(value, int) and not isinstance(value, bool) else text.strip('"')
    assert triples(crowd)[-1][column] == expected
    assert triples(crowd)[0] == tuple(
        1000 if isinstance(expected, int) or other != column else "1000" for other in range(3)
    )


def test_spellings_that_make_up_for_each_other(tmp_path) -> None:
    """1e3 is a byte shorter than 1000 and +7 a byte longer than 7: together the file is as long as
    plain spelling makes it.
    """
    plain = "".join(f"{number},{number},{number}\n" for number in range(150))
    crowd = Annotations.from_csv(csv(tmp_path, "task,worker,label\n" + plain + "1e3,1,+7\n"))
    assert triples(crowd)[-1] == ("1e3", 1, "+7")
    crowd = Annotations.from_csv(csv(tmp_path, "task,worker,label\n" + plain + "1000,eve,7\n"))
    assert triples(crowd)[-1] == (1000, "eve", 7) and triples(crowd)[0] == (0, "0", 0)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_extra_columns(tmp_path, ending, last) -> None:
    rows = ["task,worker,label", "1,2,0", "10,-3,1", "007,2,1"]
    text = ending.join(rows) + (ending if last else "")
    assert triples(Annotations.from_csv(csv(tmp_path, text))) == [
        ("1", 2, 0),
        ("10", -3, 1),
        ("007", 2, 1),
    ]
    assert triples(Annotations.from_csv(csv(tmp_path, text.replace("007", "7")))) == [
        (1, 2, 0),
        (10, -3, 1),
        (7, 2, 1),
    ]
    wide = (
        ending.join(
            f"{row},{'time' if not number else number * 0.5}" for number, row in enumerate(rows)
        )
        + ending
    )
    assert triples(Annotations.from_csv(csv(tmp_path, wide))) == [
        ("1", 2, 0),
        ("10", -3, 1),
        ("007", 2, 1),
    ]


def test_a_comma_at_the_end_of_each_row_does_no_harm(tmp_path) -> None:
    assert triples(
        Annotations.from_csv(csv(tmp_path, "task,worker,label\n007,2,0,\n8,3,1,\n"))
    ) == [("007", 2, 0), ("8", 3, 1)]


@pytest.mark.parametrize(
    "header",
    [
        "task,worker,label",
        "question,performer,answer",
        "taskId,workerId,response",
        "id,annotator,class",
        "Task, Worker ,LABEL",
    ],
)
def test_aliases(tmp_path, header) -> None:
    crowd = Annotations.from_csv(csv(tmp_path, header + "\nx,w,0\ny,w,1\n"))
    assert triples(crowd) == [("x", "w", 0), ("y", "w", 1)]


TEXT = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0\r\n"), min_size=1, max_size=5
)
IDS = st.one_of(
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=6, unique=True),
    st.lists(TEXT, min_size=1, max_size=6, unique=True),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(IDS, IDS, IDS, st.randoms(use_true_random=False))
def test_csv_and_json_there_and_back(tmp_path, tasks, workers, labels, random) -> None:
    """Ids come back as text or as numbers, whichever they were, unless every text of a column is
    spelt as a plain number.
    """
    cells = [(t, w) for t in tasks for w in workers if random.random() < 0.6] or [
        (tasks[0], workers[0])
    ]
    crowd = Annotations.from_arrays(
        *zip(*cells, strict=True), [random.choice(labels) for _ in cells]
    )
    crowd.to_csv(tmp_path / "a.csv")
    again = Annotations.from_csv(tmp_path / "a.csv")
    assert [tuple(map(str, row)) for row in triples(again)] == [
        tuple(map(str, row)) for row in triples(crowd)
    ]
    assert np.array_equal(again.to_dense() >= 0, crowd.to_dense() >= 0)
    for ours, theirs in zip(crowd.to_frame().items(), again.to_frame().items(), strict=True):
        if all(isinstance(value, int) for value in ours[1].tolist()):
            assert theirs[1].tolist() == ours[1].tolist()
    crowd.to_answers_json(tmp_path / "a.json")
    parsed = Annotations.from_answers_json(tmp_path / "a.json", class_names=crowd.class_names)
    expected = sorted((str(t), str(w), label) for t, w, label in triples(crowd))
    assert sorted(triples(parsed), key=lambda row: row[:2]) == sorted(
        expected, key=lambda row: row[:2]
    )


def test_crowdkit_frame() -> None:
    """crowd-kit's frame, with an index of its own and a column that is not needed."""
    frame = pd.DataFrame(
        {"task": ["t1", "t0"], "worker": ["w", "v"], "label": ["cat", "dog"], "time": [1, 2]},
        index=[9, 4],
    )
    crowd = Annotations.from_frame(frame)
    assert crowd.instance_names.tolist() == ["t1", "t0"] and crowd.class_names.tolist() == [
        "cat",
        "dog",
    ]
    categorical = Annotations.from_frame(frame.astype("category"))
    assert categorical == crowd


def test_wide_frame_of_floats() -> None:
    frame = pd.DataFrame({"a": [0, np.nan], "b": [1, 2]}, index=["x", "y"])
    crowd = Annotations.from_wide_frame(frame)
    assert crowd.class_names.tolist() == [0, 1, 2] and crowd.to_dense().tolist() == [
        [0, 1],
        [-1, 2],
    ]
    assert crowd.instance_names.tolist() == ["x", "y"] and crowd.annotator_names.tolist() == [
        "a",
        "b",
    ]
    with pytest.raises(
        DataError, match=r"wide frame: expected each column name once, received 'a' again"
    ):
        Annotations.from_wide_frame(pd.DataFrame([[0, 1]], columns=["a", "a"]))


HEADER = b"task,worker,label\n"
BAD = {
    "no file": (None, r"a\.csv: no such file"),
    "empty": (b"", r"a\.csv: expected a header and rows, received an empty file"),
    "header only": (
        HEADER,
        r"a\.csv: expected at least one row of task, worker, label, received none",
    ),
    "misspelt": (
        b"task,wroker,label\n1,2,3\n",
        r"a\.csv: expected a column 'worker', received .*'wroker' comes close",
    ),
    "missing": (
        b"task,worker\n1,2\n",
        r"a\.csv: expected a column 'label', received columns 'task', 'worker'; --label_column",
    ),
    "empty cell": (
        HEADER + b"a,b,c\na,,c\n",
        r"a\.csv: line 3, column 'worker': expected a value, received an empty cell",
    ),
    "empty number": (
        HEADER + b"1,2,3\n2,,3\n",
        r"a\.csv: line 3, column 'worker': expected a value, received an empty cell",
    ),
    "duplicate": (
        HEADER + b"1,2,3\n1,2,4\n",
        r"a\.csv: line 3, columns 'task' and 'worker': .* received task 1 and worker 2 again",
    ),
    "bytes": (
        HEADER + b"\xff\xfe,b,c\n",
        r"a\.csv: expected text in UTF-8, received other bytes in line 2 ",
    ),
    "nul": (HEADER + b"a\x00x,b,c\n", r"a\.csv: .*NUL byte in line 2"),
    "long row": (HEADER + b"1,2,3\n1,2,3,4\n", r"a\.csv: expected a CSV, received .*line 3"),
    "long row far below": (
        HEADER + b"".join(b"t%d,w,cat\n" % i for i in range(200)) + b"t,w,cat, big\n",
        r"a\.csv: expected a CSV, .*line 202",
    ),
    "long row behind a lone CR": (HEADER + b"1,2,3\n\r,4,5,6\n", r"a\.csv: .*line 4"),
    "long rows": (
        HEADER + b"".join(b"t%d,w,cat, big\n" % i for i in range(200)),
        r"a\.csv: line 2: expected 3 fields in each row, .*, received more",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_csv(tmp_path, case) -> None:
    content, message = BAD[case]
    path = tmp_path / "a.csv" if content is None else csv(tmp_path, content)
    with pytest.raises(DataError, match=message) as caught:
        Annotations.from_csv(path)
    assert "\n" not in str(caught.value) and str(caught.value).startswith(str(path))


def test_bad_json(tmp_path) -> None:
    path = tmp_path / "answers.json"
    for value, message in (
        ([1], r"answers\.json: expected an object of tasks, received list"),
        (
            {"t": 3},
            r"answers\.json: task 't': expected an object of workers and labels, received int",
        ),
        (
            {"t": {"w": None}},
            r"answers\.json: task 't', worker 'w': expected a label, received None; --missing=",
        ),
        (
            {"t": {"w": [1]}},
            r"answers\.json: task 't', worker 'w': expected a label, received \[1\]",
        ),
    ):
        path.write_text(json.dumps(value))
        with pytest.raises(DataError, match=message):
            Annotations.from_answers_json(path)
    path.write_text("{")
    with pytest.raises(DataError, match=r"answers\.json: expected JSON in UTF-8"):
        Annotations.from_answers_json(path)
    with pytest.raises(
        DataError,
        match=r"expected task ids that differ as text, received two that are both spelt '1'",
    ):
        Annotations.from_arrays([1, "1"], ["w", "w"], [0, 1]).to_answers_json()


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(long, "csv_writer", full)
    with pytest.raises(OSError, match="No space left"):
        Annotations.from_dense([[0, 1]]).to_csv(path)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    ("array", "message"),
    [(np.int64(3), r"received shape \(\)"), (np.zeros((2, 2, 2), int), "received shape")],
)
def test_a_matrix_of_other_dimensions(tmp_path: pathlib.Path, array: object, message: str) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match=message):
        read_annotations(tmp_path / "a.npy")


def test_a_matrix_without_signs(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[0, 1], [1, 1]], dtype=np.uint8))
    assert triples(read_annotations(tmp_path / "a.npy"))[1][2] == 1


def test_more_confusion_matrices_than_memory(tmp_path: pathlib.Path) -> None:
    # 50 annotators and 5,000 classes: 50 * 5000^2 = 1.25e9 cells, 10 GB.
    rows = "".join(f"t{i},w{i % 50},c{i}\n" for i in range(5000))
    with pytest.raises(DataError, match=r"expected 50 annotators' .* received 5,000 classes"):
        read_annotations(csv(tmp_path, "task,worker,label\n" + rows))


NAMED = "--worker_column and --label_column name the columns of annotators and labels"


@pytest.mark.parametrize(
    "text",
    [
        # A label a task, so that no task is there twice: text, numbers, a further column.
        "item,who,said\na,ann,pos\nb,bob,neg\nc,ann,neg\n",
        "item,who,said\n" + "".join(f"{i},{i % 7},{i % 3 % 2}\n" for i in range(30)),
        "item,who,said,when\na,ann,pos,10:01\nb,bob,neg,10:02\nc,ann,neg,10:03\n",
        "item,who,said\na,ann,pos\na,bob,neg\nb,ann,neg\n",
    ],
    ids=["text", "numbers", "four columns", "tasks again"],
)
def test_labels_under_other_names_are_not_taken_for_annotators(
    tmp_path: pathlib.Path, text: str
) -> None:
    path = csv(tmp_path, text)
    with pytest.raises(DataError) as raised:
        read_annotations(path)
    assert NAMED in str(raised.value)
    said = read_annotations(path, layout=TableFormat(worker="who", label="said"))
    assert said.num_annotations == text.count("\n") - 1


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("item,ann,bob\na,pos,pos\nb,neg,neg\nc,pos,neg\n", TableFormat()),
        ("item,w1,w2\na,pos,neg\nb,pos,neg\nc,pos,neg\n", TableFormat()),
        ("item,annotator_1,annotator_2\na,pos,pos\nb,neg,neg\nc,pos,neg\n", TableFormat()),
        ("item,Label A,Label B\na,pos,pos\nb,neg,neg\nc,pos,neg\n", TableFormat()),
        ("item,ann,bob\na,pos,neg\nb,pos,neg\n", TableFormat(classes=("neg", "pos"))),
        # Half of each one's labels the other never gives; on the rest they agree, which is twice
        # what chance would make: .5 - .25 > 1.645 sqrt(.25 * .75 / 12).
        (
            "item,ann,bob\n" + "".join(f"{i},{'x,z' if i % 2 else 'y,y'}\n" for i in range(12)),
            TableFormat(),
        ),
    ],
    ids=["alike", "numbered", "by role", "by letter", "classes named", "another class"],
)
def test_two_annotators_stay_annotators(
    tmp_path: pathlib.Path, text: str, layout: TableFormat
) -> None:
    assert read_annotations(csv(tmp_path, text), layout=layout).num_annotators == 2


def test_packed_json_is_read_as_json(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "answers.json.gz"
    path.write_bytes(gzip.compress(b'{"a": {"x": "yes", "y": "no"}}'))
    assert triples(read_annotations(path)) == [("a", "x", "yes"), ("a", "y", "no")]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"answers\.json\.gz: expected a whole gzip file"):
        read_annotations(path)


def test_columns_that_are_named_may_have_numbers_for_names(tmp_path: pathlib.Path) -> None:
    path = csv(tmp_path, "0,1,2\na,x,yes\nb,x,no\n")
    layout = TableFormat.of(task_column="0", worker_column="1", label_column="2")
    assert triples(read_annotations(path, layout=layout)) == [("a", "x", "yes"), ("b", "x", "no")]


@pytest.mark.parametrize(("missing", "flag"), [(None, "--missing=, "), ("NA", "--missing=NA, ")])
def test_an_empty_label_names_the_way_out(
    tmp_path: pathlib.Path, missing: str | None, flag: str
) -> None:
    path = csv(tmp_path, "task,worker,label\na,x,yes\na,y,\nb,x,no\n")
    with pytest.raises(DataError, match=f"line 3.*received an empty cell; {flag}leaves"):
        read_annotations(path, layout=TableFormat.of(missing=missing))
    layout = TableFormat.of(missing=flag.strip().removeprefix("--missing="))
    with pytest.warns(UserWarning, match="1 lines without a label"):
        assert read_annotations(path, layout=layout).num_annotations == 2


@pytest.mark.parametrize("label", ["9" * 400, '"0x' + "f" * 400 + '"'])
def test_numbers_beyond_every_float_are_names(tmp_path: pathlib.Path, label: str) -> None:
    path = tmp_path / "answers.json"
    path.write_text(f'{{"a": {{"x": {label}, "y": {label}}}, "b": {{"x": "no", "y": "no"}}}}')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_annotations(path).num_classes == 2


def test_lines_of_json_that_are_no_export(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"item": "t1", "who": "a", "said": "x"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl: expected an annotation tool's export"):
        read_annotations(tmp_path / "a.jsonl")
