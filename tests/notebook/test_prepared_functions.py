"""Functions that a cell defines are analysed between cells: the cell that calls them finds that done, whatever names mean by then."""

import asyncio

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.analysis import known_text, ordinary
from tensormagic.capture.staging.syntax import source

CELLS = {
    "differences": "def {name}(x, n):\n    for k in range(n):\n        x = x - np.sqrt(x * x + 1) / {number}\n    return x.sum()",
    "stores": "def {name}(x, n):\n    for k in range(1, n):\n        x[k] = x[k - 1] * {number}\n    return x",
    "calls": "def half(x):\n    return x / {number}\ndef {name}(x, n):\n    return half(x) - half(x + n)",
}
TURNS = 100  # of the event loop, at most


@pytest.fixture(autouse=True)
def first_calls_in_python(notebook, first_calls, monkeypatch):
    del notebook, first_calls
    monkeypatch.setattr(tm.config, "tier", "auto")


def cells(notebook, *texts):
    """Run cells as a kernel does, with time between them in which the functions that are there are prepared."""

    async def run():
        ran = None
        for text in texts:
            ran = notebook.ok(text)
            for _ in range(TURNS):
                if notebook.shell._tensormagic.prepared._timer is not None:
                    await asyncio.sleep(0.005)
        return ran

    return asyncio.run(run())


def defined(kind, number):
    head, _, last = CELLS[kind].format(name="f", number=number).rpartition("def f")
    return f"{head}@tm.tensor\ndef f{last}"


@pytest.mark.parametrize("kind", CELLS)
def test_a_first_call_in_a_later_cell_analyses_no_text(notebook, kind, monkeypatch):
    cells(notebook, defined(kind, 3.5))
    asked = []
    monkeypatch.setattr(source, "compiled_anew", lambda *args: asked.append(args))
    before = known_text.written.cache_info().misses, ordinary._instrumented.cache_info().misses
    value = notebook.ok("f(np.arange(1.0, 5.0), 3)").value
    assert (known_text.written.cache_info().misses, ordinary._instrumented.cache_info().misses) == before
    assert not asked
    monkeypatch.undo()
    space = {"np": np}
    exec(CELLS[kind].format(name="plain", number=3.5), space)
    np.testing.assert_array_equal(value, space["plain"](np.arange(1.0, 5.0), 3))


def test_a_function_that_is_called_means_what_it_means_at_the_call(notebook):
    ran = cells(
        notebook, defined("calls", 2.0), "def half(x):\n    print('half')\n    return x / 4.0", "f(np.ones(3), 2)"
    )
    assert ran.out.count("half") == 2
    np.testing.assert_array_equal(ran.value, np.full(3, -0.5))


def test_nothing_is_prepared_where_no_loop_runs(notebook):
    notebook.ok(defined("differences", 4.5))
    assert notebook.shell._tensormagic.prepared._timer is None
    assert np.isfinite(notebook.ok("f(np.ones(3), 2)").value)


def test_what_cannot_be_analysed_is_left_to_the_call(notebook, monkeypatch):
    def fails(function):
        raise ValueError

    monkeypatch.setattr("tensormagic.functions.calls.first_call.prepare", fails)
    ran = cells(notebook, defined("differences", 5.5), "f(np.ones(3), 2)")
    assert np.isfinite(ran.value)
