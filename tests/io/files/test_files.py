"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import gc
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.cli.signals import unfinished
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.files.arrays import array_digest, load_arrays, save_arrays
from neucrowd_tf.io.files.atomic import atomic_folder, atomic_path, resolved, write_text
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.io.files.npy import read_npy
from tests.cases import raises
from tests.processes import python


class _Slow:
    """Garbage whose end lets other threads run."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(20))


def test_a_digest_of_texts_is_of_their_letters(repository: Path) -> None:
    program = (
        "import numpy as np; from neucrowd_tf.io.files.arrays import array_digest;"
        "print(array_digest(np.array(['a text', 'another'], dtype=object)))"
    )
    other = python(repository, "-c", program, check=True).stdout
    assert array_digest(np.array(["a text", "another"], dtype=object)) == other.strip()
    lists = (["ab", "c"], ["a", "bc"], ["ab", "\ud800"], [1, "c"], ["1", "c"])
    assert len({array_digest(np.array(items, dtype=object)) for items in lists}) == len(lists)


def test_threads_read_arrays_at_once(tmp_path: Path) -> None:
    # Before Python 3.12 a header fails that is parsed while garbage collection lets another thread
    # parse one.
    save_arrays(tmp_path / "a.npz", {"x": np.arange(3)})
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()

    def read(_: int) -> list[int]:
        _Slow()
        return list(load_arrays(tmp_path / "a.npz")["x"])

    sys.setswitchinterval(1e-6)
    gc.set_threshold(5)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(read, range(300))) == [[0, 1, 2]] * 300
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)


def test_atomic_path_replaces_whole(tmp_path: Path) -> None:
    target = tmp_path / "sub" / "a.txt"
    write_text(target, "one")
    with atomic_path(target) as temporary:
        temporary.write_text("two")
        assert target.read_text() == "one"
        assert temporary.parent == target.parent
        assert temporary.suffix == ".txt"
    assert target.read_text() == "two" and os.listdir(target.parent) == ["a.txt"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(not Path("/proc/version").is_file(), reason="needs /proc")
def test_a_folder_that_takes_no_files_is_told_by_the_files_name() -> None:
    with pytest.raises(OSError) as caught:
        write_text("/proc/page.html", "x")
    assert caught.value.filename == "/proc/page.html"


def test_atomic_path_leaves_the_old_file_on_errors(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_text(target, "old")
    with pytest.raises(OSError, match="No space left"), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]


def test_json(tmp_path: Path) -> None:
    value = {
        1: np.float32(0.5),
        "array": np.arange(3),
        "nan": float("nan"),
        "inf": np.inf,
        "text": "ü",
        "path": tmp_path,
        "set": {2},
        "none": None,
    }
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == {
        "1": 0.5, "array": [0, 1, 2], "nan": None, "inf": None, "text": "ü", "path": str(tmp_path), "set": [2], "none": None,  # noqa: E501
    }  # fmt: skip
    (tmp_path / "b.json").write_bytes(b"\xff")
    raises(DataError, r"b\.json: the bytes are not UTF-8", read_json, tmp_path / "b.json")
    raises(DataError, r"c\.json: no such file", read_json, tmp_path / "c.json")


def test_a_key_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text, key in (
        ('{"t1": {"a": 1}, "t2": {"a": 1, "b": 2, "a": 3}}', "a"),
        ('{"t1": {"b": 1, "a": 2}, "t1": {"a": 1}}', "t1"),
        ('[{"x": [1, {"y": 1, "y": 2}]}]', "y"),
    ):
        path.write_text(text)
        raises(DataError, f"the key {key!r} occurs twice", read_json, path)


def test_arrays_there_and_back_without_pickle(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(4.0).reshape(2, 2),
        "empty": np.zeros((0, 3), np.int32),
        "text": np.array(["x", "yy"]),
    }
    save_arrays(tmp_path / "a.npz", arrays)
    again = load_arrays(tmp_path / "a.npz")
    assert list(again) == list(arrays)
    for key, array in arrays.items():
        assert again[key].dtype == array.dtype and np.array_equal(again[key], array)
    with pytest.raises(TypeError, match="array 'o' holds Python objects"):
        save_arrays(tmp_path / "b.npz", {"o": np.array([{}], dtype=object)})
    assert os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_or_a_device_in_place_of_arrays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    (tmp_path / "b.npz").symlink_to("/dev/zero")
    for name in ("a.npz", "b.npz"):
        raises(DataError, f"{name}: no file of arrays", load_arrays, tmp_path / name)


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(NotADirectoryError, match=r"this is a file\. Name a folder"):
        write_text(tmp_path / "a" / "b.txt", "y")


def test_an_array_with_more_behind_it(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    size = (tmp_path / "a.npy").stat().st_size
    np.testing.assert_array_equal(read_npy(tmp_path / "a.npy"), [0, 1, 2])
    with (tmp_path / "a.npy").open("ab") as stream:
        np.save(stream, np.arange(3))
    raises(DataError, f"one that {size} further bytes follow", read_npy, tmp_path / "a.npy")


def test_a_folder_without_permission_is_named_and_not_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(**_) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / ".a.csv.x.part"))

    monkeypatch.setattr("tempfile.mkstemp", denied)
    with pytest.raises(PermissionError) as caught:
        write_text(tmp_path / "a.csv", "x")
    assert one_line(caught.value) == (
        f"{tmp_path / 'a.csv'}: no permission to read or write it (Permission"
        " denied). Change its permissions."
    )


def test_a_full_disk_names_the_file_that_it_has(tmp_path: Path) -> None:
    """Of two that are written at once, on two disks."""
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    with pytest.raises(OSError, match=r"other\.csv"), atomic_path(one) as first, atomic_path(other):
        first.write_text("a")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not list(tmp_path.iterdir())


def test_links_lead_to_what_is_written(tmp_path: Path) -> None:
    real, link = tmp_path / "elsewhere" / "real.csv", tmp_path / "link.csv"
    real.parent.mkdir()
    real.write_text("old")
    (tmp_path / "step.csv").symlink_to("elsewhere/real.csv")
    link.symlink_to("step.csv")
    write_text(link, "new")
    assert link.is_symlink() and real.read_text() == "new"
    (tmp_path / "new.csv").symlink_to("elsewhere/later.csv")
    write_text(tmp_path / "new.csv", "x")
    assert (tmp_path / "elsewhere" / "later.csv").read_text() == "x"
    (tmp_path / "folder").symlink_to("elsewhere/tables")
    with atomic_folder(tmp_path / "folder") as fresh:
        (fresh / "a").write_text("x")
    assert (tmp_path / "folder").is_symlink()
    assert (tmp_path / "elsewhere" / "tables" / "a").read_text() == "x"
    link.unlink()
    link.symlink_to("link.csv")
    raises(OSError, "symbolic links", write_text, link, "x")


def test_a_folder_stays_if_its_replacement_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def interrupted(source: Path, target: Path) -> None:
        if source.name == "new":
            raise KeyboardInterrupt
        rename(source, target)

    write_text(tmp_path / "model" / "a", "old")
    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "model") as fresh:
        assert fresh.parent in unfinished  # a signal removes it
    assert [item.name for item in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "a").read_text() == "old"


@pytest.mark.parametrize("name", ["stdout", "link.csv", "folder/stdout"])
def test_the_systems_links_are_never_replaced(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /dev/stdout, which root could replace; here the system's folder is one of the test."""
    system = tmp_path / "dev"
    system.mkdir()
    (tmp_path / "out.csv").write_text("old")
    (system / "stdout").symlink_to(tmp_path / "out.csv")
    (tmp_path / "link.csv").symlink_to(system / "stdout")
    (tmp_path / "folder").symlink_to(system)
    monkeypatch.setattr("neucrowd_tf.io.files.atomic.SYSTEM", (system,))
    with pytest.raises(OSError, match=r"this is the system's\. To print, use -") as caught:
        write_text(system / name if name == "stdout" else tmp_path / name, "x")
    assert caught.value.filename.endswith(name)
    assert (system / "stdout").is_symlink() and (tmp_path / "out.csv").read_text() == "old"


@pytest.mark.parametrize("path", ["/dev/stdout", "/proc/self/fd/1", "/dev/null"])
def test_outputs_that_are_the_systems_are_refused(path: str) -> None:
    raises(OSError, "this is the system's", resolved, path)
