"""Cells of first programming courses: what Python leaves and prints, without a graph for each step."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.context import Capture
from tests.notebook.test_student_cells import plain

START = """import numpy as np, math, random
rng = np.random.default_rng(0)
random.seed(1)
x = np.linspace(0, 10, 60)
A = np.diag(np.arange(1.0, 9)) + 0.1"""
CELLS = {
    "Monte Carlo by Python's numbers": """
inside = 0
for i in range(3000):
    a, b = random.random(), random.uniform(0, 1)
    if a * a + b * b < 1:
        inside += 1
h = 4 * inside / 3000
""",
    "dice": """
counts = [0] * 6
for i in range(2000):
    counts[random.randint(1, 6) - 1] += 1
h = counts, random.choice(counts), random.gauss(0, 1)
""",
    "shuffled": """
deck = list(range(52))
for k in range(300):
    random.shuffle(deck)
    hand = random.sample(deck, 5)
h = deck, hand
""",
    "a random walk": """
pos = [0]
for i in range(900):
    pos.append(pos[-1] + rng.choice([-1, 1]))
h = max(pos), min(pos), len(pos)
""",
    "the largest of many": """
values = []
for k in range(700):
    values.append(np.sin(k * 0.37) * k)
h = max(values), min(values), max(values[::-1])
""",
    "the largest of a few": """
values = [np.sin(k * x[k]) for k in range(40)]
h = max(values), min(values), max(values[0], values[1]), min(values[2], 0.5), max(3, values[0])
""",
    "a power iteration that prints": """
v = np.ones(8)
for i in range(200):
    u = A @ v
    lam = np.linalg.norm(u)
    v = u / lam
    if i % 50 == 0:
        print(i)
h = lam, v
""",
}


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_leaves_what_python_leaves_and_makes_few_nodes(notebook, monkeypatch, name):
    space: dict[str, object] = {}
    exec(START + "\n" + CELLS[name], space)
    captures = []
    begin = Capture.__init__
    monkeypatch.setattr(Capture, "__init__", lambda self, *a, **o: (captures.append(self), begin(self, *a, **o))[1])
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{CELLS[name]}")
    assert plain(notebook["h"]) == plain(space["h"])
    assert max(c.effort.nodes for c in captures) < 600


def test_draws_of_a_function_are_not_taken_when_it_is_captured():
    """In functions ``random`` is no part of what Python runs by itself: each call draws."""
    import random

    def inside(n):
        found = 0
        for _ in range(n):
            found += random.random() < 0.5
        return found

    random.seed(3)
    drawn = [inside(20) for _ in range(4)]
    random.seed(3)
    captured = tm.tensor(inside)
    assert [int(captured(20)) for _ in range(4)] == drawn


def test_nan_among_many_is_compared_as_python_does(notebook):
    for values in ([np.nan, 1.0], [1.0, np.nan, 2.0], [2.0, np.nan, 1.0]):
        notebook["w"] = np.array(values)
        notebook.ok("%%tensor -q\nv = [w[k] * 1.0 for k in range(len(w))]\nh = max(v), min(v)")
        assert repr(plain(notebook["h"])) == repr(plain((max(np.array(values)), min(np.array(values)))))
