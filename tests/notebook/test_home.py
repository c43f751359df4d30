"""Functions of the notebook that read or bind its variables, in cells that bind or differentiate these."""

import numpy as np
import pytest

from tensormagic.capture.inputs import notebook_names
from tests.notebook.conftest import Notebook

READING = """
def f(): return x.sum()
def g(a): return f() + a
class C:
    def __call__(self): return x.sum()
c = C()
fs = [f]
"""
BINDING = """
def f():
    global x
    x[0] = x[1] + 5.0
    x = x * 2
    return 1.0
"""


def run(notebook: Notebook, helpers: str, cell: str, magic: str) -> list[np.ndarray]:
    first = notebook["x"] = np.array([1.0, 2.0, 3.0])
    notebook["s"] = 2.0
    notebook.ok(helpers)
    notebook.ok(magic + cell)
    return [np.asarray(notebook["x"]), np.asarray(notebook["v"]), first]


def compare(notebook: Notebook, helpers: str, cell: str) -> None:
    ours, numpys = (run(notebook, helpers, cell, magic) for magic in ("%%tensor\n", ""))
    for a, b in zip(ours, numpys, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "use", ["f()", "g(1)", "c()", "C()()", "list(map(g, [1]))", "fs[0]()", "np.stack([x, x * f()])"]
)
@pytest.mark.parametrize("change", ["x = x * 2", "x[0] += 2"])
def test_a_function_reads_what_the_cell_has_bound(notebook: Notebook, change: str, use: str):
    compare(notebook, READING, f"{change}\nv = {use}\n")


def test_a_function_calls_one_that_the_cell_defines(notebook: Notebook):
    compare(notebook, READING, "def f(): return 100.0 + x.sum()\nv = g(1)\n")


def test_a_function_reads_the_counter_of_a_loop(notebook: Notebook):
    compare(notebook, "def f(): return x * i\n", "v = 0\nfor i in range(4):\n    v = v + f()\n")


@pytest.mark.parametrize(
    "cell",
    [
        "for i in range(3):\n    v = x + f()\n",
        "for i in range(12):\n    v = f() + x\n",
        "v = x + f()\n",
        "if x[0] > -100:\n    v = x + f()\n",
        "k = 0\nwhile k < 3:\n    f()\n    x[1] += 1\n    v = x + 1\n    k += 1\n",
        "v = sum([x + f() for i in range(3)])\n",
        "v = 0\nfor i in range(3):\n    w = x\n    f()\n    v = v + w\n",
    ],
)
def test_a_function_stores_into_a_variable_and_binds_it(notebook: Notebook, cell: str):
    compare(notebook, BINDING, cell)


def test_a_variable_that_only_a_function_binds(notebook: Notebook):
    compare(notebook, "def f():\n    global count\n    count = x.sum()\n", "f()\nx = x + 1\nv = x\n")
    assert float(notebook["count"]) == 6
    notebook.ok("%%tensor\nf()\nv = count + 1\n")
    assert float(notebook["v"]) == 10


def test_a_cell_that_fails_leaves_what_functions_have_bound(notebook: Notebook):
    notebook["x"] = x = np.ones(3)
    notebook.ok(BINDING)
    assert notebook("%%tensor\nf()\nx.reshape(7)\n").error is not None
    assert notebook["x"] is x
    assert x.tolist() == [1, 1, 1]
    assert "__tensor_item__" not in notebook


def test_a_function_of_the_cell_is_handed_back_as_it_is_written(notebook: Notebook):
    notebook["x"] = np.ones(3)
    notebook.ok("def f():\n    return x.sum()\n")
    notebook.ok("%%tensor\nx = x * 2\nh = f\ndef k(a):\n    return f() if a else 0\nv = k(1)\n")
    assert notebook["h"] is notebook["f"]
    notebook["x"] = np.zeros(3)
    assert notebook["k"](1) == 0
    assert float(notebook["v"]) == 6


