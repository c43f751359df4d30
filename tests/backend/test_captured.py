"""Captured functions on the compiled tier against plain NumPy: sizes that are computed, views, constants, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.backend.graphs import assert_same
from tests.capture.harness import cell

pytestmark = pytest.mark.usefixtures("by_numba")


def alike(function: Any, *arguments: Any, ulps: float = 4) -> Any:
    """Plain NumPy and compiled code agree."""
    captured = tm.tensor(function)
    copies = [[np.array(a) if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2)]
    expected, found = function(*copies[0]), captured(*copies[1])
    for f, e in zip(found, expected, strict=True):
        assert_same(f, e, ulps)
    return captured


def test_an_inner_loop_as_long_as_data_say() -> None:
    def doubled(k: Any, e: Any) -> Any:
        for i in range(3):
            for _ in range(0, k.max(), 2):
                e = e * (2 + i)
        return e, k

    alike(doubled, np.array([1, 5, 3]), np.ones(3))


def test_a_view_that_one_branch_makes() -> None:
    def flattened(x: Any, s: Any) -> Any:
        y = x[0].repeat(2)
        while s > 1:
            s = s - 1
            if s < 2:
                x = x + 1
                y = x.reshape(-1)
        return x, y

    alike(flattened, np.arange(4.0).reshape(2, 2), 4.0)


def test_a_size_that_is_computed_lives_as_long_as_a_part_needs_it() -> None:
    def part(x: Any, k: Any) -> Any:
        return np.sort(x[k[0] : k[0] * 2] % 3) @ x[: k.max()], x

    alike(part, np.arange(9.0) * 1.5, np.array([3, 2, 1]))


def test_a_copy_as_long_as_data_say() -> None:
    def doubled(z: Any, k: Any) -> Any:
        part = z[0 : k[-1] : 2] + 1
        part[[0, -1]] = part[[0, -1]] * 2 + part[0]
        return part, part[:1] * 2

    alike(doubled, np.arange(9.0), np.array([3, 7]))


def test_a_result_that_is_a_python_number() -> None:
    def counted(x: Any, n: int) -> Any:
        return x * 2, abs(n), abs(-3)

    alike(counted, np.ones(2), 1)


def test_sizes_that_happen_to_be_one_are_pythons_or_refused_with_advice() -> None:
    def added(y: Any) -> Any:
        return y[y > 0] + y[y > 1]

    captured = tm.tensor(added)
    assert_same(captured(np.array([2, 3])), np.array([4, 6]))
    assert_same(captured(np.array([1, 3])), np.array([4, 6]))
    with pytest.raises(tm.ShapeError, match="sizes do not fit: 1 and 2") as caught:
        tm.compile(added, np.array([2, 3])).run(np.array([1, 3]))
    assert "np.broadcast_to" in caught.value.hint


def test_a_check_of_an_empty_array() -> None:
    @tm.tensor
    def stacked(x: Any, k: Any) -> Any:
        found = []
        for i in range(k.max()):
            found.append(x.max())
            x = x + i
        return np.stack(found)

    assert_same(stacked(np.ones(3), np.array([2])), np.ones(2))
    with pytest.raises(ValueError, match="need at least one array"):
        stacked(np.ones(3), np.array([0]))


def test_a_loop_that_draws() -> None:
    def hit(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        hits = 0
        for _ in range(200):
            p = rng.random(2)
            if p @ p < 1:
                hits += 1
        return hits, rng.random()

    alike(hit, 3)


def test_an_element_at_a_computed_place_for_a_call_of_numpy() -> None:
    alike(lambda x, y, k: x // y[k[-1]], np.array([[4.25, 3.0]]), np.array([5.0, 2.0]), np.array([0, 1]))


def test_two_arrays_of_one_kernel_that_trade_places_each_for_itself() -> None:
    def swapped(x: Any, y: Any, k: Any) -> Any:
        x, y = x.copy(), y.copy()
        if k[0] > 0:
            if k[1] > 0:
                x[::2], x[1::2] = x[1::2], x[::2].copy()
            if k[2] > 0:
                y[::2], y[1::2] = y[1::2], y[::2].copy()
        return x, y

    for k in ([0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]):
        alike(swapped, np.arange(4.0), np.arange(4.0) + 9, np.array(k))


def test_a_branch_that_keeps_an_array_beside_what_it_stores_into_it() -> None:
    def kept(x: Any, z: Any) -> Any:
        v = z
        if x[0] < 5:
            z = z + 0
            v[0] = 0
        return v, z, np.minimum(z, 1)

    for first in (1.0, 9.0):
        alike(kept, np.array([first]), np.arange(4) - 2)


A, MASK = np.arange(6.0).reshape(2, 3), np.array([2.0, 0.0, 1.0])
JOINS = {
    "behind": lambda a, k: [np.concatenate([a[0] + 1, k[k > 0]]), np.append(a[1], k[k < 1]), np.pad(k[k > 0], 2)],
    "beside": lambda a, k: [np.concatenate([a, a[:, k > 0]], 1), np.concatenate([a + 1, a[:, k > 9], a], 1) * 2],
    "twice": lambda a, k: [np.append(np.append(a[0], k[k > 1]), k[k > 0]).sum()],
}


def join_in_a_loop(a: Any, k: Any) -> Any:
    found = 0.0
    for i in range(3):
        joined = np.concatenate([a, a[:, k > i - 0.5]], 1)
        found = found + joined.sum() + joined[1, -1]
    return [found]


def join_in_a_branch(a: Any, k: Any) -> Any:
    found = a.min()
    if k[0] > 1:
        joined = np.concatenate([a + 1, a[:, k > 0.5]], 1)
        found = found + joined.sum() + joined[1, 2]
    return [found]


def part_of_zeros_in_a_loop(a: Any, k: Any) -> Any:
    found = 0.0
    for i in range(2):
        wide = np.zeros((2, int(k[i]) + 1))
        wide[:, 0] = a[:, i]
        wide[1, 1:] = i
        found = found + (wide * np.arange(wide.shape[1])).sum() + wide[1].sum()
    return [found]


@pytest.mark.parametrize(
    "function", [*JOINS.values(), join_in_a_loop, join_in_a_branch, part_of_zeros_in_a_loop], ids=lambda f: f.__name__
)
def test_arrays_of_parts_whose_sizes_data_say(function: Any) -> None:
    """The parts are stored once it is known how long the whole is."""
    alike(function, A, MASK)
    alike(function, A, MASK[::-1])


def test_what_reads_a_region_that_python_runs_waits_for_it() -> None:
    """The memory of a part has no bound before the branch: it is no kernel, and its results are another step's."""

    def reversed_parts(z: Any, y: Any) -> Any:
        found = y * 0
        if z[0] > 5:
            for i in range(3):
                found = y + 1
                y[2 - i :: 2] = y[2 - i :: 2][::-1]
                if y[0] > 9:
                    break
        return found * 2 + 1, y

    for first in (1.0, 9.0):
        alike(reversed_parts, np.array([first]), np.array([0.0, 5.0, 0.5, 7.0]))


