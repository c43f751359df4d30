"""Arrays that NumPy itself makes while code is captured: a store of what is not known yet is refused, wherever it stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check


def store_in_a_branch(x, flag):
    v = np.reshape(flag, (-1,))
    if x.sum() > 3:
        v[0] = x[0, 0]
    return v


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_a_store_in_a_branch_is_no_error_of_the_users(value: float):
    with pytest.raises(
        CaptureError,
        match="stores into an array that is neither an argument of the function nor a variable that it reads",
    ):
        tm.tensor(store_in_a_branch).graph(np.full((4, 2), value), True)


def test_a_store_in_a_loop_of_a_varying_number_of_iterations():
    def stored(x, flag):
        for i in range(2):
            for _ in range(i, x.shape[-1]):
                v = np.reshape(flag, (-1,))
                v[0] = i
            x = x * 2
        return v, x

    for left, right in zip(tm.tensor(stored)(np.ones((4, 2)), True), stored(np.ones((4, 2)), True), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_store_of_a_single_element_of_flat_is_refused():
    def stored(x, flag):
        v = np.reshape(flag, (-1,))
        v.flat[0] = x[0]
        return v

    with pytest.raises(CaptureError, match="passes a lazy value to NumPy's own code") as caught:
        tm.tensor(stored).graph(np.ones(2), True)
    assert "v.flat[0] = x[0]" in str(caught.traceback[-1].statement)


def test_a_number_of_a_dtype_that_data_choose_has_its_own_in_a_cell():
    source = "v = x.copy()\ntry:\n    v += max(e, 1)\nexcept TypeError:\n    v[0] = 9"
    check(source, x=np.arange(3, dtype=np.int8), e=np.float64(0.5))
    check(source, x=np.arange(3, dtype=np.int8), e=np.float64(1.5))
    check(source.replace("max(e, 1)", "e"), x=np.arange(3, dtype=np.int8), e=np.float64(0.5))


def test_a_part_of_one_that_one_way_binds():
    def stored(y, n):
        x = np.cumsum(n)
        if y[0] < 3:
            v = x[::-1]
        v[...] = v * n
        return v, x

    with pytest.raises(
        CaptureError, match="v is one array or another depending on data, and one of them is not captured"
    ):
        tm.tensor(stored).graph(np.array([2]), 3)


@pytest.mark.parametrize("line", ["v = clipped(flag)", "flag[flag > 2] = 2", "flag += 1", "s[0, 0] = 5"])
def test_a_part_of_one_that_takes_the_place_of_a_name_of_the_notebook(line: str):
    """What a name of the notebook was before does not make the cell's own array one of the notebook's."""

    def clipped(p: Any, q: Any = 2) -> Any:
        if p.sum() > q:
            p[p > q] = q
        return p

    source = f"if z.sum() > 2:\n    flag = np.stack([[7, 7]] * 3)\ns = flag[None, :]\n{line}\nt = s + flag"
    check(source, z=np.arange(6.0), flag=True, clipped=clipped)


MAKERS = {
    "empty_like": "np.empty_like(v, dtype={d})",
    "zeros_like": "np.zeros_like(v, dtype={d})",
    "ones_like": "np.ones_like(v, {d}, shape=(2, 3))",
    "full_like": "np.full_like(v, 1, dtype={d})",
    "full": "np.full((2, 2), 3, {d})",
    "zeros": "np.zeros(4, {d})",
    "ones": "np.ones((1, 2), dtype={d})",
}
OTHERS = [
    "object",
    "np.ndarray",
    "list",
    "'U5'",
    "'S3'",
    "'>f8'",
    "'M8[s]'",
    "'m8[D]'",
    "np.longdouble",
    "float",
    "'i2'",
]


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("maker", MAKERS)
def test_new_arrays_of_any_dtype(maker, kind):
    unset = "\ndel q" if maker == "empty_like" else ""
    check(f"v = x * 2\nq = {MAKERS[maker].format(d=kind)}\nkind, shape = q.dtype.str, q.shape{unset}", x=np.arange(3.0))


def test_arrays_are_elements_of_new_ones_like_others():
    check(
        "v = x * 2\nq = np.empty_like(v, dtype=np.ndarray)\nfor j in range(3):\n    q[j] = np.zeros([j + 1, 2]) + v[j]\n"
        "s = [p.sum() for p in q]\ndel q",
        x=np.arange(3.0),
    )
