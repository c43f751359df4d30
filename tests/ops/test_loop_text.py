"""Loops as Python text: the interpreter's values bit for bit, its errors, and no array of anybody else's stored into."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ops.regions import loops
from tests.programs import test_programs
from tests.programs.program import PROGRAMS, Program

NEVER = 10**9


@pytest.fixture
def by(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Say how many iterations are interpreted."""
    monkeypatch.setattr(tm.config, "tier", "numpy")

    def choose(few: int) -> None:
        loops._runs.clear()
        monkeypatch.setattr(loops, "FEW", few)

    yield choose
    loops._runs.clear()


def both(choose: Callable[[int], None], function: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """What a captured function gives interpreted, and as text."""
    captured = tm.tensor(function)
    choose(NEVER)
    interpreted = captured(*copy.deepcopy(args))
    choose(0)
    return interpreted, captured(*copy.deepcopy(args))


def bits(values: Any) -> list[tuple[Any, ...]]:
    """Types, shapes and bytes."""
    return [(type(v), np.asarray(v).dtype, np.shape(v), np.asarray(v).tobytes()) for v in values if v is not None]


@pytest.mark.share(3)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda p: p.name)
def test_programs_bit_for_bit(program: Program, by: Callable[[int], None]) -> None:
    arguments = program.make(program.small + 2)
    captured = tm.tensor(program.function)
    with np.errstate(all="ignore"):
        by(NEVER)
        interpreted = bits(test_programs.run(captured, arguments))
        by(0)
        assert bits(test_programs.run(captured, arguments)) == interpreted


@pytest.mark.share(4)
@pytest.mark.parametrize("program", [p for p in PROGRAMS.values() if p.derivative], ids=lambda p: p.name)
def test_gradients_bit_for_bit(program: Program, by: Callable[[int], None]) -> None:
    arguments = program.make(program.small)
    where = program.derivative

    def loss(*moving: Any) -> Any:
        given = [v.copy() if isinstance(v, np.ndarray) else v for v in arguments]
        for k, value in zip(where, moving, strict=True):
            given[k] = value.copy()
        result = program.function(*given)
        return sum(
            np.sum(np.real(np.sin(v))) for v in (result if isinstance(result, tuple) else (result,)) if v is not None
        )

    moving = [arguments[k] for k in where]
    if program.function(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments)) is None:
        pytest.skip("it stores its result into an argument")
    gradient = tm.grad(loss, tuple(range(len(where))))
    by(NEVER)
    interpreted = bits(gradient(*moving))
    by(0)
    assert bits(gradient(*moving)) == interpreted


def test_what_is_read_again_is_not_stored_into(by: Callable[[int], None]) -> None:
    def f(x: Any, w: Any) -> Any:
        total = np.zeros_like(x)
        for _ in range(12):
            y = w
            y = y.copy()
            y[1:] = x[:-1]  # into a copy: w is the same at each iteration
            total = total + y + w
            x[::2] *= 0.5
        return total, w

    x, w = np.arange(6.0), np.ones(6)
    expected = f(x.copy(), w.copy())
    for found in both(by, f, x, w):
        assert bits(found) == bits(expected)


def test_a_branch_and_a_loop_inside(by: Callable[[int], None]) -> None:
    def f(x: Any) -> Any:
        k, s = 0, 0.0
        while s < 5.0:
            for i in range(3):
                x[i] = x[i] + s if x[i] > 0.2 else -x[i] + 0.1
            s = s + x[k % 3] if x.sum() > 2 else s + 0.5
            k += 1
        return x, s, k

    x = np.array([0.1, -0.5, 0.3])
    expected = f(x.copy())
    interpreted, text = both(by, f, x)
    assert bits(interpreted) == bits(text)
    np.testing.assert_allclose(np.hstack(text), np.hstack(expected), rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x, i: [x := np.append(x[1:], x[i + k]) for k in range(20)][-1], IndexError),
        (lambda x, i: [x := x * (1 // (i - k)) for k in range(20)][-1], ZeroDivisionError),
    ],
)
def test_errors_are_the_same(function: Callable[..., Any], error: type[Exception], by: Callable[[int], None]) -> None:
    captured = tm.tensor(function)
    told: list[str] = []
    for few in (NEVER, 0):
        by(few)
        with pytest.raises(error) as caught:
            captured(np.arange(5.0), 2)
        told.append(str(caught.value).splitlines()[0])
    assert told[0] == told[1]


def test_sizes_that_do_not_fit_are_errors(by: Callable[[int], None]) -> None:
    def f(x: Any, n: int) -> Any:
        for k in range(15):
            x[: n - k] += np.ones(n)[k:]
        return x

    by(0)
    captured = tm.tensor(f)
    np.testing.assert_array_equal(captured(np.zeros(20), 18), f(np.zeros(20), 18))
    with pytest.raises(ValueError, match=r"broadcast|fit"):
        captured(np.zeros(10), 18)


def test_floating_point_errors_are_told_at_their_line(by: Callable[[int], None]) -> None:
    def f(x: Any) -> Any:
        for _ in range(12):
            x = x / (x - 1.0)
        return x

    by(0)
    captured = tm.tensor(f)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        captured(np.array([2.0, 1.0]))
    with warnings.catch_warnings(action="error"):
        assert np.isfinite(captured(np.array([3.0, 2.5]))).all()


def test_integers_wrap_as_they_do_elsewhere(by: Callable[[int], None]) -> None:
    def f(n: Any, count: int) -> Any:
        for _ in range(count):
            n = n * 6364136223846793005 + 1442695040888963407
        return n

    with np.errstate(over="ignore"):
        interpreted, text = both(by, f, np.int64(3), 40)
    assert bits([interpreted]) == bits([text])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint64, np.int64, "python"])
