"""Functions that code compares, keeps in tables, and hands to others which call them: each is what it is in Python.

A function is held against Python's own result, as a function and as a cell.
"""

import functools
import inspect
import itertools
import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


def relu(v):
    if v > 0:
        return v
    return 0.0


def slope(v):
    return 1.0 if v > 0 else 0.0


SLOPES = {relu: slope, np.exp: np.exp}
BOTH = [relu, slope]
made = np.vectorize(relu)


class Unit:
    shared = staticmethod(relu)

    def __init__(self):
        self.f, self.table = relu, {"f": relu}

    def leaky(self, v):
        return v if v > 0 else 0.1 * v

    def apply(self, x):
        return np.vectorize(self.leaky)(x)

    def __call__(self, v):
        return v if v > 1 else -v


IDENTITIES = {
    "a key": lambda x: SLOPES[relu](x[0]),
    "a ufunc as a key": lambda x: SLOPES[np.exp](x),
    "a key by get": lambda x: SLOPES.get(slope, np.exp)(x),
    "in a list": lambda x: x if relu in BOTH else -x,
    "in a dictionary": lambda x: x if relu in SLOPES else -x,
    "index": lambda x: x * BOTH.index(slope),
    "count": lambda x: x * BOTH.count(relu),
    "a set": lambda x: x * len({relu, BOTH[0]}),
    "hash": lambda x: x if hash(relu) == hash(BOTH[0]) else -x,
    "id": lambda x: x if id(relu) == id(BOTH[0]) else -x,
    "is": lambda x, f=relu: x if f is relu else -x,
    "is not": lambda x, f=slope: x if f is not relu else -x,
    "equal": lambda x, f=relu: x if f == relu else -x,
    "unequal": lambda x, f=slope: x if f != relu else -x,
    "in a loop": lambda x: sum(f(x[1]) * (1 if f is relu else 2) for f in BOTH),
    "an attribute": lambda x: x if Unit().f is relu and Unit.shared is relu else -x,
    "its class": lambda x: x if type(relu) is type(BOTH[0]) else -x,
    "its name": lambda x: x * len(relu.__name__),
    "True": lambda x: x if (x[0] > 1) is not True else -x,
    "a truth value of Python's": lambda x, v=2.0: x if (v > 1) is True else -x,
}
HANDED = {
    "by a name": lambda x: np.vectorize(relu)(x),
    "made before": lambda x: made(x),
    "a default": lambda x, f=relu: np.vectorize(f)(x),
    "an attribute": lambda x: np.vectorize(Unit().f)(x),
    "a method": lambda x: Unit().apply(x),
    "a static method": lambda x: np.vectorize(Unit.shared)(x),
    "an item": lambda x: np.vectorize(Unit().table["f"])(x),
    "an object": lambda x: np.array([Unit()(v) for v in x]),
    "an object that is handed over": lambda x: np.array(list(map(Unit(), x))),
    "map": lambda x, f=relu: np.array(list(map(f, x))),
    "a partial function": lambda x, f=lambda a, v: v * 2 if v > a else a: np.array(list(map(functools.partial(f, 0.25), x))),
    "reduce": lambda x, f=lambda a, b: a if a > b else b - a: functools.reduce(f, x),
    "accumulate": lambda x, f=lambda a, b: a if a > b else b - a: np.array(list(itertools.accumulate(x, f))),
    "starmap": lambda x, f=lambda a, b: a if a > b else b - a: np.array(list(itertools.starmap(f, zip(x, x[::-1], strict=True)))),
    "along an axis": lambda x, f=lambda r: r.sum() if r[0] > 0 else r.max(): np.apply_along_axis(f, 1, np.outer(x, x)),
}  # fmt: skip
X = np.array([-1.0, 2.0, 0.5])


def alike(found, expected):
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", [*IDENTITIES.values(), *HANDED.values()], ids=[*IDENTITIES, *HANDED])
def test_as_in_python(function, notebook):
    expected = function(X)
    alike(tm.tensor(function)(X), expected)
    notebook["function"], notebook["x"] = function, X
    alike(notebook.ok("%%tensor\ny = function(x)\ny").value, expected)


