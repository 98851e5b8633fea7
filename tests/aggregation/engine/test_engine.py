"""Truth inference out of core gives the results of memory, whatever engine or interruption."""

from __future__ import annotations

import dataclasses
import os
import signal
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.timing import simulated
from neucrowd_tf.aggregation import BWA, IBCC, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.schema import TableOptions
from tests.cases import cases, raises

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from neucrowd_tf.aggregation.engine import fit as engine_fit  # noqa: E402
from neucrowd_tf.aggregation.engine import source as engine_source  # noqa: E402
from neucrowd_tf.aggregation.engine.fit import Request, fit  # noqa: E402
from neucrowd_tf.aggregation.engine.local import Local  # noqa: E402
from neucrowd_tf.aggregation.engine.shards import make_shards  # noqa: E402
from neucrowd_tf.aggregation.engine.source import buckets_of  # noqa: E402

IN_MEMORY: dict[str, Callable[[], Any]] = {
    "majority_vote": lambda: MajorityVote(ties="first"),
    "dawid_skene": DawidSkene,
    "one_coin": lambda: DawidSkene(one_coin=True),
    "fast_dawid_skene": lambda: DawidSkene(hard=True),
    "ibcc": IBCC,
    "bwa": BWA,
}


CASES = tomllib.loads((Path(__file__).parent / "cases.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def crowd() -> Annotations:
    return simulated(600, 2, 20, classes=3)[2]


def parquet(crowd: Annotations, path: Path, **columns) -> Path:
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
    arrays, expected = parameters(one), parameters(other)
    for name, array in expected.items():
        assert_array_equal(arrays[name], array)
    assert read_json(one / "fit.json")["history"] == read_json(other / "fit.json")["history"]


def refit(file: Path, output: Path, engine: Local, **more) -> list[str]:
    """Resumes a fit of Dawid and Skene's method and returns the lines that it reports."""
    lines: list[str] = []
    fit(Request(file, "dawid_skene", output, resume=True, report=lines.append, **more), engine)
    return lines


@pytest.mark.parametrize("method", IN_MEMORY)
def test_labels_are_those_of_all_annotations_in_memory(
    method: str, crowd: Annotations, file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, method, tmp_path / "out"), local)
    model = IN_MEMORY[method]().fit(crowd)
    result = labels(tmp_path / "out")
    assert result["task"].tolist() == list(range(600))
    assert_array_equal(result["label"], model.labels_)
    assert_allclose(result[["p_0", "p_1", "p_2"]], model.probas_, atol=1e-6)
    assert_allclose(result["probability"], model.probas_.max(axis=1), atol=1e-8)
    assert_array_equal(result["num_labels"], crowd.vote_counts().sum(axis=1))
    annotators = pq.read_table(tmp_path / "out" / "annotators.parquet").to_pandas()
    assert_array_equal(annotators["num_labels"], crowd.labels_per_annotator())
    if method in ("dawid_skene", "one_coin", "ibcc"):
        assert_allclose(annotators["skill"], model.skills_, atol=1e-9)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_the_number_of_threads(
    workers: int, file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, "dawid_skene", tmp_path / "two", max_iter=5), local)
    other = Local(workers)
    fit(Request(file, "dawid_skene", tmp_path / "other", max_iter=5), other)
    other.close()
    assert_same(tmp_path / "other", tmp_path / "two")


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
    result = labels(tmp_path / "out")
    expected = DawidSkene().fit_predict(Annotations.from_frame(frame))
    assert dict(zip(result["task"], result["label"].astype(str), strict=True)) == expected.to_dict()


def test_numbers_in_csv_are_classes_in_the_order_of_numbers(tmp_path: Path, local: Local) -> None:
    file = tmp_path / "a.csv"
    file.write_text("task\tworker\tlabel\n007\tu\t10\n007\tv\t2\n8\tu\t2\n8\tv\t2\n")
    fit(Request(file, "majority_vote", tmp_path / "out"), local)
    result = labels(tmp_path / "out")
    assert result["task"].tolist() == ["007", "8"]
    assert result["label"].tolist() == [2, 2]  # one vote each: the first class, which is 2
    assert result["p_10"].tolist() == [0.5, 0.0]
    assert read_json(tmp_path / "out" / "fit.json")["classes"] == [2, 10]


def check_rejected(path: Path, message: str, folder: Path, local: Local) -> None:
    """Nothing is written, whether the folder is there or not."""
    for output in (folder / "new", folder / "there"):
        (folder / "there").mkdir(exist_ok=True)
        raises(DataError, message, fit, Request(path, "dawid_skene", output), local)
    assert not (folder / "new").exists() and not any((folder / "there").glob("*"))


