"""A cell binds what Python binds: the notebook after a captured cell beside the notebook after the same cell run by Python."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.notebook.sameness import difference, form, names_of

START = """import numpy as np
x = np.arange(5.0)
A = np.arange(6.0).reshape(2, 3)
n, i, old = 3, 77, [1.0, 2.0]
"""
CELLS = {
    "counter": "for i in range(4): x = x + i",
    "counter of nothing": "for i in range(0): pass",
    "counters": "for j, (u, v) in enumerate(zip(x, x)): pass",
    "nested counters": "for i in range(1, 3):\n    for j in range(i, 5):\n        t = x[0] * j\n    s = i * j",
    "counter and break": "for k in range(10):\n    if x[k % 5] > 2: break",
    "rows": "for row in A: s = row.sum()",
    "size as a counter": "for k in range(len(x)): y = x * k",
    "starred": "for a, *rest in [(1, 2, 3), (4, 5, 6)]: last = a",
    "names with _": "_a = x.sum()\n__b = 2\n_ = 3",
    "from import *": "from math import *\ns = sin(x.sum())",
    "from __future__": "from __future__ import print_function\nfrom __future__ import division as d, generators\ny = x / 2",
    "import as": "import os.path as osp, collections.abc\nimport numpy.linalg as la, numpy.fft\nd = la.norm(x)",
    "with as": "import io\nwith io.StringIO() as f, np.errstate(all='ignore') as g: f.write('a'); d = x / 2",
    "nested targets": "(p, (q, *r)), [t, *_] = (1, (x, 2, 3)), (4, 5)",
    "walrus": "y = [w := 3, (z := x * 2).sum()]",
    "walrus in a comprehension": "found = [last := v * 2 for v in range(4)]\nany((hit := v) > 2 for v in range(9))",
    "except as": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    message = str(e)",
    "except as, of a name that is there": "try:\n    raise KeyError('a')\nexcept KeyError as old:\n    pass",
    "def and class": "def f(v): return v * n\nclass K:\n    a = 3\n    def h(self): return n\no = K()\nr = f(2), o.h()",
    "decorated": "import functools\n@functools.lru_cache\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nf = fib(9)",
    "del": "del i\ny = x * 2\ndel y",
    "del of many": "del (i, [old])",
    "global": "def g():\n    global made, n\n    made, n = 5, 4\ng()",
    "match": "match (1, [2, 3, 4], {'k': 5, 'm': 6}):\n    case (a, [b, *c], {'k': d, **e}): pass",
    "match of a shape": "match A.shape:\n    case (rows, 7): pass\n    case (rows, columns) as shape: pass",
    "annotations": "a: float = 1.0\nb: int\nc: 'list[int]' = [1]",
    "augmented": "n += 2\nx *= 2.0\nold += [3.0]\nx[1:] -= 1",
    "items and attributes": "class O: pass\no = O()\no.a = x * 2\no.b = {}\no.b['k'] = 3\nA[0, 1], old[0] = 9.0, 8",
    "exec": "exec('made = 3\\nother = made + 1')\nr = eval('(z := 7)')",
    "chained": "a = b = c = x + 1\na is b",
    "sizes": "k = len(x); m, = x.shape; r = range(k); s = [0] * m; t = A.size // 2; q = x.ndim",
    "if not taken": "if x[0] > 100: never = 1\nelse: taken = 2\nif False: also = 1",
    "while": "while (c := x[0]) > 100: inner = c\nk = 0\nwhile k < 3: k += 1",
    "lambda": "f = lambda v, w=n: v * w * n\ntable = {'f': f, 'g': [f]}\nr = f(2)",
    "comprehensions keep their names": "i2 = [i for i in range(3)]; d = {k: v for k, v in zip('ab', x)}; s = {j for j in range(2)}",
    "for else": "for k in range(3): pass\nelse: done = k",
    "a name twice": "i = i + 1; i = i * 2; j = i",
    "unpacked array": "a, b, *c = x\n(d, e, f), g = A",
}


def left(notebook, cell: str):
    """The notebook's variables after a cell, and its value."""
    first = set(notebook.shell.user_ns)
    notebook.ok(START)
    ran = notebook.ok(cell)
    found = {n: form(v) for n, v in names_of(notebook.shell.user_ns, first - {"X", "y", "w", "b"}).items()}
    value = form(ran.value)
    for name in set(notebook.shell.user_ns) - first:
        del notebook.shell.user_ns[name]
    return found, value