def test_a_truth_value_of_two_objects():
    def f(x):
        return (x > 1) is True, (x > 1) is False, (x > 1) is (x < 5), (x > 1) is not (x < 5)

    for x in (0.5, 2.0, np.float64(2.0)):
        assert tm.tensor(f)(x) == f(x)


CALLED = {
    "twice": lambda v: v * 2,
    "inverse": lambda v: 1 / v,
    "its class": lambda v: 1.0 if isinstance(v, float) else 2.0,
    "square": lambda v: v**2,
    "root": lambda v: np.sqrt(v),
    "remainder": lambda v: v % 3,
    "a truth value": lambda v: 1.0 if (v > 1) is True else 0.0,
    "matched": lambda v: {True: v, False: -v}[bool(v)] if isinstance(v, str) else v + 1,
}


@pytest.mark.parametrize("dtype", [float, np.float32, np.int64, np.int8, np.uint8])
@pytest.mark.parametrize("function", CALLED.values(), ids=CALLED)
def test_vectorized_functions_get_numbers_of_pythons(function, dtype):
    x = np.array([1, 2, 4]).astype(dtype)
    alike(tm.tensor(lambda x: np.vectorize(function)(x))(x), np.vectorize(function)(x))


def loop(v):
    total = 0
    while v > 1:
        total += v
        v = v / 2
    return total


SEVERAL = {
    "a branch": lambda v: v if v > 1 else 0,
    "the larger": lambda v: max(v, 0),
    "or": lambda v: v or 1,
    "computed from one": lambda v: (v if v > 1 else 0) * 2,
    "a loop without an iteration": loop,
}


@pytest.mark.parametrize("function", SEVERAL.values(), ids=SEVERAL)
def test_the_first_result_decides_the_dtype(function, notebook):
    """NumPy cuts all others to integers where the first is one: a cell does, a function is refused, and with a dtype both are right."""
    for x in (np.array([0.0, 1.5, 2.5]), np.array([2.5, 0.0])):
        notebook["function"], notebook["x"] = function, x
        alike(notebook.ok("%%tensor\nv = np.vectorize(function)(x)\nv").value, np.vectorize(function)(x))
        with pytest.raises(CaptureError, match="NumPy uses the first one for all"):
            tm.tensor(lambda x: np.vectorize(function)(x)).graph(x)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            alike(
                tm.tensor(lambda x: np.vectorize(function, otypes=[float])(x))(x),
                np.vectorize(function, otypes=[float])(x),
            )


BODIES = {
    "a return in a loop": "for i in range(3):\n        if x < i: return i",
    "a return in a while": "while x > 0:\n        x -= 1\n        if x == 3: return x\n    return -x",
    "a call of itself at the end": "if x == 0: return 1\n    return f(x - 1)",
    "match": "match x:\n        case 1: return 'one'\n        case _:\n            for i in range(3):\n                if i == x: return i",
    "a name of a class": "class C:\n        y = x\n    for i in range(2):\n        if i: return C.y",
    "a generator": "for i in range(x):\n        if i == 2: return\n        yield i",
    "nothing": "",
}


@pytest.mark.parametrize("text", ['"""What it does."""', '"what"', 'f"{1}"', "0"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_functions_of_cells_keep_what_is_written_of_them(body, text, notebook):
    code = f"def f(x):\n    {text}\n    {body}\nclass A:\n    def m(self, x):\n        {text}\n        return f(x)\n"
    own: dict = {}
    exec(code, own)
    notebook.ok(f"%%tensor\n{code}")
    assert notebook["f"].__doc__ == own["f"].__doc__
    assert notebook["A"].m.__doc__ == own["A"].m.__doc__
    if inspect.isgeneratorfunction(own["f"]):
        assert list(notebook["f"](5)) == list(own["f"](5))
    else:
        assert [notebook["f"](k) for k in range(5)] == [own["f"](k) for k in range(5)]
