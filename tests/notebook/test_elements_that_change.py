"""The same in cells: what a name and an element of a list share is one, also where a loop appends it a data-dependent number of times."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tests.functions.test_elements_that_change import CHANGED, LEFT, SUM


@pytest.mark.parametrize("name", [*CHANGED, *LEFT])
def test_cells_leave_what_python_leaves(notebook, name):
    text = ({**CHANGED, **LEFT})[name] + SUM
    space = {"np": np, "x": np.array([3.0, 1.0, 2.0])}
    exec(text, space)
    notebook["x"] = np.array([3.0, 1.0, 2.0])
    with warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        notebook.ok("%%tensor -q\n" + text)
    assert float(notebook["res"]) == float(space["res"])
    assert str(notebook.ok("[[float(np.sum(v)) for v in r] for r in R if type(r[-1]) is not list]").value) == str(
        [[float(np.sum(v)) for v in r] for r in space["R"] if type(r[-1]) is not list]
    )