@pytest.mark.parametrize("name", CELLS)
def test_after_a_cell_the_notebook_is_as_after_it_in_python(notebook, name):
    expected, value = left(notebook, CELLS[name])
    found, given = left(notebook, f"%%tensor\n{CELLS[name]}")
    assert sorted(found) == sorted(expected)
    differences = [d for n in expected for d in difference(expected[n], found[n], n)]
    assert differences == []
    assert list(difference(value, given)) == []


def test_functions_of_a_cell_read_the_notebook_wherever_they_are_held(notebook):
    notebook.ok(
        "%%tensor\nscale = 2.0\ndef f(v): return v * scale\nclass K:\n    def h(self, v): return v * scale\n"
        "    p = property(lambda s: scale)\n"
        "table, h = {'f': [f]}, f\ndef outer():\n    def inner(v): return v * scale\n    return inner\ng = outer()"
    )
    notebook.ok("scale = 10.0")
    found = notebook.ok(
        "[f(1.0), K().h(1.0), K().p, table['f'][0](1.0), h(1.0), g(1.0), h is f, table['f'][0] is f]"
    ).value
    assert found == [10.0] * 6 + [True, True]


@pytest.mark.parametrize("cell", ["x.sum(), 3", "{'a': x * 2}", "[x]", "'text'", "3", "np.float64(2.5)", "len(x)", "x"])
def test_out_holds_the_value(notebook, cell):
    notebook.ok(START)
    expected = form(notebook.ok(cell).value)
    ran = notebook.ok(f"%%tensor\n{cell}")
    assert list(difference(expected, form(ran.value))) == []
    assert list(difference(expected, form(notebook["_"]))) == []
    assert list(difference(expected, form(notebook["Out"][ran.result.execution_count]))) == []


def test_an_assignment_is_shown_and_is_no_value(notebook):
    notebook.ok("41")
    ran = notebook.ok("%%tensor\nz = np.sum(X)")
    assert ran.value is None
    assert ran.data["text/plain"].startswith("z = ")
    assert notebook["_"] == 41
    assert not notebook("%%tensor\nz = np.sum(X);").displays


def test_a_cell_that_ends_in_a_foreign_call_gives_what_that_gives(notebook):
    pytest.importorskip("matplotlib").use("agg")
    notebook.ok("import matplotlib.pyplot as plt\nx = np.linspace(0, 1, 9)")
    lines = notebook.ok("%%tensor\nplt.plot(x, x ** 2)").value
    assert type(lines[0]).__name__ == "Line2D"
    assert np.array_equal(lines[0].get_ydata(), notebook["x"] ** 2)
    notebook.ok("plt.close('all')")


def test_what_a_loop_may_not_bind_is_handed_back_with_its_stores(notebook):
    shell = notebook.shell
    shell.user_ns["k"] = np.array([1])
    shell.run_cell("%%tensor -q\nfor i in range(k[0]):\n    v = k * 3.0\nv[...] = 2\nv[0] += 5")
    assert np.asarray(shell.user_ns["v"]).tolist() == [7.0]


DELETED = [
    "for row in M:\n    row = row * 2\ndel row\nr = M.sum()",
    "for i in range(3):\n    t = M[i] * 2\n    w = t + 1\n    del w\ndel t, i\nr = M.sum()",
    "if M.sum() > -1:\n    t = M + 1\ndel t\nr = M.sum()",
    "n = 0.0\nwhile n < M.sum():\n    t = n + 1\n    n = n + 20\ndel t\nr = n",
    "def f(m):\n    for u in m:\n        q = u * 2\n    del q, u\n    return m.sum()\nr = f(M)",
    "for v in M[0]:\n    if v > 1:\n        t = v\ndel t\nr = v",
]


@pytest.mark.parametrize("cell", DELETED)
def test_what_a_captured_loop_or_branch_has_bound_can_be_deleted(notebook, cell):
    for name in "rtwiun":
        notebook.shell.user_ns.pop(name, None)
    notebook.ok("import numpy as np\nM = np.arange(12.0).reshape(3, 4)")
    notebook.ok(f"%%tensor\n{cell}")
    space = dict(notebook.shell.user_ns)
    given = float(space["r"])
    assert not {"row", "t", "w", "u"} & space.keys()
    notebook.ok(cell)
    assert float(notebook["r"]) == given


