"""Results of compiled functions are of Python's classes where these depend on data, and read-only where NumPy's are."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tensormagic as tm
from tensormagic.functions.compiled.saving import loaded, written
from tests.functions.same_as_python import described


def at_least_zero(x):
    return max(0, x.sum())


def of_a_branch(x):
    y = 1
    if x[0] > 0:
        y = x[0]
    return y


def in_a_list(x):
    r = x.sum()
    return [max(0, r), min(1.5, r), x * 2]


def computed_further(x):
    r = x.sum()
    return {"a": max(0, r) + 1, "b": (max(0, r) * 2.0, x)}


def of_a_loop(x):
    best = 0
    for v in x:
        best = max(best, v)
    return best, x[0]


def of_a_while_loop(x):
    r, k = 0, 0
    while k < len(x) and x[k] > 0:
        r += x[k]
        k += 1
    return r, k


def truth_or_number(x):
    return x.sum() if x.sum() > 0 else False


def whole_or_float(x):
    n = int(x.sum())
    return max(0.0, n), n


def narrow_or_wide(x):
    return np.float32(x[0]) if x[0] > 0 else 2


CLASSES = [
    at_least_zero,
    of_a_branch,
    in_a_list,
    computed_further,
    of_a_loop,
    of_a_while_loop,
    truth_or_number,
    whole_or_float,
    narrow_or_wide,
]
SIGNS = [np.array([1.0, 2.0, -0.5]), np.array([-1.0, -2.0, 0.5]), np.array([0.0, 0.0, 0.0]), np.array([3.0, -9.0, 2.0])]


def forms(function, *types):
    """A compiled function, and the same out of a file and a pickle."""
    made = tm.compile(function, *types)
    yield made
    yield loaded(written(made))


@pytest.mark.parametrize("function", CLASSES)
def test_numbers_are_of_the_class_that_data_decide(function):
    for made in forms(function, "float64[n]"):
        for x in [*SIGNS, *SIGNS]:
            given = x.copy()
            assert described([made(given)]) == described([function(x.copy())])


@pytest.mark.parametrize("function", CLASSES)
def test_the_graph_has_the_results_of_the_user(function, tmp_path):
    made = tm.compile(function, "float64[n]")
    made.save(tmp_path / "f.tm")
    found = tm.load(tmp_path / "f.tm")
    assert len(made.graph.results) == len(found.graph.results)
    for x in SIGNS:
        assert described([found(x)]) == described([function(x)])


def test_with_the_sizes_of_one_and_none():
    made = tm.compile(at_least_zero, "float64[n]")
    for x in (np.array([2.0]), np.array([-2.0]), np.array([])):
        assert described([made(x)]) == described([at_least_zero(x)])


def test_arrays_of_the_callers_hold_numbers_of_their_own_dtype():
    made, out = tm.compile(at_least_zero, "float64[n]"), np.array(5.0)
    assert made(SIGNS[1], out=out) is out
    assert out == 0.0
    made, arrays = tm.compile(in_a_list, "float64[n]"), (None, np.array(5.0), np.zeros(3))
    a, b, c = made(SIGNS[1], out=arrays)
    assert (type(a), b is arrays[1], c is arrays[2]) == (int, True, True)
    assert np.array_equal(c, SIGNS[1] * 2)


def test_a_library_of_c_has_the_results_of_the_user(tmp_path):
    made = tm.compile(in_a_list, "float64[n]").export_c(tmp_path, name="several")
    header = made.header.read_text()
    assert "out2" in header or "r2" in header
    assert "out3" not in header
    assert "r3" not in header
    if made.library is not None:
        symbols = subprocess.run(["nm", "-D", made.library], capture_output=True, text=True, check=False)
        assert "several" in symbols.stdout


FROZEN = {
    "a diagonal": lambda a: np.diag(a),
    "an upper diagonal": lambda a: np.diag(a, 1),
    "a diagonal of a sum": lambda a: np.diagonal(a + 1),
    "a broadcast": lambda a: np.broadcast_to(a[0] * 2, (4, 3)),
    "a broadcast number": lambda a: np.broadcast_to(a.sum(), (4,)),
    "windows": lambda a: sliding_window_view(a[0], 2),
    "an imaginary part of real numbers": lambda a: a.imag,
    "a part of a diagonal": lambda a: np.diag(a)[1:],
    "a diagonal as a column": lambda a: np.diag(a).reshape(-1, 1),
    "a turned broadcast": lambda a: np.broadcast_to(a[0], (3, 3)).T,
    "in a list": lambda a: [np.diag(a), a + 1],
    "in a dictionary": lambda a: {"d": a.diagonal(), "e": np.diag(a) * 1},
    "of a branch": lambda a: np.diag(a) if a.sum() > 0 else np.diag(a, 1),
    "no views": lambda a: (
        np.diag(a).copy(),
        np.diag(np.diag(a)),
        -np.diag(a),
        np.broadcast_to(a, (2, 3, 3)).reshape(6, 3),
    ),
}


def writable(value):
    if isinstance(value, np.ndarray):
        return value.flags.writeable
    return [*map(writable, value.values() if isinstance(value, dict) else value)]


@pytest.mark.parametrize("name", FROZEN)
def test_arrays_are_read_only_where_numpys_are(name):
    a, function = np.arange(9.0).reshape(3, 3), FROZEN[name]
    expected = function(a)
    for made in forms(function, "float64[3, 3]"):
        for _ in range(2):
            found = made(a)
            assert writable(found) == writable(expected)
            np.testing.assert_equal(found, expected)


def test_an_array_of_the_callers_stays_one_that_can_be_stored_into():
    made, out = tm.compile(lambda a: np.diag(a), "float64[3, 3]"), np.zeros(3)
    assert made(np.eye(3), out=out) is out
    out[0] = 7.0
    assert out[0] == 7.0


def test_what_a_compiled_function_gives_is_its_own():
    made, a = tm.compile(lambda a: (a, a[1:], a.T), "float64[3, 3]"), np.eye(3)
    for found in made(a):
        assert not np.shares_memory(found, a)
        found[...] = 9.0
    assert np.array_equal(a, np.eye(3))
