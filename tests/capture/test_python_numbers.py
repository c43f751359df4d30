"""Python's numbers where an array's dtype may not hold them, and numbers that are no arrays: NumPy's errors, on either tier."""

from __future__ import annotations

import copy
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import KINDS, assert_equal, check

SMALL = np.arange(3, dtype=np.uint8)


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a function gives, or the kind of its error."""
    try:
        return function(*copy.deepcopy(arguments))
    except KINDS as error:
        return next(k for k in KINDS if isinstance(error, k))


def alike(function: Callable[..., Any], *arguments: tuple[Any, ...]) -> None:
    """One captured function against NumPy, on several arguments after one another."""
    captured = tm.tensor(function)
    for given in arguments:
        expected, found = outcome(function, given), outcome(captured, given)
        if isinstance(expected, type) or isinstance(found, type):
            assert found is expected, (given, found, expected)
        else:
            assert_equal(found, expected, str(given))


def stored(x: Any, v: Any) -> Any:
    x = x.copy()
    x[0] = v
    return x


def stored_in_all(x: Any, v: Any) -> Any:
    x = x.copy()
    x[:0] = v
    return x


def stored_in_a_list(x: Any, v: Any) -> Any:
    x = x.copy()
    x[1:] = [v, 1]
    return x


def stored_by_mask(x: Any, v: Any) -> Any:
    x = x.copy()
    x[x > 9] = v
    return x


def put(x: Any, v: Any) -> Any:
    x = x.copy()
    np.put(x, [0], v)
    np.fill_diagonal(x[None], v)
    return x


def made(x: Any, v: Any) -> Any:
    return np.array([v, 1], x.dtype) + np.asarray(v, x.dtype)


@pytest.mark.parametrize("function", [stored, stored_in_all, stored_in_a_list, stored_by_mask, put, made])
def test_a_float_that_integers_do_not_hold(function: Callable[..., Any], tier: str):
    alike(function, *((SMALL, v) for v in (3.5, -2.0, 300.0, -0.5, 255.9, 256.0, np.nan, np.inf)))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
def test_a_float_at_the_ends_of_integers(dtype: Any, tier: str):
    ends = np.iinfo(dtype)
    numbers = (0.0, float(ends.min), float(ends.max), float(ends.max) * 0.75, -1.0, np.nan, -np.inf)
    alike(stored, *((np.zeros(2, dtype), v) for v in numbers))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: stored(x, int(y[0])),
        lambda x, y: stored_in_a_list(x, int(y[0])),
        lambda x, y: x + int(y[0]),
        lambda x, y: x[1] * int(y[0]),
        lambda x, y: x & int(y[0]),
        lambda x, y: np.full(2, int(y[0]), x.dtype),
        lambda x, y: made(x, int(y[0])),
        lambda x, y: np.clip(x, int(y[0]), None),
        lambda x, y: np.clip(x, None, int(y[0])),
        lambda x, y: np.where(x == 0, int(y[0]), x),
        lambda x, y: np.pad(x, 1, constant_values=int(y[0])),
        lambda x, y: x < int(y[0]),
    ],
)
def test_an_integer_of_data_that_does_not_fit(function: Callable[..., Any], tier: str):
    alike(function, *((SMALL, np.array([v])) for v in (5, 300, -2, 255)))


def test_the_index_of_a_loop_that_does_not_fit(tier: str):
    def filled(x: Any, n: int) -> Any:
        x = x.copy()
        for i in range(n):
            x[i % 3] = i * 20
        return x

    alike(filled, (SMALL, 4), (SMALL, 12), (SMALL, 14))


def test_rows_of_a_list_that_data_say_how_often_it_grows(tier: str):
    def listed(x: Any, y: Any) -> Any:
        x = x.copy()
        x[...] = [int(v) for v in y[y < 1000]]
        return x

    alike(listed, (SMALL, np.array([1, 2, 3])), (SMALL, np.array([1, 300, 3])))


def test_a_bound_of_clip_beyond_the_dtype():
    check("a = np.clip(x, -2, 300)\nb = x.clip(-2)", x=SMALL)
    check("np.clip(x, 300, None)", x=SMALL)
    check("np.clip(x, None, -1)", x=SMALL)


@pytest.mark.parametrize("text", ["'a'", "'3.5'", "['1', '2']"])
@pytest.mark.parametrize("dtype", [float, int])
def test_a_text_is_read_as_a_number(text: str, dtype: Any):
    check(f"x[:2] = {text}", x=np.zeros(3, dtype))


@pytest.mark.parametrize(
    "source",
    [
        "for r in x: pass\nv = r.ravel()\nnp.maximum.at(v, [0], 9.0)\nq = r + 0",
        "r = x[1]\nv = r.reshape(1, 1)\nv[0] = 9",
        "r = x.sum()\nv = np.ravel(r)\nv[0] = 9\nw = r[None]\nw[0] = 8\nu = np.atleast_2d(r)\nu[0] = 7",
        "r = x[0]\nv = r[...]\nv[...] = 4\nr.flat[0] = 5",
        "for r in x:\n    v = r.ravel()\n    v[0] = 3\n    x[0] = r\nq = r + 1",
    ],
)
def test_what_is_made_of_a_number_is_a_copy(source: str):
    check(source, x=np.arange(3.0))


PARTS = np.array([1j, 2 + 3j, complex(np.inf, 1), complex(-0.0, -0.0)])


@pytest.mark.parametrize("z", [PARTS, PARTS.astype(np.complex64), np.array(1 + 2j)], ids=["128", "64", "0-d"])
@pytest.mark.parametrize(
    "source",
    ["z.imag[...] = np.inf", "z.real[...] = np.nan", "z.imag = -0.0", "z.real = np.inf\nz.imag = np.nan"],
)
def test_a_part_of_complex_numbers_leaves_the_other_as_it_is(z: Any, source: str):
    check(f"{source}\na = z.real + 0\nb = z.imag + 0\nc = np.nan_to_num(z)\nd = np.round(z, 2)", z=z)


def test_the_gradient_of_parts():
    def size(z: Any, y: Any) -> Any:
        z = z.copy()
        z.imag = y
        return (z.real * z.imag * z.imag).sum()

    z, y = np.array([2 + 3j, 1j - 4]), np.array([2.0, 3.0])
    by_z, by_y = tm.grad(size, (0, 1))(z, y)
    np.testing.assert_allclose(by_z, y**2, rtol=1e-12)
    np.testing.assert_allclose(by_y, 2 * z.real * y, rtol=1e-12)


@pytest.mark.parametrize(
    "source",
    [
        "np.diagonal(x)",
        "x.diagonal(1)",
        "np.diag(x, -1)",
        "np.einsum('ii->i', x)",
        "np.diagonal(x[:, :2])",
        "x[:0].diagonal()",
    ],
)
def test_a_diagonal_keeps_the_sign_of_zeros(source: str, tier: str):
    check(f"a = {source}", x=np.where(np.eye(3), -0.0, 1.0) - np.eye(3, k=1))


def test_diagonals_of_stacks():
    x = -np.arange(-12.0, 12.0).reshape(2, 3, 4)
    check(
        "a = np.diagonal(x)\nb = x.diagonal(1, 1, 2)\nc = x.diagonal(-1, 2, 0)\nd = np.einsum('iij->ji', x[:, :2])", x=x
    )
    check("a = np.einsum('iii->i', x)", x=-np.zeros((2, 2, 2)))


def one_of_some(y: Any, x: Any, t: float) -> Any:
    y = y.copy()
    y[1:] = x[x > t]
    return y


def test_one_element_that_data_choose_is_stretched_in_a_store(tier: str):
    def picked(y: Any, x: Any, t: float) -> Any:
        y = y.copy()
        y[[0, 1]] = x[x > t]
        return y

    arguments = [(np.zeros(3), np.arange(5.0), t) for t in (3.0, 2.0, 1.0, 9.0)]
    alike(one_of_some, *arguments)
    alike(picked, *arguments)


@pytest.mark.parametrize(("t", "expected"), [(3.0, [0, 0, 0, 0, 16]), (2.0, [0, 0, 0, 6, 8])])
def test_the_gradient_of_what_is_stretched(t: float, expected: list[int]):
    found = tm.grad(lambda x: (one_of_some(np.zeros(3), x, t) ** 2).sum())(np.arange(5.0))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64, float])
@pytest.mark.parametrize(
    "source", ["e ** s", "s ** e", "pow(e, 1.5)", "1.5 ** e", "np.power(e, s)", "np.asarray(e) ** s", "e **= s\ne"]
)
def test_powers_of_numbers_round_as_numpy_s_do(kind, source: str):
    for k in range(12):
        check(source, e=kind(0.37 + k * 0.61), s=kind(1.7 - k / 9))


@pytest.mark.parametrize("kind", [np.complex64, np.complex128, complex])
def test_absolute_values_of_complex_numbers_round_as_numpy_s_do(kind):
    for k in range(12):
        check(
            "v = np.array([abs(e) for _ in range(3)])\nabs(e), np.abs(e), np.abs(np.array([e, e])), v",
            e=kind(0.37 + k * 0.61 + 1.3j),
        )


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16", "?"])
@pytest.mark.parametrize(
    "source", ["1j + y[1]", "1j - y[1]", "1j * y[1]", "1j / y[0]", "1j ** y[0]", "(1j * y[0]) * z", "divmod(5.0, y[0])"]
)
def test_a_python_number_before_one_of_numpy_s(source: str, dtype: str):
    check(source, y=np.array([1, 0, 2]).astype(dtype), z=np.ones(2, np.complex64))


CHOSEN = "v = 1 if x[0] > 0 else 1.5\n"


@pytest.mark.parametrize(
    ("array", "make", "refused"),
    [
        ("np.array([v, 2])", lambda v: np.array([v, 2]), False),
        ("np.stack([v, 2])", lambda v: np.stack([v, 2]), True),
        ("np.array([v, v]).reshape(2, 1)", lambda v: np.array([v, v]).reshape(2, 1), False),
    ],
)
def test_a_float_is_stored_into_an_array_that_may_hold_integers_as_python_stores_it(
    array: str, make: Any, refused: bool
):
    """NumPy would cut it, depending on the data: a cell asks which it is, a function leaves one case to Python or refuses both."""
    source = f"{CHOSEN}y = {array}\ny[0] = 0.5\nz = y + 0"
    for x in (2.0, -2.0):
        check(source, x=np.array([x]))

    def stores(x):
        v = 1 if x[0] > 0 else 1.5
        y = make(v)
        y[0] = 0.5
        return y + 0

    if not refused:
        f = tm.tensor(stores)
        for x in (2.0, -2.0, 2.0):
            np.testing.assert_array_equal(f(np.array([x])), stores(np.array([x])), strict=True)
        return
    with pytest.raises(
        CaptureError,
        match=r"float64 or Python's int64, depending on the data, and with it this is float64\[2\] or int64\[2\]",
    ):
        tm.tensor(stores).graph(np.array([2.0]))


@pytest.mark.parametrize(
    "rest", ["np.array([v, 2])\ny[0] = 7", "np.array([v, 2.5])\ny[0] = 0.5", "np.ones(2) * v\ny[0] = 0.5"]
)
def test_what_either_array_holds_is_stored(rest: str):
    for x in (2.0, -2.0):
        check(f"{CHOSEN}y = {rest}\nz = y * 1.0\ndel v, y", x=np.array([x]))


@pytest.mark.parametrize("array", ["np.stack(found)", "np.array(found)", "np.array(found)[::-1]"])
def test_a_list_that_grows_may_hold_integers_alone(array: str):
    """A data-dependent number of values, each an integer or a float: NumPy truncates what is stored into an array of integers."""
    source = f"found = []\nfor i in range(k[0]):\n    found.append(max(s, 1))\ny = {array}\n"
    function = f"def f(k, s):\n{textwrap.indent(source, '    ')}    y[0] += s\n    return y\n"
    space: dict[str, Any] = {"np": np}
    linecache.cache["<grown>"] = (len(function), None, function.splitlines(keepends=True), "<grown>")
    exec(compile(function, "<grown>", "exec"), space)
    assert space["f"](np.array([2]), 0.5).dtype == int
    with pytest.raises(CaptureError, match="is int64 or float64, depending on the data"):
        tm.tensor(space["f"]).graph(np.array([2]), 0.5)


@pytest.mark.parametrize("stores", [lambda x, n: x + n, lambda x, n: stored(x, n), lambda x, n: np.int8(n) + x])
def test_the_message_names_the_number_as_numpys_does(
    stores: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tm.config, "tier", "numpy")
    captured = tm.tensor(lambda x, y: stores(x, int(y[0])))
    for number in (300, -2000, 70000):
        with pytest.raises(OverflowError) as numpys:
            stores(SMALL, number)
        with pytest.raises(OverflowError) as own:
            captured(SMALL, np.array([float(number)]))
        assert str(own.value).splitlines()[0] == str(numpys.value)