def test_bits_are_moved_and_asked_as_in_python(dtype: Any, by: Callable[[int], None]) -> None:
    kind = int if dtype == "python" else dtype

    def moved(x: Any, first: Any) -> Any:
        number, odd, found = first, 0, np.zeros((x.shape[0], 5), x.dtype)
        for k in range(x.shape[0]):
            value = number if dtype == "python" else x[k]
            found[k, 0] = value >> 1
            found[k, 1] = value << 3
            found[k, 2] = value >> 7
            found[k, 3] = (value & 6) + (x[k] & 1)
            found[k, 4] = value << 0
            if (value & 1) ^ (odd & 1):
                odd = odd + 1
            number = number - 3
            if x[k]:
                number = (number >> 1) ^ 0x8408
        return found, odd, number

    info = np.iinfo(np.int64 if kind is int else kind)
    ends = [info.max, info.min, 0, 1, 2, 127 if info.min else 254, info.max // 3]
    x = np.array([*ends, *ends], np.int64 if kind is int else kind)
    interpreted, text = both(by, moved, x, 0xFFFF)
    with np.errstate(all="ignore"):
        assert bits(text) == bits(interpreted) == bits(moved(x.copy(), 0xFFFF))


def test_elements_that_change_places(by: Callable[[int], None]) -> None:
    def changed(x: Any, y: Any, z: Any) -> Any:
        for i in range(x.shape[0] - 1):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
            y[i, 1] = y[i + 1, 0]
            y[i, 0], y[0, i + 1] = y[0, i + 1], y[i, 0]
            z[i] = x[i + 1]
            z[i + 1] += x[i]
            z[i : i + 1] = z[i + 1 : i + 2]
            x[i + 1 : i + 2] += x[i : i + 1]
        return x, y, z

    x = np.array([3.5, -0.0, 0.0, np.inf, -7.25, 2.0])
    arguments = x, np.arange(36.0).reshape(6, 6)[::-1], np.arange(6)
    for given in (arguments, (x.astype(np.float32), np.asfortranarray(arguments[1]), np.arange(6, dtype=float))):
        interpreted, text = both(by, changed, *given[:2], given[2].astype(float))
        plain = copy.deepcopy((*given[:2], given[2].astype(float)))
        assert bits(text) == bits(interpreted) == bits(changed(*plain))


def test_what_a_number_may_be_is_asked_as_numpy_asks(by: Callable[[int], None]) -> None:
    def moved(table: Any, x: Any) -> Any:
        total = 0.0
        for k in range(x.shape[0]):
            total += table[x[k] & 7]
        return total

    x = np.array([1, -1, 255, 8, -(2**63), 2**63 - 1])
    interpreted, text = both(by, moved, np.arange(8.0), x)
    assert text == interpreted == moved(np.arange(8.0), x)
    for few in (NEVER, 0):
        by(few)
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
            tm.tensor(moved)(np.arange(5.0), x)


@pytest.mark.parametrize("size", [7, 6000])  # arrays of the second are stored into, where nothing else has them
def test_memory_is_taken_over_from_what_nothing_else_has(size: int, by: Callable[[int], None]) -> None:
    def kept(x: Any, w: Any) -> Any:
        views, total, before = [], np.zeros_like(x), x
        for _ in range(6):
            y = x * w
            view = y[::-1]  # holds y, which nothing names at the next product
            z = y + w
            x = z - before
            same = x
            x = x * 0.5
            views.append(view)
            before = z
            total = total + same + view
        return total, x, before, w, views[0], views[5]

    def shrunk(x: Any, w: Any) -> Any:
        z, c, count = np.zeros_like(x), x, 0
        last = z
        while len(z) and count < 40:
            z = z * z + c
            z = z * w[0]
            gone = np.abs(z) > 1.5
            last = z[gone]
            z, c = z[~gone], c[~gone]
            count += 1 + int(gone.sum())
        return z, c, last, count

    rng = np.random.default_rng(size)
    x, w = rng.uniform(-2, 2, size), rng.uniform(0.5, 1.5, size)
    for function in (kept, shrunk):
        for given in ((x, w), (x + 0.5j, w)):
            interpreted, text = both(by, function, *given)
            assert bits(text) == bits(interpreted)
            for a, b in zip(text, function(*copy.deepcopy(given)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)


def test_stores_at_places_go_into_reshaped_arrays(by: Callable[[int], None]) -> None:
    def stored(x: Any, places: Any) -> Any:
        first = x
        for k in range(8):
            x[places % 3, (places + k) % 4] = k
            np.add.at(x, (places % 2, places % 3), 1.0)
            y = x.reshape(-1)
            y[places] *= 2.0
        return x, first, y

    for x in (np.arange(12.0).reshape(3, 4), np.asfortranarray(np.arange(12.0).reshape(3, 4))):
        interpreted, text = both(by, stored, x, np.array([0, 5, 7, -1]))
        plain = stored(x.copy("K"), np.array([0, 5, 7, -1]))
        assert bits(text) == bits(interpreted)
        np.testing.assert_array_equal(text[0], plain[0])


def test_how_often_something_is_true_is_counted(by: Callable[[int], None]) -> None:
    def counted(x: Any) -> Any:
        total, rows = 0, np.zeros(x.shape[1], int)
        for k in range(5):
            mask = x > k
            total += mask.sum()
            rows = rows + mask.sum(axis=0) + (~mask).sum(axis=0) * 2
        return total, rows, (x > 1).sum()

    x = np.arange(12.0).reshape(3, 4) % 5
    interpreted, text = both(by, counted, x)
    assert bits(text) == bits(interpreted) == bits(counted(x))
