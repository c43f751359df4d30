"""Cells that hold few arrays, or none, end soon: what puts nothing into a graph, or very much, is run as plain Python."""

import os
import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import limits
from tensormagic.capture.staging.numbers import extremes
from tests.notebook.test_outgrown import python

IDLE = {  # cells whose iterations and calls put nothing into the graph
    "a number of random's": "rolls = []\nfor k in range(3000):\n    rolls.append(randint(1, 6) + randint(1, 6))",
    "a function": """
def digits(n):
    return sum(int(d) for d in str(n))
found = []
for k in range(3000):
    if digits(k) == 7:
        found.append(str(k))
""",
    "recursion": "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nf = fib(16)",
    "a method": """
class Tree:
    def depth(self, n):
        return 0 if n < 1 else 1 + max(self.depth(n // 2), self.depth(n - 9))
d = Tree().depth(300)
""",
    "texts": "words = []\nfor k in range(2000):\n    words.append(f'{k:05d}'.replace('0', 'o').upper())\nlast = words[-1]",
}


@pytest.mark.parametrize("name", IDLE)
def test_what_puts_nothing_into_the_graph_ends_soon(notebook, monkeypatch, name):
    """Time decides: with no patience, all that takes any."""
    monkeypatch.setattr(limits, "PATIENCE", 0.0)
    start = "import random\nfrom random import randint\nrandom.seed(4)"
    notebook.ok(start)
    space, _ = python(notebook, IDLE[name])
    notebook.ok(start)
    with pytest.warns(tm.PlainRunWarning, match="iterations or calls put nothing into a graph"):
        notebook.ok("%%tensor\n" + IDLE[name])
    for known in space.keys() & {"rolls", "found", "f", "d", "words", "last"}:
        assert notebook[known] == space[known]
        assert type(notebook[known]) is type(space[known])


LISTS = {  # comprehensions of which Python runs each iteration, where a graph of all takes long
    "products": "B = [[sum(A[i][k] * A[k][j] for k in range(n)) for j in range(n)] for i in range(n)]",
    "rows": "B = [[max(A[i]) - A[i][j] for j in range(n)] for i in range(n)]",
    "by a function": "def inner(u, v):\n    return sum(a * b for a, b in zip(u, v))\nB = [[inner(r, A[k]) for k in range(n)] for r in A]",
    "by a loop": "B = []\nfor i in range(n):\n    B.append([sum(A[i][k] * A[k][j] for k in range(n)) for j in range(n)])",
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_whose_graph_would_take_long_are_pythons(notebook, monkeypatch, name):
    monkeypatch.setattr(limits, "PATIENCE", 0.1)
    cell = "n = 24\nA = [[i * j % 7 for j in range(n)] for i in range(n)]\n" + LISTS[name]
    space, _ = python(notebook, cell)
    with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python"):
        notebook.ok("%%tensor\n" + cell)
    assert notebook["B"] == space["B"]


LIFE = """
import random
random.seed(1)
N = 10
g = [[random.random() < 0.3 for _ in range(N)] for _ in range(N)]
for t in range(3):
    new = [[False] * N for _ in range(N)]
    for i in range(N):
        for j in range(N):
            {count}
            new[i][j] = s == 3 or (g[i][j] and s == 2)
    g = new
"""
COUNTS = {
    "sum": "s = sum(g[(i + a) % N][(j + b) % N] for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0))",
    "list": "s = len([1 for a in (-1, 0, 1) for b in (-1, 0, 1) if (a or b) and g[(i + a) % N][(j + b) % N]])",
    "loops": "s = -g[i][j]\n            for a in (-1, 0, 1):\n                for b in (-1, 0, 1):\n                    "
    "s += g[(i + a) % N][(j + b) % N]",
    "row sums": "s = sum(sum(g[(i + a) % N][(j + b) % N] for b in (-1, 0, 1)) for a in (-1, 0, 1)) - g[i][j]",
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_was_given_up_on_trial_is_given_up(notebook, monkeypatch, name):
    """Iterations that are all Python's make no nodes: the cell ends with them, not after each was tried as a region."""
    monkeypatch.setattr(limits, "MANY", 60)
    monkeypatch.setattr(limits, "LIMIT", 600)
    cell = LIFE.format(count=COUNTS[name])
    space, _ = python(notebook, cell)
    tried = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "refuse", lambda *a, given=limits.refuse, **k: tried.append(1) or given(*a, **k))
            notebook.ok("%%tensor\n" + cell)
    assert len(tried) < 20
    assert bool(tried) == any(isinstance(w.message, tm.PlainRunWarning) for w in told)
    assert notebook["g"] == space["g"]


MANY_ITEMS = [
    "max(a for _, a in out)", "min(a * 2 for _, a in out)", "max((a for _, a in out), default=0.0)", "min({a for _, a in out})",
    "max(dict(out).values())", "max(map(abs, [a for _, a in out]))", "min(filter(None, (a for _, a in out)))",
]  # fmt: skip


@pytest.mark.parametrize("text", MANY_ITEMS)
def test_extremes_of_many_items_compare_values(notebook, monkeypatch, text):
    picked = []
    monkeypatch.setattr(extremes, "chosen", lambda *a, own=extremes.chosen: picked.append(1) or own(*a))
    cell = (
        "import math\ng, L, dt = 9.81, 1.0, 0.001\nth, om, t = 0.5, 0.0, 0.0\nout = []\n"
        "while t < 0.3:\n    om -= g / L * math.sin(th) * dt\n"
        f"    th += om * dt\n    t += dt\n    out.append((t, th))\nfound = {text}"
    )
    space, _ = python(notebook, cell)
    notebook.ok("%%tensor\n" + cell)
    assert isinstance(notebook["out"][5][1], tm.Tensor)
    assert float(notebook["found"]) == pytest.approx(space["found"], rel=1e-13)
    assert len(picked) < 10


def test_iterations_that_build_a_graph_are_kept_however_long_they_take(notebook, monkeypatch):
    monkeypatch.setattr(limits, "PATIENCE", 0.0)
    notebook["v"] = np.arange(3.0)
    notebook.ok("%%tensor\nnames = []\nfor k in range(40):\n    v = v * 1.5 + k\n    names.append(str(k))\nv")
    assert type(notebook["v"]) is tm.Tensor


SORTING = """
def part(A, lo, hi):
    i = lo
    for j in range(lo, hi):
        if A[j] <= A[hi]:
            A[i], A[j] = A[j], A[i]
            i += 1
    A[i], A[hi] = A[hi], A[i]
    return i

def quicksort(A, lo, hi):
    if lo < hi:
        p = part(A, lo, hi)
        quicksort(A, lo, p - 1)
        quicksort(A, p + 1, hi)
    return A

"""


@pytest.mark.parametrize("more", ["0", "np.random.default_rng(0).random(5)", "os.getpid() * 0"])
def test_functions_that_call_themselves_as_data_decide_end_soon(notebook, monkeypatch, more):
    """They are run as plain Python, or what is tried too deep is given up: it is of ways that the data do not go."""
    monkeypatch.setattr(limits, "PATIENCE", 0.02)
    space = {"np": np, "os": os, "v": np.array([3.0, 1.0, 2.0, 5.0, 4.0])}
    cell = f"import os\n{SORTING}z = quicksort(v + {more}, 0, 4)"
    exec(cell, space)
    notebook["v"] = space["v"].copy()
    with warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        notebook.ok("%%tensor\n" + cell)
    np.testing.assert_array_equal(np.asarray(notebook["z"]), space["z"])
