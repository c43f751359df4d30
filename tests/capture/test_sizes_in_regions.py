"""Sizes that depend on data, of arrays that loops and branches read: what does not fit is an error in every tier, as outside of them."""

import contextlib
import inspect
import itertools
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import as_python, cell, check


def loop(x: Any, chosen: Any, k: Any, y: Any) -> Any:
    found = x[:0].sum()
    for i in range(y.sum()):
        found = found + (x[chosen] + x[k]).sum()
        x[:i:2] = 0
    return found


def two_symbols(x: Any, chosen: Any, k: Any, y: Any) -> Any:
    part = x[chosen]
    found = x[k]
    for i in range(y.sum()):
        found = x[k] * i + part
        x[:i:2] = 0
    return found


def conditional(x: Any, chosen: Any, k: Any, y: Any) -> Any:
    found, iterations = x[:0].sum(), 0
    while iterations < y.sum():
        found = found + (x[chosen] + x[k]).sum()
        x[:iterations:2] = 0
        iterations += 1
    return found


def branch(x: Any, chosen: Any, k: Any, y: Any) -> Any:
    part = x[chosen]
    found = part.sum() + 1
    if y[0] > 0:
        found = (part + x[k]).sum()
    return found


def function(x: Any, chosen: Any, k: Any, y: Any) -> Any:
    part = x[chosen]
    return tm.cond(y[0] > 0, lambda a: (part * a[0, 0] + a).sum(), lambda a: part.sum() * 1.0, x[k])


def given(chosen: list[int], iterations: int) -> tuple[Any, ...]:
    return np.arange(12.0).reshape(3, 4) + 1, np.array(chosen) > 0, np.array([0, 1]), np.array([iterations, 0])


@pytest.mark.parametrize("program", [loop, two_symbols, conditional, branch])
def test_sizes_that_depend_on_data_are_checked_where_they_are_read(program: Any, tier: str):
    captured = tm.tensor(program)
    assert np.array_equal(captured(*given([0, 1, 1], 2)), program(*given([0, 1, 1], 2)))
    raises(captured, program)


def test_the_function_for_branches(tier: str):
    x, _, k, _ = given([], 2)
    assert tm.tensor(function)(*given([0, 1, 1], 2)) == (x[1:] * x[k][0, 0] + x[k]).sum()
    raises(tm.tensor(function), function)


def raises(captured: Any, program: Any) -> None:
    """What sizes do that do not fit: where one is stretched, Python runs the call; a program has a refusal alone."""
    for chosen in ([1, 1, 1], [0, 0, 0]):
        with pytest.raises(ValueError, match=r"do not fit|could not be broadcast together"):
            captured(*given(chosen, 2))
    as_python(captured, program, *given([0, 0, 1], 2))
    if program in {branch, function}:  # the others store into their argument
        with pytest.raises(CaptureError, match="is not broadcast when it happens to be 1"):
            tm.compile(program, *given([0, 1, 1], 2)).run(*given([0, 0, 1], 2))


@pytest.mark.parametrize("program", [loop, conditional, branch])
@pytest.mark.parametrize("chosen", [[0, 0, 1], [1, 1, 1], [0, 1, 1]])
def test_they_are_not_checked_where_nothing_reads_them(program: Any, chosen: list[int], tier: str):
    assert np.array_equal(tm.tensor(program)(*given(chosen, 0)), program(*given(chosen, 0)))


none, several = np.array([0, 0]), np.array([2, 0])


def part_in_loop(x: Any, iterations: Any) -> Any:
    part, found = x[x > 0], np.zeros(3)
    for i in range(iterations[0]):
        found = found + part[:1:-1] * (i + 1)
    return found


def part_in_nested_loops(x: Any, iterations: Any) -> Any:
    part, found = x[x > 0], np.zeros(3)
    for i in range(iterations[0]):
        for j in range(iterations[0]):
            found = found + part[2:] * (i + j)
    return found


def part_in_while(x: Any, iterations: Any) -> Any:
    part, found = x[x > 0], np.zeros(3)
    left = iterations[0]
    while left > 0:
        found = found + part[2:] * left
        left -= 1
    return found


def part_in_branch(x: Any, iterations: Any) -> Any:
    part = x[x > 0]
    return (part[2:] + x[:3]) * 2 if iterations[0] > 0 else x[:3] * 0


