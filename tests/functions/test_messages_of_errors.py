# ruff: noqa: RUF030, N818, B007, B008, SIM108, TRY301 (programs as anyone writes them)
"""What is done to make the message of an error is done where that is raised, and not else; what Python computes in any case is.

PYTEST_DONT_REWRITE: these `assert` statements are the programs.
"""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import cell, computed
from tests.functions.same_as_python import captures, same


def program_assert(x):
    L = []
    assert x.sum() > 0, f"{L.append(1)}"
    return L


def program_assert2(x):
    L = []
    try:
        assert x.sum() > 0, f"{L.append(1)}"
    except AssertionError as e:
        return L, str(e)
    return L


def program_assert3(x):
    L = []

    def msg():
        L.append(2)
        return "no"

    assert x[0] > 0, msg()
    return L


def program_assert4(x):
    L = []
    for v in x:
        assert v > 0, L.append(float(v))
    return L


def program_assert5(x):
    n = 0

    def m():
        nonlocal n
        n += 1
        return "x"

    assert (x > 0).all(), m()
    return n


def program_assert6(x):
    assert (x > 0).all(), print("told")
    return x


def program_assert7(x):
    y = x.copy()
    assert (x > 0).all(), y.fill(0)
    return y


def program_assert8(x):
    d = {}
    assert (x > 0).all(), d.setdefault("a", 5)
    return d


def program_assert9(x):
    g = iter([1, 2, 3])
    assert (x > 0).all(), next(g)
    return list(g)


def program_assert10(
    x,
):
    L = []
    assert (x > 0).all(), (L.append(1), f"{x[0]:.2f}")[1]
    return L


def program_raise(x):
    L = []

    def f(v):
        L.append(1)
        return v

    if x[0] < 0:
        raise ValueError(f(x[0]))
    return L


def program_raise2(x):
    L = []
    if x[0] < 0:
        L.append(5)
        raise ValueError(f"bad {L.append(6)}")
    return L


def program_raise3(x):
    c = {"n": 0}

    class E(Exception):
        def __init__(self, v):
            c["n"] += 1
            super().__init__(v)

    if x[0] < 0:
        raise E(x[0])
    return c


def program_raise4(x):
    L = []
    try:
        if x[0] < 0:
            raise ValueError(L.append(1))
    except ValueError:
        pass
    return L


def program_raise5(x):
    def f():
        print("f")
        return "text"

    if x[0] < 0:
        raise ValueError(f())
    return x * 2


def program_raise6(x):
    y = x.copy()

    def f():
        y[0] = 9
        return "text"

    if x[0] < 0:
        raise ValueError(f())
    return y


def program_raise7(x):
    def f():
        x[0] = 9
        return "text"

    if x[0] < 0:
        raise ValueError(f())
    return 1


def program_raise8(x):
    for i in range(20):
        if x[0] < 0:
            raise ValueError(x.fill(3))
        x = x * 0.9
    return x


def program_raise9(x):
    def f(v):
        x.sort()
        return float(v)

    if x[0] < 0:
        raise ValueError("a", f(x[1]))
    return x


def program_raise10(x):
    while abs(x[0]) < 100:
        if x[1] < 0:
            raise KeyError(x.tolist())
        x = x * 2
    return x


def program_get(x):
    L = []
    d = {"a": 1.0}

    def eff():
        L.append(1)
        return 2.0

    return d.get("a", eff()), d.get("b", eff()), L


def program_get2(x):
    L = []
    d = {1: 1.0, 2: 3.0}

    def eff():
        L.append(1)
        return x[0]

    return d.get(int(x[1]), eff()), L


def program_get3(x):
    d = {}
    v = d.setdefault("a", x)
    w = d.setdefault("a", x * 2)
    v[0] = 5
    return d, w


def program_get4(x):
    L = []
    d = {"a": x}
    return d.pop("a", L.append(1)), d.pop("b", L.append(2)), L


def program_get5(x):
    n = []
    return getattr(x, "foo", n.append(1)), max([], default=n.append(2)), next(iter([]), n.append(3)), n


def program_get6(x):
    L = []

    def eff():
        L.append(1)
        return 0.0

    if x[0] > 0:
        v = {"a": x[0]}.get("a", eff())
    else:
        v = {"a": x[0]}.get("b", eff())
    return v, L


