"""Ways out that errors name: each, followed, leads to the labels that are meant."""

from __future__ import annotations

import contextlib
import json
import time
import warnings
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.aggregate import main
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.layouts import read_labels
from neucrowd_tf.io.tables.format import TableFormat

ROWS = [(f"t{i // 3}", f"w{i % 3}", ("yes", "no")[(i // 3) % 2]) for i in range(36)]


def long(path: Path, *, put: dict[int, str], header: str = "task,worker,label") -> Path:
    """Writes rows with other labels in some places."""
    lines = [f"{task},{worker},{put.get(i, label)}" for i, (task, worker, label) in enumerate(ROWS)]
    path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return path


def aggregate(path: Path, *options: str) -> int:
    output = path.parent / "out"
    return main([f"--annotations={path}", f"--output={output}", "--method=majority_vote", *options])


def test_two_dashes_are_a_value_of_missing(tmp_path, capsys):
    path = long(tmp_path / "a.csv", put={0: "--", 7: "--"})
    assert aggregate(path) == 2 and "--missing=-- leaves these out" in capsys.readouterr().err
    assert aggregate(path, "--missing=--") == 0
    assert "2 lines without a label are left out" in capsys.readouterr().err
    assert "--" not in (tmp_path / "out").read_text()


def test_no_flag_is_named_for_signs_that_cannot_be_shown(tmp_path):
    for name in ("​NA", "​"):
        path = long(tmp_path / "a.csv", put={3: name})
        with pytest.raises(DataError, match=r"line 5, column 'label'.*cannot be seen; take them"):
            read_labels(path)


def test_classes_that_differ_in_spaces_are_to_be_mended(tmp_path):
    path = long(tmp_path / "a.csv", put={3: '"yes "', 4: '"yes "'})
    with pytest.raises(DataError, match=r"beside 'yes' \(18 times\); take the spaces out"):
        read_labels(path)


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("further", [False, True])
def test_triples_of_numbers_without_a_header(order, further, tmp_path):
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=16)
    rows = [(i, k, truth[i]) for i in range(16) for k in range(3)]
    table = np.array(rows)[:, order]
    if further:
        table = np.column_stack([table, rng.integers(5, 60, size=len(table))])
    for each in (table, rng.permutation(table)):
        np.savetxt(tmp_path / "a.csv", each, "%d", delimiter=",")
        np.save(tmp_path / "a.npy", each)
        for name in ("a.csv", "a.npy"):
            with pytest.raises(DataError, match="are never the same, as tasks and workers"):
                read_labels(tmp_path / name)
            assert read_labels(
                tmp_path / name, None, TableFormat.of(classes=",".join(map(str, range(60))))
            )


def test_three_annotators_are_no_triples(tmp_path):
    rng = np.random.default_rng(0)
    for classes in (2, 3, 5, 8):
        truth = rng.integers(classes, size=40)
        noise = rng.integers(classes, size=(40, 3))
        matrix = np.where(rng.random((40, 3)) < 0.7, truth[:, None], noise)
        np.savetxt(tmp_path / "a.csv", matrix, "%d", delimiter=",")
        assert read_labels(tmp_path / "a.csv").matrix is not None


@pytest.mark.parametrize("total", [100, 1000])
def test_rounded_shares_are_no_classes(total, tmp_path):
    rng = np.random.default_rng(3)
    shares = np.round(rng.dirichlet(np.ones(4), size=6) * total).astype(int)
    shares = shares[rng.integers(6, size=24)]  # so that columns have values in common
    assert len(set(shares.sum(axis=1))) > 1
    np.savetxt(tmp_path / "a.csv", shares, "%d", delimiter=",", header="a,b,c,d", comments="")
    np.save(tmp_path / "a.npy", shares)
    answers = {
        f"t{i}": dict(zip("abcd", map(int, row), strict=True)) for i, row in enumerate(shares)
    }
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    for name in ("a.csv", "a.npy", "answers.json"):
        with pytest.raises(DataError, match=f"sum to {total} in every row, but for rounding"):
            read_labels(tmp_path / name)


def test_columns_of_unknown_names_are_asked_for(tmp_path):
    for header in ("text_id,user,rating", "doc,coder,code"):
        lines = [f"{i // 3},w{i % 3},{i // 9 % 2}" for i in range(36)]
        (tmp_path / "a.csv").write_text("\n".join([header, *lines, ""]))
        with pytest.raises(DataError, match="--task_column, --worker_column and") as caught:
            read_labels(tmp_path / "a.csv")
        assert "--missing" not in str(caught.value)


def test_votes_of_many_columns_are_read_at_once(tmp_path):
    header = ",".join(["task", *(f"votes_c{i}" for i in range(20_000))])
    rows = [f"t{t}," + ",".join(str(1 + (i + t) % 3) for i in range(20_000)) for t in range(3)]
    (tmp_path / "a.csv").write_text("\n".join([header, *rows, ""]))
    table = read_labels(tmp_path / "a.csv")
    assert table.counts is not None and table.counts.sum() == pytest.approx(2 * 60_000, rel=1e-3)


@pytest.mark.parametrize(("dtype", "shape"), [("<i8", (10**12, 0)), ("|V0", (10**12, 3))])
def test_arrays_that_hold_nothing_are_refused(dtype, shape, tmp_path):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError, match="expected a NumPy array, received"):
        read_labels(tmp_path / "a.npy")


def test_null_and_blanks_in_json(tmp_path):
    answers = {"t0": {"a": "yes", "b": None}, "t1": {"a": "no", "b": "no"}}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    with pytest.raises(DataError, match=r"'t0', worker 'b': .*None; --missing=, leaves null out"):
        read_labels(tmp_path / "answers.json")
    with pytest.warns(UserWarning, match="1 answers without a label"):
        table = read_labels(tmp_path / "answers.json", None, TableFormat.of(missing=","))
    assert table.triples is not None and len(table.triples[0]) == 3


def test_a_name_that_is_there_twice_is_shown_with_its_columns(tmp_path):
    (tmp_path / "a.csv").write_text("task,ben,ben \nt0,yes,no\nt1,no,no\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"columns 2 and 3: .* 'ben' again \(spaces around"):
        read_labels(tmp_path / "a.csv")


def test_more_spellings_of_none(tmp_path):
    for name in ("N_A", "pd.NA", "np.nan", "NoneType", "・", '"-1,0"', "- 1"):
        with pytest.raises(DataError, match="which often stands for none"):
            read_labels(long(tmp_path / "a.csv", put={3: name, 9: name}))


def test_tables_make_no_warning_of_numpys(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for seed in range(300):
            rng = np.random.default_rng(seed)
            rows, width, classes = rng.integers(2, 16), rng.integers(2, 8), rng.integers(2, 5)
            truth = rng.integers(classes, size=(rows, 1)) + rng.integers(2)
            noise = rng.integers(classes, size=(rows, width))
            matrix = np.where(rng.random((rows, width)) < 0.8, truth, noise)
            np.save(tmp_path / "a.npy", matrix)
            with contextlib.suppress(DataError, UserWarning):
                read_labels(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("raters", "codes"), [(66, (1, 2)), (100, (0, 1, 2)), (25, (3, 4, 5)), (8, (12, 13))]
)
def test_small_codes_of_many_raters_are_no_shares(raters, codes, tmp_path):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth, noise = rng.choice(codes, (40, 1)), rng.choice(codes, (40, raters))
        np.save(tmp_path / "a.npy", np.where(rng.random((40, raters)) < 0.9, truth, noise))
        assert read_labels(tmp_path / "a.npy").matrix is not None


def test_numbers_as_classes_of_many_votes_are_read_at_once(tmp_path):
    header = ",".join(["task", *(f"votes_{i}" for i in range(30_000))])
    rows = [f"t{t}," + ",".join(str(1 + (i + t) % 3) for i in range(30_000)) for t in range(3)]
    (tmp_path / "a.csv").write_text("\n".join([header, *rows, ""]))
    started = time.process_time()
    read_labels(tmp_path / "a.csv")
    assert time.process_time() - started < 20


def test_a_class_with_a_tab_behind_it(tmp_path):
    with pytest.raises(DataError, match=r"control character .*; take it out"):
        read_labels(long(tmp_path / "a.csv", put={3: '"yes\t"'}))


def test_blank_tasks_and_annotators(tmp_path):
    path = tmp_path / "a.csv"
    for task in ("", " "):
        lines = ["task,worker,label", "a,b,yes", f"{task},b,no", "c,b,no", "c,d,no", ""]
        path.write_text("\n".join(lines))
        with pytest.raises(DataError, match=r"line 3, column 'task': .*; take (it|the line) out"):
            read_labels(path)
    path.write_text("task,ann, \u00a0,cem\nt0,yes,no,no\nt1,no,no,yes\n", encoding="utf-8")
    answers = {"t0": {"a": "yes", " ": "no"}, "t1": {"a": "no", "b": "no"}}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    for name in ("a.csv", "answers.json"):
        with pytest.raises(DataError):
            read_labels(tmp_path / name)
        with pytest.warns(UserWarning, match="left out"):
            read_labels(tmp_path / name, None, TableFormat.of(missing=","))
