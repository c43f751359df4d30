"""Lists, dictionaries and records, chosen by a data-dependent condition: a store reaches the one that Python has, or is refused."""

import copy
import linecache

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.notebook import container_programs

START = """
import numpy as np
from dataclasses import dataclass
x = np.array([1.0, -2.0, 3.0, 0.5] * 9)
a, b, D, E = [1.0, 2.0], [3.0, 4.0], {'k': 1.0}, {'k': 2.0}
@dataclass
class Pair:
    v: float
    w: float
p, q = Pair(1.0, 2.0), Pair(3.0, 4.0)
def pick(v):
    if v > 0: return a
    return b
def plain(v):
    if isinstance(v, dict): v = list(v.values())
    return [float(k) for i in v for k in plain(i)] if isinstance(v, (list, tuple)) else [v]
"""
CELLS = {
    "t = a if x[1] > 0 else b\nt[0] = 9.0": "a, b, t is b",
    "if x[0] > 0: t = a\nelse: t = b\nt.append(x[0])": "a, b, t is a",
    "if x[0] > 0: t = a\nt.append(x[0])": "a, t is a",
    "t = D if x[1] > 0 else E\nt['k'] = x[0]": "D, E, t is E",
    "r = p if x[1] > 0 else q\nr.v = x[0] * 9": "p.v, q.v, r is q",
    "t, u = (a, b) if x[1] > 0 else (b, a)\nt[0] = 5.0; u[1] = 6.0": "a, b",
    "pick(x[1]).append(5.0)\npick(x[0])[0] = 6.0": "a, b",
    "for v in x: (a if v > 0 else b).append(v)": "a, b",
    "for v in x:\n  t = D if v > 0 else E\n  t['k'] += v": "D, E, t is D",
    "for v in x:\n  if v > a[0]: a, b = b, a\n  a[0] = a[0] + v": "a, b",
    (
        "u, w = [0.0, 0.0], [1.0, 2.0]\nkeep = u\nfor v in x:\n  if v > u[0]: u, w = w, u\n  u[1] += v"
    ): "u, w, keep is u",
    "t = a\nfor v in x:\n  if v > 2: t = b\nt[0] = 9.0": "a, b, t is b",
    "best = [0.0]\nfor v in x:\n  a[0] += v\n  if a[0] > best[0]: best = a": "a, best is a",
    "w = [x[0], x[1]]\nif x[2] > 1: w = [2 * v for v in w]\nw[0] = 4.0": "w",
    "w = [x[0], x[2]]\nwhile w[0] > 1e-3: w = [v * 0.9 for v in w]": "w",
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_changes_the_one_that_python_has(notebook, cell):
    space: dict[str, object] = {}
    exec(f"{START}\n{cell}", space)
    want = eval(f"plain([{CELLS[cell]}])", space)
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    assert notebook.ok(f"plain([{CELLS[cell]}])").value == pytest.approx(want, rel=1e-14)


def test_what_nobody_changes_stays_in_the_graph(notebook):
    notebook.ok(START)
    notebook.ok("%%tensor -q\nw = [x * 2, x * 3]\nif x[0] > 0: w = [v + 1 for v in w]\ny = w[0].sum()")
    assert "not computed" in repr(notebook["y"])


def test_a_list_with_two_names_after_a_loop_is_not_changed(notebook):
    notebook.ok(START)
    cell = "best = now = [0.0]\nfor v in x:\n  now = [now[0] + v]\n  if now[0] > best[0]: best = now\n"
    ran = notebook(f"%%tensor -q\n{cell}best[0] += 100.0")
    assert "best is one of several lists, depending on data" in str(ran.error)
    notebook.ok(f"%%tensor -q\n{cell}")
    assert float(notebook["best"][0]) == 22.5


def stores(x, a, b):
    t = a if x[0] > 0 else b
    t[0] = 9.0
    return t[0]


def reads(x, a, b):
    t = a if x[0] > 0 else b
    return t[0] * x + t[1]


def swaps(x):
    a, b = [0.0], [0.0]
    for v in x:
        (a if v > 0 else b)[0] += v
    return a[0]


def other_name(x):
    a = [1.0, 2.0]
    b = a
    if x[0] > 0:
        a = [3.0, 4.0]
    b[0] = 7.0
    return a[0]


def test_a_function_reads_one_of_several_and_stores_into_none():
    x, lists = np.array([1.0, -2.0, 3.0]), ([1.0, 2.0], [3.0, 4.0])
    for v in (x, -x):
        assert np.array_equal(tm.tensor(reads)(v, *copy.deepcopy(lists)), reads(v, *copy.deepcopy(lists)))
    for function, args in ((stores, lists), (swaps, ()), (other_name, ())):
        with pytest.raises(
            CaptureError, match=r"one of several lists, depending on data \(test_chosen_containers.py line"
        ):
            tm.tensor(function).graph(x, *copy.deepcopy(args))
        with pytest.warns(tm.PlainRunWarning):
            assert tm.tensor(function)(x, *copy.deepcopy(args)) == function(x, *copy.deepcopy(args))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # which list is stored into is known in a cell alone
@pytest.mark.parametrize("seed", range(30))
def test_drawn_programs_are_pythons(notebook, seed):
    text, x = container_programs.program(seed), np.sin(np.arange(36.0) ** 2) * (-1) ** seed
    space: dict[str, object] = {"x": x}
    exec(f"{container_programs.START}\n{text}", space)
    notebook["x"] = x
    notebook.ok(container_programs.START)
    notebook.ok(f"%%tensor -q\n{text}")
    for shown in (container_programs.SHOWN, container_programs.ALIKE):
        assert notebook.ok(shown).value == eval(shown, space)
    lines = [*container_programs.START.splitlines(), *text.splitlines()]
    source = "def f(x):\n" + "".join(f"    {line}\n" for line in lines) + "    return a, b, c, t, d['k']\n"
    name = f"<drawn {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)
    found = tm.tensor(space["f"])(x)
    assert [[round(float(i), 7) for i in v] for v in found] == eval(container_programs.SHOWN, space)
