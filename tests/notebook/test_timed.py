"""Time that is measured by clocks, ``%time`` and ``%timeit``: what is lazy is computed within, as Python computes it there.

Whether it was computed says a call that is counted, and not a time: machines differ.
"""

import ast
import time

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.capture import clocks
from tensormagic.capture.values.value import Tensor
from tensormagic.notebook.cells.timed_cells import Timed


@pytest.fixture
def ran(notebook, monkeypatch):
    """A notebook with a lazy variable, and how often its numbers are computed before each look at a clock."""
    notebook.ok("import time\nfrom time import perf_counter\nfrom time import perf_counter as pc\nimport datetime")
    notebook["v"] = np.linspace(0, 1, 50)
    notebook.ok("%%tensor -q\nx = v * 2 + 1")
    looks: list[list[str]] = []
    compute = clocks.compute

    def counted(nodes):
        found = compute(nodes)
        looks.append([n.op.name for n in found])
        return found

    monkeypatch.setattr(clocks, "compute", counted)
    return notebook, looks


def seen(looks):
    """The operations that were computed for the sake of a clock."""
    return {name for look in looks for name in look}


CELLS = {
    "module": "t = time.time()\ns = np.sort(x)\nd = time.time() - t",
    "name": "t = perf_counter()\ns = np.sort(x)\nd = perf_counter() - t",
    "other name": "t = pc()\ns = np.sort(x)\nd = pc() - t",
    "imported here": "from time import monotonic as m\nt = m()\ns = np.sort(x)\nd = m() - t",
    "nanoseconds": "t = time.perf_counter_ns()\ns = np.sort(x)\nd = time.perf_counter_ns() - t",
    "date": "t = datetime.datetime.now()\ns = np.sort(x)\nd = datetime.datetime.now() - t",
    "function": "def timed(f, *a):\n    t = time.time()\n    r = f(*a)\n    return r, time.time() - t\ns, d = timed(np.sort, x)",
    "decorator": (
        "def timer(f):\n    def w(*a):\n        t = time.time()\n        r = f(*a)\n        return r, time.time() - t\n    return w\n"
        "@timer\ndef g(a):\n    for _ in range(2):\n        a = np.sort(a)[::-1]\n    return np.sort(a)\ns, d = g(x)"
    ),
    "manager": (
        "class Timer:\n    def __enter__(self):\n        self.t = time.time()\n"
        "    def __exit__(self, *a):\n        self.d = time.time() - self.t\nwith Timer():\n    s = np.sort(x)"
    ),
    "loop": "ts = []\nfor k in range(3):\n    t = time.time()\n    s = np.sort(x + k)\n    ts.append(time.time() - t)",
}


@pytest.mark.parametrize("captured", [False, True], ids=["plain", "captured"])
@pytest.mark.parametrize("name", CELLS)
def test_what_lies_before_a_look_at_a_clock_is_computed(ran, name, captured):
    notebook, looks = ran
    notebook.ok(("%%tensor -q\n" if captured else "") + CELLS[name])
    assert "sort" in seen(looks) or not isinstance(notebook["s"], Tensor)
    np.testing.assert_array_equal(
        np.asarray(notebook["s"])[:2], np.sort(notebook["v"] * 2 + 1 + 2 * (name == "loop"))[:2]
    )


def test_what_an_earlier_cell_has_left_lazy_stays_so_unless_it_is_needed(ran):
    notebook, looks = ran
    notebook.ok("%%tensor -q\nother = np.cumsum(v * 3)")
    notebook.ok("t = time.time()\ns = np.sort(x)\nd = time.time() - t")
    assert seen(looks) == {"sort"}
    assert not session.is_computed(notebook["other"].node)


def test_time_and_timeit_compute_what_they_run(ran):
    notebook, looks = ran
    notebook.ok("%time s = np.sort(x)")
    assert "sort" in seen(looks)
    assert session.is_computed(notebook["s"].node)
    looks.clear()
    notebook.ok("%timeit -n 3 -r 2 np.cumsum(x)")
    assert sum("cumsum" in look or bool(look) for look in looks) >= 6  # each run computes
    looks.clear()
    notebook.ok("%%timeit -n 2 -r 1\nz = np.sin(x)\nz.sum()")
    assert sum(map(bool, looks)) >= 2
    assert notebook.ok("%%time\na = np.cos(x)\na.sum()").value is not None
    assert "z" not in notebook


def test_timeit_of_loops_without_iterations_and_of_functions(ran):
    notebook, looks = ran
    notebook.ok("%%timeit -n 1 -r 1\nfor k in range(0):\n    unbound = np.sin(x)\nq = x + 1")
    notebook.ok("def f():\n    return np.tanh(x)")
    looks.clear()
    notebook.ok("%timeit -n 2 -r 1 f()")
    assert sum(map(bool, looks)) >= 2


def test_code_without_lazy_values_is_timed_as_it_stands(notebook):
    tree = ast.parse("a = 1 + 1\nb = len('x')")
    assert ast.dump(Timed(notebook.shell.user_ns).visit(ast.parse(ast.unparse(tree)))) == ast.dump(tree)
    notebook.ok("%timeit -n 1 -r 1 1 + 1")


def test_other_functions_with_these_names_are_called_as_they_are(notebook):
    notebook.ok(
        "class Clock:\n    def time(self):\n        return 'noon'\nc = Clock()\ndef now():\n    return 5\nprint(c.time(), now())"
    )
    assert notebook.ok("c.time() + str(now())").value == "noon5"
    notebook.ok("%%tensor -q\nk = now() * np.ones(2)\nt = c.time()")
    assert notebook["t"] == "noon"


def test_an_error_of_a_value_is_met_where_it_is_asked_for(ran):
    notebook, _ = ran
    notebook.ok("%%tensor -q\nbad = np.linalg.inv(np.zeros((2, 2)) * x[0])\ngood = np.sort(x)")
    notebook.ok("t = time.time()")
    assert isinstance(notebook("print(bad)").error, np.linalg.LinAlgError)
    notebook.ok("print(good)")


def test_functions_that_look_at_clocks_are_run_by_python(notebook):
    notebook.ok("import time")
    with pytest.warns(tm.PlainRunWarning, match="look at a clock"):
        notebook.ok(
            "@tm.tensor\ndef f(v):\n    t = time.perf_counter()\n    s = np.sort(v * 2)\n    return s, time.perf_counter() - t\n"
            "r = [f(np.array([2.0, 1.0])) for _ in range(3)]"
        )
    for values, took in notebook["r"]:
        np.testing.assert_array_equal(values, [2.0, 4.0])
        assert took > 0

    def timed(v):
        t = time.perf_counter()
        s = np.sum(v**2)
        return s + 0 * (time.perf_counter() - t)

    with pytest.raises(tm.CaptureError, match="Read the clock before and after the call"):
        tm.grad(timed)(np.ones(3))
    with pytest.raises(tm.CaptureError, match="clock"):
        tm.compile(timed, np.ones(3))


def test_the_extension_leaves_no_transformer_behind(notebook):
    before = [t for t in notebook.shell.ast_transformers if isinstance(t, Timed)]
    notebook.shell.run_line_magic("reload_ext", "tensormagic")
    after = [t for t in notebook.shell.ast_transformers if isinstance(t, Timed)]
    assert (len(before), len(after)) == (1, 1)
