"""A new shape of what data choose: exact where the array is its own, or refused."""

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import cell, check
from tests.programs.growing import compiled


def test_a_new_shape_of_what_has_two_names_after_a_loop_is_refused():
    with pytest.raises(CaptureError, match="a new shape of an array that may be z"):
        cell("for j in k:\n    v = z = z + 0\nv.shape = -1\n", {"np": np, "z": np.ones((2, 3)), "k": np.arange(3)})


@pytest.mark.parametrize(
    "code",
    [
        "v = z if z.sum() > 0.5 else z + 1\nv.shape = -1\nz[1:] *= z[:-1]",
        "v = z\nif z.sum() > 0.5:\n    v = v.copy()\nv.shape = -1",
        "a = z + 1\nv = a\nif z.sum() > 0.5:\n    v = v * 2\nv.shape = -1\nb = a.shape",
        "a = z + 1\nv = a[0] if z.sum() > 0.5 else a[1]\nv.shape = (1, -1)",
    ],
)
def test_a_new_shape_of_what_data_choose_is_refused(code: str):
    with pytest.raises(CaptureError, match=r"may be (z|another array), depending on the data, is not"):
        cell(code, {"np": np, "z": np.ones((2, 3))})


def test_a_new_shape_of_what_data_compute_or_of_a_view():
    check("v = z * 2 if z.sum() > 0.5 else z + 1\nv.shape = -1\nv[0] = 7", z=np.ones((2, 3)))
    check("a = z + 1\nv = a if z.sum() > 0.5 else a * 2\nw = v[:]\nw.shape = -1\nw[0] = 9", z=np.ones((2, 3)))


def _reshaped_row(z: Any, s: Any) -> Any:
    v = z[0] if s <= 0 else z[1]
    w = v.reshape(-1)
    z[0] = 7
    return w


def _turned_row(z: Any, s: Any) -> Any:
    v = z[:1] if s <= 0 else z[1:]
    w = v.T.ravel()
    z[0] = 7
    return w


@pytest.mark.parametrize("f", [_reshaped_row, _turned_row])
@pytest.mark.parametrize("s", [-1.0, 1.0])
def test_a_new_shape_of_one_row_or_another_is_a_part_of_the_array(f: Any, s: float):
    given = np.arange(8.0).reshape(2, 2, 2)
    assert np.array_equal(tm.tensor(f)(given.copy(), s), f(given.copy(), s))


def _every_second(z: Any, s: Any) -> Any:
    v = z[::2] if s <= 0 else z[1::2]
    w = v.reshape(-1)
    z[0] = 7
    return w


def _may_be_unbound(z: Any, s: Any) -> Any:
    if s <= 0:
        v = z[0]
    w = v.reshape(-1)
    z[0] = 7
    return w


@pytest.mark.parametrize("f", [_every_second, _may_be_unbound])
def test_a_new_shape_of_what_data_choose_is_pythons(f: Any):
    """NumPy makes a view or a copy, and of what is data-dependent."""
    given = np.arange(16.0).reshape(4, 2, 2)
    with pytest.warns(tm.PlainRunWarning, match="may be a part of"):
        found = tm.tensor(f)(given.copy(), -1.0)
    assert np.array_equal(found, f(given, -1.0))


@pytest.mark.parametrize(
    "lines",
    [
        "p = v if v.sum() > s else v + 1\nv.shape = -1",
        "p = v\nif p.sum() > s:\n    pass\nelse:\n    p = p + 1\nv.shape = -1",
        "p = v if v.sum() > s else v + 1\np = p if v.max() > s else p * 2\nv.shape = -1",
        "w = v[1:]\np = w if v.sum() > s else w + 1\nw.shape = -1",
        "p = v\nfor _ in range(2):\n    p = v if p.sum() > s else p + 1\nv.shape = -1",
    ],
)
def test_a_new_shape_of_what_another_may_be_is_refused(lines: str):
    """The other name has the new shape where it is this array, which is data-dependent."""
    body = "".join(f"    {line}\n" for line in lines.split("\n"))
    space: dict[str, Any] = {"np": np}
    exec(compiled(f"def f(x, s):\n    v = x + 0\n{body}    return v, p\n", f"shape {hash(lines)}"), space)
    with pytest.raises(CaptureError, match="may be another array"):
        tm.tensor(space["f"]).graph(np.arange(6.0).reshape(2, 3), 2.0)


def test_a_new_shape_of_what_no_other_is_any_more():
    def program(x: Any, s: Any) -> Any:
        v = x + 0
        p = v if v.sum() > s else v + 1
        q = v[0] if v.sum() > s else v[1]
        p = p + 1
        v.shape = -1
        return v, p, q

    for s in (2.0, 20.0):
        x = np.arange(6.0).reshape(2, 3)
        for ours, theirs in zip(tm.tensor(program)(x, s), program(x, s), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)
