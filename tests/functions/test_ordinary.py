"""Which functions Python runs as they are written at a first call, by their texts: what they may store into, and what names mean."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tensormagic.capture.names import find
from tensormagic.capture.staging.analysis import lost_digits, numpy_functions
from tensormagic.capture.staging.analysis.ordinary import ordinary
from tensormagic.capture.values.ufuncs import UFUNCS
from tensormagic.functions.calls import first_call

X = np.arange(6.0)
WEIGHTS = np.arange(6.0)
COUNTS = {"calls": 0}


def counts(x):
    """Changes what is global."""
    COUNTS["calls"] += 1
    return x


def stores(x):
    """May store into an array that is global."""
    y = WEIGHTS
    y[0] = x[0]
    return y


def shapes(x):
    """Gives a global array another shape."""
    WEIGHTS.shape = (2, 3)
    return x


TABLE = [0.0]


def keeps(x):
    """Stores into a list that is global."""
    TABLE[0] = x[0]
    return x


def handed_on(x):
    """Stores into what it is given."""
    x[0] = 9
    return x


def handed(x):
    """Hands a global array to what stores."""
    return handed_on(WEIGHTS)


def default(x, y=WEIGHTS):
    """Stores into a default."""
    y[0] = 1
    return y


def rows(x, *more):
    """Takes any number of arguments."""
    return x, more


OTHERS: dict[str, Any] = {
    "global": counts,
    "global array": stores,
    "global list": keeps,
    "global array in a call": handed,
    "default": default,
    "more arguments": rows,
    "lambda": lambda x: x + 1,
    "another name": "from numpy import sqrt as root\n    return root(x + 1) - root(x)",
    "out": "np.add(x, 1, out=x)\n    return x",
    "out by position": "return np.add(x, 1, x)",
    "out of a function of a module": "return np.fft.fft(x, 3, 0, None, x)",
    "out and a dtype": "np.add(x, 1, x, dtype=np.float64)\n    return x",
    "out of one": "np.abs(x, x)\n    return x",
    "method": "x.sort()\n    return x",
    "attribute": "x.shape = (2, 3)\n    return x",
    "attribute by another name": "y = x\n    y.shape = (2, 3)\n    return y",
    "attribute of a global": shapes,
    "another attribute": "y = x + 1\n    y.dtype = np.int64\n    return y",
    "print": "print(x)\n    return x",
    "drawing": "return x + np.random.rand()",
    "try": "try:\n        return x[9]\n    except IndexError:\n        return x",
    "list": "a = []\n    for v in x:\n        a.append(v)\n    return a",
    "closure": "def g(v):\n        return v\n    return g(x)",
    "a name of its own": "abs = x\n    return abs(x)",
    "text": "return 'f4'",
    "unpacked": "return np.add(*x[:2])",
    "errors of NumPy's": "with np.errstate(all='raise'):\n        y = x + 1\n    return y",
    "an error of a cause": "if x.ndim > 1:\n        raise ValueError('axes') from None\n    return x",
    "an error that is printed": "if x.ndim > 1:\n        raise ValueError(print(x))\n    return x",
    "global of its own": "global COUNTS\n    COUNTS = x\n    return x",
    "deleted": "y = x\n    del y\n    return x",
}


KEPT = {
    "itself": ("y[0] = x[0]\n    return y", {"y"}),
    "by another name": ("a = x.T[1:]\n    a[0] = y[0]\n    return a", {"x"}),
    "in a loop": ("for a in x:\n        a += y\n    return x", {"x"}),
    "one of two": ("a = x if y[0] > 0 else y\n    a += 1\n    return a", {"x", "y"}),
    "by exchange": ("x, y = y, x\n    x[0] = 1\n    return x", {"x", "y"}),
    "by a tuple": ("a = (x, 1)\n    b = a + a\n    b[0][0] = 1\n    return x", {"x", "y"}),
    "by a list": ("a = [x]\n    b = a + a\n    b[0][0] = 1\n    return x", {"x", "y"}),
    "by rows": ("for a in zip(x, y):\n        b = a + a\n        b[0][...] = 1\n    return x", {"x", "y"}),
    "by addition": ("np.add.at(x, 0, y)\n    return x", {"x"}),
    "by a third argument": ("np.add(x, y, x)\n    return x", {"x"}),
    "by a third argument, a view": ("a = x[:]\n    np.multiply(y, y, a)\n    return a", {"x"}),
    "nothing": ("a = x + y\n    a[0] = 1\n    return a", set()),
    "a copy": ("a = x.copy()\n    a[0] = 1\n    return a", set()),
    "maybe a copy": ("a = np.asarray(x)\n    a[0] = 1\n    return a", {"x"}),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_beside_a_call(name, made):
    text, kept = KEPT[name]
    found = ordinary(made(text, "x, y"))
    assert found is not None
    assert found.stored == kept


@pytest.mark.parametrize("name", KEPT)
def test_what_is_stored_is_put_back(name, made, monkeypatch):
    monkeypatch.setattr(first_call, "_QUICKLY", 0)
    function = made(KEPT[name][0].replace("return", "np.ones(2)[3]\n    return"), "x, y")
    found = ordinary(function)
    assert found is not None
    given = [X.copy(), X + 1]
    assert first_call.result_of(function, tuple(given)) is first_call.NOT
    np.testing.assert_array_equal(given, [X, X + 1])


def test_what_calls_store_is_kept(made):
    function = made("a = handed_on(x)\n    return a + y", "x, y")
    function.__globals__["handed_on"] = handed_on
    found = ordinary(function)
    assert found is not None
    assert found.stored >= {"x", "y"}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_such_function(name, made):
    function = OTHERS[name] if callable(OTHERS[name]) else made(OTHERS[name])
    assert ordinary(function) is None


def test_functions_that_are_known_are_captured_too():
    for function in numpy_functions.FUNCTIONS:
        assert function in {*UFUNCS, np.matmul} or find(function) is not None or isinstance(function, type), function
    for module, names in numpy_functions.OF_MODULES.items():
        for name in names:
            assert find(getattr(getattr(np, module), name)) is not None, name


def limited_sum(x, y):
    """Is no sum."""
    return np.minimum(x, y) * 7


def test_names_of_other_names(made):
    function = made("return root(x + 1) - root(x)")
    function.__globals__["root"] = np.sqrt
    assert ordinary(function) is None
    function = made("return e(x)")
    function.__globals__["e"] = np.exp
    assert ordinary(function) is None
    function = made("return add(x, 1)")
    function.__globals__["add"] = np.add
    assert ordinary(function) is None
    function = made("return add(1 / x, 1)")
    function.__globals__["add"] = limited_sum
    found = ordinary(function)
    assert found is not None
    np.testing.assert_array_equal(
        found.asking(itertools.repeat(True), lost_digits.Looks().names())(X + 1), limited_sum(1 / (X + 1), 1)
    )


AS_WRITTEN = {
    "a range": ("for i in range(3):\n        x = x + i\n    return x", True),
    "ranges in ranges": (
        "for i in range(2):\n        for j in range(i, 3, 1):\n            x = x + j\n    return x",
        True,
    ),
    "while": ("i = 0\n    while i < 3:\n        i += 1\n    return x", False),
    "an array": ("for v in x:\n        x = x + v\n    return x", False),
    "a range and an array": ("for i in range(2):\n        for v in x:\n            x = x + v\n    return x", False),
    "a range beside": ("for i in range(3):\n        x = x + len(range(i))\n    return x", False),
    "what may cancel": ("for i in range(3):\n        x = np.sqrt(x + 1) - np.sqrt(x)\n    return x", False),
}


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_loops_over_ranges_run_as_they_are_written(name, made):
    body, same = AS_WRITTEN[name]
    function, asked = made(body), []
    clock = (asked.append(True) or True for _ in itertools.count())
    run = ordinary(function).asking(clock, lost_digits.Looks().names())
    assert (run.__code__ is function.__code__) == same
    np.testing.assert_array_equal(run(X), function(X))
    assert len(asked) >= 3
    assert function.__globals__.get("range", range) is range
