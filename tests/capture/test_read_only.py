"""Arrays that branches and loops give are read-only where NumPy's are; where that is data-dependent, a store is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tensormagic.ir.errors import CaptureError
from tests.capture.harness import captured, check

X = np.arange(6.0).reshape(2, 3)
READ_ONLY = {
    "of a loop": "for i in range(k[0]):\n    v = np.broadcast_to(i, (2,))\nv[0] = 5",
    "of a fixed loop": "for i in range(3):\n    v = np.broadcast_to(i, (2,))\nv[0] = 5",
    "of both ways": (
        "if x[0, 0] < 1:\n    v = np.broadcast_to(x[0, 0], (2,))\nelse:\n    v = np.broadcast_to(x[0, 1], (2,))\nv[0] = 5"
    ),
    "before and after an iteration": "w = np.broadcast_to(x[0, 0], (2,))\nfor i in range(k[0]):\n    w = w.T\nw[0] = 4",
    "in a later iteration": "v = np.ones(2)\nfor i in range(k[0]):\n    v[0] = 3\n    v = np.broadcast_to(v, (2,))",
    "of NumPy's own in a loop": "for i in range(2):\n    v = np.broadcast_to(3, (2,))\n    if x[0, 0] > 4:\n        break\nv[0] = 5",
    "of NumPy's own on both ways": (
        "if x[0, 0] > 4:\n    v = np.broadcast_to(3, (2,))\nelse:\n    v = np.broadcast_to(4, (2,))\nv[0] = 5"
    ),
    "a diagonal": "for i in range(k[0]):\n    u = np.diagonal(x)\nu[0] = 4",
}
EITHER = {
    "of one way": "if x[0, 0] < 1:\n    v = np.broadcast_to(x[0, 0], (2,))\nelse:\n    v = np.ones(2)\nv[0] = 5",
    "of an expression": "v = np.broadcast_to(x[0, 0], (2,)) if x[0, 0] < 1 else np.ones(2)\nv[0] = 5",
    "of a function": (
        "def f(a):\n    if a.sum() > 100:\n        return np.ones(3)\n    return np.broadcast_to(a[0, 0], (3,))\n"
        "v = f(x)\nv[0] = 5"
    ),
    "an argument, or not": "v = x\nif x[0, 0] < 1:\n    v = np.broadcast_to(x[0, 0], (2, 3))\nv[0] = 5",
}


@pytest.mark.parametrize("name", READ_ONLY)
def test_a_store_is_the_error_of_numpy(name: str):
    check(READ_ONLY[name], x=X, k=np.array([2]))


def test_a_loop_that_does_not_store_twice():
    for iterations in (0, 1):
        check(READ_ONLY["in a later iteration"], x=X, k=np.array([iterations]))


def test_sums_into_places_of_read_only_arrays_which_numpy_stores_into():
    check("y = np.broadcast_to(2, (2,))\nfor row in x:\n    np.add.at(y, [0], 1)\nz = y + 0", x=X)


@pytest.mark.parametrize("name", EITHER)
def test_a_store_is_refused_where_data_decide(name: str):
    error = captured(EITHER[name], {"x": X.copy(), "np": np}).error
    assert isinstance(error, CaptureError)
    assert "may be read-only, depending on the data" in str(error)
    assert "__tensor" not in str(error)


def test_what_a_loop_gives_may_have_gaps_and_is_then_flattened_into_a_copy():
    error = captured(
        "for i in k:\n    y = np.broadcast_to(z, (2, 3))\nv = y.ravel()\nv[0] = 2",
        {"k": np.arange(3), "z": X[0].copy(), "np": np},
    ).error
    assert isinstance(error, CaptureError)
    check("for i in k:\n    y = x + i\nv = y.ravel()\nv[0] = 2", x=X, k=np.arange(3))


def test_the_shape_of_a_value_that_is_stored_over_does_not_hang_on_a_size_that_data_decide():
    source = "for i in reversed(range(k[0])):\n    v = np.maximum(y[i:1], x)\nv[...] = 2\ni = 0"
    check(source, x=np.ones((2, 2)), y=np.array([0.0, 2.0]), k=np.array([1]))


def test_a_part_that_both_ways_bind_is_flattened_into_a_copy():
    x = np.arange(8.0).reshape(4, 2)
    w = x[:, :1]
    source = "for t in range(2):\n    if x.ravel()[t] >= 0:\n        v = w[None]\n    a = v[::2].ravel()\nx[3] = 77"
    check(source, x=x, w=w)


@pytest.mark.parametrize("start", [0, 1])
def test_a_reshape_of_what_is_stretched_to_a_size_that_data_say_is_refused(start: int):
    """A view, which cannot be stored into, where the size is 0; else a copy."""
    code = "v = np.broadcast_to(x[k[0]:], (2, *np.shape(x[k[0]:])))\nw = v.reshape(-1)\nw[0] = 3"
    error = captured(code, {"x": np.ones((1, 3)), "k": np.array([start]), "np": np}).error
    assert isinstance(error, CaptureError)


@pytest.mark.parametrize("flat", ["v[::2].ravel()", "np.ravel(v[::2])", "np.ascontiguousarray(v[::2])"])
@pytest.mark.parametrize("stop", [1, 3])
def test_what_may_be_one_row_is_a_view_or_a_copy_as_data_say(flat: str, stop: int):
    code = f"v = x[:k[0], :]\nz = {flat}\nz[0] = 9"
    error = captured(code, {"x": np.ones((4, 3)), "k": np.array([stop]), "np": np}).error
    assert isinstance(error, CaptureError)
