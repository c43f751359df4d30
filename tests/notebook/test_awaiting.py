"""Captured cells that wait outside functions run as IPython runs plain cells, and say so."""

from __future__ import annotations

import pytest

import tensormagic as tm
from tests.notebook.conftest import Notebook
from tests.notebook.test_sessions import differences

START = """
import asyncio, numpy as np
x = np.arange(4.0)
async def twice(v):
    await asyncio.sleep(0)
    return v * 2
async def steps(n):
    for k in range(n):
        yield k
        await asyncio.sleep(0)
class Door:
    async def __aenter__(self):
        print('in')
        return self
    async def __aexit__(self, *why):
        print('out')
"""
WAITING = [
    "z = await twice(x)\nz.sum()",
    "parts = await asyncio.gather(*[twice(v) for v in (x, 3)])\nz = parts[0] + parts[1]",
    "z = 0\nasync for k in steps(4):\n    z += k * x[k]\nprint(z)",
    "async with Door() as door:\n    z = x * 2",
    "z = [k async for k in steps(3)]",
    "# a comment first\nz = 1\nif z:\n    z = await twice(z)\nz;",
    "!echo hello\nz = await twice(2)",
    "z = await twice(x)\nz[10]",
    "x += await twice(1.0)",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", WAITING)
def test_cells_that_wait(notebook: Notebook, cell: str) -> None:
    before = "%%tensor\nx = np.arange(4.0) * 0.5"
    assert (
        differences(notebook, [(None, START), ("", before.partition("\n")[2]), ("", cell), ("", "w = x * 2\nw")]) == []
    )


def test_it_is_told(notebook: Notebook) -> None:
    notebook.ok(START)
    with pytest.warns(tm.PlainRunWarning, match="the cell waits"):
        ran = notebook.ok("%%tensor -q\nz = await twice(x)\nz")
    assert ran.value.tolist() == [0, 2, 4, 6]


def test_functions_that_wait_within_are_captured_cells(notebook: Notebook) -> None:
    notebook.ok(START)
    notebook.ok("%%tensor -q\nasync def f():\n    return await twice(x)\ns = x.sum()")
    assert type(notebook["s"]) is tm.Tensor


def test_what_asks_for_a_graph_is_an_error_of_syntax(notebook: Notebook) -> None:
    notebook.ok(START)
    assert isinstance(notebook("%%tensor --grad x\nz = await twice(x)\nz.sum()").error, SyntaxError)