@pytest.mark.parametrize("case", CASES["rejected"], ids=lambda case: case["message"])
def test_tables_that_cannot_be_used(case: dict[str, str], tmp_path: Path, local: Local) -> None:
    (tmp_path / "a.csv").write_text(case["table"])
    check_rejected(tmp_path / "a.csv", case["message"], tmp_path, local)


def test_files_that_cannot_be_used(tmp_path: Path, local: Local) -> None:
    path, pipe = tmp_path / "a.parquet", tmp_path / "pipe.csv"
    pq.write_table(pa.table({"task": [[1]], "worker": ["a"], "label": ["x"]}), path)
    check_rejected(path, "cannot be names.*broken", tmp_path, local)
    large = pa.array([1 << 63], pa.uint64())
    pq.write_table(pa.table({"task": large, "worker": [1], "label": [1]}), path)
    message = r"whole numbers from 2\^63 cannot be read.*\[broken_file\]"
    check_rejected(path, message, tmp_path, local)
    os.mkfifo(pipe)
    check_rejected(pipe, r"\[unreadable\]", tmp_path, local)


@pytest.mark.parametrize(
    ("rule", "first"),
    cases("""
["all", [1, 1, 1, 0]],
["last", [0, 1, 1, 0]],
["first", [1, 0, 1, 0]]
"""),
)
def test_duplicates(rule, first: list[int], tmp_path: Path) -> None:
    table = {"task": [1, 2, 1, 1], "worker": ["a", "a", "a", "b"], "label": [0, 1, 1, 0]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    shards = make_shards(
        engine_source.find_source(tmp_path / "a.parquet", TableOptions(duplicates=rule)),
        *({}, tmp_path / "s", engine := Local(1)),
    )
    engine.close()
    votes = {}
    for number, size in enumerate(shards.sizes):
        if size:
            counts = shards.open(number).one_hot.toarray().tolist()
            votes |= dict(zip(shards.tasks(number)["task"].to_pylist(), counts, strict=True))
    assert votes == {1: first, 2: [0, 1, 0, 0]}
    assert shards.num_annotations == 3 + (rule == "all")


@pytest.mark.parametrize("text", [False, True])
def test_a_task_has_one_bucket_and_buckets_are_of_one_size(text: bool) -> None:
    numbers = np.repeat(np.arange(20_000), 2)
    tasks = pa.array(numbers.astype(str) if text else numbers)
    result = buckets_of(tasks.cast(pa.large_string()) if text else tasks, 8)
    assert_array_equal(result[::2], result[1::2])
    sizes = np.bincount(result, minlength=8)
    assert len(sizes) == 8
    assert sizes.min() > 0.9 * 5000
    assert sizes.max() < 1.1 * 5000


def test_a_number_has_its_bucket_among_texts_and_alone() -> None:
    whole = pa.array(["10", "200", "7"], pa.large_string())
    mixed = pa.array(["10", "200", "7", "q1", "7.0"], pa.large_string())
    assert_array_equal(buckets_of(mixed, 4096)[:3], buckets_of(whole, 4096))
    assert buckets_of(mixed, 4096)[4] == buckets_of(whole, 4096)[2]


# ------------------------------------------------------------ going on after a stop


class Stop(Exception):
    pass


@pytest.mark.parametrize("method", ["dawid_skene", "bwa"])
def test_resume_ends_where_the_unbroken_fit_does(
    method: str, file: Path, tmp_path: Path, local: Local
) -> None:
    fit(Request(file, method, tmp_path / "whole", max_iter=6), local)

    def stop(line: str) -> None:
        if line.startswith("iteration 3"):
            raise Stop

    with pytest.raises(Stop):
        fit(Request(file, method, tmp_path / "out", max_iter=6, report=stop), local)
    raises(UsageError, "not empty", fit, Request(file, method, tmp_path / "out"), local)
    lines: list[str] = []
    again = Request(file, method, tmp_path / "out", max_iter=6, resume=True, report=lines.append)
    fit(again, local)
    assert next(line for line in lines if "iteration" in line).startswith("iteration 3")
    assert_same(tmp_path / "out", tmp_path / "whole")
    assert not (tmp_path / "out" / engine_fit.WORK).exists()


def begun(file: Path, output: Path, engine: Local, **more) -> None:
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
    """A file's digest counts, not its size or time."""
    folder = tmp_path / "source"
    folder.mkdir()
    parquet(crowd, folder / "a.parquet")
    csv = folder / "b.csv"
    csv.write_text("task,worker,label\n1000000,w,1\n1000001,w,2\n")
    if finished:
        fit(Request(folder, "dawid_skene", tmp_path / "out", max_iter=2), local)
    else:
        begun(folder, tmp_path / "out", local, max_iter=2)
    if change == "file more":
        (folder / "c.csv").write_text("task,worker,label\n1000002,w,1\n")
        message = r"c\.csv=None, now it is [0-9a-f]{64}"
    elif change == "file less":
        csv.unlink()
        message = r"b\.csv=.* now it is None"
    else:
        times = csv.stat().st_atime_ns, csv.stat().st_mtime_ns
        csv.write_text(csv.read_text().replace("w,1", "w,2"))
        if change == "label, at rest":
            os.utime(csv, ns=times)
        message = r"b\.csv=.* now it is [0-9a-f]{64}"
    files = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=f"began with {message}. Choose another --output, or rem"):
        refit(folder, tmp_path / "out", local, max_iter=2)
    assert files == {path: path.read_bytes() for path in files}


