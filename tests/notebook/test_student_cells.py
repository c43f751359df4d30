"""Cells as students write them leave what Python leaves; ``benchmarks/student_cells.py`` runs the long ones too, and measures."""

import numpy as np
import pytest

from tests.notebook import course_cells
from tests.notebook.student_cells import CELLS, START

LONG = {"dijkstra", "dp lcs", "kmeans", "mandel", "markov", "sep"}  # above half a second


def plain(value):
    value = value.numpy() if hasattr(value, "numpy") else value
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [type(value), *map(plain, value)]
    if isinstance(value, np.ndarray):
        return [value.dtype, plain(value.tolist())]
    return (type(value), f"{value:.10g}") if isinstance(value, float) else (type(value), value)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # which cells these are is not what is held here
@pytest.mark.parametrize("name", sorted(CELLS.keys() - LONG))
def test_a_cell_leaves_what_python_leaves(notebook, name):
    space: dict[str, object] = {}
    exec(START, space)
    exec(CELLS[name], space)
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{CELLS[name]}")
    assert plain(notebook["h"]) == plain(space["h"])


@pytest.mark.share(3)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("name", sorted(course_cells.CELLS))
def test_a_cell_of_a_course_leaves_what_python_leaves(notebook, name):
    space: dict[str, object] = {}
    exec(course_cells.START + course_cells.CELLS[name], space)
    notebook.ok(course_cells.START)
    notebook.ok(f"%%tensor -q\n{course_cells.CELLS[name]}")
    assert plain(notebook["h"]) == plain(space["h"])