def test_gradients_go_through_what_functions_read(notebook: Notebook):
    notebook["x"], notebook["s"] = np.array([1.0, 2.0]), 2.0
    notebook.ok("def f(): return (s * x**2).sum()\n")
    notebook.ok("%%tensor --grad x,s\nf() + x.sum()\n")
    assert np.asarray(notebook["grad_x"]).tolist() == [5, 9]
    assert float(notebook["grad_s"]) == 5
    notebook.ok("%%tensor --grad x\nx = 3 * x\nf()\n")
    assert np.asarray(notebook["grad_x"]).tolist() == [36, 72]


def test_captured_functions_read_what_the_cell_has_bound(notebook: Notebook):
    notebook["x"] = np.array([1.0, 2.0])
    notebook.ok("@tm.tensor\ndef f(a): return a * x.sum()\n")
    notebook.ok("%%tensor objective\n(x * 2).sum()\n")
    notebook.ok("%%tensor\nx = x + 10\nv = f(2.0) + objective()\n")
    assert float(notebook["v"]) == 92


def test_a_cell_as_a_function_gives_its_arguments_to_functions(notebook: Notebook):
    notebook["x"] = np.array([1.0, 2.0])
    notebook.ok("def f(): return (x * x).sum()\n")
    notebook.ok("%%tensor objective\nf() + x.sum()\n")
    assert notebook.ok("objective(np.array([3.0]))").value == 12
    assert notebook.ok("tm.grad(objective)(np.array([3.0]))").value.tolist() == [7]
    assert notebook.ok("objective()").value == 8


@pytest.mark.parametrize("use", ["np.vectorize(h)(a)", "functools.partial(h, 2.0)()", "cached(3.0)", "K.m(2.0)", "k.p"])
def test_functions_within_objects(notebook: Notebook, use: str):
    helpers = """
import functools
a = np.array([1.0, 2.0])
def h(b): return b * x.sum()
@functools.cache
def cached(b): return h(b)
class K:
    @staticmethod
    def m(b): return h(b)
    @property
    def p(self): return x.sum()
k = K()
"""
    compare(notebook, helpers, f"x = x * 2\nv = {use}\n")


def test_a_function_that_reads_by_way_of_globals(notebook: Notebook):
    compare(notebook, "def f(): return globals()['x'] * 2\n", "x = x + 1\nv = f()\n")


def test_an_object_made_in_a_cell_holds_the_notebooks_own_array(notebook):
    notebook.ok("""
import numpy as np
class Model:
    def __init__(self, w):
        self.w = w
        self.layers = {"first": [w]}
w = np.arange(3.0)
""")
    notebook.ok("%%tensor\nm = Model(w)\ns = m.w.sum()")
    notebook.ok("same = m.w is w, m.layers['first'][0] is w\nm.w[0] = 5.0")
    assert notebook.shell.user_ns["same"] == (True, True)
    assert notebook.shell.user_ns["w"].tolist() == [5.0, 1.0, 2.0]
    assert float(notebook.shell.user_ns["s"]) == 3.0


@pytest.mark.parametrize(
    ("use", "value"),
    [
        ("_7", 3.0),
        ("eval('_7')", 3.0),
        ("globals()['_7']", 3.0),
        ("f()", 6.0),
        ("_i7", "x + 1"),
        ("_i7 in dir()", False),
    ],
)
def test_history_is_there_for_who_asks(notebook: Notebook, use: str, value: object) -> None:
    notebook.ok("def f(): return _7 * 2")
    notebook["_7"], notebook["_i7"] = 3.0, "x + 1"
    notebook.ok(f"%%tensor --quiet\nv = {use}")
    assert notebook["v"] == value


def test_history_of_thousands_of_cells_is_passed_by(notebook: Notebook) -> None:
    notebook["x"] = np.arange(3.0)
    for k in range(3000):
        notebook[f"_i{k}"] = "x"
    notebook.ok("%%tensor --quiet\n_5 = x * 2\nglobal_name = x + 1\ndel x")
    assert np.array_equal(notebook["_5"], [0, 2, 4])
    assert np.array_equal(notebook["global_name"], [1, 2, 3])
    assert "x" not in notebook.shell.user_ns
    assert all(f"_i{k}" in notebook.shell.user_ns for k in range(3000))
    assert "_i2999" not in notebook_names.seen(notebook.shell.user_ns, ("x",))
