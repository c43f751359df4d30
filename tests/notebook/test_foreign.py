"""Functions that know arrays and numbers alone, Numba's, those of C, ufuncs of the user's: called as they are, in cells and functions."""

import ctypes
import ctypes.util
import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, DifferentiationError, PlainRunWarning

numba = pytest.importorskip("numba")


@numba.njit
def one_more(x):
    return x + 1


@numba.vectorize
def twice(x):
    return x * 2


@numba.vectorize(["float64(float64)"])
def thrice(x):
    return x * 3


@numba.njit
def seven_first(x):
    x[0] = 7.0


def of_c(name: str):
    found = ctypes.util.find_library("m")
    if found is None:
        pytest.skip("no mathematical library of C's is found on this system")
    function = getattr(ctypes.CDLL(found), name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return function


FUNCTIONS = {"one_more": one_more, "twice": twice, "thrice": thrice}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_cell_gives_arrays_to_functions_of_numba(notebook, name):
    x = np.arange(4.0)
    notebook.shell.push({name: FUNCTIONS[name], "x": x, "np": np})
    notebook.ok(f"%%tensor -q\nz = {name}(np.sqrt(x)) * 2.0")
    assert np.array_equal(notebook["z"], FUNCTIONS[name](np.sqrt(x)) * 2.0)
    notebook["x"] = x + 1
    notebook.ok(f"%%tensor -q\nz = {name}(np.sqrt(x)) * 2.0")
    assert np.array_equal(notebook["z"], FUNCTIONS[name](np.sqrt(x + 1)) * 2.0)


def test_a_cell_gives_numbers_to_functions_of_c(notebook):
    cosine = of_c("cos")
    notebook.shell.push({"cosine": cosine, "s": 0.5})
    notebook.ok("%%tensor -q\nz = cosine(s * 2.0) + s")
    assert float(notebook["z"]) == cosine(1.0) + 0.5


def test_what_such_a_function_stores_is_kept(notebook):
    notebook.shell.push({"seven_first": seven_first, "x": np.arange(4.0), "np": np})
    notebook.ok("%%tensor -q\ny = -np.zeros(4)\nseven_first(y)\nz = y + x")
    assert np.array_equal(notebook["z"], [7.0, 1.0, 2.0, 3.0])
    assert np.signbit(np.asarray(notebook["y"])).tolist() == [False, True, True, True]


def test_what_is_done_to_a_list_of_lazy_values_is_done(notebook):
    """A function that gets other values for them gets another list."""
    notebook.ok("import heapq, bisect, random\nv = np.arange(5.0)")
    notebook.ok(
        "%%tensor -q\nh = [v[3] * 1, v[1] * 1]\nheapq.heapify(h)\nleast = heapq.heappop(h)\nheapq.heappush(h, v[2] * 1)"
    )
    assert ([float(n) for n in notebook["h"]], float(notebook["least"])) == ([2.0, 3.0], 1.0)
    notebook.ok("%%tensor -q\nl = [v[1] * 1, v[3] * 1]\nbisect.insort(l, v[2] * 1)\nrandom.seed(1)\nrandom.shuffle(l)")
    random.seed(1)
    wanted = [1.0, 2.0, 3.0]
    random.shuffle(wanted)
    assert [float(n) for n in notebook["l"]] == wanted


PARTS = [
    "as_strided(v * 1, (5, 3), (8, 8))",
    "as_strided(A.T, A.T.shape, A.T.strides)",
    "as_strided(v[::2], (3,), v[::2].strides)",
    "as_strided(v[::-1], (3, 2), (-8, -16))",
    "as_strided(A[:, 1:][::2] * 1, (2, 2), (8, 8))",
    "np.lib.stride_tricks.as_strided(A[1:, ::2], (2, 2), A[1:, ::2].strides)",
]


@pytest.mark.parametrize("text", PARTS)
def test_a_part_of_an_array_that_a_function_gives_is_a_part_of_the_lazy_one(notebook, text):
    notebook.ok("from numpy.lib.stride_tricks import as_strided\nv = np.arange(9.0); A = np.arange(12.0).reshape(3, 4)")
    notebook.ok(f"plain = {text}.copy(); strides = {text}.strides")
    notebook.ok(f"%%tensor -q\nr = {text}\nfound = r.strides\nr = r * 1")
    assert np.array_equal(notebook["r"], notebook["plain"])
    assert notebook["found"] == notebook["strides"]


def test_stores_into_such_a_part_and_into_its_array(notebook):
    notebook.ok("from numpy.lib.stride_tricks import as_strided\nv = np.arange(6.0)")
    notebook.ok(
        "%%tensor -q\nu = v * 1\nw = as_strided(u, (3, 2), (16, 8))\nw[0, 1] = 7.0\nu[5] = 8.0\nz = w.sum(axis=1)"
    )
    assert np.array_equal(notebook["u"], [0, 7, 2, 3, 4, 8])
    assert np.array_equal(notebook["z"], [7, 5, 12])
    for text in ["as_strided(v * 1, (4, 3), (8, 8))[0, 1] = 7.0", "as_strided(v * 1, (4, 3), (80, 8))"]:
        assert isinstance(notebook(f"%%tensor -q --grad v\n{text}\nv.sum()").error, CaptureError)
    with pytest.warns(PlainRunWarning, match="windows that share elements"):
        notebook.ok("%%tensor -q\nu = v * 1\nas_strided(u, (4, 3), (8, 8))[0, 1] = 7.0")
    assert np.array_equal(notebook["u"], [0, 7, 2, 3, 4, 5])
    assert isinstance(
        notebook("%%tensor -q\nas_strided(v * 1, (4, 3), (80, 8))").error, CaptureError
    )  # not the array's memory


def test_a_cell_hands_addresses_to_functions_of_c(notebook):
    notebook.shell.push({"zeroed": zeroed(), "x": np.arange(4.0), "ctypes": ctypes})
    notebook.ok("%%tensor -q\ny = x + 1\nzeroed(y.ctypes.data_as(ctypes.c_void_p), 0, 16)\nz = y * 2")
    assert np.array_equal(notebook["z"], [0.0, 0.0, 6.0, 8.0])


# functions ------------------------------------------------------------------------------------------------------------

objects = np.frompyfunc(lambda v: v * 2 + 1, 1, 1)


@numba.vectorize(["float64(float64)"])
def expit(x):  # which is no function of SciPy's
    return x * 10


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")
def running(x, out):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        out[i] = total


@numba.njit
def into(x, out):
    for i in range(len(x)):
        out[i] = x[i] * 3


@numba.njit
def both(x):
    return x.sum(), (x * 2, len(x)), x > 1


@numba.njit
def large(x):
    return x[x > 2]


@numba.njit
def same(x):
    return x


@numba.njit
def tail(x):
    return x[1:]


def zeroed():
    function = ctypes.CDLL(None).memset
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    return function


def stores(x):
    out = np.zeros(len(x) + 1)
    into(x, out[1:])
    return out.cumsum()


def addresses(x):
    y = x * 2.0
    zeroed()(y.ctypes.data, 0, 16)
    return y + x


def loops(x):
    for _ in range(3):
        x = one_more(x) * 2.0
    return x


def aliases(x):
    y = x * 2.0
    z = same(y)
    z[0] = 100.0
    return y


def of_numbers(x):
    return x * of_c("cos")(0.5) + of_c("cos")(float(len(x)))


PROGRAMS = {
    "njit": lambda x: one_more(x * 2.0) + x,
    "twice called": lambda x: one_more(x) + one_more(x),
    "vectorize": lambda x: twice(x) + thrice(x),
    "a ufunc of another function's name": lambda x: expit(x) + 1.0,
    "guvectorize": lambda x: running(np.sin(x)) * 2.0,
    "methods of a ufunc": lambda x: np.add(x, 1.0) + ufunc_of_two.reduce(x),
    "objects": lambda x: objects(x).astype(float) + x,
    "several results": lambda x: both(x)[0] + both(x)[1][0] * both(x)[1][1] + both(x)[2],
    "lists of arrays": lambda x: in_list([x, x * 2.0]),
    "c": lambda x: of_c("cos")(x[0]) + x,
    "numbers": of_numbers,
    "stores": stores,
    "addresses": addresses,
    "loops": loops,
    "aliases": aliases,
    "sizes that depend on data": lambda x: large(x) * 2.0,
    "operands whose sizes depend on data": lambda x: one_more(x[x > 2]) * 2.0,
    "shapes": lambda x: one_more(np.outer(x, x).T)[0],
}

ufunc_of_two = np.frompyfunc(lambda a, b: a * 2 + b, 2, 1)


def in_list(arrays):
    return listed(tuple(arrays))


@numba.njit
def listed(arrays):
    return arrays[0] + arrays[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_call_them(name):
    program = PROGRAMS[name]
    captured = tm.tensor(program)
    for x in (np.arange(4.0), np.arange(4.0) + 1.5, np.arange(6.0) / 3, np.arange(4.0) - 1):
        expected = program(x)
        found = captured(x)
        assert np.array_equal(found, expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)


def test_each_call_is_an_effect():
    seen = []
    noting = np.frompyfunc(lambda v: seen.append(v) or v, 1, 1)

    @tm.tensor
    def helper(x):
        noting(x * 2.0)
        return x

    @tm.tensor
    def program(x):
        noting(x)
        helper(x)
        helper(x)
        return noting(x).astype(float) + 1.0

    for value in (1.0, 2.0, 3.0, 3.0):
        seen.clear()
        assert np.array_equal(program(np.array([value])), [value + 1.0])
        assert seen == [value, 2 * value, 2 * value, value]
    given = iter([1.0, 2, 3.0])  # of another type than before: called once all the same
    moving = np.frompyfunc(lambda v: (seen.append(v), next(given))[1], 1, 1)
    captured = tm.tensor(lambda x: moving(x) * 2)
    seen.clear()
    assert [captured(1.0), captured(2.0), captured(3.0), len(seen)] == [2.0, 4, 6.0, 3]


def test_derivatives_and_batches_are_refused_by_name():
    x = np.arange(4.0)
    with pytest.raises(DifferentiationError, match="the derivative of one_more, a function of Numba, is not known"):
        tm.grad(lambda x: one_more(x).sum())(x)
    known = tm.custom_gradient(lambda x: (one_more(x), lambda cotangent: cotangent * 3.0))
    assert np.array_equal(tm.grad(lambda x: (known(x) * x).sum())(x), one_more(x) + 3.0 * x)
    assert np.array_equal(tm.grad(lambda x: (one_more(2.0) * x).sum())(x), [3.0] * 4)
    for refused in (lambda: tm.vmap(one_more)(x), lambda: tm.trace(lambda x: one_more(x), "float64[n]")):
        with pytest.raises(CaptureError, match="one_more, a function of Numba, needs the values of its arguments"):
            refused()
    with pytest.raises(CaptureError, match="one_more, a function of Numba, is called in a data-dependent branch"):
        tm.tensor(lambda x: one_more(x) if x.sum() > 1 else x).graph(x)


def test_what_shares_memory_is_refused():
    x = np.arange(4.0)
    with pytest.raises(CaptureError, match="returns a part of an array that it is given"):
        tm.tensor(lambda x: tail(x)).graph(x)

    def overlapping(x):
        y = x * 1.0
        into(y[:2], y[1:])
        return y

    with pytest.raises(CaptureError, match="is a part of the same array"):
        tm.tensor(overlapping).graph(x)
    with pytest.raises(CaptureError, match="an array of Python objects"):
        tm.tensor(lambda x: objects(x) + 1.0).graph(x)
