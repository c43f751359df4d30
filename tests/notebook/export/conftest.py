"""Programs that are run in a Python of their own, and what they bind."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

RUNNER = """
import pickle, runpy, sys
found = []
for path in sys.argv[2:]:
    space = runpy.run_path(path)
    own = {}
    for name, value in space.items():
        try:
            own[name] = pickle.loads(pickle.dumps(value)) if not name.startswith("__") else None
        except Exception:
            continue
    found.append(own)
with open(sys.argv[1], "wb") as file:
    pickle.dump((found, "tensormagic" in sys.modules), file)
"""


def write_notebook(path: Path, cells: list[str]) -> Path:
    import nbformat

    made = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


def run_programs(paths: list[Path], folder: Path) -> tuple[list[dict[str, Any]], bool]:
    """What programs bind, in one new Python; and whether that has imported the package."""
    found = folder / "found.pickle"
    environment = os.environ | {
        "MPLBACKEND": "agg",
        "TENSORMAGIC_TIER": "numpy",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, str(found), *map(str, paths)],
        env=environment, capture_output=True, text=True, cwd=folder, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    with found.open("rb") as file:
        return pickle.load(file)


def numbers(value: Any) -> Any:
    """A value with arrays for lazy ones; None for what is no number, nor made of them."""
    if isinstance(value, tm.Tensor):
        return value.numpy()
    if type(value) is dict:
        return {k: numbers(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [numbers(v) for v in value]
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "biufc" else None
    return value if isinstance(value, int | float | complex | str | np.generic) else None


def assert_same(name: str, left: Any, right: Any) -> None:
    """Equal to rounding, leaf by leaf, in dtype too."""
    if isinstance(left, dict):
        assert set(left) == set(right), name
        for key in left:
            assert_same(f"{name}[{key!r}]", left[key], right[key])
    elif isinstance(left, list):
        assert len(left) == len(right), name
        for k, (a, b) in enumerate(zip(left, right, strict=True)):
            assert_same(f"{name}[{k}]", a, b)
    elif isinstance(left, str) or left is None:
        assert left == right, name
    else:
        assert np.asarray(left).dtype == np.asarray(right).dtype, name
        tolerance = 1e-5 if np.asarray(left).dtype == np.float32 else 1e-9
        np.testing.assert_allclose(right, left, rtol=tolerance, atol=1e-12, err_msg=name)


@pytest.fixture
def executed(notebook):
    """Run cells as a notebook, and give the numbers that they bind."""

    def run(cells: list[str]) -> dict[str, Any]:
        before = set(notebook.shell.user_ns)
        first = {name: notebook.shell.user_ns[name] for name in before}
        for cell in cells:
            notebook.ok(cell)
        space = notebook.shell.user_ns
        bound = [n for n, v in space.items() if not n.startswith("_") and (n not in before or first[n] is not v)]
        found = {n: numbers(space[n]) for n in bound if n not in {"In", "Out", "exit", "quit"}}
        return {n: v for n, v in found.items() if v is not None}

    return run
