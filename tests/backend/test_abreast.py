"""Products of matrices with vectors, several rows at once: NumPy's numbers, the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cpu.rows import part_room, share_rows, tile_rows
from tensormagic.backend.printing.several_rows_text import ABREAST, FEW, WIDE

pytestmark = pytest.mark.usefixtures("on_two_threads")


def one(a, x, y):
    return a @ x


def of_columns(a, x, y):
    return y @ a


def both(a, x, y):
    return y @ a, a @ x


def one_after_another(a, x, y):
    return (a @ x) @ a


def two_vectors(a, x, y):
    return a @ x + 2 * (a @ (x * x)) - y


def scaled(a, x, y):
    return 1.5 * a @ x + y * (a * a @ x)


def transposed(a, x, y):
    return y @ a[::-1], a.T @ y


def stored(a, x, y):
    x, y = x.copy(), y.copy()
    y += a @ x
    x[1:] += (y @ a)[:-1]
    return x, y


def repeated(a, x, y):
    for _ in range(5):
        x = y @ a
        x = x / np.sqrt(np.sum(x * x))
        y = a @ x
    return x, y


def chosen(a, x, y):
    if np.sum(x) > 0:
        return a @ x
    return a @ x - y


FUNCTIONS = (one, of_columns, both, one_after_another, two_vectors, scaled, transposed, stored, repeated, chosen)
SHAPES = (
    (ABREAST, WIDE),
    (2 * ABREAST + 3, WIDE + 1),
    (601, 2 * WIDE),
    (2, 3 * WIDE),
    (9, WIDE - 1),
    (700, 5),
    (0, WIDE),
)


def arrays(rows, columns, dtype=np.float64):
    rng = np.random.default_rng(rows + columns)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in ((rows, columns), columns, rows))


def close(found, expected, rtol=1e-9):
    found, expected = (v if isinstance(v, tuple) else (v,) for v in (found, expected))
    for one_of_them, other in zip(found, expected, strict=True):
        assert one_of_them.dtype == other.dtype
        most = np.max(np.abs(other), initial=1e-300)
        np.testing.assert_allclose(one_of_them, other, rtol=rtol, atol=rtol * most)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers_are_numpys(function):
    captured = tm.tensor(function)
    for shape in SHAPES:
        if function is repeated and 0 in shape:
            continue
        given = arrays(*shape)
        close(captured(*given), function(*given))


@pytest.mark.parametrize("function", [one, both, one_after_another])
def test_of_32_bits(function):
    given = arrays(13, WIDE + 7, np.float32)
    close(tm.tensor(function)(*given), function(*given), 1e-4)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_bit_depends_on_threads(function):
    given, found = arrays(1203, WIDE + 3), set()
    captured = tm.tensor(function)
    for count in (1, 2, 3):
        with tm.config.using(threads=count):
            result = captured(*given)
            found.add(b"".join(v.tobytes() for v in (result if isinstance(result, tuple) else (result,))))
    assert len(found) == 1


@pytest.mark.parametrize("function", [one, both, one_after_another, two_vectors])
def test_gradients(function):
    def loss(a, x, y):
        result = function(a, x, y)
        return sum(np.sum(r * r) for r in (result if isinstance(result, tuple) else (result,)))

    given = arrays(7, WIDE + 2)
    with tm.config.using(tier="numpy"):
        expected = tm.grad(loss)(*given)
    close((tm.grad(loss)(*given),), (expected,))


def test_the_text_has_rows_side_by_side_where_they_are_wide():
    given = arrays(9, 2 * WIDE)
    assert "for i in range(start, even" in str(tm.compile(both, *given).code)
    assert "even" not in str(tm.compile(lambda a, x: np.sum(a * x, axis=1), *given[:2]).code)
    assert "even" not in str(tm.compile(one, f"float64[n, {WIDE // 2}]", f"float64[{WIDE // 2}]", "float64[n]").code)


def test_there_is_room_for_what_shares_add_up():
    rng = np.random.default_rng(0)
    for _ in range(20_000):
        rows, width = (int(2 ** rng.uniform(0, 24)) for _ in range(2))
        step = tile_rows(width)
        share = share_rows(rows, ABREAST if step < FEW else step, width, width)
        assert part_room(rows, width, width, 1) >= -(-rows // share) - 1
