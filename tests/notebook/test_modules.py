"""Modules that a captured cell names are the modules, to who asks: their texts, classes, names, and what is stored into them."""

import math
import types

import numpy as np
import pytest

from tests.notebook.conftest import Notebook

ASKED = [
    "repr(math)",
    "str(np), str(np.linalg), str(np.random)",
    "isinstance(math, types.ModuleType), isinstance(np, types.ModuleType)",
    "inspect.ismodule(np)",
    "vars(math)['pi'], 'sin' in vars(np)",
    "np.__doc__[:60], math.__doc__, math.__name__",
    "[n for n, v in dict(a=np, b=3, c=math).items() if isinstance(v, types.ModuleType)]",
    "pydoc.render_doc(math)[:200]",
]


@pytest.mark.parametrize("text", ASKED)
def test_modules_are_modules(notebook: Notebook, text: str):
    begin = "import inspect, math, pydoc, types\nimport numpy as np\n"
    space: dict[str, object] = {}
    exec(f"{begin}told = {text}", space)
    notebook.ok(f"%%tensor\n{begin}told = {text}")
    assert notebook["told"] == space["told"]


def test_what_a_cell_stores_into_a_module_is_there(notebook: Notebook):
    try:
        notebook.ok(
            "%%tensor\nnp.a_name = 2.5\ndef twice(xp, v):\n    return xp.sin(v) * xp.a_name\nz = twice(np, np.ones(2))"
        )
        assert np.a_name == 2.5  # type: ignore[attr-defined]
        np.testing.assert_allclose(np.asarray(notebook["z"]), np.sin(1.0) * np.full(2, 2.5))
        notebook.ok("%%tensor\ndel np.a_name")
        assert not hasattr(np, "a_name")
    finally:
        if hasattr(np, "a_name"):
            delattr(np, "a_name")
    assert isinstance(notebook["np"], types.ModuleType)


def test_loops_of_numbers_leave_modules_as_they_are(notebook: Notebook):
    """While Python runs such a loop, what captured code sees of a module gives the module's own functions."""
    before = {module: dict(vars(module)) for module in (np, math)}
    notebook.ok("import math\nimport numpy as np")
    notebook.ok(
        "%%tensor\nv, w = 0.5, 0.25\nfor k in range(200):\n"
        "    v = np.round(np.sin(v) * math.cos(w) + np.pi, 6)\n    w = math.sin(v)"
    )
    assert {module: dict(vars(module)) for module in (np, math)} == before