def test_annotations_that_were_touched_or_moved_are_the_same(
    file: Path, tmp_path: Path, local: Local
) -> None:
    (tmp_path / "one").mkdir()
    copy = tmp_path / "one" / file.name
    copy.write_bytes(file.read_bytes())
    begun(copy, tmp_path / "out", local)
    (tmp_path / "one").rename(tmp_path / "two")
    (tmp_path / "two" / file.name).touch()
    file = tmp_path / "two" / file.name
    lines = refit(file, tmp_path / "out", local)
    assert next(line for line in lines if "iteration" in line).startswith("iteration 2")
    assert refit(file, tmp_path / "out", local)[-1].endswith("finished before")


def test_damaged_parameters_are_named(file: Path, tmp_path: Path, local: Local) -> None:
    begun(file, tmp_path / "out", local)
    path = tmp_path / "out" / engine_fit.WORK / "parameters-00002.npz"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"parameters-00002.npz: the file is damaged"):
        refit(file, tmp_path / "out", local)


@pytest.mark.parametrize("finished", [False, True])
def test_resume_refuses_other_settings(
    finished: bool, file: Path, tmp_path: Path, local: Local
) -> None:
    out = tmp_path / "out"
    if finished:
        fit(Request(file, "dawid_skene", out, max_iter=2), local)
        assert refit(file, out, local, max_iter=2)[0].endswith("finished before")
    else:
        begun(file, out, local, max_iter=2)
    with pytest.raises(UsageError, match=r"method=dawid_skene, now it is one_coin"):
        fit(Request(file, "one_coin", out, max_iter=2, resume=True), local)
    raises(UsageError, r"max_iter=2, now it is 3", refit, file, out, local, max_iter=3)
    with pytest.raises(UsageError, match=r"exact_names=None, now it is True"):
        refit(file, out, local, max_iter=2, options=TableOptions(exact_names=True))


# -------------------------------------------------------------------- the command


def test_the_command_reads_parquet_and_says_how_far_it_is(file: Path, tmp_path: Path, cli) -> None:
    flags = [f"--annotations={file}", f"--output={tmp_path / 'out'}", "--max_iter=2"]
    assert "iteration 2: objective -" in cli("aggregate", [*flags, "--workers=2"]).err
    assert "finished before" in cli("aggregate", [*flags, "--resume"]).err


WRONG_FLAGS = """
--engine=local --gold=g.csv => --gold: not available
--engine=local --method=kos => 'kos' cannot read by parts
--output=o => a.parquet: no such file
--workers=0 => --workers=0: must be
--engine=local --scheduler=tcp://x:1 => --scheduler: only with --engine=dask
"""


@pytest.mark.parametrize("line", WRONG_FLAGS.strip().splitlines())
def test_flags_that_do_not_go_together(line: str, cli) -> None:
    flags, message = line.split(" => ")
    given = ["--annotations=a.parquet", "--output=o", *flags.split()]
    assert message in cli("aggregate", given, 2).err


# ---------------------------------------------------------------------------- Dask


@dataclasses.dataclass(frozen=True)
class DieOnce:
    """A function whose first call ends its process, as lack of memory or a lost machine would."""

    function: Callable[[Any], Any]
    mark: Path

    def __call__(self, item):
        try:
            self.mark.touch(exist_ok=False)
        except FileExistsError:
            return self.function(item)
        os.kill(os.getpid(), signal.SIGKILL)
        return None


class Deadly:
    """An engine in whose n-th map a worker dies."""

    def __init__(self, engine, deadly: set[int], folder: Path) -> None:
        self.engine, self.deadly, self.folder, self.maps = engine, deadly, folder, 0

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        self.maps += 1
        if self.maps in self.deadly:
            function = DieOnce(function, self.folder / f"died-{self.maps}")
        return self.engine.map(function, items)

    def close(self) -> None:
        self.engine.close()


