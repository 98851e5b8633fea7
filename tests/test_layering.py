"""Imports point down only, and what has no need of TensorFlow does not import it."""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.processes import python

# From the ground up; rooms of one floor do not import each other.
FLOORS = """
errors cli.signals declare.types declare.picking
evaluation.auc_and_log_loss
declare.declarations declare.settings evaluation.metrics names declare.registration
annotations declare.flag_parsing declare.nested
io
cli.command_line cli.quiet
saving.loading
saving.persistent saving.saved_model datasets.core datasets.splits
saving.transaction
declare.dataset_registration
aggregation nn
certainty datasets encoders
training
declare.registry
methods.crowd_layers.common
methods.two_stage methods.rll methods.neucrowd methods.iced methods.texts
methods.crowd_layers
methods.crowding methods.dasc saving.keras_objects
evaluation
methods.auto evaluation.report
cli.commands
cli.runs
__main__
baselines data
reproduction
run_experiment
"""
# Tools beside the house: they may import anything, and nothing imports them.
OUTSIDE = ("benchmarks", "tests", "setup")
HOUSE = ("neucrowd_tf", "baselines", "data", "reproduction", "run_experiment")
LEVEL = {
    room: level for level, rooms in enumerate(FLOORS.strip().splitlines()) for room in rooms.split()
}
LAZY = ("tensorflow", "keras", "tensorflow_probability", "tf_keras")


def room_of(module: str) -> str | None:
    """Returns the room that a module belongs to, None for other packages' modules and for the
    package itself, which only names what is imported when used.
    """
    parts = module.split(".")
    if parts[0] == "neucrowd_tf":
        rooms = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
        return next((room for room in rooms if room in LEVEL), None)
    return parts[0] if parts[0] in (*HOUSE, *OUTSIDE) else None


def sources(repository: Path) -> dict[str, Path]:
    """Returns the house's files by module name."""
    rooms = [repository / name for name in HOUSE if (repository / name).is_dir()]
    files = [
        repository / "run_experiment.py",
        *(path for room in rooms for path in room.rglob("*.py")),
    ]
    names = {}
    for path in files:
        module = ".".join(path.relative_to(repository).with_suffix("").parts)
        names[module.removesuffix(".__init__")] = path
    return names


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Returns a file's tree; several tests walk through all files."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, modules: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """Yields line and module of each import in a file, those inside functions and for types too;
    `from package import module` is an import of the module.
    """
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                # Only the plug-ins, which have other names in a wheel, import relatively.
                package = path.parent.name
                assert package in ("baselines", "data"), f"{path}:{node.lineno}: relative import"
                source = f"{package}.{source}".rstrip(".")
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield node.lineno, inner if inner in modules else source


def upward(repository: Path) -> list[str]:
    result = []
    modules = sources(repository)
    for module, path in modules.items():
        room = room_of(module)
        if room is None:
            continue
        if room not in LEVEL:
            result.append(f"{path}: the room {room!r} stands on no floor; add it to FLOORS")
            continue
        for line, target in imports(path, modules):
            other = room_of(target)
            if other in OUTSIDE:
                result.append(f"{path}:{line}: {room} imports {target}")
            elif other is not None and other != room and LEVEL.get(other, -1) >= LEVEL[room]:
                result.append(f"{path}:{line}: {room} (no floor above {other}'s) imports {target}")
    return result


def test_imports_point_down(repository: Path) -> None:
    assert not (result := upward(repository)), "\n".join(result)


def test_no_file_imports_itself_around_a_corner(repository: Path) -> None:
    modules = sources(repository)
    graph = {
        name: {target for _, target in imports(path, modules)} - {name}
        for name, path in modules.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # its error names the files


# Lines, neither blank nor comments, of the modules that an estimator's module reaches by imports at
# the top and inside functions. What makes one longer has to be worth reading for that method.
REACH = {
    "methods.rll.estimator": 7_140,
    "methods.neucrowd.estimator": 7_480,
    "methods.iced.estimator": 7_960,
    "methods.dasc.estimator": 8_370,
    "methods.crowding.estimator": 9_220,
}


def lines_of_imports(path: Path, kind: type | tuple[type, ...]) -> set[int]:
    """Returns the lines of imports inside such nodes; of `if`, those for types alone."""
    return {
        inner.lineno
        for node in ast.walk(parsed(path))
        if isinstance(node, kind)
        if not isinstance(node, ast.If) or "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
        if isinstance(inner, (ast.Import, ast.ImportFrom))
    }


@pytest.mark.parametrize("module", REACH)
def test_an_estimator_reaches_few_lines(module: str, repository: Path) -> None:
    modules, waiting = sources(repository), [f"neucrowd_tf.{module}"]
    seen: set[str] = set()
    while waiting:
        if (name := waiting.pop()) in modules and name not in seen:
            seen.add(name)
            path = modules[name]
            typed = lines_of_imports(path, ast.If)
            waiting += [target for line, target in imports(path, modules) if line not in typed]
    texts = (modules[name].read_text(encoding="utf-8") for name in seen)
    lines = [line.strip() for text in texts for line in text.splitlines()]
    assert sum(bool(line) and not line.startswith("#") for line in lines) <= REACH[module]


def test_few_imports_hide(repository: Path) -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    paths = sources(repository).values()
    assert sum(len(lines_of_imports(path, functions)) for path in paths) <= 51
    assert sum(bool(lines_of_imports(path, ast.If)) for path in paths) <= 10


STATEMENTS = (
    "import neucrowd_tf",
    "from neucrowd_tf import Annotations, CrowdDataset, MajorityVote, DawidSkene, Glad, load",
    "import neucrowd_tf.aggregation, neucrowd_tf.annotations.statistics,"
    " neucrowd_tf.evaluation.metrics, neucrowd_tf.declare.registry, neucrowd_tf.evaluation",
    "import pandas as pd; f = pd.DataFrame({'task': [1, 1], 'worker': [1, 2], 'label': ['a', 'a']})"
    "; neucrowd_tf.DawidSkene().fit_predict(neucrowd_tf.Annotations.from_frame(f))",
    "import numpy as np; from neucrowd_tf.methods.two_stage.labels_first import"
    " TwoStageClassifier as T; x = np.arange(12.).reshape(6, 2);"
    " T().fit(x, [[0, 0]] * 3 + [[1, 1]] * 3).predict(x)",
)


def test_imports_without_tensorflow(repository: Path) -> None:
    """One after the other in one process: what an earlier one loaded had not brought TensorFlow."""
    code = (
        "import sys\n"
        f"for statement in {STATEMENTS!r}:\n"
        "    exec(statement)\n"
        f"    found = [name for name in {LAZY!r} if name in sys.modules]\n"
        "    if found:\n"
        "        sys.exit(f'{statement}: {found}')\n"
    )
    done = python(repository, "-c", code)
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
    assert public <= set(neucrowd_tf.__all__) and dir(neucrowd_tf) == sorted(neucrowd_tf.__all__)
    for name in sorted(public):
        assert getattr(neucrowd_tf, name).__name__ == name
    with pytest.raises(AttributeError, match="NeuCrowds"):
        neucrowd_tf.NeuCrowds  # noqa: B018


def test_every_marked_test_exists(repository: Path) -> None:
    for line in (repository / "tests" / "marks.txt").read_text(encoding="utf-8").splitlines():
        path, *_, name = line.partition(" ")[2].split("::")
        assert f"def {name}(" in (repository / path).read_text(encoding="utf-8"), line
