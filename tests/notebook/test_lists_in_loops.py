"""Lists that loops of cells fill a data-dependent number of times: the loop is a region, and the list Python's, as long as in Python."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

from tensormagic.capture.values.list_elements import Element
from tensormagic.ir.node import topological

START = (
    "import numpy as np\nx = np.array(3.0)\ny = np.array([3.0, 1.0])\nD, old, k = {'a': []}, [1.5, 2.5], 0\nalias = old\n"
    "z = np.sin(np.arange(40.0) ** 2)"
)
CELLS = {  # what a cell does, what is looked at, and a list whose elements are those of a region
    "h = []; e = []\nwhile x > 1e-3:\n  x = x * 0.7\n  h.append(x); e.append(x**2)": ("[h, e]", "e"),
    "while x > 1e-3:\n  x = x * 0.7\n  old.append(x)": ("[alias, old is alias, sum(old)]", ""),
    "h = []\nwhile y.sum() > 1e-3 and k < 50:\n  y = y * 0.7\n  h.append((k, y.sum()))\n  k += 1": (
        "[list(v) for v in h]",
        "",
    ),
    "h = [y]\nwhile np.abs(y).max() > 1e-2:\n  y = y * 0.7\n  h.append(y.copy())": ("np.array(h)", "h[1:]"),
    "h = []\nwhile np.abs(y).max() > 1e-2:\n  y *= 0.7\n  h.append(y)": ("np.array(h)", ""),
    "h = []\nfor k in range(200):\n  x = x * 0.7\n  h.append(x)\n  if x < 1e-3: break": ("[h, k]", "h"),
    "h = []\nwhile True:\n  x = x * 0.7\n  h.append(x)\n  if x < 1e-3: break": ("h", "h"),
    "h = []\nwhile x > 1e-4:\n  x = x * 0.7\n  if x < 1: h.append(x)": ("h", "h"),
    "h = []\nwhile x > 10:\n  x = x * 0.7\n  h.append(x)": ("h", ""),
    "h = [1.0]\nwhile x > 1e-3:\n  x = x * 0.7 * h[-1] / h[-1]\n  h.append(x)": ("h", ""),
    "h = []\nwhile x > 1e-3 and len(h) < 7:\n  x = x * 0.7\n  h.append(x)": ("h", "h"),
    "h = []\nwhile x > 1e-3:\n  x = x * 0.7\n  h.append(x)\nn = len(h)\nq = [v * 2 for v in h[::2]]\nh.append(7.0)": (
        "[n, q, h]",
        "",
    ),
    "while x > 1e-3:\n  x = x * 0.7\n  D['a'].append(x)": ("D['a']", ""),
    "h = []\nfor v in z:\n  if v > 0 and v < 0.9: h.append(v)": ("h", "h"),
    "h = []\nq = []\nfor k, v in enumerate(z):\n  if v > 0: h.append((k, v))\n  else: q.append(v)": (
        "[[list(v) for v in h], q]",
        "q",
    ),
    "h = [0.0]\ns = 0.0\nfor v in z:\n  s += v\n  if s > h[-1]: h.append(s)": ("[h, s]", "h[1:]"),
    "for v in z:\n  if v > 0: D['a'].append(v * v)": ("D['a']", "D['a']"),
    "h = []\nfor i in range(len(z)):\n  for j in range(i):\n    if z[i] * z[j] > 0.2: h.append(i - j)": ("h", "h"),
    "h = []\nfor v in z:\n  if v < -0.9: break\n  if v > 0: h.append(v)": ("[h, v]", "h"),
    "h = []\nwhile x > 1:\n  x = x * 0.7\n  h.append(f'{float(x):.3f}')": ("h", ""),
    "h = []\nwhile x > 0.5:\n  x = x * 0.7\n  h.append(x if k else None)\n  k += 1": ("[v is None for v in h]", ""),
}
SHOW = """
def plain(v):
    return [plain(a) for a in v] if isinstance(v, list) else np.asarray(v).tolist()
print(plain({}))
"""


@pytest.mark.parametrize("cell", CELLS)
def test_a_list_holds_what_python_appends(notebook, cell):
    shown, of_region = CELLS[cell]
    look, out = SHOW.replace("{}", shown), io.StringIO()
    space: dict[str, object] = {}
    with redirect_stdout(out):
        exec(f"{START}\n{cell}\n{look}", space)
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    assert notebook.ok(look).out == out.getvalue()
    if of_region:
        assert all(type(v) is Element for v in notebook.ok(of_region).value)


FIRST = {  # loops whose first iteration is another than the rest, and what is compared
    "m = None\nfor i, v in enumerate(z):\n  if m is None or v > m: m = v": "float(m), i",
    "m = None\nfor v in z:\n  if m is None:\n    m = v\n    continue\n  if v > 0.9: break\n  m = m + v": "float(m), float(v)",
    "m = None\nfor i, v in enumerate(z):\n  if v > -5:\n    m = i\n    break": "m, i",
    "m = None\nfor i, v in enumerate(z):\n  if v > 5: m = i": "m is None, i",
    "m = None\nn = 0\nwhile x > 1e-3:\n  x = x * 0.7\n  if m is None or x < m: m = x\n  n += 1": "float(m), n",
    "class P:\n  def __init__(self): self.v = x\n  def go(self): self.v = self.v * 0.9\nps = [P(), P()]\n"
    "for t in range(40):\n  for p in ps: p.go()": "float(ps[0].v), p is ps[1], t",
}


@pytest.mark.parametrize("cell", FIRST)
def test_a_first_iteration_may_differ_from_the_rest(notebook, cell):
    space: dict[str, object] = {}
    exec(f"{START}\n{cell}", space)
    want = eval(f"({FIRST[cell]})", space)
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    assert notebook.ok(f"({FIRST[cell]})").value == pytest.approx(want, rel=1e-14)


def test_a_gradient_goes_through_such_a_list(notebook):
    notebook["w"] = np.array(0.7)
    notebook.ok(
        "%%tensor -q --grad w\nh = []\nx = w * 3\nwhile x > 1e-2:\n  x = x * w\n  h.append(x)\nnp.sum(np.array(h))"
    )
    count = len(notebook["h"])
    assert count == 15
    assert float(notebook["grad_w"]) == pytest.approx(
        sum(3 * (k + 2) * 0.7 ** (k + 1) for k in range(count)), rel=1e-13
    )


def test_iterations_that_python_runs_ask_their_conditions(notebook):
    cell = (
        "best, least = None, np.inf\nw = np.zeros(2)\nfor k in range(60):\n  w = w + 0.1 * (y - w)\n  loss = np.sum((y - w) ** 2)\n"
        "  if loss < least - 1e-3:\n    least, best, waits = loss, w.copy(), 0\n  else:\n    waits += 1\n    if waits > 5: break"
    )
    space: dict[str, object] = {}
    exec(f"{START}\n{cell}", space)
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    assert notebook["k"] == space["k"] < 59
    assert np.array_equal(notebook["best"], space["best"])
    assert len(topological([notebook["loss"].node])) < 1000  # no branch in a branch, one for each iteration