def test_what_no_iteration_has_bound_cannot_be_deleted(notebook):
    notebook.shell.user_ns.pop("q", None)
    notebook.ok("import numpy as np\nM = np.arange(12.0).reshape(3, 4)")
    error = notebook("%%tensor\nfor r in M[:0]:\n    q = r\ndel q").error
    assert isinstance(error, NameError)


REBOUND = {  # a name that gradients are with respect to has its last value then, wherever it was bound; what is asked, and the slope
    "a loop": ("q = 1.0\nfor i in range(3): q = q * 1.5\nq**2", 6.75),
    "a long loop": ("q = 1.0\nfor i in range(50):\n    q = q * 1.1\nq * 3", 3.0),
    "a loop from an integer": ("q = 1\nfor i in range(3): q = q * 1.5\nq**2", 6.75),
    "a while loop": ("q = 8.0\nwhile q > 2: q = q / 2\nq**2", 4.0),
    "a branch": ("q = 2.0\nif q > 1: q = q + 1\nq**2", 6.0),
    "a statement": ("q = 2.0\ny = q**2\nq = q + 1\ny * q", 4.0),
    "in place": ("q = 2.0\nq *= 3\nq**2", 12.0),
}
ONCE = {
    "a statement": ("q = 3.0\nq**2", 6.0),
    "two names": ("q = r = 3.0\nq * r", 3.0),
    "unpacked": ("q, r = 3.0, 2.0\nq * r", 2.0),
    "anew": ("q = 1.0\nq = 3.0\nq**2", 6.0),
    "over values": ("for q in [1.0, 2.0]: s = q**2\ns", 4.0),
    "a loop over others": ("q = 3.0\nfor i in range(20): r = q * i\nq + r", 20.0),
}


@pytest.mark.parametrize("name", REBOUND)
def test_a_gradient_is_with_respect_to_the_last_value_of_a_name_and_says_so(notebook, name):
    cell, slope = REBOUND[name]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        notebook.ok(f"%%tensor -q --grad q\n{cell}")
    assert float(notebook["grad_q"]) == pytest.approx(slope)
    (said,) = found
    assert "grad_q is with respect to the last value of q" in str(said.message)
    assert "q0 = ...; q = q0; and --grad q0" in str(said.message)


@pytest.mark.parametrize("name", ONCE)
def test_a_name_that_is_bound_once_needs_no_word(notebook, name):
    cell, slope = ONCE[name]
    with warnings.catch_warnings(action="error"):
        notebook.ok(f"%%tensor -q --grad q\n{cell}")
    assert float(notebook["grad_q"]) == pytest.approx(slope)


BLOCKS = ["for k in range(3):", "for k in X[0]:", "if X[0, 0] < 9:", "while n > 0:", "try:"]
BINDING = {
    "a class": ("match point:\n    case Point(p=found): pass", "found"),
    "a part of a class": ("match point:\n    case Point(p=float() as found): pass", "found"),
    "a sequence": ("match (n, 2, 3):\n    case (_, *found): pass", "found"),
    "a mapping": ("match {'a': 1, 'b': n}:\n    case {'a': 1, **found}: pass", "found"),
    "one of two": ("match n:\n    case 5: pass\n    case found: pass", "found"),
    "an expression in a comprehension": ("made = [last := v for v in X[0]]", "last"),
    "an expression in a nested one": ("made = [[(last := v) for v in row] for row in X[:2]]", "last"),
    "an expression in a condition": ("made = sum(v for v in X[0] if (last := v) < 9)", "last"),
}


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", BINDING)
def test_patterns_and_expressions_in_blocks_bind_names(notebook, block, kind):
    text, name = BINDING[kind]
    lines = "\n    ".join(text.split("\n"))
    cell = f"{block}\n    {lines}\n    n = n - 1" + "\nfinally: pass" * (block == "try:")
    found = []
    for magic in ("", "%%tensor -q\n"):
        notebook.ok("import collections\nPoint = collections.namedtuple('Point', 'p q')\npoint, n = Point(1.5, 2), 2.0")
        notebook.ok(f"{magic}{cell}")
        found.append(form(notebook[name]))
        del notebook.shell.user_ns[name]
    assert [*difference(*found)] == []
