"""The floors of the package: a file imports its own package and lower floors only; packages of one floor stay apart."""

# tests named elsewhere

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tensormagic

ROOT = Path(tensormagic.__file__).parent
FLOORS = [
    ["alike"],
    ["ir", "config"],
    ["ops"],
    ["capture", "transform", "backend"],
    ["residence", "forms"],
    ["session"],
    ["functions"],
    ["distributed", "numpy"],
    ["notebook"],
    ["__init__"],
    ["doctor"],
    ["cli"],
    ["__main__"],
]
FLOOR = {package: number for number, packages in enumerate(FLOORS) for package in packages}
BORDERS = {  # who alone may import what
    ("IPython", "ipywidgets", "anywidget", "ipykernel", "comm", "traitlets"): ("notebook/",),
    ("numba", "llvmlite"): (
        "backend/cpu/",
        "backend/cuda/compiling/",
        "backend/vecmath/",
        "backend/compiling/worker",
    ),
    ("tensormagic_kernel",): ("cli.py",),
}
FILES = sorted(ROOT.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's code, read once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


BY_NAME = (  # where ops are known by their names: the ops themselves, rules, and what other libraries call them
    "ops/",
    "transform/rewriting/",
    "backend/cuda/library",
)
LISTS = {  # lists of names that are those of ops, too, and name something else: files, and how many each has; none may be added
    # kinds of sizes, and what is told of a value: min, max, mean
    **dict.fromkeys(
        (
            "backend/printing/c_text.py",
            "backend/printing/driver.py",
            "backend/printing/kernel_text.py",
            "backend/planning/size_bounds.py",
        ),
        1,
    ),
    **dict.fromkeys(("functions/compiled/exporting.py", "ir/bounds.py", "ir/size.py"), 1),
    **dict.fromkeys(("notebook/live/follow.py", "notebook/pictures/measure.py", "notebook/pictures/views.py"), 1),
    # functions of machine code and of the text of kernels
    **dict.fromkeys(("backend/cpu/calls.py", "backend/cpu/types.py", "backend/cpu/values.py"), 1),
    "backend/cuda/device.py": 1,
    "backend/cuda/compiling/dialect_numbers.py": 2,
    # what a file of vector math defines
    **{f"backend/vecmath/{name}.py": 1 for name in ("formulas", "hyperbolic", "inverse", "roots", "trig")},
    # functions and methods of Python, NumPy, SciPy and pandas, by which the user's text calls them
    "capture/library/mathematics.py": 5,
    "capture/library/padding.py": 2,
    "capture/library/special.py": 1,
    "capture/library/statistics.py": 1,
    "capture/library/transforms.py": 1,
    "capture/values/operators.py": 2,
    "capture/python/builtin_facts.py": 1,
    "capture/staging/analysis/known_text.py": 2,
    "capture/staging/analysis/numpy_functions.py": 7,
    "capture/staging/analysis/overflows.py": 1,
    "capture/staging/analysis/text_expressions.py": 4,
    "capture/staging/analysis/text_indices.py": 2,
    "capture/stores/at.py": 1,
    "capture/tables/labelled.py": 3,
    "notebook/errors/hints.py": 1,
    # commands of LaTeX
    "notebook/formulas/latex.py": 2,
    "notebook/formulas/typeset.py": 1,
}
_spec = importlib.util.spec_from_file_location(
    "measure_house", Path(__file__).parents[1] / "scripts" / "measure_house.py"
)
assert _spec is not None
assert _spec.loader is not None
house = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(house)


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function, by absolute name."""
    here = ["tensormagic", *path.relative_to(ROOT).with_suffix("").parts]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*here[: -node.level], node.module or ""]).rstrip(".") if node.level else node.module
            yield from (f"{base}.{alias.name}" for alias in node.names)


def crossings(path: Path) -> Iterator[str]:
    """Imports of a file that its floor does not allow."""
    own, names = package_of(path), list(imported(path))
    for name in names:
        top, _, rest = name.partition(".")
        if top == "tensormagic":
            other = rest.partition(".")[0]
            other = other if other in FLOOR else "__init__"  # a name of the package itself, which is on the top floor
            if other != own and FLOOR[other] >= FLOOR[own]:
                yield name
    for libraries, places in BORDERS.items():
        if not path.relative_to(ROOT).as_posix().startswith(places):
            yield from (name for name in names if name.partition(".")[0] in libraries)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_lead_downwards(path: Path):
    assert package_of(path) in FLOOR, "a new part of the package: give it a floor"
    assert not list(crossings(path))


def test_the_floors_above_use_the_names_of_the_session_and_none_of_its_files():
    files = {f"tensormagic.session.{path.stem}" for path in FILES if package_of(path) == "session"}
    above = [path for path in FILES if package_of(path) != "session"]
    assert not [
        (path, name) for path in above for name in imported(path) if name.rpartition(".")[0] in files or name in files
    ]


@pytest.mark.parametrize(
    ("place", "line", "crosses"),
    [
        ("ops/op.py", "from tensormagic.ir.node import Node", False),
        ("ops/op.py", "from tensormagic.ops.kinds import pointwise", False),
        ("ops/op.py", "from tensormagic import ir", False),
        ("ir/node.py", "from tensormagic.ops import op", True),
        ("ir/node.py", "from ..ops import op", True),
        ("transform/grad.py", "def f():\n    import tensormagic.backend.planning.plan", True),
        ("session/demand.py", "import tensormagic", True),
        ("backend/planning/plan.py", "import numba", True),
        ("backend/cpu/text.py", "import numba", False),
        ("session/demand.py", "from IPython.display import HTML", True),
        ("notebook/magic.py", "from IPython.core import magic", False),
        ("cli.py", "from tensormagic.doctor import report", False),
        ("doctor.py", "from tensormagic import cli", True),
    ],
)
def test_the_check_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, line: str, crosses: bool):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert bool(list(crossings(path))) is crosses


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if not path.relative_to(ROOT).as_posix().startswith(BY_NAME)],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_what_is_done_with_an_op_asks_for_the_op_or_for_its_facts(path: Path):
    found = house.compared(tree_of(path))
    assert not [f"line {node.lineno}: {ast.unparse(node)}" for node, _ in found]


LISTED = (  # the names for users, and those that kernels may call
    *("__init__.py", "numpy/"),
    *(f"backend/vecmath/{n}.py" for n in ("formulas", "hyperbolic", "inverse", "roots", "trig", "unit", "folds")),
)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_public_names_are_those_without_an_underscore(path: Path):
    """``__all__`` says it again, and was outrun: it stands where names of other files are given on, beside these."""
    body = tree_of(path).body
    listed = [s.value for s in body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "__all__"]
    given_on = {a.asname or a.name for s in body if isinstance(s, ast.Import | ast.ImportFrom) for a in s.names}
    own = path.relative_to(ROOT).as_posix().startswith(LISTED)
    assert own or all(given_on.intersection(ast.literal_eval(names)) for names in listed)


def test_facts_stand_on_ops_and_in_no_list_of_their_names():
    found = {
        path.relative_to(ROOT).as_posix(): sum(text.startswith("table") for _, text in house.named_ops(tree_of(path)))
        for path in FILES
        if not path.relative_to(ROOT).as_posix().startswith(BY_NAME)
    }
    assert {path: count for path, count in found.items() if count} == LISTS


def test_files_import_each_other_in_few_circles():
    """With imports inside functions: an op and its derivative, what has methods that stand elsewhere, and no others."""
    modules = {".".join(["tensormagic", *f.relative_to(ROOT).with_suffix("").parts]): f for f in FILES}
    graph = {f: house.edges(f, tree_of(f), modules, inner=True) for f in FILES}
    circles = sorted(house.circles(graph), key=len, reverse=True)
    found = {min(f.relative_to(ROOT).as_posix() for f in circle): len(circle) for circle in circles}
    assert found == {
        "ops/effects/checks.py": 21,  # derivatives of ops are made of ops
        "functions/compiled/compiled_function.py": 4,  # a compiled function is saved and exported
        "ir/bounds.py": 3,  # sizes are compared by the least that they may be
        "ops/regions/loops.py": 3,  # a loop has a derivative
        "capture/inputs/namespace.py": 3,  # np.vectorize calls what it is given as it is written
        "ir/graph.py": 2,  # a graph is shown as text
    }


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("node.op.name == 'loop'", 1),
        ("node.op.name in {'loop', 'while'}", 1),
        ("node.op.name not in REGIONS | {'call'}", 1),
        ("op.name.startswith('scatter')", 1),
        ("match node.op.name:\n    case 'loop': pass", 1),
        ("def f(node):\n    name, kind = node.op.name, 'x'\n    return name == 'loop'", 1),
        ("node.op is LOOP or node.op in {LOOP, WHILE}", 0),
        ("node.op.counted", 0),
        ("first.op.name == second.op.name", 0),
        ("node.op.name in found", 0),
        ("x.name == 'loop'", 0),
    ],
)
def test_the_check_of_names(text: str, count: int):
    assert len(list(house.compared(ast.parse(text)))) == count
