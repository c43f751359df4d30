"""Values that are None for some data: they come, are used and are given back in functions as in Python."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

COMES = {
    "branch": "v = None\n    if s > 0:\n        v = x[0] + 1",
    "other_branch": "v = x[1]\n    if s > 0:\n        v = None",
    "expression": "v = x[0] * 2 if s > 0 else None",
    "best": """v, m = None, -np.inf
    for i in range(len(x)):
        if x[i] > m + s:
            m, v = x[i], i""",
    "first": """v = None
    for e in x:
        if v is None or e > v + s:
            v = e""",
    "last_of_a_loop": "v = None\n    for i in range(k[0]):\n        v = x[i] if x[i] > s else None",
    "while": "v, n = None, 0\n    while v is None and n < len(x):\n        v = x[n] if x[n] > s else None\n        n += 1",
    "a_function": """def search(t):
        for i in range(len(x)):
            if x[i] > t:
                return i
    v = search(s)""",
    "recursion": """def search(i):
        if i >= len(x):
            return None
        return x[i] if x[i] > s else search(i + 1)
    v = search(0 + k[1])""",
    "an_item": "d = {'v': None}\n    for e in x:\n        if e > s:\n            d['v'] = e\n    v = d['v']",
    "an_attribute": """class Tracker:
        pass
    t = Tracker()
    t.best = None
    for e in x:
        if e > s and t.best is None:
            t.best = e
    v = t.best""",
    "an_integer": "v = None\n    if s > 0:\n        v = k[0]\n    elif s < -5:\n        v = 0",
}
USES = {
    "given_back": "return v",
    "in_a_tuple": "return v, v is None",
    "in_a_list": "return [v, {'v': v}]",
    "asked": "return 1.0 if v is None else v * 2",
    "asked_not": "if v is not None:\n        return v + 1\n    return -1.0",
    "truth": "return (1 if v else 0), (not v)",
    "or": "return v or 7.0",
    "and": "return v and 3.0",
    "equal": "return v == 3, v != 3, v == None",
    "chained": "return v is not None and v > 2",
    "or_chained": "return v is None or v > 2",
    "is_a_number": "return isinstance(v, (int, float)), isinstance(v, type(None))",
    "computed_with": "return v + 1",
    "compared": "return 2.0 if v > 3 else 1.0",
    "called_with": "def double(a=None):\n        return 0.0 if a is None else 2 * a\n    return double(v)",
    "told": "print('found', v, [v, 1])\n    return v",
    "in_a_text": "return f'{v} found'",
    "bound_anew": "if v is None:\n        v = x[0]\n    return v * 2",
    "in_a_loop": "t = 0.0\n    for j in range(3):\n        if v is not None:\n            t = t + v\n    return t",
    "in_a_error": "if v is None:\n        raise KeyError(f'no {v} above {s}')\n    return v",
    "matched": "match v:\n        case None:\n            return 0.0\n        case _:\n            return v * 1.5",
}
X = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
CALLS = [
    (X, 2.0, np.array([3, 0])),
    (X, -2.0, np.array([3, 1])),
    (X, 9.0, np.array([4, 2])),
    (X, -7.0, np.array([0, 4])),
]


def made(name: str, comes: str, use: str) -> Any:
    """A function of user code with a source."""
    source = f"def f(x, s, k):\n    {comes}\n    {use}\n"
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    space: dict[str, Any] = {"np": np}
    exec(compile(source, filename, "exec"), space)
    return space["f"]


def outcome(f: Any, args: Any, told: Any) -> Any:
    """What a call gives, with its classes and what it prints; of an error the class."""
    try:
        found = f(*args)
    except TypeError:
        found = TypeError
    except KeyError:
        found = KeyError
    return described(found), told.readouterr().out


def described(value: Any) -> Any:
    """A value, with the classes of what is in it."""
    if isinstance(value, tuple | list):
        return type(value), [described(v) for v in value]
    if isinstance(value, dict):
        return {key: described(v) for key, v in value.items()}
    return type(value), value


@pytest.mark.parametrize("comes", COMES)
@pytest.mark.parametrize("use", USES)
def test_a_value_that_is_none_for_some_data(comes: str, use: str, capsys: Any) -> None:
    f = made(f"{comes} {use}", COMES[comes], USES[use])
    g = tm.tensor(f)
    for args in CALLS:
        assert outcome(g, args, capsys) == outcome(f, args, capsys)


def captured(f: Any) -> Any:
    return tm.tensor(f)


def lowest(x: Any) -> Any:
    best, at = None, None
    for k in range(4):
        y = x * k - 3
        if best is None or (y**2).sum() < best[0]:
            best, at = ((y**2).sum(), k), y.copy()
    if at is not None:
        at = at + 1
    return best, at


def pair(x: Any, t: float) -> Any:
    found = None
    for i in range(len(x)):
        for j in range(i):
            if x[i] + x[j] == t:
                found = (i, j)
    if found:
        a, b = found
        return x[a] * x[b], found[0], len(found)
    return found


def test_arrays_and_tuples_may_be_none() -> None:
    (value, k), at = captured(lowest)(X)
    (expected, n), array = lowest(X)
    assert (value, k) == (expected, n)
    np.testing.assert_array_equal(at, array)
    for t in (9.0, 2.0, 100.0):
        assert captured(pair)(X, t) == pair(X, t)


def test_gradients_take_the_value(tier: str) -> None:
    def largest(x: Any) -> Any:
        best = None
        for e in x:
            if best is None or e * e > best:
                best = e * e
        return best

    def steps(x: Any) -> Any:
        before, s = None, 0.0
        for e in x:
            if before is not None:
                s = s + (e - before) ** 2
            before = e
        return s

    np.testing.assert_allclose(tm.grad(largest)(X), [0, 0, 0, 0, 10])
    np.testing.assert_allclose(tm.grad(steps)(X), [4, -10, 12, -14, 8])


def test_where_a_number_is_needed_none_is_an_error() -> None:
    def root(x: float) -> Any:
        return np.sqrt(x) if x > 0 else None

    assert tm.grad(root)(4.0) == 0.25
    assert tm.jvp(root, (4.0,), (1.0,)) == (2.0, 0.25)
    assert tm.compile(root, "float").run(4.0) == 2.0
    np.testing.assert_allclose(tm.vmap(root)(np.array([1.0, 4.0])), [1, 2])
    for call in (tm.grad(root), tm.compile(root, "float").run, lambda x: tm.vmap(root)(np.array([x, 1.0]))):
        with pytest.raises(TypeError, match="is None, for these data"):
            call(-1.0)


def test_an_index_that_is_none_is_pythons() -> None:
    """Python would add an axis."""

    def at(x: Any) -> Any:
        where = None
        for i in range(len(x)):
            if x[i] > 4:
                where = i
        return x[where]

    assert captured(at)(X) == 5
    np.testing.assert_array_equal(captured(at)(-X), at(-X))  # by Python
    with pytest.raises(TypeError, match="where is None here"):
        tm.compile(at, X).run(-X)


def test_a_store_into_what_may_be_none_is_refused() -> None:
    def f(x: Any) -> Any:
        y: Any = None
        if x[0] > 0:
            y = x * 2
        y[0] = 1.0
        return y

    with pytest.raises(tm.CaptureError, match="a store into y"):
        captured(f).graph(X)


def test_the_class_of_what_may_be_none_is_refused() -> None:
    def f(x: Any) -> Any:
        y = x[0] if x[0] > 0 else None
        return 1 if type(y) is float else 2

    with pytest.raises(tm.CaptureError, match="the type of a value that depends on data"):
        captured(f).graph(X)