@pytest.mark.parametrize("program", [part_in_loop, part_in_nested_loops, part_in_while, part_in_branch])
def test_the_length_of_a_part_is_checked_like_that_of_the_whole(program: Any, tier: str):
    captured = tm.tensor(program)
    for x in (np.arange(6.0), np.array([3.0, 1, 0, 4, 1, 5])):
        assert np.array_equal(captured(x, several), program(x, several))
    for x in (np.arange(5.0), np.zeros(6), np.arange(9.0)):
        assert np.array_equal(captured(x, none), program(x, none))
        with pytest.raises(ValueError, match="broadcast"):
            program(x, several)
        with pytest.raises(ValueError, match=r"do not fit|broadcast"):
            captured(x, several)
    as_python(captured, program, np.arange(4.0), several)
    with pytest.raises(CaptureError, match="is not broadcast when it happens to be 1"):
        tm.compile(program, np.arange(6.0), several).run(np.arange(4.0), several)


def test_a_size_that_is_too_small_inside_a_loop_is_an_error(monkeypatch: pytest.MonkeyPatch):
    """Where there is an iteration; compiled code sums a negative number of elements to 0, which is known."""

    def program(x: Any, iterations: Any) -> Any:
        part, found = x[x > 0], 0.0
        for i in range(iterations[0]):
            found = found + np.ones(len(part) - 1).sum() * (i + 1)
        return found

    monkeypatch.setattr(tm.config, "tier", "numpy")
    captured = tm.tensor(program)
    for x in (np.arange(4.0), np.array([0.0, 1, 0, 2])):
        assert captured(x, several) == program(x, several)
    assert captured(np.zeros(4), none) == 0
    with pytest.raises(ValueError, match="negative dimensions"):
        captured(np.zeros(4), several)


def broadcast(x: Any, iterations: Any) -> Any:
    part, found = x[x > 0], 0.0
    for i in range(iterations[0]):
        found = found + (part + x).sum() * (i + 1)
    return found


def test_what_no_iteration_changes_is_checked_where_there_is_a_iteration(tier: str):
    captured = tm.tensor(broadcast)
    assert captured(np.arange(1.0, 5), several) == broadcast(np.arange(1.0, 5), several)
    for x in (np.arange(4.0), np.zeros(4)):
        assert captured(x, none) == 0
        as_python(captured, broadcast, x, several)
        with pytest.raises(ValueError, match="do not fit"):
            tm.compile(broadcast, x, none).run(x, several)


@pytest.mark.parametrize("count", [2, 3])
def test_a_size_that_rewriting_finds_is_checked_too(count: int, tier: str, monkeypatch: pytest.MonkeyPatch):
    def program(x: Any, k: Any) -> Any:
        found = 0
        for i in range(2):
            x[0] = i
            found = (x[np.equal(x, x)] + i) * x[k]
        return found

    monkeypatch.setattr(tm.config, "math", "stable")
    as_python(tm.tensor(program), program, np.array([0.5]), np.zeros(count, int))
    assert np.array_equal(tm.tensor(program)(np.array([0.5]), np.zeros(1, int)), [2.0])


def as_far_as(x: Any, y: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(y)):
        if k[0] > i:
            total = total + x[i]
    return total


def test_an_index_in_a_branch_is_checked_for_other_sizes_of_what_the_loop_goes_over(tier: str):
    captured = tm.tensor(as_far_as)
    for rows, iterations, most in [(6, 6, 6), (40, 90, 30), (9, 7, 7)]:
        given = np.arange(float(rows)), np.zeros(iterations), np.array([most, 0])
        assert captured(*given) == as_far_as(*given)
    with pytest.raises(IndexError):
        captured(np.ones(40), np.zeros(90), np.array([90, 0]))


def later_part(x: Any, k: Any, s: Any) -> Any:
    part = x[k[0] :]
    if s > 7:
        found = 3.0
    elif np.any(part > x):
        found = 2.0
    else:
        found = part.sum()
    return part, found


def shorter_part(x: Any, k: Any, s: Any) -> Any:
    part, found = x[k[0] :][1:], x * 2
    if s <= 7:
        found = found[1:] + part + x[x > 0][1:]
    return part, found.sum()


