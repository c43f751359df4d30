"""Names that data bind or leave unbound: an error where Python reads them, and nowhere else."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.node import topological
from tests.capture.harness import cell

BINDS = {
    "branch": "if s > 0:\n        v = x + 1",
    "loop": "for i in range(k[0]):\n        v = x * i",
    "branch_in_a_loop": "for i in range(k[0]):\n        if s > i:\n            v = x * i",
    "while": "i = 0\n    while i < k[0]:\n        i += 1\n        v = x - i",
}
READS = {
    "given_back": "return v",
    "another_name": "u = v\n    return u + x",
    "in_a_list": "w = [v, x]\n    return w[1] * 2 + w[0]",
    "stored": "y = x.copy()\n    y[...] = v\n    return y",
    "chosen": "return v if k[1] > 0 else x",
    "stored_into": "v[0] = 9\n    return v",
    "in_place": "v += 1\n    return v",
    "rows": "for r in v:\n        x = x + r\n    return x",
    "given_back_on_one_way": "if k[1] > 0:\n        return v\n    return x",
    "given_back_from_a_loop": "for j in range(k[1]):\n        if x.sum() > j:\n            return v, j\n    return x, 0",
    "given_back_from_a_iteration": "for j in range(k[1]):\n        return v\n    return x",
    "asked_in_a_iteration": "for j in range(k[1]):\n        if s < 0 or v.sum() < s:\n            return v\n    return x * 2",
    "bound_again_in_a_iteration": "t = x\n    for j in range(k[1]):\n        t = v\n    return t",
    "added_in_a_iteration": "t = x\n    for j in range(k[1]):\n        t = t + v\n    return t",
    "changed_in_a_iteration": "for j in range(k[1]):\n        v = v + 1\n    return v",
    "perhaps_bound_anew": "if k[1] > 1:\n        v = x\n    return v",
    "after_a_break": "for j in range(k[1]):\n        if j == 1:\n            break\n        x = v\n    return x",
    "called": "h = lambda: v\n    if k[1] > 0:\n        return h()\n    return x",
    "appended": "found = [x]\n    for j in range(k[1]):\n        found.append(v)\n    return np.sum(found, axis=0)",
    "asked_between_iterations": "n = 0\n    while n < k[1] and v.sum() < 99:\n        n = n + 1\n    return n",
    "counted": """n = 0
    for j in range(k[1]):
        if v[0] > j:
            n += 1
            continue
        n += 2
    return n""",
    "inner": "def inner(a):\n        if a > 3:\n            return v\n        return x\n    return inner(k[1])",
}


def outcome(f: Any, *args: Any) -> Any:
    """What a function gives, as arrays, or None where it reads a name that is not bound."""
    try:
        found = f(*args)
    except NameError:
        return None
    return [np.asarray(v) for v in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("bind", BINDS)
def test_a_name_that_may_be_unbound_is_asked_for_where_it_is_read(bind: str, read: str):
    source = f"def f(x, k, s):\n    {BINDS[bind]}\n    {READS[read]}\n"
    name = f"<{bind}, {read}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), space)
    f = space["f"]
    captured = tm.tensor(f)
    unbound = 0
    for k in ([0, 0], [0, 1], [1, 0], [2, 2], [0, 9], [3, 9]):
        for s in (-1.0, 1.0, 2.0):
            given = np.arange(3.0) + 1, np.array(k), s
            expected, found = outcome(f, *given), outcome(captured, *given)
            unbound += expected is None
            assert (found is None) is (expected is None), (k, s)
            for ours, numpys in zip(found or (), expected or (), strict=True):
                assert np.array_equal(ours, numpys), (k, s)
                assert ours.dtype == numpys.dtype, (k, s)
    assert 0 < unbound < 18


def test_what_data_leave_unbound_is_an_array_of_its_own():
    """An iteration that may bind it anew has no other name for it: it may be stored into behind the loop."""

    def f(x: Any, k: Any, s: Any) -> Any:
        for i in range(k[0]):
            if s > i:
                v = x * i
        v[0] = 9
        return v

    for k, s in (([1], 1.0), ([3], 2.0)):
        given = np.arange(3.0) + 1, np.array(k), s
        assert np.array_equal(tm.tensor(f)(*given), f(*given))


def test_a_name_that_one_branch_of_a_cell_binds_leaves_the_branch_in_the_graph():
    source = "if x.sum() < 100:\n    big = x * 2\n    more = big + 1\ny = more.sum()"
    y = cell(source, {"x": np.arange(3.0)}).outputs["y"]
    assert isinstance(y, tm.Tensor)
    assert "cond" in {n.op.name for n in topological([y.node])}
    assert y == 9
