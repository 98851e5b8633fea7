"""Imports point down only, and what has no need of TensorFlow does not import it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# From the ground up; rooms of one floor do not import each other, except those of the library's
# ground floor.
FLOORS = (
    (
        "annotations",
        "dataset",
        "metrics",
        "registry",
        "errors",
        "files",
        "persistence",
    ),  # and every other file beside them
    ("statistics", "simulation", "aggregation", "nn"),
    ("training",),
    ("crowd_layers",),
    ("rll", "neucrowd", "crowding", "dasc", "iced"),
    ("evaluation", "export", "predict"),
    ("report", "predict"),
    ("harness",),
    ("baselines", "data"),
    ("run_experiment",),
)
# Tools beside the house: they may import anything, and nothing imports them.
OUTSIDE = ("benchmarks", "tests", "setup")
_NAMED = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
LAZY = ("tensorflow", "keras", "tensorflow_probability", "tf_keras")


def room_of(module: str) -> str | None:
    """Returns the room that a module belongs to, None for other packages' modules and for the
    package itself.
    """
    parts = module.split(".")
    if parts[0] == "neucrowd_tf":
        return parts[1] if len(parts) > 1 else None
    return parts[0] if parts[0] in ("baselines", "data", "run_experiment", *OUTSIDE) else None


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yields line and module of each import in a file, those inside functions too; `from package
    import module` as both.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield node.lineno, node.module or ""
            if node.module == "neucrowd_tf":
                yield from ((node.lineno, f"neucrowd_tf.{alias.name}") for alias in node.names)


def sources(repository: Path) -> list[Path]:
    rooms = [repository / name for name in ("neucrowd_tf", "baselines", "data")]
    return [
        repository / "run_experiment.py",
        *(path for room in rooms for path in sorted(room.rglob("*.py"))),
    ]


def floors(repository: Path) -> dict[str, int]:
    """Returns each room's floor; a file of the library that has none is on the ground."""
    return {path.stem: 0 for path in (repository / "neucrowd_tf").glob("*.py")} | _NAMED


def upward(repository: Path) -> list[str]:
    found = []
    floor = floors(repository)
    for path in sources(repository):
        module = ".".join(path.relative_to(repository).with_suffix("").parts)
        room = room_of(module)
        if room is None or module == "neucrowd_tf.__init__":
            continue  # the package itself only names what is imported when used
        if room not in floor:
            found.append(f"{path}: the room {room!r} stands on no floor; add it to FLOORS")
            continue
        beside = floor[room] in (
            0,
            1,
            floor["export"],
        )  # rooms of these floors may import each other
        for line, target in imports(path):
            other = room_of(target)
            if other in OUTSIDE:
                found.append(f"{path}:{line}: {room} imports {target}")
            elif (
                other is not None
                and other != room
                and other in floor
                and floor[other] >= floor[room] + beside
            ):
                found.append(
                    f"{path}:{line}: {room} (floor {floor[room]}) imports {target} (floor"
                    f" {floor[other]})"
                )
    return found


def test_imports_point_down(repository: Path) -> None:
    assert upward(repository) == []


def test_the_walk_finds_what_points_up(tmp_path: Path) -> None:
    for folder in ("neucrowd_tf/aggregation", "baselines", "data"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "run_experiment.py").write_text("import baselines\n")
    (tmp_path / "neucrowd_tf" / "aggregation" / "a.py").write_text(
        "def f():\n    from neucrowd_tf.training import run\n"
    )
    (tmp_path / "neucrowd_tf" / "metrics.py").write_text(
        "from neucrowd_tf import statistics\nimport baselines\n"
    )
    (tmp_path / "data" / "b.py").write_text("import neucrowd_tf.harness\nimport baselines.c\n")
    assert [line.rpartition("/")[2].split(" (")[0] for line in upward(tmp_path)] == [
        "a.py:2: aggregation",
        "metrics.py:1: metrics",
        "metrics.py:2: metrics",
        "b.py:2: data",
    ]


def test_harness_is_the_one_place_that_lists_rooms(repository: Path) -> None:
    listed = (repository / "neucrowd_tf" / "harness" / "rooms.py").read_text()
    for path in sorted((repository / "neucrowd_tf").rglob("*.py")):
        room = path.relative_to(repository / "neucrowd_tf").parts[0]
        if "@register_method(" in path.read_text(encoding="utf-8"):
            assert f'"neucrowd_tf.{room}"' in listed, (
                f"{path} registers methods in a room that harness/rooms.py does not import"
            )


@pytest.mark.parametrize(
    "statement",
    [
        "import neucrowd_tf",
        "from neucrowd_tf import Annotations, CrowdDataset, MajorityVote, DawidSkene, Glad, load",
        (
            "import neucrowd_tf.aggregation, neucrowd_tf.annotations.statistics,"
            " neucrowd_tf.metrics, neucrowd_tf.registry, neucrowd_tf.evaluation"
        ),
        (
            "from neucrowd_tf.harness import rooms; rooms.register(('baselines', 'data'));"
            " rooms.listing()"
        ),
        (
            "import neucrowd_tf, pandas as pd; f = pd.DataFrame({'task': [1, 1], 'worker': [1, 2],"
            " 'label': ['a',"
            " 'a']});neucrowd_tf.DawidSkene().fit_predict(neucrowd_tf.Annotations.from_frame(f))"
        ),
    ],
)
def test_imports_without_tensorflow(statement: str, repository: Path) -> None:
    code = (
        f"import sys; {statement}; found = [name for name in {LAZY!r} if name in sys.modules];"
        " sys.exit(', '.join(found) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_public_names() -> None:
    import neucrowd_tf

    public = {"Annotations", "CrowdDataset", "MajorityVote", "DawidSkene", "Glad", "load"}
    public |= {
        "NeuCrowd",
        "RLL",
        "CrowdLayer",
        "AnnoReg",
        "WeightedDoctorNet",
        "DASC",
        "CrowdInG",
        "ICED",
    }
    assert public <= set(neucrowd_tf.__all__) and public <= set(dir(neucrowd_tf))
    for name in sorted(public):
        assert getattr(neucrowd_tf, name).__name__ == name
    with pytest.raises(AttributeError, match="NeuCrowds"):
        neucrowd_tf.NeuCrowds  # noqa: B018
