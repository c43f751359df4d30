"""``tm.vmap`` over workers: each row goes its own way, as many iterations as it needs, with the bits of the whole stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.distributed.distribute import captured
from tensormagic.functions.tracing import Typed
from tests.distributed.test_splitting import ROWS, N, Type, W, X, Y, bounds_of, by_chunks, leaves, splitted

pytestmark = pytest.mark.usefixtures("by_numpy")
I, J, A = np.arange(1, ROWS + 1), np.arange(ROWS) % 9, np.abs(Y) + 0.1


def steps(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def root(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def shrunk(v):
    k = 0
    while np.sum(v * v) > 1e-3 and k < 50:
        v, k = v * 0.5, k + 1
    return v, k


def positive_root(x):
    if x > 0:
        for _ in range(3):
            x = np.sqrt(x)
        return x
    return 0 * x


def ended(v):
    s = 0.0
    for k in range(10):
        s += v.sum() * k
        if s > 3:
            break
    return s


def nested(v):
    t = 0
    while v.sum() < 5 and t < 8:
        u = v + 1
        while u[0] < 3:
            u = u * 1.5 + 1
        v, t = v + u * 0.1, t + 1
    return v, t


def shared(v, w):
    k = 0
    while v @ w > 0.1 and k < 30:
        v, k = v * 0.7, k + 1
    return v.sum() * w, k


def counted(n, v):
    s = 0.0
    for i in range(n):
        s += v[i % 3]
    return s


def listed(v):
    out = []
    for k in range(3):
        if v[k] > 0:
            out.append(v[k] * 2)  # noqa: PERF401 (a loop is what is tested)
    return sum(out)


EACH: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "counts": (steps, (I,), 0),
    "Newton": (root, (A,), 0),
    "a row at a time": (shrunk, (X,), 0),
    "single precision": (shrunk, (X.astype(np.float32),), 0),
    "branches": (positive_root, (Y,), 0),
    "break": (ended, (X,), 0),
    "a loop in a loop": (nested, (X,), 0),
    "what is shared": (shared, (X, W), (0, None)),
    "as many as a row says": (counted, (J, X), 0),
    "lists": (listed, (X,), 0),
    "places": (lambda v: (v.argmax(), v[np.argmax(v)]), (X,), 0),
    "derivatives": (tm.grad(root), (A,), 0),
    "derivatives of branches": (tm.value_and_grad(positive_root), (Y,), 0),
    "derivatives in what is shared": (tm.grad(lambda v, w: shared(v, w)[0].sum(), 1), (X, W), (0, None)),
    "stacks of stacks": (tm.vmap(root), (np.abs(X) + 0.1,), 0),
}


def types_of(args: tuple[Any, ...], axes: Any) -> tuple[Any, ...]:
    own = axes if isinstance(axes, tuple) else (axes,) * len(args)
    return tuple(
        a if axis is None else Typed(Type(a.dtype, (N, *a.shape[1:]))) for a, axis in zip(args, own, strict=True)
    )


def check(found: Any, args: tuple[Any, ...], expected: Any) -> None:
    for count in (1, 3, ROWS):
        results = by_chunks(found, args, bounds_of(count))
        for result, whole in zip(results, leaves(expected), strict=True):
            assert np.asarray(result).dtype == np.asarray(whole).dtype
            np.testing.assert_array_equal(result, whole)


@pytest.mark.parametrize("name", EACH)
def test_each_row_goes_its_own_way(name: str):
    function, args, axes = EACH[name]
    mapped = tm.vmap(function, in_axes=axes)
    check(captured(mapped, types_of(args, axes), None).split, args, mapped(*args))


def test_results_along_another_axis_and_of_no_row():
    mapped = tm.vmap(lambda v: (v * 2, 3.0), out_axes=(-1, None))
    found = captured(mapped, types_of((X,), 0), None).split
    check(found, (X,), ((X * 2).T, 3.0))


LANES = ["counts", "Newton", "a row at a time", "a loop in a loop", "break"]


@pytest.mark.parametrize("name", LANES)
def test_loops_that_rows_leave_by_themselves_are_split_within_others(name: str):
    function, args, axes = EACH[name]

    def summed(*given):
        return tuple(np.sum(part) for part in leaves(tm.vmap(function, in_axes=axes)(*given)))

    found = splitted(summed, types_of(args, axes), (0,))
    for count in (1, 3, ROWS):
        for result, whole in zip(by_chunks(found, args, bounds_of(count)), summed(*args), strict=True):
            np.testing.assert_allclose(result, whole, rtol=1e-13)


def coupled(x, y, w):
    return tm.while_loop(lambda c: (c > 1).any(), lambda c: np.where(c > 1, c / (1 + (c**2).mean()), c), y)


def not_kept(x, y, w):
    return tm.while_loop(lambda c: (c > 1).any(), lambda c: c / 2, y)


def counts_for_all(x, y, w):
    return tm.while_loop(lambda c: (c[0] > 1).any(), lambda c: (np.where(c[0] > 1, c[0] / 2, c[0]), c[1] + 1), (y, 0))


def other_mask(x, y, w):
    return tm.while_loop(lambda c: (c > 1).any(), lambda c: np.where(c > 0.5, c / 2, c), y)


@pytest.mark.parametrize("function", [coupled, not_kept, counts_for_all, other_mask])
def test_rows_that_wait_for_others_go_on_together(function: Any):
    found = splitted(function)
    expected = leaves(tm.tensor(function)(X, Y, W))
    (driven,) = found.driven
    assert len(driven.graphs["test"].split.stages) == 1  # whether any row goes on
    for count in (1, 2, 5):
        for result, whole in zip(by_chunks(found, (X, Y, W), bounds_of(count)), expected, strict=True):
            np.testing.assert_allclose(result, whole, rtol=1e-13)


def test_on_workers(client: Any):
    numbers = np.arange(1, 1001)
    f = tm.distribute(tm.vmap(steps), client)
    found: Any = f(tm.shard(numbers, rows=70))
    assert found.chunks[0][:2] == (70, 70)
    np.testing.assert_array_equal(found.compute(), [steps(n) for n in numbers])
    slopes: Any = tm.distribute(tm.vmap(tm.grad(root)), client)(tm.shard(numbers + 1.0, rows=300))
    np.testing.assert_allclose(slopes.compute(), 0.5 / np.sqrt(numbers + 1), rtol=1e-6)