def test_dask_gives_the_same_and_survives_the_death_of_a_worker(
    file: Path, tmp_path: Path, local: Local
) -> None:
    pytest.importorskip("distributed")
    from neucrowd_tf.aggregation.engine.dask import Dask

    fit(Request(file, "dawid_skene", tmp_path / "local", max_iter=3), local)
    engine = Dask(workers=2)
    try:
        fit(Request(file, "dawid_skene", tmp_path / "dask", max_iter=3), engine)
        # Maps: 1 digests, 2 which ids, 3 the rows, 4 shards, 5 first sums, 6 and on iterations.
        deadly = Deadly(engine, {4, 7}, tmp_path)
        fit(Request(file, "dawid_skene", tmp_path / "killed", max_iter=3), deadly)
    finally:
        engine.close()
    assert (tmp_path / "died-4").exists()
    assert (tmp_path / "died-7").exists()
    assert_same(tmp_path / "dask", tmp_path / "local")
    assert_same(tmp_path / "killed", tmp_path / "local")


def test_without_workers_nothing_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from neucrowd_tf.aggregation.engine import dask

    monkeypatch.setitem(dask.PATIENCE, "distributed.scheduler.no-workers-timeout", "2s")
    engine = dask.Dask(workers=1)
    try:
        assert list(engine.map(abs, [-1])) == [1]
        engine.client.cluster.scale(0)
        raises(UsageError, "no worker came in 2 s", list, engine.map(abs, [-1, -2]))
    finally:
        engine.close()


def test_no_scheduler_is_one_line() -> None:
    pytest.importorskip("distributed")
    from neucrowd_tf.aggregation.engine.dask import connect

    raises(UsageError, "no Dask scheduler answers", connect, "nonsense://here")


@pytest.mark.parametrize("case", CASES["read"])
def test_a_file_is_read_by_parts_as_in_memory(case: str, tmp_path: Path, cli) -> None:
    """The columns, the order of the rows, labels and probabilities, and what is printed of them."""
    path = tmp_path / "a.csv"
    path.write_text(CASES["read"][case]["table"])
    flags = [f"--annotations={path}", *CASES["read"][case]["flags"], "--method=majority_vote"]
    whole = cli("aggregate", [*flags, "--ties=first"])
    parts = cli("aggregate", [*flags, "--engine=local"])
    assert parts.out == whole.out
    assert parts.err.splitlines()[1] == whole.err.splitlines()[1]


def test_a_shard_per_item_and_runs_of_few_rows_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli
) -> None:
    """Rows of a folder's files are merged by where an item is first; the newest label counts."""
    monkeypatch.setattr(engine_source, "RUN_ROWS", 2)
    folder = tmp_path / "in"
    folder.mkdir()
    for name, day in (("b", 1), ("a", 2)):
        rows = [f"{item}{name},u{item},{item % 2}.0,2026-0{day}-1{item}" for item in range(9)]
        rows += [f"2a,u2,1,2026-01-0{day}"]
        (folder / f"{name}.csv").write_text("\n".join(["task,worker,label,created_at", *rows]))
    flags = [f"--annotations={folder}", "--method=majority_vote"]
    whole = cli("aggregate", [*flags, "--ties=first"])
    parts = cli("aggregate", [*flags, "--engine=local"])
    assert parts.out == whole.out and "2a,0," in parts.out
    assert parts.err.splitlines()[1] == whole.err.splitlines()[1]


def test_times_of_some_files_decide_nothing(tmp_path: Path, cli) -> None:
    (tmp_path / "a.csv").write_text("task,worker,label,time\n1,a,x,2026-01-02\n2,b,y,2026-01-03\n")
    (tmp_path / "b.csv").write_text("task,worker,label\n1,b,x\n3,a,y\n")
    flags = [f"--annotations={tmp_path}", "--method=majority_vote"]
    assert cli("aggregate", [*flags, "--engine=local"]).out == cli("aggregate", flags).out


def test_rows_that_are_left_out_are_counted(tmp_path: Path, cli) -> None:
    path = tmp_path / "a.csv"
    flags = [f"--annotations={path}", "--engine=local", "--method=majority_vote"]
    output = f"--output={tmp_path / 'o'}"
    path.write_text("task,worker,label\n1,a,x\n1,b,NA\n2,a,y\n2,b,NA\n")
    shown = cli("aggregate", [*flags, output]).err
    assert "2 labels are missing ('NA')." in shown and "All labels are the same." not in shown
    assert "finished before" in cli("aggregate", [*flags, output, "--resume"]).err
    path.write_text("task,worker,label\n1,a,x\n2,b,x\n")
    same = cli("aggregate", [*flags, f"--output={tmp_path / 'same'}"]).err
    assert "All labels are the same." in same
    changed = cli("aggregate", [*flags, output, "--resume"], 2).err
    assert "the fit there began with a.csv=" in changed
