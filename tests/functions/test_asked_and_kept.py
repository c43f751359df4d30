"""What code asks of a value's class, a `while` asks of an array that it stores into, and arrays made once that results hold twice."""

from __future__ import annotations

import collections.abc
import math
import typing
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm


@typing.runtime_checkable
class HasLength(typing.Protocol):
    def __len__(self) -> int: ...


KINDS = (
    *(Iterable, collections.abc.Sized, collections.abc.Container, collections.abc.Sequence, collections.abc.Hashable),
    *(Real, Integral, int, float, np.ndarray, np.generic, HasLength, typing.SupportsFloat, int | float, tm.Tensor),
)
VALUES = [1, 1.5, True, 1j, np.float64(2), np.float32(2), np.int8(3), np.arange(3.0), np.array(1.0), [1.0], "a", None]


def alike(function, make, calls=3):
    """Whether a captured function does what the plain one does, at each of several calls."""
    captured = tm.tensor(function)
    for _ in range(calls):
        plainly, here = make(), make()
        wanted, found = function(*plainly), captured(*here)
        assert repr(found) == repr(wanted)
        assert repr(here) == repr(plainly)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_classes_that_ask_what_a_value_has_are_told_of_the_users(value):
    def asked(v):
        w = v * 2 if isinstance(v, (int, float, complex, np.ndarray, np.generic)) else v
        return [isinstance(v, k) for k in KINDS[:-1]], [isinstance(w, k) for k in KINDS[:-1]]

    alike(asked, lambda: (value,))


def test_a_number_is_not_iterable_where_code_branches_on_that():
    def scaled(x, k):
        return [x * v for v in k] if isinstance(k, Iterable) else x * k

    def matched(v):
        match v:
            case collections.abc.Sized():
                return len(v)
            case _:
                return v + 1

    for k in (2.0, 2, [1.0, 2.0], np.arange(3.0), np.float64(3)):
        alike(scaled, lambda: (1.5, k))  # noqa: B023 (called at once)
    for v in (2.5, np.float32(1), np.arange(2.0)):
        alike(matched, lambda: (v,))  # noqa: B023 (as above)
    slope = tm.grad(lambda x, k: scaled(x, k))
    assert slope(3.0, 2.0) == 2.0


def test_lazy_values_are_told_by_their_own_class():
    assert tm.trace(lambda x: x if isinstance(x, tm.Tensor) else x * 0, "float64").results[0].op.name == "parameter"


def counted_down(m):
    steps = 0
    while m:
        m -= 1
        steps += 1
    return steps


def bits(m):
    found = 0
    while m:
        found += m & 1
        m >>= 1
    return found


def last_bits(n):
    m, c = n, 0
    while m:
        m &= m - 1
        c += 1
    return c, m


def gcd(a, b):
    while b:
        a %= b
        a, b = b, a
    return a


def halved(m):
    k = 0
    while not m - 1 or m:
        m //= 2
        k += 1
    return k, m


def in_a_loop(m):
    total = 0
    for _ in range(3):
        m += 3
        while m:
            m -= 1
            total = total + 1
    return total


@pytest.mark.parametrize("function", [counted_down, bits, last_bits, halved, in_a_loop])
@pytest.mark.parametrize("value", [np.array(13), np.array([13]), np.array([[5]], np.int8), np.array(0), 13])
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("tier", ["auto", "numba"])
def test_a_while_asks_an_array_that_it_stores_into(function, value, tier):
    with tm.config.using(tier=tier):
        alike(function, lambda: (value.copy() if isinstance(value, np.ndarray) else value,))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_a_while_over_two_arrays_that_it_stores_into():
    alike(gcd, lambda: (np.array([48]), np.array([18])))
    alike(gcd, lambda: (np.array(48), 18))


def test_a_while_over_a_copy_has_a_derivative():
    def f(x, n):
        n = n.copy()
        while n:
            n -= 1
            x = x * 2.0
        return x

    assert tm.grad(f)(3.0, np.array([4])) == 16.0


