"""Lists that are elements of a list which grows a data-dependent number of times: a change of one by another name is seen, or refused."""

import linecache
import textwrap
import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

LOOP = """
R, row, i = [], [0.0, 0.0], 0
while i < x[0]:
    row = [x[1] * i, x[2]]
    R.append(row)
    i = i + 1
"""
SUM = "\nres = sum([r[0] * 2 + len(r) for r in R])"
CHANGED = {
    "behind the loop": LOOP + "row[0] = 7",
    "by a function": LOOP + "def change(a):\n    a[1] = 100.0\n    a[0] = a[1]\nchange(row)",
    "by a longer name": LOOP + "last = row\nlast[0] += 1",
    "in a loop": LOOP + "for k in range(2):\n    row[k] = row[k] + 1",
    "in a branch": LOOP + "if x[1] > 0:\n    row[0] = 5.0",
    "made longer in a branch": LOOP + "if x[1] > 0:\n    row.append(3.0)",
    "of which a branch decides": (
        "R, row = [], [0.0, 0.0]\nfor v in x:\n    if v > 1:\n        row = [v, v * 2]\n        R.append(row)\nrow[0] = 7"
    ),
    "one list at each iteration": (
        "R, row, i = [], [x[0], x[1]], 0\nwhile i < x[0]:\n    R.append(row)\n    i = i + 1\nrow[0] = 7"
    ),
    "in two lists": LOOP.replace("R.append(row)", "R.append(row); Q.append(row)").replace("R, row", "Q = []\nR, row")
    + "Q[0][0] = 7",
    "by the next iteration": (
        "R, row, i = [], [0.0, 0.0], 0\nwhile i < x[0]:\n    row[0] += 5\n    row = [x[1] * i, 1.0]\n    R.append(row)\n    i = i + 1"
    ),
    "within a list": LOOP.replace("[x[1] * i, x[2]]", "[x[1] * i, [x[2]]]") + "row[1][0] = 7\nrow[1].append(2)",
}
LEFT = {
    "bound anew": LOOP + "row = [9.0, 9.0]\nrow[0] = 3.0\nR.append(row)",
    "read": LOOP + "last = R[-1]\nR.append([last[0] + row[1], 1.0])",
    "another list": LOOP + "other = [*row]\nother[0] = 9.0\nR.append(other)",
}


def function(text: str) -> Any:
    """The function of that text."""
    body = "def f(x):\n" + textwrap.indent(text + SUM, "    ") + "\n    return res\n"
    name = f"<elements {hash(body)}>"
    linecache.cache[name] = len(body), None, body.splitlines(keepends=True), name
    space: dict[str, Any] = {"np": np}
    exec(compile(body, name, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_is_seen_or_refused(name: str):
    f, x = function(CHANGED[name]), np.array([3.0, 1.0, 2.0])
    with warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        g = tm.tensor(f)
        assert [float(g(x)) for _ in range(3)] == [float(f(x))] * 3
    for captured in (lambda: tm.grad(f)(x), lambda: tm.compile(f, x)):
        with pytest.raises(tm.CaptureError):
            captured()


@pytest.mark.parametrize("name", LEFT)
def test_what_changes_no_element_is_captured(name: str):
    f, x = function(LEFT[name]), np.array([3.0, 1.0, 2.0])
    assert float(tm.tensor(f)(x)) == float(tm.compile(f, x)(x)) == float(f(x))
    tm.check_grads(f, (x - 0.5,))  # at which a small step changes no count
    with pytest.raises(AssertionError, match="perhaps the function has no derivative"):
        tm.check_grads(f, (x,))


def test_what_only_the_run_counts_is_not_handed_out():
    """A loop over what data-dependent iterations have appended: compiled code does not ask beforehand how long it takes."""
    f = function("R, i = [], 0\nwhile i < x[0]:\n    R.append([x[1] * i])\n    i = i + 1\nR.append([3.0])")
    x = np.array([3.0, 1.0, 2.0])
    compiled = tm.compile(f, x)
    for given in (x, x + 2):
        assert float(compiled(given)) == float(f(given))
