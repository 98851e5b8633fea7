"""What is around a run: folders with foreign or damaged files, models, exports of tools."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from tests.torture.base import Sound, both, put, sound
from tests.torture.oracle import ANY, EITHER, REFUSED, SAME, Input
from tests.torture.tables import FLAGS, RUN, files_of

RUN_FOLDER = "out/table/mv_lr/seed-0"
RESUME = (*FLAGS, "--resume")
JUNK = (
    b"", b"null", b"[]", b"{}", b'"text"', b"{\"test\": []}", b"\xff\xfe\0", b"a,b\n1,2\n",
    b'{"settings": 1}', b'{"settings": {"digests": []}}', b'{"test": {"accuracy": "x"}}',
    b"[" * 9999,
)  # fmt: skip


@cache
def finished(export: bool = False) -> Path:
    """Returns a folder with the files of a finished run, made once a process."""
    from tests.torture.judge import answer

    folder = Path(tempfile.mkdtemp(prefix="torture-run-", dir=os.environ.get("TORTURE_DIR")))
    files_of(sound(2))(folder)
    found = answer("run", (*FLAGS, *(("--export",) if export else ())), folder)
    if found.code:
        raise RuntimeError(found.errors)
    return folder


def after(change: Callable[[Path], None], export: bool = False) -> Callable[[Path], None]:
    """Returns what copies a finished run and changes it. Its files lie where they lay then, so that
    --resume sees the same paths.
    """

    def write(folder: Path) -> None:
        for item in finished(export).iterdir():
            if item.is_dir():
                shutil.copytree(item, folder / item.name)
            else:
                shutil.copy2(item, folder / item.name)
        config = folder / RUN_FOLDER / "config.json"
        config.write_text(config.read_text().replace(str(finished(export)), str(folder)))
        change(folder)

    return write


def resumed(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """--resume on a finished run whose files were changed."""
    whole = after(lambda _: None)
    junk = bytes(JUNK[int(rng.integers(len(JUNK)))])
    yield Input("--resume on a finished run", "run", RESUME, whole, SAME, (), whole, RESUME)

    def changed(name: str, content: bytes | None) -> Callable[[Path], None]:
        def change(folder: Path) -> None:
            path = folder / name
            path.unlink()
            if content is not None:
                path.write_bytes(content)

        return after(change)

    for name in ("predictions.csv", "annotators.csv", "labels.csv", "evaluation.json"):
        text = (finished() / RUN_FOLDER / name).read_bytes()
        for content in (junk, text[: int(rng.integers(len(text)))]):
            other = changed(f"{RUN_FOLDER}/{name}", content)
            yield Input(f"{name} is damaged", "run", RESUME, other, SAME, (), whole, RESUME)
    names = ("predictions.csv", "annotators.csv", "labels.csv", "report.html", "evaluation.json")
    for name in names:
        gone = after(lambda f, name=name: (f / RUN_FOLDER / name).unlink(missing_ok=True))
        yield Input(f"{name} is missing", "run", RESUME, gone, SAME, (), whole, RESUME)
    for name in ("a.csv", "f.csv", "t.csv"):
        text = (finished() / name).read_bytes()
        lines = text.splitlines(keepends=True)
        yield Input(
            f"{name} changed under a finished run",
            "run",
            RESUME,
            changed(name, b"".join(lines[:-1])),
            REFUSED,
            (name, "changed"),
        )

        def half(folder: Path, name: str = name, lines: list[bytes] = lines) -> None:
            (folder / RUN_FOLDER / "metrics.json").unlink()
            (folder / name).write_bytes(b"".join(lines[:-1]))

        yield Input(
            f"{name} changed under a half-finished run",
            "run",
            RESUME,
            after(half),
            REFUSED,
            (name, "changed"),
        )
    for name in ("metrics.json", "config.json"):
        yield Input(
            f"damaged {name}",
            "run",
            RESUME,
            changed(f"{RUN_FOLDER}/{name}", junk),
            REFUSED,
            (name,),
        )
    rows = (finished() / "out/results.csv").read_text()
    broken = rng.choice([rows.replace("table", "table,more", 1), rows[: len(rows) // 2] + "\n",
                         rows.replace(",0,", ",zero,", 1), "a,b\n1,2\n"])  # fmt: skip
    yield Input(
        "foreign results.csv",
        "run",
        RESUME,
        changed("out/results.csv", str(broken).encode()),
        EITHER | SAME,
        (),
    )
    yield Input(
        "damaged results.csv",
        "run",
        RESUME,
        changed("out/results.csv", junk or b"x"),
        REFUSED,
        ("results.csv",),
    )
    page = f"{RUN_FOLDER}/report.html"
    foreign = after(lambda f: (f / page).write_bytes(junk + rng.bytes(50)))
    yield Input("foreign report.html", "run", RESUME, foreign, SAME, (), whole, RESUME)
    folders = after(lambda f: (f / page).mkdir())
    yield Input("report.html is a folder", "run", RESUME, folders, SAME, (), whole, RESUME)
    yield Input("a finished run without --resume", "run", FLAGS, whole, REFUSED, ("out",))
    yield Input(
        "output_dir is a file",
        "run",
        FLAGS,
        both(files_of(sound(2)), put("out", "x")),
        REFUSED,
        ("out",),
    )
    strange = os.fsdecode(b"out\xff")
    flags = tuple(flag.replace("/out", f"/{strange}") for flag in FLAGS)
    yield Input(
        "output_dir is not UTF-8", "run", flags, files_of(sound(2)), SAME | REFUSED, (), None
    )


def models(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """predict with damaged models."""
    flags = ("--model={folder}/" + RUN_FOLDER + "/saved_model", "--features={folder}/f.csv",
             "--output={folder}/scores.csv")  # fmt: skip
    model = f"{RUN_FOLDER}/saved_model"
    whole = after(lambda _: None, True)
    yield Input("predict", "predict", flags, whole, SAME, (), whole, flags)

    def cut(name: str) -> Callable[[Path], None]:
        def change(folder: Path) -> None:
            path = folder / model / name
            content = path.read_bytes()
            path.write_bytes(content[: int(rng.integers(len(content)))])

        return after(change, True)

    for name in ("saved_model.pb", "variables/variables.index", "assets.extra/names.json"):
        yield Input(f"{name} cut off", "predict", flags, cut(name), REFUSED)
    junk = bytes(JUNK[int(rng.integers(1, len(JUNK)))])
    yield Input(
        "saved_model.pb is something else",
        "predict",
        flags,
        after(lambda f: (f / model / "saved_model.pb").write_bytes(junk), True),
        REFUSED,
    )
    yield Input("names.json is something else", "predict", flags,
                after(lambda f: (f / model / "assets.extra/names.json").write_bytes(junk), True),
                ANY)  # fmt: skip
    yield Input("no model", "predict", flags, files_of(base), REFUSED)
    wrong = after(lambda f: (f / "f.csv").write_text("task,x\nt1,1\n"), True)
    yield Input("predict without a column", "predict", flags, wrong, REFUSED, ("f.csv",))


def exports(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """convert on damaged exports of tools."""
    flags = ("--input={folder}/e.json", "--output=-")
    tasks = [
        {"id": i, "data": {"text": task}, "annotations": [
            {"id": 9 * i + j, "completed_by": j, "result": [
                {"from_name": "q", "to_name": "t", "type": "choices",
                 "value": {"choices": [base.classes[base.truth[i]]]}}]} for j in range(3)]}
        for i, task in enumerate(base.tasks)
    ]  # fmt: skip
    text = json.dumps(tasks)
    yield Input(
        "export that is sound", "convert", flags, put("e.json", text), SAME, (), put("e.json", text)
    )
    yield Input(
        "export cut off",
        "convert",
        flags,
        put("e.json", text[: int(rng.integers(len(text)))]),
        REFUSED,
        ("e.json",),
    )
    for bad in ("[" * 50_000, '{"id": ' + "9" * 5000 + "}", "", "null", "[1, 2]"):
        yield Input(
            "export of something else", "convert", flags, put("e.json", bad), REFUSED, ("e.json",)
        )
    flipped = bytearray(text.encode())
    for _ in range(3):
        flipped[int(rng.integers(len(flipped)))] = int(rng.integers(32, 127))
    yield Input("export with other letters", "convert", flags, put("e.json", bytes(flipped)), ANY)
    yield Input(
        "report of labels",
        "report",
        ("--annotations={folder}/a.csv", "--output={folder}/r.html"),
        put("a.csv", rng.bytes(99)),
        REFUSED,
        ("a.csv",),
    )
    yield Input(
        "report of no run",
        "report",
        ("--run={folder}", "--output={folder}/r.html"),
        put("a.csv", "x"),
        REFUSED,
    )


GROUPS = (resumed, models, exports)


def inputs(seed: int) -> Iterator[Input]:
    """Yields every kind once, drawn with a seed."""
    for number, group in enumerate(GROUPS):
        yield from group(sound(seed), np.random.default_rng([seed, number, 0xF01D]))


__all__ = ["RUN", "finished", "inputs"]
