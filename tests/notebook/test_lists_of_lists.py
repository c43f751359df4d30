"""Lists of lists that comprehensions and loops make over arrays: one array, quickly, with what Python gives, and derivatives."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tests.notebook.test_outgrown import python

START = (
    "import math\nimport numpy as np\ng = np.linspace(-1.0, 1.0, 12)\nX = np.random.default_rng(0).normal(size=(14, 3))"
)
CELLS = {
    "a grid": "A = np.array([[x * y + 1 for x in g] for y in g])",
    "a grid of integers": """
def steps(c, n=20):
    z = 0
    for k in range(n):
        if abs(z) > 2:
            return k
        z = z * z + c
    return n
A = np.array([[steps(complex(x, y)) for x in g] for y in g])
""",
    "a loop of lists": """
A = []
for y in g:
    row = []
    for x in g:
        row.append(np.sin(x) - y)
    A.append(row)
A = np.array(A)
""",
    "a start and pairs": """
s, i = X[0, 0], X[0, 1]
h = [(s, i)]
for k in range(40):
    s, i = s - 0.1 * s * i, i + 0.1 * s * i
    h.append((s, i))
A = np.array(h)
""",
    "rows of arrays": "p = []\nfor k in range(20):\n    v = g * k\n    p.append([v, v + 1])\nA = np.array(p)",
    "integers beside floats": "h = []\nfor k in range(20):\n    h.append((k, g[k % 12]))\nA = np.array(h)",
    "a list that was changed": "R = [[x * y for x in g] for y in g]\nR[1][2] = 5.0\nA = np.array(R)",
    "another order": "R = [[x * y for x in g] for y in g]\nA = np.array(R[::-1])",
    "part of the lists": "R = [[x - y for x in g] for y in g]\nA = np.array(R[:9])",
    "distances": "A = np.array([[np.sqrt(np.sum((p - q) ** 2)) for q in X] for p in X])",
    "items of lists": "R = [[x + 2 * y for x in g] for y in g]\nA = np.array([sum(r) for r in R] + [R[3][4], R[-1][0]])",
}
NAMED = {  # lists that are appended, and have another name or another place
    "a row": "R = []\nfor y in g:\n    row = [y, y + 1]\n    R.append(row)\nrow[0] = 7.0",
    "a row of a loop": "R = []\nfor y in g:\n    row = [x * y for x in g]\n    R.append(row)\nrow[0] = 7.0",
    "a row that grows": "R = []\nfor y in g:\n    row = [y, y + 1]\n    R.append(row)\nrow.append(4.0)",
    "a dictionary": "R = []\nfor y in g:\n    row = {0: y}\n    R.append(row)\nrow[0] = 7.0",
    "in two lists": "R, S = [], []\nfor y in g:\n    row = [y, y + 1]\n    R.append(row)\n    S.append(row)\nS[2][0] = 7.0",
    "within a list": "R = []\nfor y in g:\n    row = [y, y + 1]\n    R.append([row, row])\nR[3][0][1] = 7.0",
    "within a named list": "R = []\nfor y in g:\n    row = [y]\n    R.append([row, 1.0])\nrow[0] = 7.0",
}


def numbers_in(value):
    """The numbers of nested lists and dictionaries, in order."""
    if isinstance(value, dict):
        value = [*value.values()]
    return [n for v in value for n in numbers_in(v)] if isinstance(value, list | tuple) else [float(value)]


@pytest.mark.parametrize("name", NAMED)
def test_a_list_that_is_appended_and_has_another_name_is_one_list(notebook, name):
    notebook.ok(START)
    space, _ = python(notebook, NAMED[name])
    notebook.ok("%%tensor\n" + NAMED[name])
    assert numbers_in(notebook["R"]) == numbers_in(space["R"])
    assert (notebook["R"][-1] is notebook["row"]) == (space["R"][-1] is space["row"])


@pytest.mark.parametrize("name", CELLS)
def test_lists_of_lists_are_arrays_as_numpy_makes_them(notebook, name):
    notebook.ok(START)
    space, _ = python(notebook, CELLS[name])
    with warnings.catch_warnings(action="error"):
        notebook.ok("%%tensor --math exact\n" + CELLS[name])
        found = np.asarray(notebook["A"])
    assert found.dtype == space["A"].dtype
    np.testing.assert_array_equal(found, space["A"])


@pytest.mark.parametrize("name", ["a grid", "a loop of lists", "rows of arrays", "distances"])
def test_their_graphs_are_small(notebook, name):
    notebook.ok(START)
    notebook.ok("%%tensor\n" + CELLS[name])
    assert len(notebook["A"].graph.nodes) < 60


def by_lists(x, w):
    rows = [[np.tanh(a * b + w[0]) for a in x] for b in x]
    return np.sum(np.array(rows) * w[1])


def by_pairs(x, w):
    h = []
    for k in range(10):
        pair = [x[k] * w[0], x[k] - w[1] * k]
        h.append(pair)
    return np.sum(np.array(h) ** 2)


def by_a_branch(x, w):
    rows = [[a * w[0] if a > b else b * w[1] for a in x] for b in x]
    return np.sum(np.array(rows)[1:] * 2)


def by_a_loop(x, w):
    rows = []
    for b in x:
        row = [a * b * w[0] for a in x]
        rows.append(row)
    t = 0.0
    for row in rows:
        t = t + row[1] * w[1]
    return t


def by_a_transpose(x, w):
    rows = [[a - b * w[0] for a in x] for b in x * w[1]]
    return (np.array(rows).T @ x).sum()


@pytest.mark.parametrize("function", [by_lists, by_pairs, by_a_branch, by_a_loop, by_a_transpose])
def test_values_and_gradients_of_functions(function):
    x, w = np.linspace(-1.0, 2.0, 10), np.array([0.3, 1.7])
    expected = function(x, w)
    captured = tm.tensor(function)
    for _ in range(2):
        assert float(captured(x, w)) == pytest.approx(expected, rel=1e-13)
    assert float(tm.compile(function, x, w)(x, w)) == pytest.approx(expected, rel=1e-13)
    tm.check_grads(function, (x, w))


OVERFLOWS = {
    "of a loop": "d = [np.sqrt(np.sum((X[3] - x) ** 2)) for x in X]\nA = np.array(d).sum()",
    "of stores": "d = np.zeros(14)\nfor i in range(14):\n    d[i] = np.sqrt(np.sum((X[3] - X[i]) ** 2))\nA = d.sum()",
    "of norms": "d = [np.linalg.norm(x - X[2]) for x in X]\nA = np.array(d).max()",
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_distance_of_nothing_warns_of_nothing(notebook, name):
    """The squares are scaled by a rule where they run under: what is too large there is nobody's."""
    notebook.ok(START)
    space, _ = python(notebook, OVERFLOWS[name])
    with warnings.catch_warnings(action="error"):
        notebook.ok("%%tensor\n" + OVERFLOWS[name])
        assert float(notebook["A"]) == pytest.approx(space["A"], rel=1e-14)


def test_an_overflow_that_the_user_asks_for_in_a_loop_still_warns(notebook, by_numpy):
    notebook.ok(START)
    with pytest.warns(RuntimeWarning, match="overflow encountered in"):
        notebook.ok("%%tensor\nt = g * 1e200\nfor k in range(20):\n    t = np.minimum(t * t, 1e200 + k)\nt.sum()")


def test_a_list_whose_items_take_long_is_pythons(notebook, monkeypatch):
    """Items that ask for values take as long each as those before them: so many are foreseen."""
    monkeypatch.setattr("tensormagic.capture.limits.PATIENCE", 0.05)
    cell = "def near(p):\n    d = [np.sum(np.abs(p - x)) for x in X]\n    return max(set(np.argsort(d)[:3]))\nA = [near(p) for p in X]"
    notebook.ok(START)
    space, _ = python(notebook, cell)
    with pytest.warns(tm.PlainRunWarning, match="one iteration at a time"):
        notebook.ok("%%tensor\n" + cell)
    assert notebook["A"] == space["A"]
