"""Cells whose capture costs much, and ends as plain Python, are given up soon; the time of what runs does not count (decision 0438)."""

import warnings

import pytest

import tensormagic as tm
from tensormagic.capture import limits
from tests.notebook.test_outgrown import python

DRIVEN = {  # loops that Python runs, each iteration of which adds to the graph
    "clusters": """
grid = (np.sin(np.arange(144.0) ** 2).reshape(12, 12) > 0) * 1
label = np.zeros((12, 12), int)
found = 0
for i in range(12):
    for j in range(12):
        if grid[i, j] and label[i, j] == 0:
            found += 1
            stack = [(i, j)]
            while stack:
                a, b = stack.pop()
                if 0 <= a < 12 and 0 <= b < 12 and grid[a, b] and label[a, b] == 0:
                    label[a, b] = found
                    stack += [(a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)]
""",
    "texts": "found = ''\nfor k in range(40):\n    if w[k % 3] * k > 0.1:\n        found += 'x'\n    else:\n        found += 'y'",
    "a dictionary": "found = {}\nfor k in range(40):\n    if w[k % 3] * k > 0.1:\n        found[k] = 'x'",
    "a choice": "found = []\nfor k in range(200):\n    t = np.sin(w * k).sum()\n    found.append('ab'[int(t > 0)])",
    "objects": """
class P:
    pass
found = []
for k in range(40):
    p = P()
    p.x = w.sum() * k
    if p.x > 1:
        found.append(str(k))
""",
    "a set": "found = set()\nfor k in range(40):\n    if w[k % 3] * k > 0.1:\n        found.add(k)",
    "a loop inside": """
found = []
for k in range(40):
    u = w * k
    while u.sum() > 1:
        u = u / 2
        found.append(str(k))
""",
    "a function": """
def f(u):
    s = ''
    if u > 0.5:
        s = 'a'
    return s
found = ''
for k in range(40):
    found += f(w[k % 3] * k)
""",
}


@pytest.mark.parametrize("name", DRIVEN)
def test_the_second_iteration_tells_that_all_take_long(notebook, monkeypatch, name):
    monkeypatch.setattr(limits, "SURE", 0.0)
    begun = []
    own = limits.Ahead.begin
    monkeypatch.setattr(limits.Ahead, "begin", lambda self, capture: (begun.append(1), own(self, capture))[1])
    space, _ = python(notebook, DRIVEN[name])
    with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python"):
        notebook.ok("%%tensor\n" + DRIVEN[name])
    assert len(begun) < (70 if name == "clusters" else 6)  # of 156, and of 40
    assert notebook["found"] == space["found"]


STAGED = {  # loops that are one node, or that Python only unrolls: these keep their graph
    "one node": "v = w\nfor k in range(30):\n    v = v * 0.5 + k\nv.sum()",
    "a branch": "v = w\nfor k in range(30):\n    if v.sum() > 1:\n        v = v * 0.5\n    else:\n        v = v + k\nv.sum()",
    "a store": "v = np.zeros(30)\nfor k in range(30):\n    v[k] = w.sum() * k\nv.sum()",
    "a list": "v = []\nfor k in range(30):\n    v.append(w * k)\nnp.array(v).sum()",
    "a while": "v, k = w, 0\nwhile k < 30:\n    v = v * 0.5 + k\n    k += 1\nv.sum()",
}


@pytest.mark.parametrize("name", STAGED)
def test_what_is_in_the_graph_as_one_loop_is_kept(notebook, monkeypatch, name):
    monkeypatch.setattr(limits, "SURE", 0.0)
    with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
        notebook.ok("%%tensor\n" + STAGED[name])
    assert type(notebook["v"]) in {tm.Tensor, list}


