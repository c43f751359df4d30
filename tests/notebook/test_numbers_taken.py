"""Where a cell asks for a number before its end: it is computed there, as in Python, and a gradient says what it leaves out."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, ConstantGradientWarning

SETUP = "import numpy as np, math, json\nx = np.array([0.5, -1.25, 2.0])\nk = np.array([2, 0, 1, 2])\nA = np.arange(12.0).reshape(4, 3)"
CELLS = {
    "list of numbers": "found = x.tolist()",
    "keys": "found = {}\nfor v in k:\n    v = v.item()\n    found[v] = found.get(v, 0) + 1",
    "int": "n = int(k.sum()) + 1\nfound = 0\nwhile n != 1:\n    n = n // 2 if n % 2 == 0 else 3 * n + 1\n    found += 1",
    "sorted by data": "found = sorted(range(3), key=lambda i: x[i])",
    "chosen by data": "found = sum(filter(lambda v: v > 0, x)), any(v > 1 for v in x), [i for i in range(3) if x[i] > 0]",
    "unique as a dictionary": "values, counts = np.unique(k, return_counts=True)\nfound = dict(zip(values.tolist(), counts.tolist()))",
    "text of numbers": "found = ', '.join(str(round(float(v), 1)) for v in x)",
    "library": "found = json.dumps([float(v) for v in x.tolist()]), math.floor(x[2])",
    "rounded": "found = round(x[1], 1), round(x[2])",
    "by group": "found = {g: A[k == g].mean() for g in range(3) if (k == g).any()}",
    "pairs of index and element": "found = 0\nfor (i, j), v in np.ndenumerate(A):\n    found += i * j * v",
    "range as an index": "g = A.copy()\ng[range(len(k)), k] -= 1\nfound = g, A[range(0, 4, 3)], A[1] + range(3), np.array(range(len(k)))",
}


def plain(value):
    """A value as NumPy and Python have it."""
    if isinstance(value, tm.Tensor):
        return value.numpy()
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return {plain(key): plain(v) for key, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", CELLS)
def test_as_in_python(notebook, name):
    notebook.ok(SETUP)
    notebook.ok(CELLS[name])
    expected = notebook["found"]
    notebook.ok(f"%%tensor -q\n{CELLS[name]}")
    np.testing.assert_equal(plain(notebook["found"]), expected)
    assert type(plain(notebook["found"])) is type(expected)


def test_a_float_stays_in_the_graph(notebook):
    notebook.ok(SETUP)
    with warnings.catch_warnings(action="error"):
        notebook.ok("%%tensor -q --grad x\nv = float(x.sum()) ** 2 + x[0].item() * round(x[1], 1)")
    assert float(notebook["v"]) == 1.25**2 + 0.5 * -1.2
    np.testing.assert_allclose(notebook["grad_x"], [2.5 - 1.2, 2.5, 2.5])


def test_a_gradient_says_what_it_leaves_out(notebook):
    notebook.ok(SETUP)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        notebook.ok("%%tensor -q --grad x\ny = x * 2\nv = (y.tolist()[1] + y).sum()")
    (said,) = [w for w in found if w.category is ConstantGradientWarning]
    assert "grad_x leaves out whatever was computed from it" in str(said.message)
    assert "v = (y.tolist()[1] + y).sum()" in str(said.message)
    assert said.lineno == 3
    np.testing.assert_array_equal(notebook["grad_x"], [2.0, 2.0, 2.0])


def test_what_does_not_reach_the_variable_is_not_told(notebook):
    notebook.ok(SETUP)
    with warnings.catch_warnings(action="error"):
        notebook.ok("%%tensor -q --grad x\nn = k.tolist()[0]\nw = A.tolist()[0][1]\nv = (x * n * w).sum()")
    np.testing.assert_array_equal(notebook["grad_x"], [2.0, 2.0, 2.0])


LIBRARIES = {  # code of a library reads many numbers: on one line of the user's
    "quad": "quad(lambda t: x[0] * np.exp(-x[1] * t), 0, 1)[0]",
    "brentq": "brentq(lambda t: t**3 - x[0], 0, 2)",
    "minimize": "minimize(lambda t: np.sum((t - x) ** 2), np.zeros(3)).fun",
    "solve_ivp": "solve_ivp(lambda t, y: -x[0] * y, (0, 1), [1.0]).y[0, -1]",
    "mean": "statistics.mean(x)",
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_a_library_reads_is_told_once_at_the_users_line(notebook, name):
    notebook.ok(
        f"{SETUP}\nimport statistics\nfrom scipy.integrate import quad, solve_ivp\nfrom scipy.optimize import brentq, minimize"
    )
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        notebook.ok(f"%%tensor -q --grad x\ny = x.sum()\nv = {LIBRARIES[name]}\ny + v")
    (said,) = [w for w in found if w.category is ConstantGradientWarning]
    assert f"v = {LIBRARIES[name]}" in str(said.message)
    assert said.lineno == 3
    np.testing.assert_array_equal(notebook["grad_x"], np.ones(3))


@pytest.mark.parametrize("name", ["quad", "brentq"])
def test_a_function_names_the_library_that_asks_for_numbers(notebook, name):
    notebook.ok(
        f"{SETUP}\nimport tensormagic as tm\nfrom scipy.integrate import quad\nfrom scipy.optimize import brentq"
    )
    ran = notebook(f"def f(x):\n    return {LIBRARIES[name]}\ntm.grad(f)(x)")
    assert f"in scipy's {name} needs a value" in ran.out
    assert f"Call {name} in a cell" in ran.out
    assert f"    return {LIBRARIES[name]}" in ran.out


def test_a_function_refuses_by_name(notebook):
    notebook.ok(SETUP)
    ran = notebook("%%tensor objective\nx.tobytes()[0] * x.sum()")
    assert ran.error is None  # the cell itself
    ran = notebook("import tensormagic as tm\ntm.grad(objective)(x)")
    assert type(ran.error).__name__ == "CaptureError"
    assert "tobytes" in ran.out


def test_isinstance_sees_what_numpy_would_have_made(notebook):
    notebook.ok(SETUP)
    cell = (
        "def kind(v):\n    return [isinstance(v, c) for c in (np.ndarray, np.floating, np.integer, float, int, bool)]\n"
        "found = [kind(v) for v in (x, x[0], x.sum(), k.max(), x[0] > 0, float(x[0]), k, 3, len(x))]"
    )
    notebook.ok(cell)
    expected = notebook["found"]
    notebook.ok(f"%%tensor -q\n{cell}")
    assert notebook["found"] == expected


def test_names_that_functions_declare_global_are_handed_back(notebook):
    notebook.ok(f"{SETUP}\ncounter, items = 5, [1]")
    notebook.ok(
        "%%tensor -q\ndef f():\n    global counter, x\n    counter = counter + 1\n    x = x * 2\nf()\nf()\n"
        "def g():\n    global items\n    items = 3"
    )
    assert (notebook["counter"], notebook["items"]) == (7, [1])
    np.testing.assert_array_equal(notebook["x"], [2.0, -5.0, 8.0])


def test_a_name_that_no_way_binds_stays_the_notebooks_own(notebook):
    notebook.ok(SETUP)
    before = notebook["x"]
    notebook.ok("%%tensor -q\nif len(k) > 9:\n    x = x + 1\ny = x.sum()")
    assert notebook["x"] is before


def test_what_a_cell_prints_is_numpys(notebook):
    notebook.ok(SETUP)
    cell = (
        "print(A.shape, len(x), [x.sum(), x[0]], {'x': x}, (x.mean(), 3), f'{A.shape} {x[:2]!r}')\n"
        "for i in range(2):\n    print(i, x.shape, [x[i]])"
    )
    assert notebook.ok(f"%%tensor -q\n{cell}").out == notebook.ok(cell).out


def test_pandas_does_not_take_a_mask_for_positions(notebook):
    pandas = pytest.importorskip("pandas")
    notebook["table"] = pandas.DataFrame({"a": [1.0, 2.0, 3.0]})
    notebook.ok(SETUP)
    notebook.ok("%%tensor -q\nmask = x > 0\nmany = k.sum() - 3")
    with pytest.raises(CaptureError, match="lazy mask for positions"):
        notebook["table"].iloc[notebook["mask"]]
    assert notebook["table"].iloc[notebook["mask"].numpy()].shape == (2, 1)
    assert notebook["table"].iloc[notebook["k"][: int(notebook["many"])]].a.tolist() == [3.0, 1.0]


STORES = {
    "an array": ("v[:] = w * 2", "(v * w).sum()"),
    "an element": ("v[1] = w.sum()", "v[1] + w[0]"),
    "added": ("v += w", "(v + w).sum()"),
    "in a dictionary": ("d['v'][:] = w ** 2", "(d['v'] + w).sum()"),
    "by way of another": ("v[:] = w\nu[:] = v * 2", "(u + w).sum()"),
    "of a number": ("v[:] = a * 2", "v.sum() + a"),
}


@pytest.mark.parametrize("name", STORES)
def test_what_a_cell_has_stored_has_no_history_and_a_gradient_says_so(notebook, name):
    store, value = STORES[name]
    notebook.shell.push(
        {"w": np.array([1.0, 2.0]), "v": np.zeros(2), "u": np.zeros(2), "a": 3.0, "d": {"v": np.zeros(2)}}
    )
    wrt = "a" if "a" in value.split() else "w"
    for line in store.splitlines():
        notebook.ok(f"%%tensor -q\n{line}")
    with pytest.warns(ConstantGradientWarning, match=rf"stored into here, with what depends on {wrt}"):
        notebook.ok(f"%%tensor --grad {wrt} -q\n{value}")
    notebook.ok(f"%%tensor --grad {wrt} -q\n{value}")  # told once
    notebook.ok("v[:] = 1\nu[:] = 2\nd['v'][:] = 3")
    notebook.ok(f"%%tensor --grad {wrt} -q\n{value}")
    notebook.ok(f"%%tensor -q\n{store.splitlines()[-1]}")
    notebook.ok("w[0] = 7\na = 4.0")  # others than it was made of
    notebook.ok(f"%%tensor --grad {wrt} -q\n{value}")


CUT = {
    "a part of what was stored into": ("v = M[0]", "M[0] = w * 2", "", "v.sum() + w.sum()"),
    "the whole of which a part was stored into": ("v = M[0]", "v[:] = w * 2", "", "M.sum() + w.sum()"),
    "what was captured of it, when it has gone": (
        "v = np.zeros(3)", "v[:] = w * 2", "%%tensor -q\nu = v * 3\n---\nv = None", "(u + w).sum()",
    ),
    "a list of a cell's": ("", "v = (w * 2).tolist()", "", "v[0] + w.sum()"),
    "an array that plain code has taken": ("", "z = w * 2", "v = np.asarray(z)", "(v + w).sum()"),
    "a copy that plain code has taken": ("", "z = w * 2", "v = np.array(z)", "(v + w).sum()"),
    "the array itself": ("", "z = w * 2", "v = z.numpy()", "(v + w).sum()"),
    "a number that plain code has taken": ("", "z = (w * 2).sum()", "v = z.item()", "v + w.sum()"),
}  # fmt: skip


@pytest.mark.parametrize("size", [3, 200])
@pytest.mark.parametrize("name", CUT)
def test_a_gradient_by_way_of_numbers_without_history_says_so(notebook, name, size):
    start, cell, plain, value = CUT[name]
    if size > 3 and name == "a list of a cell's":
        pytest.skip("of long lists numbers are not kept")
    notebook.ok(f"import numpy as np\nw = np.linspace(0.1, 1.3, {size}) ** 1.7\nM = np.zeros((3, {size}))")
    notebook.ok(start.replace("3", str(size)))
    notebook.ok(f"%%tensor -q\n{cell}")
    for one in plain.split("\n---\n"):
        notebook.ok(f"{one}  # {size}")  # told once for each place
    with pytest.warns(ConstantGradientWarning, match=r"with what depends on w|depends on w"):
        notebook.ok(f"%%tensor -q --grad w\n{value}")
    notebook.ok(f"%%tensor -q --grad w\n{value}")  # told once


def test_steps_by_plain_code_are_no_such_numbers(notebook):
    notebook.ok("import numpy as np\nw, b = np.linspace(0.1, 1.3, 100) ** 2, np.ones(100)")
    for step in (
        "w -= 0.1 * grad_w\nb -= 0.1 * grad_b",
        "w = np.array(w - grad_w)\nb = np.array(b - grad_b)",
        "w = w.copy()",
    ) * 2:
        notebook.ok("%%tensor -q --grad w,b\n((w - b) ** 2).sum()")
        notebook.ok(step)