@pytest.mark.parametrize("program", [later_part, shorter_part])
def test_a_part_whose_size_is_computed_is_checked_on_the_way(program: Any, tier: str):
    x, captured = np.array([1.0, 2.0, 3.0, 4.0]), tm.tensor(program)
    for start in (0, 1, 2, 4):
        for found, expected in zip(
            captured(x, np.array([start]), 9.0), program(x, np.array([start]), 9.0), strict=True
        ):
            assert np.array_equal(found, expected)
    for found, expected in zip(captured(x, np.array([0]), 1.0), program(x, np.array([0]), 1.0), strict=True):
        assert np.array_equal(found, expected)
    for start in (1, 2 if program is shorter_part else 3):
        as_python(captured, program, x, np.array([start]), 1.0)


def test_what_numpy_stretches_in_a_loop_is_refused(tier: str):
    """Also where the loop's sizes are told by the other array: one more than the data-dependent size."""
    code = "for i in range(2):\n    w[:-1] += x[u, 1]"
    x = np.array([[1.5, 2.0, 0.0], [-2.0, -1.0, 3.0]])
    with pytest.raises(CaptureError, match="not broadcast"):
        session.compute([b.node for b in cell(code, {"x": x, "w": x[0], "u": np.array([True, False])}).stores])
    found = cell(code, {"x": x, "w": x[0], "u": np.array([True, True])})
    expected = {"x": x.copy(), "u": np.array([True, True])}
    expected["w"] = expected["x"][0]
    exec(code, expected)
    stored = {b.name: session.compute([b.node])[0] for b in found.stores}
    assert np.array_equal(stored["x"], expected["x"])


def test_a_size_that_data_make_a_number_that_does_not_fit():
    source = "v = z @ z[[[0], [1]]]\nv[k[-1], ::-1, k[0]:-2, k[:2]] = z"
    z = np.arange(8.0).reshape(2, 2, 2)
    with pytest.raises(ValueError, match="do not fit"):
        session.compute([cell(source, {"np": np, "z": z, "k": np.array([1, 0])}).outputs["v"].node])
    check(
        f"try:\n    {source.replace(chr(10), chr(10) + '    ')}\nexcept ValueError:\n    v = 3", z=z, k=np.array([1, 0])
    )


def test_sizes_that_differ_by_a_number_do_not_fit():
    def program(z: Any) -> Any:
        return sum([np.concatenate([z[z < 0], z[: i + 1]]) for i in range(3)])

    with pytest.raises(ValueError, match="do not fit"):
        tm.tensor(program).graph(np.array([-1.0, 2.0, 3.0, -4.0, 5.0]))


def test_a_size_that_data_seem_to_say_and_do_not():
    def program(y: Any, z: Any, k: Any) -> Any:
        z[2 : k[-1]] = y
        return z

    with pytest.raises(ValueError, match="could not broadcast"):  # Python's own, since the function stores
        tm.tensor(program)(np.ones(5), np.ones(2), np.array([1, 1]))
    found = cell("v = np.concatenate([y, y[y > 0]])\ny[y > 0] = v", {"np": np, "y": np.array([1.0, -1.0, 2.0])})
    with pytest.raises(ValueError, match="do not fit"):
        session.compute([b.node for b in found.stores])


def test_what_numpy_stretches_in_what_a_loop_joins_is_refused():
    def program(x: Any, k: Any) -> Any:
        parts = []
        for _ in range(k.max()):
            parts.append(np.where(x[x <= 1] > 1, x[x <= 1], x))  # noqa: PERF401 (a list that a loop fills)
        return np.concatenate(parts)

    captured = tm.tensor(program)
    fits, stretched, wrong = [[5.0, 1.0], [0.0, 2.0]], [[5.0, 2.0], [3.0, 1.0]], [[1.0, 0.0], [1.0, 2.0]]
    for k in (np.array([1, 0]), np.array([2, 1])):
        assert np.array_equal(captured(np.array(fits), k), program(np.array(fits), k))
        as_python(captured, program, np.array(stretched), k)
        with pytest.raises(ValueError, match=r"do not fit|broadcast"):
            captured(np.array(wrong), k)


