"""The first call: Python runs a function as it is written where that gives what captured code gives; else it is captured at once."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.analysis.ordinary import TICK, ordinary
from tensormagic.capture.staging.syntax import source
from tensormagic.functions.calls import first_call
from tensormagic.functions.calls.function import Function
from tests.programs.test_programs import PROGRAMS, assert_equal, run

ORDINARY = [p for p in PROGRAMS.values() if ordinary(p.function) is not None]
X = np.arange(6.0)


@pytest.fixture(autouse=True)
def traces(monkeypatch):
    """The functions that were captured, or asked for a kind that they had not seen last."""
    found: list[str] = []
    own = Function._specialise

    def specialise(self, key, given, call):
        found.append(self.name)
        return own(self, key, given, call)

    monkeypatch.setattr(Function, "_specialise", specialise)
    monkeypatch.setattr(first_call, "enabled", True)
    return found


def loses(function, arguments):
    """Whether a run of a function loses digits that captured code may keep."""
    return first_call.result_of(function, copy.deepcopy(arguments)) is first_call.NOT


def test_most_programs_are_ordinary():
    assert len(ORDINARY) >= 60
    with np.errstate(all="ignore"):
        assert sum(loses(p.function, p.make(p.small)) for p in ORDINARY if ordinary(p.function).looks) <= 4


@pytest.mark.parametrize("program", ORDINARY, ids=lambda p: p.name)
def test_the_first_result_is_python_s(program, traces, monkeypatch):
    monkeypatch.setattr(first_call, "_AGAIN", math.inf)  # however busy the machine is
    function, arguments = tm.tensor(program.function), program.make(program.small)
    with np.errstate(all="ignore"):
        expected, found = run(program.function, arguments), run(function, arguments)
        if traces:
            assert loses(program.function, arguments)
            assert_equal(found, expected)
            return
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.share(4)
@pytest.mark.parametrize("program", ORDINARY, ids=lambda p: p.name)
def test_captured_code_gives_the_same(program, traces, monkeypatch):
    function, arguments = tm.tensor(program.function), program.make(program.small)
    with np.errstate(all="ignore"):
        expected = run(function, arguments)
        assert_equal(run(function, arguments), expected)
        assert traces == [program.function.__name__]
        monkeypatch.setattr(first_call, "TIME", -1.0)  # it is captured when its first loop begins
        assert_equal(run(tm.tensor(program.function), arguments), expected)


def doubled(x, n):
    """Stores as it goes."""
    for k in range(n):
        x[k] *= 2
        x[k - 1] += x[k]
    return x


def test_what_takes_long_is_put_back_and_captured(monkeypatch, traces):
    ticks: list[int] = []

    def times():
        ticks.append(1)
        yield iter([True, True, True])
        raise first_call.OutOfTime

    monkeypatch.setattr(first_call, "_times", times)
    given, expected = X.copy(), doubled(X.copy(), 6)
    assert tm.tensor(doubled)(given, 6) is given
    np.testing.assert_array_equal(given, expected)
    assert ticks == [1]
    assert traces == ["doubled"]


def test_what_fails_is_put_back_and_captured(traces):
    given, expected = X.copy(), X.copy()
    for function, x in ((tm.tensor(doubled), given), (doubled, expected)):
        with pytest.raises(IndexError):
            function(x, 9)
    np.testing.assert_array_equal(given, expected)  # put back, captured, and then as Python leaves it
    assert traces == ["doubled"]


def inner(x):
    """Stores into what it is given."""
    x[0] = 9
    return x


def through(x, n):
    """Stores where it calls."""
    y = inner(x)
    return y[n]


def test_what_is_stored_in_a_call_is_put_back():
    given, expected = X.copy(), X.copy()
    for function, x in ((tm.tensor(through), given), (through, expected)):
        with pytest.raises(IndexError):
            function(x, 9)
    np.testing.assert_array_equal(given, expected)


def test_an_interrupt_is_one(monkeypatch):
    def times():
        yield iter([True])
        raise KeyboardInterrupt

    monkeypatch.setattr(first_call, "_times", times)
    given = X.copy()
    with pytest.raises(KeyboardInterrupt):
        tm.tensor(doubled)(given, 6)
    np.testing.assert_array_equal(given, X)


def added(x, y):
    """One array into another one."""
    for k in range(1, len(x)):
        x[k] = x[k - 1] + y[k]
    return x


def test_arrays_that_share_memory_are_left_to_captured_code_which_leaves_them_to_python(traces):
    for make in (lambda a: (a, a), lambda a: (a[1:], a[:-1]), lambda a: (a[::-1], a)):
        given, plain = make(X.copy()), make(X.copy())
        np.testing.assert_array_equal(tm.tensor(added)(*given), added(*plain))
        np.testing.assert_array_equal(given, plain)
    assert len(traces) == 3


def differences(x, y):
    """Stores into what it has made itself."""
    found = np.tile(x, (len(x), 1)) - np.reshape(y, (-1, 1))
    found[found > 2] -= 4
    return found


def test_arrays_that_share_memory_and_are_only_read(traces):
    for given in ((X, X), (X, X[::-1])):
        np.testing.assert_array_equal(tm.tensor(differences)(*given), differences(*given))
    assert not traces


def test_a_store_into_what_is_read_only():
    fixed = X.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tm.tensor(added)(fixed, X)


def shifted(x, by=2.0):
    """A default, a constant of a module, and a function by name."""
    return limited(x + by * np.pi) * math.inf if by < 0 else limited(x + by)


def limited(x):
    """Without a loop."""
    return np.minimum(x, 4.5)


def test_kinds_of_calls(traces):
    f = tm.tensor(shifted)
    np.testing.assert_array_equal(f(X), shifted(X))
    assert not traces
    f(X + 1)
    f(X, by=1.0)
    assert traces == ["shifted"] * 2
    g = tm.tensor(shifted)
    g(X, 1.0)
    g(X.astype(np.float32), 1.0)
    assert len(traces) == 2
    assert isinstance(tm.tensor(lambda x: tm.tensor(shifted)(x))(X), np.ndarray)


def test_who_asks_for_something_is_captured(traces, monkeypatch):
    tm.tensor(shifted, math="real")(X)
    tm.tensor(shifted, without="stability")(X)
    tm.tensor(shifted, dtype="float32")(X)
    with tm.config.using(math="real"):
        tm.tensor(shifted)(X)
    for tier in ("numpy", "numba"):
        monkeypatch.setattr(tm.config, "tier", tier)
        tm.tensor(shifted)(X)
    assert len(traces) == 6


def loops(x, n):
    """Calls a function with a loop."""
    return doubled(x, 3) if n else doubled(x, 9)


def itself(x, n):
    """Calls itself."""
    return x if n < 1 else itself(x + 1, n - 1)


def test_calls_of_functions_with_loops_and_of_itself(traces, monkeypatch):
    np.testing.assert_array_equal(tm.tensor(loops)(X.copy(), 1), loops(X.copy(), 1))
    np.testing.assert_array_equal(tm.tensor(itself)(X, 5), X + 5)
    assert not traces

    def times():
        yield iter([True] * 4)
        raise first_call.OutOfTime

    monkeypatch.setattr(first_call, "_times", times)
    np.testing.assert_array_equal(tm.tensor(itself)(X, 5), X + 5)
    np.testing.assert_array_equal(tm.tensor(loops)(X.copy(), 1), loops(X.copy(), 1))
    assert traces == ["itself", "loops"]
    assert TICK not in loops.__globals__


SHAPED = {
    "a sum": "y = x + 1\n    y.shape = (2, 3)\n    return y",
    "two at once": "a, b = np.mgrid[0:2, 0:3]\n    a.shape = b.shape = 6\n    return x[a] + b",
    "into a third argument": "y = x * 2\n    np.multiply(y, y, y)\n    np.add(y, x, y)\n    return y",
    "into a second argument": "y = x > 2\n    np.logical_not(y, y)\n    return y",
    "options that are texts": "return np.einsum('i,j->ij', x, x).astype('f4')",
    "a function of a module": "return np.linalg.inv(np.diag(x + 1))",
    "some results": "h, edges = np.histogram(x, bins=3)\n    return h, edges",
    "parts": "a, b = np.split(x, 2)\n    c = np.concatenate([b, a])\n    c[0] = 9\n    return c",
    "errors": "if x.ndim > 1:\n        raise ValueError(f'{x.ndim} axes')\n    assert x.size, 'no numbers'\n    return x * 2",
    "warnings": "with np.errstate(divide='ignore'):\n        y = 1 / x\n    return y",
    "warnings of what is looked at": "with np.errstate(all='ignore'):\n        y = np.sqrt(x + 1) - np.sqrt(x)\n    return y",
    "of another dtype": "y = np.zeros(6, np.float32)\n    np.add(x * x, x, y)\n    return y",
}


@pytest.mark.parametrize("name", SHAPED)
def test_arrays_that_are_shaped_and_filled(name, made, traces):
    function = made(SHAPED[name])
    given = X.copy()
    expected, found = function(X), tm.tensor(function)(given)
    assert not traces
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(given, X)


def test_an_error_of_a_first_call_is_that_of_captured_code(made):
    function = made(
        "if x.ndim > 1:\n        raise ValueError(f'{x.ndim} axes')\n    x[0] = 9\n    assert x[1] > 0, 'sign'\n    return x"
    )
    with pytest.raises(ValueError, match="2 axes"):
        tm.tensor(function)(np.ones((2, 3)))
    given = -X
    with pytest.raises(AssertionError, match="sign"):
        tm.tensor(function)(given)
    assert given[0] == 9


def test_names_mean_what_they_mean_now(made, traces):
    function = made("return abs(x)")
    assert ordinary(function) is not None
    function.__globals__["abs"] = lambda v: print(v)
    assert ordinary(function) is None
    function = made("return np.abs(x)")
    assert ordinary(function) is not None
    function.__globals__["np"] = copy
    assert ordinary(function) is None


def test_gradients_are_of_captured_code(traces):
    f = tm.tensor(shifted)
    f(X)
    np.testing.assert_array_equal(tm.grad(lambda x: f(x).sum())(X), [1, 1, 1, 0, 0, 0])


def test_what_cannot_be_captured_stays_pythons():
    def chosen(x):
        best = x
        for i in range(3):
            if x[i] > 0:
                best = (x * i)[None]
        return best

    captured = tm.tensor(chosen)
    for x in (X, X - 1, X[:4], -X, X):
        wanted, found = chosen(x), captured(x)
        assert type(found) is type(wanted)
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(tm.TensorError, match="shapes"):
        tm.grad(lambda x: chosen(x).sum())(X)


FILE = """
def same(*_):
    return lambda f: f


@same(
    1,
)
@same('def ')
def f(
    x,
    y=1,
):
    a = (
  x + 1
)
# a comment
    b = a + y

    return b


class A:
    @staticmethod
    def g(x):
        if x.size:
            return x * 2
        return x
    h = 1


def last(x): return x - 1
"""


def test_what_stands_in_a_file_is_found(tmp_path):
    """Decorators and heads of several lines, texts and comments that stand further left."""
    text = FILE
    path = tmp_path / "written.py"
    path.write_text(text)
    space: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), space)
    for function in (space["f"], space["A"].g, space["last"], space["same"]):
        node = source.found(function.__code__)
        assert node.name == function.__name__
        assert node.body[-1].lineno == max(line for _, _, line in function.__code__.co_lines() if line)
    np.testing.assert_array_equal(tm.tensor(space["f"])(X), X + 2)
