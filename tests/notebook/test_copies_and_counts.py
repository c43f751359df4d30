"""Copies of lazy numbers, and the integers that places are counted with, are Python's."""

import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.sameness import difference, form

START = """
import copy, pickle
import numpy as np
x = np.arange(5.0)
class Held: pass
"""
MADE = """
k, f, b, z, h = int(x.sum()), float(x[1]), bool(x.any()), complex(x[2]), x.mean()
n = x.argmax()
o = Held()
o.count, o.total, o.array = 0, 0.0, x * 2
for v in x:
    o.count += int(v > 1)
    o.total += float(v)
o.parts = [o.count, {"total": o.total}]
"""
ASKED = """[copy.copy(v) for v in (k, f, b, z, h)]
[copy.deepcopy(v) for v in (k, f, b, z, h)]
vars(copy.deepcopy(o))
vars(copy.copy(o))
copy.deepcopy({"k": k, "o": [o.total, (b, n)]})
copy.deepcopy(o.parts) + copy.deepcopy([k]) * 2
(lambda p: [p.total + 1, p.count * 2, o.total])(copy.deepcopy(o))
pickle.loads(pickle.dumps(copy.deepcopy([k, f, b, z])))
[type(v).__name__ for v in (range(n).stop, range(n, 9).start, range(0, 9, n).step, range(np.int8(4)).stop)]
[(type(j).__name__, j) for j, v in enumerate("abc", start=n)]
[(type(j).__name__, j) for j, v in enumerate(x, n)]
[(type(j).__name__, j) for j, v in enumerate(zip(x, x[1:]), start=n)]
[(type(j).__name__, j) for j, (i, v) in enumerate(enumerate(x, n + 1), np.int64(2))]
[type(j).__name__ for j in range(n)] + [type(j).__name__ for j in reversed(range(n))]
[j for j in range(n, 0, -1)] + [range(n)[-1], len(range(n)), n in range(9)]
max(j for j, v in enumerate(x, n) if v > 1)"""


@pytest.mark.parametrize("question", ASKED.splitlines())
@pytest.mark.parametrize("captured", [(True, False), (True, True), (False, True)])
def test_as_in_python(notebook: Notebook, question: str, captured: tuple[bool, bool]):
    notebook.ok(START)
    notebook.ok(MADE)
    wanted = form(notebook.ok(question).value)
    notebook.ok("%%tensor -q\n" * captured[0] + MADE)
    notebook.ok("%%tensor\n" * captured[1] + f"found = {question}")
    assert list(difference(wanted, form(notebook["found"]))) == []


def test_places_that_a_loop_counts_from_a_number_of_numpys(notebook: Notebook):
    notebook.ok(START)
    notebook.ok("%%tensor\nn = x.argmax()\nlast = 0\nfor j, v in enumerate(x, n):\n    if v > 2:\n        last = j\n")
    assert notebook.ok("type(last.__class__(last)).__name__, last == 8").value == ("int", True)