def test_lengths_of_what_has_to_fit_inside_of_a_loop(tier: str):

    def program(v: Any, w: Any, k: Any) -> Any:
        a, b, n = v[v > 0], w[w > 0], 0
        for i in range(k.max()):
            n = n + len(a + b) * i
        return n

    captured = tm.tensor(program)
    v, k = np.array([1.0, -1.0, 2.0, 3.0]), np.array([3])
    assert captured(v, v, k) == program(v, v, k) == 9
    as_python(captured, program, np.array([1.0, -1.0]), v, k)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_masks_as_long_as_data_say(count: int, tier: str):
    """As in NumPy, a mask of no elements fits every axis."""
    source = """
    m = np.arange(3)[:j[0]] > 0
    a, b = x[m], x[:, m]
    w = x[0] + 0
    w[m] = 7
    w[m] += 1
    c = np.zeros((2, 3))
    c[:, m] = x[:2, m]
    e = x[m[:, None] & np.ones(3, bool)]
    """
    check(inspect.cleandoc(source), x=np.arange(9.0).reshape(3, 3), j=np.array([count]))


def test_masks_of_another_length_are_the_error_of_numpy():
    for j in (1, 2):
        check("m = np.arange(3)[:j[0]] > 1\na = y[m]", y=np.arange(3.0), j=np.array([j]))


def selected(x, y):
    keep = x[x < 0.9] < 0.9
    return y[1:][keep]


def filled(x, y):
    keep = x[x < 0.9] < 0.9
    y = y[1:].copy()
    y[keep] = 3.0
    return y


def gives_or_raises_alike(captured: Any, function: Any, given: tuple[Any, ...]) -> None:
    """A captured function gives what NumPy gives, or both raise an IndexError."""
    try:
        expected = function(*given)
    except IndexError:
        with pytest.raises(IndexError):
            captured(*given)
    else:
        np.testing.assert_array_equal(captured(*given), expected)


@pytest.mark.parametrize("function", [selected, filled])
def test_masks_of_another_length_than_an_array_without_elements(function: Any):
    captured = tm.tensor(function)
    for x, y in itertools.product(([0.5], [0.95], [0.5, 0.4], []), ([0.4], [0.4, 0.3], [])):
        given = np.array(x), np.array(y)
        gives_or_raises_alike(captured, function, given)


def chosen_of_some(x, mask):
    return x[x > 0][mask]


def filled_of_some(x, mask):
    y = x[x > 0]
    y[mask] = 5.0
    return y


@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("function", [chosen_of_some, filled_of_some])
def test_masks_of_any_length_for_an_axis_whose_size_depends_on_data(function: Any, size: int):
    """A store with a mask of one element filled two; to read by one was refused, and other lengths were a ShapeError."""
    captured = tm.tensor(function)
    for x in ([-1.0, 1.0, 2.0], [-1.0, 1.0], [-1.0]):
        given = np.array(x), np.arange(size) % 2 == 0
        gives_or_raises_alike(captured, function, given)


def test_a_mask_of_no_elements_in_a_loop():
    def program(z: Any, e: Any) -> Any:
        for _ in range(3):
            e = np.cumsum(z[z[..., 0] > e], axis=None)
        return e

    for z in ([1, 2, 3], [0, 0, 0], [-1, 0, 3]):
        ours, theirs = (f(np.array(z), np.array(0)) for f in (tm.tensor(program), program))
        np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("kind", ["for", "while"])
def test_what_only_a_later_iteration_raises_is_refused(kind: str):
    """Whether there is a second iteration is known when the graph runs, and what it would raise is no error of the first."""

    def each(y: Any, flag: Any, z: Any, k: Any) -> Any:
        for _ in range(k.max()):
            np.clip(y, 1, flag, out=y)
            flag = z[0]
        return y

    def repeated(y: Any, flag: Any, z: Any, k: Any) -> Any:
        i = 0
        while i < k.max():
            np.clip(y, 1, flag, out=y)
            flag, i = z[0], i + 1
        return y

    captured = tm.tensor(each if kind == "for" else repeated)
    y, z = np.arange(3, dtype=np.uint8), np.arange(3.0)
    with pytest.raises(CaptureError, match=r"a number is Python.s bool or float64, depending on the data"):
        captured.graph(y, True, z, np.array([1]))
    for k, error in (([0], None), ([2], TypeError)):
        with contextlib.nullcontext() if error is None else pytest.raises(error, match="Cannot cast ufunc"):
            assert np.array_equal(captured(y, np.float64(4), z, np.array(k)), y)
