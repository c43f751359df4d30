"""Sizes that depend on data, of arrays that one branch alone reads or stores into: what does not fit there is an error where it runs."""

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tests.capture.harness import as_python, cell, check


def test_a_branch_of_which_less_is_read_keeps_what_says_its_sizes():
    x = np.arange(16.0).reshape(4, 4)
    program = """for i in range(3):
    s = w[2:]
if not (w > 1).all():
    for row in x:
        found = z + 1
else:
    w[2:] = 7
"""
    captured = cell(program, {"x": x, "w": x[:, 0], "z": np.ones(3)})
    stored = session.compute([b.node for b in captured.stores])  # first: after it less of the branches is read
    for buffer, value in zip(captured.stores, stored, strict=True):
        assert np.array_equal(buffer.array, value)
    assert np.array_equal(captured.outputs["found"].numpy(), np.full(3, 2.0))


def untaken_store(x: Any, chosen: Any) -> Any:
    part, found = x[0, chosen], x * 2
    if x[0, 0] > 3:
        found = x + part
    return found, part


def untaken_else(x: Any, chosen: Any) -> Any:
    part, found = x[0, chosen], x * 2
    found = found + 1 if x[0, 0] < 3 else x + part
    return found, part


@pytest.mark.parametrize("program", [untaken_store, untaken_else])
def test_a_way_that_is_not_taken_may_not_fit(program: Any, tier: str):
    x, captured = np.arange(12.0).reshape(3, 4), tm.tensor(program)
    for chosen in ([True, False, True, False], [True] * 4):
        for found, expected in zip(captured(x, np.array(chosen)), program(x, np.array(chosen)), strict=True):
            assert np.array_equal(found, expected)
    as_python(captured, program, x + 4, np.array([True, False, True, False]))
    assert np.array_equal(captured(x + 4, np.array([True] * 4))[0], (x + 4) + (x[0] + 4))


def test_a_check_in_a_branch_keeps_what_says_its_sizes():
    """Where one result is asked for, and the array is that of another one."""
    check("if s > 1:\n    t = 0\n    w[: t // 2] |= w[w > t]", w=np.zeros((3, 0), np.int8), s=1.5)


def stored_twice(x: Any, y: Any, k: Any) -> Any:
    v = x[k[k > 0], 0]
    for _ in range(2):
        if v.max() > v.min():
            v[...] = y[::-1]
    return v


def added_where_it_fits(x: Any, y: Any, k: Any) -> Any:
    v = x[k[k > 0], 0]
    for _ in range(k.max()):
        if v.max() > v.min():
            v[...] += y
        else:
            v = v * 2
    return v


def one_way_alone_fits(x: Any, y: Any, k: Any) -> Any:
    v = x[k[k > 0], 0]
    v = v + y if v.max() > v.min() else v * 2
    return v + 1, v.sum()


@pytest.mark.parametrize("program", [stored_twice, added_where_it_fits, one_way_alone_fits])
def test_sizes_that_are_equal_on_one_way_are_not_on_the_other(program: Any, tier: str):
    """The result of a branch has a data-dependent length, whatever the branch that is not taken needs."""
    x, captured = np.arange(20.0).reshape(4, 5), tm.tensor(program)
    for k in ([1, 0, 1], [3, 1, 2, 0, 1, 2], [0, 1, -2]):  # of one value, as long as y and of several, one alone
        for y in (np.ones(5), np.arange(5.0)):
            expected = program(x.copy(), y.copy(), np.array(k))
            for ours, theirs in zip(captured(x, y, np.array(k)), expected, strict=True):
                assert np.array_equal(ours, theirs)


EMPTY_ON_ONE_WAY = (
    "if k[0] > 1:\n    v[...] = v[[]]",
    "if k[0] > 1:\n    v[::-1] += v[[]]",
    "if k[0] > 1:\n    v[...] = v[[]]\nelse:\n    v[...] = np.arange(4)",
    "if k[0] > 1:\n    v[...] = x[0, :3]\nelif k[0] < -1:\n    v += np.zeros(0)",
    "for i in range(k[0] - 1):\n    v[...] = v[[]]",
    "i = 1\nwhile i < k[0]:\n    v += np.arange(3)\n    i += 1",
    "for i in k:\n    if i < k[0] + 1:\n        break\nelse:\n    v[::-1] += np.zeros(0)",
)


@pytest.mark.parametrize("way", EMPTY_ON_ONE_WAY)
def test_a_way_that_would_need_another_number_says_nothing_of_the_size(way: str, tier: str):
    """What is stored on a way that is not taken has a size that is written: the array has its own afterwards."""
    source = f"v = x[x < 4]\n{way}\nv[1:] = [5.5, 6.5, 7.5]\nw = v + np.arange(4)\nn = len(v)"
    check(source, x=np.arange(12.0).reshape(3, 4), k=np.array([1, 2, 0]))


def test_a_refusal_of_a_way_keeps_its_advice():
    def program(y: Any, s: Any) -> Any:
        if s > 1:
            y = y + len(f"{s}")
        return y

    with pytest.raises(tm.CaptureError, match="Decide by the numbers that it depends on"):
        tm.tensor(program).graph(np.ones(2), 1.5)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_complex_values_are_stored_in_a_branch_as_numpy_stores_them():
    def program(y: Any, v: Any, s: Any) -> Any:
        if s > 1:
            y[y > 0] = v
        return y

    captured = tm.tensor(program)
    y, v = np.array([1, 2]), np.array([1j + 3, 2j])
    assert np.array_equal(captured(y.copy(), v, 0.5), y)
    assert np.array_equal(captured(y.copy(), v, 1.5), [3, 0])
