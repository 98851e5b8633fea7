"""Truth inference by parts gives what it gives in memory, whatever the engine, the kind of file, or
who dies on the way.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.aggregation import simulate
from neucrowd_tf.aggregate import main
from neucrowd_tf.aggregation import BWA, IBCC, DawidSkene, Glad, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.arrays import save_arrays
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.tables.format import TableFormat

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from neucrowd_tf.aggregation.engine import fit as engine_fit  # noqa: E402
from neucrowd_tf.aggregation.engine import source as engine_source  # noqa: E402
from neucrowd_tf.aggregation.engine.fit import Request, fit, groups  # noqa: E402
from neucrowd_tf.aggregation.engine.kept import Origin  # noqa: E402
from neucrowd_tf.aggregation.engine.local import Local  # noqa: E402
from neucrowd_tf.aggregation.engine.methods import METHODS  # noqa: E402
from neucrowd_tf.aggregation.engine.shards import make_shards  # noqa: E402
from neucrowd_tf.aggregation.engine.source import buckets_of  # noqa: E402

IN_MEMORY: dict[str, Callable[[], Any]] = {
    "majority_vote": lambda: MajorityVote(ties="first"),
    "dawid_skene": DawidSkene,
    "one_coin": lambda: DawidSkene(one_coin=True),
    "fast_dawid_skene": lambda: DawidSkene(hard=True),
    "glad": lambda: Glad(easiness="integrated"),
    "ibcc": IBCC,
    "bwa": BWA,
}


@pytest.fixture(scope="module")
def crowd() -> Annotations:
    return simulate(0, tasks=600, annotators=20, classes=3, labels_each=4)[0]


def parquet(crowd: Annotations, path: Path, **columns: Any) -> Path:
    names = {"task": crowd.instances, "worker": crowd.annotators, "label": crowd.labels}
    pq.write_table(pa.table({**names, **columns}), path, row_group_size=500)
    return path


@pytest.fixture(scope="module")
def file(crowd: Annotations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parquet(crowd, tmp_path_factory.mktemp("source") / "a.parquet")


@pytest.fixture
def local() -> Iterator[Local]:
    engine = Local(2)
    yield engine
    engine.close()


def labels(output: Path) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(output / "labels").to_pandas()
    return frame.sort_values("task").reset_index(drop=True)


def parameters(output: Path) -> dict[str, np.ndarray]:
    return dict(np.load(output / "parameters.npz", allow_pickle=False))


def assert_same(one: Path, other: Path) -> None:
    pd.testing.assert_frame_equal(labels(one), labels(other), check_exact=True)
    found, expected = parameters(one), parameters(other)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert read_json(one / "fit.json")["history"] == read_json(other / "fit.json")["history"]


def test_every_method_has_its_twin_in_memory() -> None:
    assert METHODS.keys() == IN_MEMORY.keys()


@pytest.mark.parametrize("method", IN_MEMORY)
def test_labels_are_those_of_all_annotations_in_memory(
    method: str, crowd: Annotations, file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, method, tmp_path / "out"), local)
    model = IN_MEMORY[method]().fit(crowd)
    found = labels(tmp_path / "out")
    assert found["task"].tolist() == list(range(600))
    np.testing.assert_array_equal(found["label"], model.labels_)
    probas = found[["p_0", "p_1", "p_2"]]
    np.testing.assert_allclose(probas, model.probas_, atol=1e-6)
    np.testing.assert_allclose(found["probability"], model.probas_.max(axis=1), atol=1e-8)
    np.testing.assert_array_equal(found["num_labels"], crowd.vote_counts().sum(axis=1))
    annotators = pq.read_table(tmp_path / "out" / "annotators.parquet").to_pandas()
    np.testing.assert_array_equal(annotators["num_labels"], crowd.labels_per_annotator())
    if method in ("dawid_skene", "one_coin", "ibcc"):
        np.testing.assert_allclose(annotators["skill"], model.skills_, atol=1e-9)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_the_number_of_threads(
    workers: int, file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, "dawid_skene", tmp_path / "two", max_iter=5), local)
    other = Local(workers)
    fit(Request(file, "dawid_skene", tmp_path / "other", max_iter=5), other)
    other.close()
    assert_same(tmp_path / "other", tmp_path / "two")


def test_groups_hold_each_shard_once_in_order() -> None:
    # 40 shards: 10 + 40 // 16 = 12 groups of three or four.
    for count, parts in ((1, 1), (8, 8), (40, 12)):
        found = groups(count)
        assert len(found) == parts
        assert [number for group in found for number in group] == list(range(count))


# ------------------------------------------------------------------------- files


def test_text_ids_from_a_folder_of_csv_and_parquet(
    crowd: Annotations, tmp_path: Path, local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_source, "RUN_ROWS", 300)  # several runs a part
    names = {
        "task": np.char.add("task é ", crowd.instances.astype(str)),
        "worker": np.char.add("w", crowd.annotators.astype(str)),
        "label": np.array(["no", "perhaps", "yes"])[crowd.labels],
    }
    frame = pd.DataFrame(names)
    folder = tmp_path / "in"
    folder.mkdir()
    frame[:1000].to_parquet(folder / "a.parquet", index=False)
    frame[1000:1700].astype("category").to_parquet(folder / "b.parquet", index=False)
    frame[1700:].rename(columns={"worker": "annotator"}).to_csv(folder / "c.csv", index=False)
    fit(Request(folder, "dawid_skene", tmp_path / "out"), local)
    found = labels(tmp_path / "out")
    expected = DawidSkene().fit_predict(Annotations.from_frame(frame))
    assert dict(zip(found["task"], found["label"].astype(str), strict=True)) == expected.to_dict()


def test_numbers_in_csv_are_classes_in_the_order_of_numbers(tmp_path: Path, local: Local) -> None:
    file = tmp_path / "a.csv"
    file.write_text("task\tworker\tlabel\n007\tu\t10\n007\tv\t2\n8\tu\t2\n8\tv\t2\n")
    fit(Request(file, "majority_vote", tmp_path / "out"), local)
    found = labels(tmp_path / "out")
    assert found["task"].tolist() == ["007", "8"]
    assert found["label"].tolist() == [2, 2]  # one vote each: the first class, which is 2
    assert found["p_10"].tolist() == [0.5, 0.0]
    assert read_json(tmp_path / "out" / "fit.json")["classes"] == [2, 10]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("task,worker,label\n1,a,x\n2,,y\n", r"data row 1, worker: expected an id"),
        ("task,worker,label\n1,a,x\n2,b,\n", r"data row 1, label: expected a label"),
        ("task,worker,label\n1,a,x\n2,b,y\n1,a,y\n", r"task '1'.*received two of 'a'"),
        ("task,worker,label\n", "at least one annotation"),
        ("task,worker,lable\n1,a,x\n", "label"),
        ("task,worker,label\n1,a\n", "a.csv"),
    ],
)
def test_bad_rows_are_named(text: str, said: str, tmp_path: Path, local: Local) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        fit(Request(tmp_path / "a.csv", "dawid_skene", tmp_path / "out"), local)


def test_numbers_that_are_not_whole_are_refused(tmp_path: Path, local: Local) -> None:
    table = pa.table({"task": [1.5], "worker": ["a"], "label": ["x"]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="task: expected whole numbers or text, received double"):
        fit(Request(tmp_path / "a.parquet", "dawid_skene", tmp_path / "out"), local)


@pytest.mark.parametrize("text", [False, True])
def test_a_task_has_one_bucket_and_buckets_are_of_one_size(text: bool) -> None:
    numbers = np.repeat(np.arange(20_000), 2)
    tasks = pa.array(numbers.astype(str) if text else numbers)
    found = buckets_of(tasks.cast(pa.large_string()) if text else tasks, 8)
    np.testing.assert_array_equal(found[::2], found[1::2])
    sizes = np.bincount(found, minlength=8)
    assert len(sizes) == 8
    assert sizes.min() > 0.9 * 5000
    assert sizes.max() < 1.1 * 5000


# ------------------------------------------------------------ going on after a stop


class Stop(Exception):
    pass


@pytest.mark.parametrize("method", ["dawid_skene", "bwa", "glad"])
def test_resume_ends_where_the_unbroken_fit_does(
    method: str, file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, method, tmp_path / "whole"), local)

    def stop(line: str) -> None:
        if line.startswith("iteration 3"):
            raise Stop

    with pytest.raises(Stop):
        fit(Request(file, method, tmp_path / "out", report=stop), local)
    with pytest.raises(UsageError, match="in use"):
        fit(Request(file, method, tmp_path / "out"), local)
    with pytest.raises(UsageError, match="was begun there"):
        fit(Request(file, "one_coin", tmp_path / "out", resume=True), local)
    lines: list[str] = []
    fit(Request(file, method, tmp_path / "out", resume=True, report=lines.append), local)
    assert lines[1].startswith("iteration 4")
    assert_same(tmp_path / "out", tmp_path / "whole")
    assert not (tmp_path / "out" / engine_fit.WORK).exists()


def begun(file: Path, output: Path, engine: Local, **more: Any) -> None:
    """Leaves a fit after its second iteration."""

    def stop(line: str) -> None:
        if line.startswith("iteration 2"):
            raise Stop

    with pytest.raises(Stop):
        fit(Request(file, "dawid_skene", output, report=stop, **more), engine)


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("change", ["label", "label, at rest", "file more", "file less"])
def test_resume_refuses_other_annotations_by_name(
    change: str, finished: bool, crowd: Annotations, tmp_path: Path, local: Local
) -> None:
    """The size and the time of a file say nothing of what is in it."""
    (folder := tmp_path / "source").mkdir()
    file = parquet(crowd, folder / "a.parquet")
    (folder / "b.csv").write_text("task,worker,label\n1000000,w,1\n1000001,w,2\n")
    if finished:
        fit(Request(folder, "dawid_skene", tmp_path / "out"), local)
    else:
        begun(folder, tmp_path / "out", local)
    if change.startswith("label"):
        before = file.stat()
        content = (folder / "b.csv").read_text().replace("w,1", "w,2")
        (folder / "b.csv").write_text(content)
        if "rest" in change:
            os.utime(folder / "b.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
        said = "expected b.csv as it was .* received it changed .*"
    elif change == "file more":
        (folder / "c.csv").write_text("task,worker,label\n1000002,w,1\n")
        said = "expected no c.csv, when .* received one"
    else:
        (folder / "b.csv").unlink()
        said = "expected b.csv as it was .* received none"
    kept = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=f"{said}; choose another --output, or remove"):
        fit(Request(folder, "dawid_skene", tmp_path / "out", resume=True), local)
    assert kept == {path: path.read_bytes() for path in kept}


def test_annotations_that_were_touched_or_moved_are_the_same(
    file: Path, tmp_path: Path, local: Local
) -> None:
    (tmp_path / "one").mkdir()
    copy = tmp_path / "one" / file.name
    copy.write_bytes(file.read_bytes())
    begun(copy, tmp_path / "out", local)
    (tmp_path / "one").rename(tmp_path / "two")
    (tmp_path / "two" / file.name).touch()
    lines: list[str] = []
    moved = Request(
        tmp_path / "two" / file.name,
        "dawid_skene",
        tmp_path / "out",
        resume=True,
        report=lines.append,
    )
    fit(moved, local)
    assert lines[1].startswith("iteration 3")
    fit(moved, local)
    assert lines[-1].endswith("finished before")


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a bit flipped": lambda content: (
        content[: (at := len(content) // 2)] + bytes([content[at] ^ 1]) + content[at + 1 :]
    ),
    "cut in half": lambda content: content[: len(content) // 2],
    "nothing": lambda content: b"",
    "another": lambda content: b"{}",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    "name",
    [
        "shards/00003.columns.npy",
        "shards/00003.offsets.npy",
        "shards/00003.tasks.arrow",
        "shards/annotators.parquet",
        "shards/shards.json",
        "state.json",
        "parameters-00002.npz",
    ],
)
def test_what_is_damaged_is_told_and_made_again(
    name: str, damage: str, file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, "dawid_skene", tmp_path / "whole"), local)
    begun(file, tmp_path / "out", local)
    path = tmp_path / "out" / engine_fit.WORK / name
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    lines: list[str] = []
    fit(Request(file, "dawid_skene", tmp_path / "out", resume=True, report=lines.append), local)
    told = [line for line in lines if line.startswith("warning: ")]
    assert len(told) == 1
    assert str(path) in told[0]
    assert told[0].endswith("again")
    assert_same(tmp_path / "out", tmp_path / "whole")


def test_a_record_in_the_place_of_another_is_a_damaged_one(
    file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, "dawid_skene", tmp_path / "whole"), local)
    for one, other in itertools.permutations(("state.json", "shards/shards.json")):
        begun(file, tmp_path / "out", local)
        work = tmp_path / "out" / engine_fit.WORK
        shutil.copy(work / one, work / other)
        lines: list[str] = []
        fit(Request(file, "dawid_skene", tmp_path / "out", resume=True, report=lines.append), local)
        assert any(f"{other}: expected JSON as it was written" in line for line in lines)
        assert_same(tmp_path / "out", tmp_path / "whole")
        shutil.rmtree(tmp_path / "out")


def test_parameters_of_another_crowd_are_damaged_ones(
    file: Path, tmp_path: Path, local: Local
) -> None:
    """Whole in themselves, of a wrong shape or with wrong keys."""
    fit(Request(file, "dawid_skene", tmp_path / "whole"), local)
    for arrays in ({"prior": np.ones(7)}, {"other": np.ones(2)}):
        begun(file, tmp_path / "out", local)
        save_arrays(tmp_path / "out" / engine_fit.WORK / "parameters-00002.npz", arrays)
        lines: list[str] = []
        fit(Request(file, "dawid_skene", tmp_path / "out", resume=True, report=lines.append), local)
        assert any("parameters as they were written" in line for line in lines)
        assert_same(tmp_path / "out", tmp_path / "whole")
        shutil.rmtree(tmp_path / "out")


def test_shards_that_are_made_again_keep_what_was_fitted(
    file: Path, tmp_path: Path, local: Local
) -> None:
    begun(file, tmp_path / "out", local)
    (tmp_path / "out" / engine_fit.WORK / "shards" / "00000.columns.npy").unlink()
    lines: list[str] = []
    fit(Request(file, "dawid_skene", tmp_path / "out", resume=True, report=lines.append), local)
    assert any(line.startswith("iteration 3") for line in lines)
    assert not any(line.startswith("iteration 1:") for line in lines)


def test_a_fit_whose_flags_changed_begins_again_and_says_so(
    file: Path, tmp_path: Path, local: Local
) -> None:
    begun(file, tmp_path / "out", local)
    lines: list[str] = []
    layout = TableFormat(exact_names=True)
    request = Request(file, "dawid_skene", tmp_path / "out", resume=True, layout=layout)
    fit(dataclasses.replace(request, report=lines.append), local)
    assert "begun again, as the flags say" in lines[0]
    assert any(line.startswith("iteration 1:") for line in lines)


def test_a_finished_fit_of_other_settings_or_damaged_is_made_again(
    file: Path, tmp_path: Path, local: Local
) -> None:
    lines: list[str] = []
    out = tmp_path / "out"

    def again(**more: Any) -> str:
        lines.clear()
        given = {"max_iter": 2, **more}
        fit(Request(file, "dawid_skene", out, report=lines.append, **given), local)
        return lines[0]

    again()
    assert again(resume=True).endswith("finished before")
    # Of as many iterations and as small a change: another method all the same.
    tol = read_json(out / "fit.json")["of"]["tol"]
    with pytest.raises(UsageError, match=r"expected dawid_skene, .* received one_coin"):
        fit(Request(file, "one_coin", out, 2, tol, resume=True), local)
    assert "fitted again" in again(resume=True, max_iter=3)
    fit(Request(file, "dawid_skene", tmp_path / "whole", max_iter=3), local)
    part = sorted((out / "labels").iterdir())[1]
    for path in (out / "fit.json", part, out / "annotators.parquet", out / "parameters.npz"):
        for damage in DAMAGE.values():
            path.write_bytes(damage(path.read_bytes()))
            said = again(resume=True, max_iter=3)
            assert said.startswith("warning: ")
            assert str(path) in said
            assert said.endswith("fitted again")
            assert_same(out, tmp_path / "whole")
            assert again(resume=True, max_iter=3).endswith("finished before")


def test_what_is_no_file_of_annotations(tmp_path: Path, local: Local) -> None:
    table = pa.table({"task": ["t", "u ", "v"], "worker": ["a"] * 3, "label": ["x", "y", "x"]})
    pq.write_table(table, tmp_path / "a.parquet")
    for kind, said in {
        "empty": "data row 1, task: expected an id, received nothing",
        "line": "expected a CSV in UTF-8 as its header says, received a line of more than 4 MB",
        "spaces": "data row 1, task: expected an id without spaces around it, received 'u '",
        "pipe": "received a pipe or a device",
        "twice": "expected each column once, received 'label' again",
        "large": "task: expected whole numbers below 2^63",
    }.items():
        file = tmp_path / "a.parquet"
        if kind == "empty":
            (file := tmp_path / "e.csv").write_text('task,worker,label\nt,a,x\n"",b,y\n')
        elif kind == "line":
            (file := tmp_path / "l.csv").write_text(f"task,worker,label\nt,a,{'x' * (9 << 20)}\n")
        elif kind == "pipe":
            os.mkfifo(file := tmp_path / "b.parquet")
        elif kind == "twice":
            (file := tmp_path / "c.csv").write_text("task,worker,label,label\nt,a,x,y\n")
        elif kind == "large":
            table = table.set_column(0, "task", pa.array([1, 2, 1 << 63], pa.uint64()))
            pq.write_table(table, file)
        with pytest.raises(DataError, match=re.escape(said)):
            fit(Request(file, "majority_vote", tmp_path / kind), local)


# -------------------------------------------------------------------- the command


def test_the_command_reads_parquet_and_says_how_far_it_is(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [f"--annotations={file}", f"--output={tmp_path / 'out'}", "--max_iter=2"]
    assert main([*flags, "--workers=2"]) == 0
    assert "iteration 2: objective -" in capsys.readouterr().err
    assert main([*flags, "--resume"]) == 0
    assert "finished before" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--annotations=a.csv", "--resume"], "--resume: expected --engine"),
        (["--annotations=a.parquet"], "--output: expected a folder"),
        (
            ["--annotations=a.parquet", "--output=o", "--gold=g.csv"],
            "--gold: expected labels that are read as a whole",
        ),
        (["--annotations=a.parquet", "--output=o", "--method=kos"], "out of core, received 'kos'"),
        (["--annotations=a.parquet", "--output=o"], "a.parquet: no such file"),
        (["--annotations=a.parquet", "--output=o", "--workers=0"], "--workers: expected a number"),
        (
            ["--annotations=a.parquet", "--output=o", "--scheduler=tcp://x:1"],
            "--scheduler: expected --engine=dask",
        ),
    ],
)
def test_flags_that_do_not_go_together(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags) == 2
    assert said in capsys.readouterr().err


# ---------------------------------------------------------------------------- Dask


@dataclasses.dataclass(frozen=True)
class DieOnce:
    """A function whose first call ends its process, as lack of memory or a lost machine would."""

    function: Callable[[Any], Any]
    mark: Path

    def __call__(self, item: Any) -> Any:
        try:
            self.mark.touch(exist_ok=False)
        except FileExistsError:
            return self.function(item)
        os.kill(os.getpid(), signal.SIGKILL)
        return None


class Deadly:
    """An engine in whose n-th map a worker dies."""

    def __init__(self, engine: Any, deadly: set[int], folder: Path) -> None:
        self.engine, self.deadly, self.folder, self.maps = engine, deadly, folder, 0

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        self.maps += 1
        if self.maps in self.deadly:
            function = DieOnce(function, self.folder / f"died-{self.maps}")
        return self.engine.map(function, items)

    def close(self) -> None:
        self.engine.close()


@pytest.mark.ci
def test_dask_gives_the_same_and_survives_the_death_of_a_worker(
    file: Path, tmp_path: Path, local: Local
) -> None:
    pytest.importorskip("distributed")
    from neucrowd_tf.aggregation.engine.dask import Dask

    fit(Request(file, "dawid_skene", tmp_path / "local", max_iter=3), local)
    engine = Dask(workers=2)
    try:
        fit(Request(file, "dawid_skene", tmp_path / "dask", max_iter=3), engine)
        # Maps: 1 digests, 2 which ids, 3 the rows, 4 shards, 5 digests, 6 first sums, 7 and on
        # iterations.
        deadly = Deadly(engine, {4, 8}, tmp_path)
        fit(Request(file, "dawid_skene", tmp_path / "killed", max_iter=3), deadly)
    finally:
        engine.close()
    assert (tmp_path / "died-4").exists()
    assert (tmp_path / "died-8").exists()
    assert_same(tmp_path / "dask", tmp_path / "local")
    assert_same(tmp_path / "killed", tmp_path / "local")


@pytest.mark.slow
def test_without_workers_nothing_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from neucrowd_tf.aggregation.engine import dask

    monkeypatch.setitem(dask.PATIENCE, "distributed.scheduler.no-workers-timeout", "2s")
    engine = dask.Dask(workers=1)
    try:
        assert list(engine.map(abs, [-1])) == [1]
        engine._cluster.scale(0)
        with pytest.raises(UsageError, match="expected workers, received none in 2 s"):
            list(engine.map(abs, [-1, -2]))
    finally:
        engine.close()


def test_no_scheduler_is_one_line(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from neucrowd_tf.aggregation.engine.dask import connect

    with pytest.raises(UsageError, match="expected a Dask scheduler's address"):
        connect("nonsense://here")


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("img.jpg", "IMG.JPG", "more than case"),
        ("1", "1.0", "how a number is spelt"),
        ("01", "1", "how a number is spelt"),
        ("1e5", "100000", "how a number is spelt"),
        ("1E5", "100000.0", "how a number is spelt"),
        ("3", "3,0", "how a number is spelt"),
        ("100962", "\u0661\u0660\u0660\u0669\u0666\u0662", "how a number is spelt"),
        ("t4", "'t4'", "spaces, quotes"),
        ("img.jpg", "\u2060img.jpg", "spaces, quotes"),
        ("55c4de", "55c4d\u0435", "spaces, quotes"),
        ("TEST", "\u0422EST", "spaces, quotes"),
        ("NA", "b", "stands for none"),
        ("1.23457E+11", "b", "cut off"),
        ('="7"', "b", "formula"),
    ],
)
def test_tasks_that_are_refused(tmp_path: Path, one: str, other: str, said: str) -> None:
    rows = [("t0", "w1", "x"), (one, "w1", "x"), (other, "w2", "y"), ("t9", "w2", "y")]
    table = dict(zip(("task", "worker", "label"), map(list, zip(*rows, strict=True)), strict=True))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table), path)
    source = engine_source.find_source(path)
    with pytest.raises(DataError, match=said):
        make_shards(source, Origin({}, {}), tmp_path / "s", Local(1))
    source = engine_source.find_source(path, TableFormat.of(exact_names=True, missing=""))
    assert sum(make_shards(source, Origin({}, {}), tmp_path / "s", Local(1)).sizes) == 4


def _both(path: Path, folder: Path, *flags: str) -> tuple[list[Any], list[Any]]:
    """Returns tasks and labels as they are inferred in memory, and by parts."""
    flags = (f"--annotations={path}", "--method=dawid_skene", *flags)
    assert main([*flags, f"--output={folder / 'labels.csv'}"]) == 0
    assert main([*flags, "--engine=local", f"--output={folder / 'parts'}"]) == 0
    whole = pd.read_csv(folder / "labels.csv", dtype=str, keep_default_na=False)
    parts = pd.read_parquet(folder / "parts" / "labels").astype({"task": str, "label": str})
    columns = ["task", "label"]
    return sorted(whole[columns].values.tolist()), sorted(parts[columns].values.tolist())


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("task,worker,label\n1,a,yes\n1,b,NA\n2,a,no\n2,b,no\n", ["--missing=NA"]),
        ("task,worker,label\n1,a,yes\n1,b,\n2,a,no\nNA,b,no\n", ["--missing=NA,"]),
        ("task,worker,label\n1,a,yes\n1,NA,no\n2,a,no\n2,b,no\n", ["--missing=NA"]),
        ("task,worker,label\n0,0,1\n0,1,-1\n1,0,2\n1,1,2\n", ["--missing=-1"]),
        ("task,worker,label\n1,a,10%\n1,b,20%\n2,a,20%\n2,b,20%\n", ["--classes=20%,10%"]),
        ("task,worker,label\n1,a,2\n1,b,3\n2,a,3\n2,b,3\n", ["--classes=1,2,3"]),
        ("task;worker;label\n1;a;x\n1;b;y\n2;a;x\n2;b;x\n", ["--separator=;"]),
        (
            "img,who,said\n1,a,x\n1,b,y\n2,a,x\n2,b,x\n",
            ["--task_column=img", "--worker_column=who", "--label_column=said"],
        ),
    ],
)
def test_the_flags_that_say_how_labels_are_written(
    text: str, flags: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    whole, parts = _both(path, tmp_path, *flags)
    assert whole == parts


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        ("task,worker,label\n1,a,yes\n1,b,NA\n2,a,no\n", [], "--missing=NA leaves these out"),
        ("task,worker,label\nNA,a,yes\n1,b,no\n2,a,no\n", [], "--missing=NA leaves these out"),
        ("task,worker,label\n1,a,yes\n1,b,\n2,a,no\n", ["--missing=NA"], "--missing=NA, leaves"),
        ("task,worker,label\n1,a,84 %\n2,b,yes\n", [], "a fraction as probabilities"),
        ("task,worker,label\n1,a,84 %\n2,b,yes\n", ["--exact_names"], "a fraction"),
        ("task,worker,label\n1,a,x\n2,b,y\n", ["--classes=x,z"], "expected one of 'x', 'z'"),
    ],
)
def test_what_is_refused_in_memory_is_by_parts(
    text: str, flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    for more in ([], ["--engine=local", f"--output={tmp_path / 'o'}"]):
        assert main([f"--annotations={path}", *flags, *more]) == 2
        assert said in capsys.readouterr().err


def test_rows_that_are_left_out_are_counted_and_places_are_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n1,a,x\n1,b,NA\n2,a,y\n2,b,NA\n")
    flags = ["--engine=local", f"--annotations={path}", f"--output={tmp_path / 'o'}"]
    assert main([*flags, "--missing=NA"]) == 0
    assert "2 rows without a label are left out (--missing)" in capsys.readouterr().err
    assert main([*flags, "--missing=NA", "--resume"]) == 0
    assert "finished before" in capsys.readouterr().err
    path.write_text("task,worker,label\n1,a,NA\n1,b,NA\n2 ,a,y\n2,b,NA\n")
    assert main([*flags, "--missing=NA", "--resume"]) == 2
    assert "received it changed" in capsys.readouterr().err
    assert main([*flags, "--missing=NA", f"--output={tmp_path / 'p'}"]) == 2
    assert "data row 2, task: expected an id without spaces" in capsys.readouterr().err


@pytest.mark.parametrize("text", [False, True])
def test_tasks_that_may_stand_for_none_are_told(text: bool, tmp_path: Path, local: Local) -> None:
    """A word of them, and a negative number that is the only one."""
    tasks = [str(i) if text else i for i in range(200)]
    for odd, told in {("-1",): 1, ("-1", "-2"): 0, ("unknown",): 1, ("t-1", "r/a_7"): 0}.items():
        if not text and not odd[0][1:].isdigit():
            continue
        names = [*tasks, *(odd if text else map(int, odd))]
        columns = {
            "task": names,
            "worker": ["a"] * len(names),
            "label": list("xy" * 101)[: len(names)],
        }
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table(columns), path)
        lines: list[str] = []
        out = tmp_path / "-".join(odd).replace("/", "-")
        fit(Request(path, "majority_vote", out, report=lines.append), local)
        found = [line for line in lines if "may stand for none" in line]
        assert len(found) == told
        assert all(f"the task {odd[0]!r}" in line for line in found)
        lines.clear()
        layout = TableFormat(exact_names=True)
        fit(
            Request(path, "majority_vote", out / "exact", layout=layout, report=lines.append), local
        )
        assert not any("may stand for none" in line for line in lines)


def test_a_refusal_leaves_no_folder_in_use(tmp_path: Path, local: Local) -> None:
    table = tmp_path / "a.csv"
    table.write_text("task,worker,label\n1,a,x\n1,b,\n2,b,y\n")
    for made in (False, True):
        if made:
            (tmp_path / "out").mkdir()
        with pytest.raises(DataError, match="label"):
            fit(Request(table, "majority_vote", tmp_path / "out"), local)
        assert not any((tmp_path / "out").glob("*")) and (tmp_path / "out").exists() == made


def test_the_header_again_in_another_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("task,worker,label\nt0,a,x\nlabel,task,worker\nt1,b,y\n")
    source = engine_source.find_source(tmp_path / "a.csv")
    with pytest.raises(DataError, match="the header again"):
        make_shards(source, Origin({}, {}), tmp_path / "s", Local(1))


def test_columns_of_labels_that_may_not_count_are_told(
    tmp_path: Path, local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in memory, over all files; rare texts of very many count as one of them."""
    monkeypatch.setattr(engine_source, "MOST_TEXTS", 4)
    frame = pd.DataFrame(
        {
            "task": np.repeat(np.arange(30), 2),
            "worker": ["a", "b"] * 30,
            "label": ["x", "y", "x", "x"] * 15,
            "status": ["approved"] * 50 + ["rejected"] * 10,
            "deleted_at": [None] * 40 + [f"2024-01-01 {i}" for i in range(20)],
            "weight": [1.0] * 55 + [2.5] * 5,
            "skipped": [[False]] * 60,  # no texts
            "seconds": range(60),
        }
    )
    folder = tmp_path / "in"
    folder.mkdir()
    frame[:30].to_parquet(folder / "a.parquet")
    frame[30:].drop(columns="skipped").to_csv(folder / "b.csv", index=False)
    lines: list[str] = []
    fit(Request(folder, "majority_vote", tmp_path / "out", report=lines.append), local)
    told = [line for line in lines if line.startswith(f"warning: {folder}: column ")]
    assert len(told) == 3
    assert "column 'status' says 'approved' (50 times), 'rejected' (10 times) of" in told[0]
    assert "column 'deleted_at' says '' (40 times), '2024-01-01" in told[1]
    assert "column 'weight' is a number other than 1 in 5 of 60 rows" in told[2]