def arrays_in(value):
    """The arrays of a result, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    several = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [a for part in several for a in arrays_in(part)]


def kept(result):
    """Which arrays of a result share memory, which are the same, and what they hold."""
    found = arrays_in(result)
    pairs = [(k, j) for k in range(len(found)) for j in range(k)]
    shared = [(k, j, found[k] is found[j]) for k, j in pairs if np.shares_memory(found[k], found[j])]
    return shared, [(a.tolist(), str(a.dtype)) for a in found]


def first_of_rows(n):
    rows = [np.zeros(2) for _ in range(n)]
    first = rows[0]
    first[1] = 9
    return rows, first


def appended(n):
    rows = []
    for _ in range(n):
        rows.append(np.ones(2))  # noqa: PERF401 (what is looked at)
    return rows, rows[-1], rows[0]


def by_name(n):
    rows = {k: np.zeros(2) for k in range(n)}
    rows["first"] = rows[0]
    rows[0][0] = 3
    return rows


def reshaped(n):
    rows = [np.zeros(4) for _ in range(n)]
    square = rows[0].reshape(2, 2)
    square[0, 1] = 5
    return rows, square


def parts(n):
    rows = [np.arange(4) for _ in range(n)]
    return rows, rows[0][::2], rows[0].T


def listed_twice(n):
    rows = [np.full(2, 7) for _ in range(n)]
    return rows, rows[:], [rows[0]] * 2


@pytest.mark.parametrize("function", [first_of_rows, appended, by_name, reshaped, parts, listed_twice])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_arrays_made_without_data_are_one_where_python_has_one(function, count):
    captured = tm.tensor(function)
    for _ in range(3):
        found = captured(count)
        assert kept(found) == kept(function(count))
    again = captured(count)
    assert not any(np.shares_memory(a, b) for a in arrays_in(found) for b in arrays_in(again))


def apart(a, b):
    y = math.log(a)
    x = int(b)
    return x, y


def joined(a, b):
    y = math.log(a)
    x = int(b)
    return x + y


def called_by_library(a, b):
    return a // b, math.fmod(a, b), int(a / b)


def in_a_for(a, b):
    for _ in range(3):
        y = math.log(a)
        x = int(b)
        a, b = b, a
    return x, y


def stored(a, b):
    z = np.zeros(3)
    for i in range(3):
        z[i] = math.sqrt(a)
        x = int(b)
    return x, z


def of_a_branch(a, b):
    y = math.log(a)
    x = int(b) if a > -5 else 1
    return x + y


def listed(a, b):
    roots = [math.sqrt(a) for _ in range(2)]
    whole = [int(b) for _ in range(2)]
    return whole, roots


@pytest.mark.parametrize("function", [apart, joined, called_by_library, in_a_for, stored, of_a_branch, listed])
@pytest.mark.parametrize("tier", ["auto", "numpy", "numba"])
def test_the_error_is_the_first_one_of_the_program(function, tier):
    captured = tm.tensor(function)
    cases = [(1.0, 3.0), (math.inf, 3.0), (-1.0, math.inf), (-1.0, math.nan), (0.0, math.inf), (-1.0, 0.0), (2.0, 5.0)]
    with tm.config.using(tier=tier):
        for case in [c for c in cases for _ in range(2)]:
            assert _ends(captured, case) == _ends(function, case)


def _ends(function, case):
    try:
        return repr(function(*case))
    except (ArithmeticError, ValueError) as error:
        return type(error).__name__, str(error)


def test_an_assumption_is_checked_although_python_has_no_error():
    @tm.tensor
    def f(a, b):
        a = tm.assume(a, a > 0)
        return math.log(a) + int(b)

    assert f(1.0, 2.0) == 2.0
    with pytest.raises(Exception, match="assum"):
        f(-1.0, 2.0)


class Pair(NamedTuple):
    x: Any
    y: Any


def exchanged(p, n):
    for _ in range(n):
        p = Pair(p.y, p.x)
    return p


TUPLES = {
    "itself": (lambda p: p, lambda: (Pair(np.ones(2), 1.0),)),
    "of numbers": (lambda p: p, lambda: ((1.0, 2),)),
    "empty": (lambda p: (p, ()), lambda: ((),)),
    "unchanged": (exchanged, lambda: (Pair(np.ones(2), np.zeros(3)), 0)),
    "new": (exchanged, lambda: (Pair(np.ones(2), np.zeros(3)), 2)),
    "in a dictionary": (lambda d: (d["k"], d), lambda: ({"k": (np.ones(2), 1.0)},)),
    "twice": (lambda p: ((p, p), [p]), lambda: (Pair(1.0, np.ones(2)),)),
    "made": (lambda x: (t := (x, [x * 2]), (t, t), t[1]), lambda: (np.ones(2),)),
    "of another": (lambda p: (p[1], p), lambda: ((1, (2.0, np.ones(2))),)),
    "all arguments": (lambda *p: p, lambda: (1.0, np.ones(2))),
    "appended": (lambda p: p.append((p[0], 2.0)) or (p, p[-1]), lambda: ([np.ones(2)],)),
}


def same_objects(value):
    """For each container and array the first place of the same one."""
    first, held = {}, []

    def go(part, path):
        held.append(part)
        if isinstance(part, (list, tuple, dict, np.ndarray)):
            yield path, first.setdefault(id(part), path)
        if isinstance(part, (list, tuple, dict)):
            for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
                yield from go(inner, f"{path}.{key}")

    return [*go(value, "")]


@pytest.mark.parametrize("name", TUPLES)
@pytest.mark.parametrize("tier", ["auto", "numpy"])
def test_tuples_are_the_same_object_where_python_has_one(name, tier):
    function, make = TUPLES[name]
    captured = tm.tensor(function)
    with tm.config.using(tier=tier):
        for _ in range(3):
            plainly, here = make(), make()
            wanted, found = function(*plainly), captured(*here)
            assert same_objects([found, here]) == same_objects([wanted, plainly])
            assert repr(found) == repr(wanted)