def test_a_copy_of_elements_that_are_stored_one_by_one() -> None:
    """A branch that NumPy computes reads them as they were; the copy that is stored into has them all."""

    def kept(x: Any, y: Any, z: Any) -> Any:
        both = np.array([z.max(), z.max()])
        if z.sum() < 2:
            x[1:-1] = (x[:-2] + x[2:]) / 2
        elif x.sum() > 9 and both.sum() > 7:
            y[None] = 3
        both[0] = 1
        return both, x, y

    for least in (5.0, -3.0):
        alike(kept, np.ones((2, 3), np.uint8) * 9, np.array([1.0, 2.0, 4.0]), np.arange(8.0).reshape(2, 2, 2) + least)


def test_zeros_that_a_loop_begins_with_and_numpy_reads() -> None:
    """The loop stores into them, after they were read."""

    def begun(x: Any, s: Any, m: Any) -> Any:
        for _ in range(m):
            if s > 0:
                v = np.atleast_2d(x)
        if s > 1:
            raise ValueError(f"{s} is too large")
        return v, np.zeros_like(x, dtype=bool), x

    for shape in ((2, 2), (3, 3), (5, 3)):
        alike(begun, np.ones(shape, bool), 0.5, shape[1])


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_sizes_that_do_not_fit_are_found_before_a_kernel_reads(length: int) -> None:
    """In a `try` each value is computed by itself: the size of a part is then known by its value alone."""
    given = {"w": np.array([[2.0, -1.0], [3.0, 0.5]]), "k": np.array([1, 0, length]), "np": np}
    source = "try:\n    w += np.maximum(w[:k[-1]], 3)\nexcept (TypeError, ValueError):\n    missed = 1\n"
    if length == 1:
        with pytest.raises(CaptureError, match="sizes do not fit: 1 and 2"):
            cell(source, given)
        return
    found = cell(source, given)
    assert ("missed" in found.outputs) is (length == 0)
    stored = [tm.session.compute([b.node])[0] for b in found.stores]
    assert np.array_equal(stored[0], [[5.0, 2.0], [6.0, 3.5]]) if length else not stored


@pytest.mark.parametrize("math", ["exact", "stable"])
def test_a_size_that_is_there_twice_is_checked_before_either_is_used(
    math: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a number is stretched within the loop, in what the size is computed from, too."""
    monkeypatch.setattr(tm.config, "math", math)

    def selected(z: Any, x: Any, s: Any) -> Any:
        v = x[0]
        for _ in range(2):
            t = v[v > s] * v
            for _ in range(0, 3, 2):
                w = x[[[0], [1]], ::-1]
                u = v = z + 0
        return t, u, w

    x = np.arange(8.0).reshape(4, 2) + 5
    alike(selected, np.array([7.0, 8.0]), x, 1.5)
    alike(selected, np.array([1.0, 8.0]), x, 1.5)  # by Python
    with pytest.raises(CaptureError, match="sizes do not fit: 1 and 2"):
        tm.compile(selected, np.array([7.0, 8.0]), x, 1.5).run(np.array([1.0, 8.0]), x, 1.5)
