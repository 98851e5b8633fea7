"""What a run was made from, and whether it is that still."""

from __future__ import annotations

import json
from pathlib import Path

from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.run_files import changed, digest_given, files_read, run_that_holds


def test_files_that_changed_since_are_told(tmp_path: Path) -> None:
    labels, truth, run = tmp_path / "labels.csv", tmp_path / "truth.csv", tmp_path / "seed-0"
    for file in (labels, truth):
        file.write_text("task,label\n")
    run.mkdir()
    named = {"annotations": labels, "truth": truth}
    settings = {
        **{name: str(path) for name, path in named.items()},
        "digests": {name: digest(path) for name, path in named.items()},
        "hparams": {"weights": "w.keras", "gold": None},
    }
    (run / "config.json").write_text(json.dumps({"settings": settings, "versions": {}}))
    assert files_read(run) == {**named, "weights": Path("w.keras")}
    assert changed(run) == []
    labels.write_text("task,label\n1,x\n")
    (line,) = changed(run)
    assert line.startswith(f"warning: {labels}: expected --annotations as when the run in {run}")
    assert changed(run, {"annotations": truth, "truth": truth}) == []  # of the same bytes as then
    truth.unlink()
    assert len(changed(run)) == 1


def test_what_is_passed_over_in_a_folder_of_images_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "b.PNG").write_bytes(b"b")
    before, other = digest_given("images", tmp_path), digest_given("annotations", tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / ".hidden.png").write_text("x")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.png").write_text("x")
    assert digest_given("images", tmp_path) == before
    assert digest_given("annotations", tmp_path) != other  # an export's files may be anything
    (tmp_path / "a.png").write_bytes(b"a")
    assert digest_given("images", tmp_path) != before


def test_what_is_no_run(tmp_path: Path) -> None:
    for content in ("{", "[]", '{"settings": 3}', '{"settings": {"digests": 3}}'):
        (tmp_path / "config.json").write_text(content)
        assert files_read(tmp_path) == {} and changed(tmp_path) == []
        assert run_that_holds(tmp_path / "metrics.json") is None
    assert files_read(tmp_path / "none") == {}