@pytest.mark.parametrize(
    "ask", ["'ab'[int(t > 0)]", "str(float(t))", "f'{t:.2f}'", "str(t.tolist())", "'ab'[bool(t > 0)]"]
)
def test_the_time_of_what_runs_does_not_count(notebook, monkeypatch, ask):
    """Values that take long to be computed would be computed again: the cell is kept, and given up where capture took that time."""
    monkeypatch.setattr(limits, "PATIENCE", 1e-6)
    monkeypatch.setattr(limits, "EACH", 1e6)
    cell = f"said = ''\nfor k in range(40):\n    t = np.sin(w * k).sum()\n    said += {ask}\n"
    space, _ = python(notebook, cell)
    own = limits.ran
    with monkeypatch.context() as patch:
        patch.setattr(limits, "ran", lambda capture, _: own(capture, 1e3))
        notebook.ok("%%tensor -q\n" + cell)
    assert notebook["said"] == space["said"]
    with pytest.warns(tm.PlainRunWarning):
        notebook.ok("%%tensor -q\n" + cell)
    assert notebook["said"] == space["said"]


ASKED = "said = ''\nfor k in range({}):\n    said += 'ab'[int((w * k).sum() > 0)]\n"
FORESEEN = {  # cells that ask for a value in each iteration, and how many they have asked for when they are given up
    "few": (ASKED.format(10), None),
    "many": (ASKED.format(40), 2),
    "some more": (ASKED.format(25), 3),
    "left early": (ASKED.format(40) + "    if k == 4:\n        break\n    t = (w + k).sum()", None),
    "that go on and on": ("said = ''\nwhile len(said) < 60:\n    said += 'ab'[int((w * len(said)).sum() > 0)]", 15),
    "in loops": ("said = ''\nfor i in range(5):\n    " + ASKED.format(10).split("\n", 1)[1].replace("\n", "\n    "), 3),
    "in a loop once": ("for i in range(1):\n    " + ASKED.format(10).replace("\n", "\n    "), None),
    "now and then": (ASKED.format(40).replace("    said", "    t = w + k\n    if k % 3 == 0:\n        said"), None),
}


def given_up_at(notebook, monkeypatch, cell):
    """How many values a cell had asked for each time it was given up; it leaves what Python leaves."""
    found = []
    own = limits.refuse
    monkeypatch.setattr(
        limits, "refuse", lambda capture, *a, **k: (found.append(capture.effort.asked), own(capture, *a, **k))
    )
    space, _ = python(notebook, cell)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        notebook.ok("%%tensor -q\n" + cell)
    assert any(isinstance(w.message, tm.PlainRunWarning) for w in told) == bool(found)
    assert notebook["said"] == space["said"]
    return found


@pytest.mark.parametrize("name", FORESEEN)
def test_iterations_that_ask_tell_how_long_all_take(notebook, monkeypatch, name):
    """Each value takes a hundredth of a second here."""
    monkeypatch.setattr(limits, "PATIENCE", 1.0)
    monkeypatch.setattr(limits, "_has_taken", lambda *_: False)
    monkeypatch.setattr(limits, "_spent", lambda capture: 0.01 * capture.effort.asked)
    cell, most = FORESEEN[name]
    assert given_up_at(notebook, monkeypatch, cell) == ([] if most is None else [most])


RECURSION = """
def halved(v, depth):
    letter = f'{v.sum():.0f}'
    return letter if depth == 0 else letter + halved(v[::2], depth - 1) + halved(v[1::2], depth - 1)
said = halved(np.arange(64.0), 5)
"""
LINES = "said = ''\n" + "\n".join(f"said += 'ab'[int((w + {k}).sum() > 2)]" for k in range(12))


@pytest.mark.parametrize(("cell", "most"), [(RECURSION, 3), (LINES, None)])
def test_a_place_that_asks_again_is_given_up_sooner(notebook, monkeypatch, cell, most):
    """What has taken too long is given up at the second value of places that have asked before; a cell's lines may ask for more."""
    for name, value in {"PATIENCE": 0.0, "EACH": 1e6}.items():
        monkeypatch.setattr(limits, name, value)
    assert given_up_at(notebook, monkeypatch, cell) == ([] if most is None else [most])