def program_get7(x):
    L = []
    d = {"pos": 1.0, "neg": 2.0}
    k = "pos" if x[0] > 0 else "other"

    def eff():
        L.append(1)
        return 0.0

    return d.get(k, eff()), L


def program_assertbr(x):
    L = []
    if x[0] > 0:
        assert x[1] > 0, L.append(1)
    return L


def program_assertfin(x):
    L = []
    try:
        assert x[0] > 0, L.append(1)
    finally:
        L.append(2)
        print(L)
    return L


def program_assertis(x):
    L = []
    try:
        assert x[0] > 0, L
    except AssertionError as e:
        return e.args[0] is L
    return L


def program_assertmsg(x):
    assert x[0] > 0, x
    return 1


def program_assertmsg2(x):
    assert x[0] > 0, ("a", x[0], float(x[1]))
    return 1


def program_assertmsg3(x):
    assert x[0] > 0, {"a": x[0]}
    return 1


def program_dflt(x):
    L = []

    def h(a=L.append(1)):
        return L

    return h(), h(a=2)


def program_pr1(x):
    if x[0] < 0:
        print("f")
        raise ValueError("text")
    return x * 2


def program_pr2(x):
    if x[0] < 0:
        print("f", x[0])
        raise ValueError(f"text {x[0]}")
    return x * 2


def program_assert_plain(x):
    assert x[0] > 0, f"no {x[0]} {np.flatnonzero(x < 0)}"
    return x * 2


PROGRAMS = [
    program_assert,
    program_assert2,
    program_assert3,
    program_assert4,
    program_assert5,
    program_assert6,
    program_assert7,
    program_assert8,
    program_assert9,
    program_assert10,
    program_raise,
    program_raise2,
    program_raise3,
    program_raise4,
    program_raise5,
    program_raise6,
    program_raise7,
    program_raise8,
    program_raise9,
    program_raise10,
    program_get,
    program_get2,
    program_get3,
    program_get4,
    program_get5,
    program_get6,
    program_get7,
    program_assertbr,
    program_assertfin,
    program_assertis,
    program_assertmsg,
    program_assertmsg2,
    program_assertmsg3,
    program_dflt,
    program_pr1,
    program_pr2,
    program_assert_plain,
]


def arrays(*values):
    return lambda: (np.array(values),)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_message_does_is_done_where_it_is_made(program):
    same(program, arrays(1.0, 2.0), arrays(-3.0, 2.0), arrays(3.0, -2.0))


def test_a_message_that_changes_nothing_is_captured():
    captures(program_assert_plain, np.array([1.0, 2.0]))
    captures(program_raise5, np.array([1.0, 2.0]))


def first_negative(x):
    assert (x >= 0).all(), f"negative: {x[x < 0][0]}"
    return x * 2


def place_of_the_first(x):
    if (x < 0).any():
        raise ValueError(f"negative at {np.flatnonzero(x < 0)[0]}")
    return x * 2


def the_worst(x):
    if x.min() < 0:
        bad = np.flatnonzero(x < 0)
        raise ValueError("negative", len(bad), x[bad].max())
    return x * 2


def a_singular_matrix(x):
    assert x[0] > 0, np.linalg.inv(np.zeros((2, 2)) * x[0])
    return x * 2


@pytest.mark.parametrize("program", [first_negative, place_of_the_first, the_worst, a_singular_matrix])
def test_a_message_that_is_not_made_is_no_error(program):
    x = np.array([1.0, 2.0, 3.0])
    for tier in ("numpy", "numba"):
        with tm.config.using(tier=tier):
            np.testing.assert_array_equal(tm.compile(program, "float64[n]").run(x), program(x))
            np.testing.assert_array_equal(tm.grad(lambda x: program(x).sum())(x), np.full(3, 2.0))
    captured = tm.tensor(program)
    found = cell("y = f(x * 1.0) + 1", {"f": captured, "x": x})
    np.testing.assert_array_equal(computed(found.outputs["y"]), program(x) + 1)
    same(program, lambda: (x.copy(),), lambda: (np.array([-1.0, 2.0, -3.0]),))
