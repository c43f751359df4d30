"""Functions that know arrays and numbers alone, Numba's and those of C: values in cells, refusals by name where there are none."""

import ctypes
import ctypes.util
import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

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
        assert isinstance(notebook(f"%%tensor -q\n{text}").error, CaptureError)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_a_function_they_are_refused_by_name(name):
    function, cosine = FUNCTIONS[name], of_c("cos")
    with pytest.raises(CaptureError, match=f"{name}, a function of Numba, needs the value"):
        tm.tensor(lambda x: function(x * 2.0))(np.arange(4.0))
    with pytest.raises(CaptureError, match="cos, a function of C, needs the value"):
        tm.tensor(lambda x: cosine(x.sum()))(np.arange(4.0))
