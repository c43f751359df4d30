"""Functions that know arrays and numbers alone, Numba's and those of C: values in cells, refusals by name where there are none."""

import ctypes
import ctypes.util

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


def test_what_such_a_function_stores_is_refused(notebook):
    notebook.shell.push({"seven_first": seven_first, "x": np.arange(4.0)})
    ran = notebook("%%tensor -q\ny = x * 1.0\nseven_first(y)\ny")
    assert isinstance(ran.error, CaptureError)
    assert "seven_first, a function of Numba, stores into a captured array" in str(ran.error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_a_function_they_are_refused_by_name(name):
    function, cosine = FUNCTIONS[name], of_c("cos")
    with pytest.raises(CaptureError, match=f"{name}, a function of Numba, needs the value"):
        tm.tensor(lambda x: function(x * 2.0))(np.arange(4.0))
    with pytest.raises(CaptureError, match="cos, a function of C, needs the value"):
        tm.tensor(lambda x: cosine(x.sum()))(np.arange(4.0))
