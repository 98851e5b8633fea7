"""Every tool's export: what it is recognised as, what is read of it, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.io.importers import TOOLS, detect, read_export
from tests.io.importers.exports import EXPORTS, IDS, LABELS, TEXTS, argilla_flat, label_studio
from tests.io.importers.exports import mturk as write_mturk
from tests.io.importers.exports import prodigy as write_prodigy
from tests.io.importers.exports import toloka as write_toloka

Writer = Callable[[Path], Path]


@pytest.mark.parametrize(("tool", "write", "task", "worker", "label"), EXPORTS, ids=IDS)
def test_read(tool: str, write: Writer, task: str, worker: str, label: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    assert detect(path) == tool
    export = read_export(path)
    assert export.tool == tool
    extra = 1 if tool == "label_studio" else 0
    assert len(export.labels) == len(LABELS)
    rows = set(zip(export.tasks, export.workers, export.labels, strict=True))
    assert (task, worker, label) in rows
    assert len(set(export.workers)) == 3 and len(set(export.tasks)) == 4
    # The labels are those of LABELS, whatever tasks, workers and classes are called.
    counts = sorted(export.labels.count(name) for name in set(export.labels))
    assert counts == [5, 7]
    assert set(export.texts.values()) == set(TEXTS.values()) or tool == "sagemaker"
    assert len(export.gold) == (extra or (1 if tool == "toloka" else 0))
    crowd = Annotations.from_frame(export.frame())
    assert (crowd.num_instances, crowd.num_annotators, crowd.num_classes) == (4, 3, 2)


@pytest.mark.parametrize(("tool", "write"), [row[:2] for row in EXPORTS], ids=IDS)
def test_every_other_tool_refuses_it(tool: str, write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path)
    for other in TOOLS:
        if other == tool:
            continue
        with pytest.raises(ValueError, match=r"expected .*, received what looks like") as raised:
            read_export(path, other)
        assert str(path) in str(raised.value) and "\n" not in str(raised.value)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    export = read_export(label_studio(tmp_path))
    assert dict(export.left_out) == {"skipped by the annotator": 1, "ground truth, kept as gold": 1}
    assert export.gold == {"1": "pos"}
    assert dict(read_export(write_prodigy(tmp_path)).left_out) == {"ignored by the annotator": 1}
    assert dict(read_export(argilla_flat(tmp_path)).left_out) == {"draft, not submitted": 4}
    assert dict(read_export(write_mturk(tmp_path)).left_out) == {"rejected by the requester": 2}
    toloka = read_export(write_toloka(tmp_path))
    assert dict(toloka.left_out) == {"rejected answers": 1}
    assert toloka.gold == {"t4": "neg"}
    assert toloka.summary() == (
        "12 labels of 4 tasks by 3 annotators, gold labels of 1 tasks; left out: 1 rejected answers"
    )


def test_files_of_other_kinds_are_no_export(tmp_path: Path) -> None:
    for name, content in {
        "answers.json": '{"1": {"ann": "pos", "bob": "neg"}}',
        "long.csv": "task,worker,label\n1,ann,pos\n",
        "dense.csv": "1,-1\n0,1\n",
        "coco.json": '{"images": [], "annotations": [{"id": 1, "category_id": 3}]}',
        "empty.csv": "",
        "bytes.bin": "\0\1\2",
    }.items():
        path = tmp_path / name
        path.write_text(content)
        assert detect(path) is None, name
