"""A share of random programs, each as NumPy runs it or refused by name; and small programs that such runs found."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, UndefinedError
from tests.capture.harness import captured, check
from tests.programs.random_programs import compare_cell, compare_function, program


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(tm.config, "tier", "numpy")


@pytest.mark.parametrize("first", range(0, 90, 30))
@pytest.mark.parametrize(("kind", "least"), [("cell", 0.6), ("function", 0.3)])  # which is run at four sizes
def test_a_share_of_random_programs(kind: str, least: float, first: int) -> None:
    ended: Counter[str] = Counter()
    compare = compare_cell if kind == "cell" else compare_function
    for seed in range(first, first + 30):
        made = program(seed, function=kind == "function")
        ended[compare(made, [])] += 1
    assert ended["same"] > least * ended.total(), ended


LEFT_OVER = """
for i in range(2):
    for r in z:
        for q in z:
            q[...] = q + 1
r[0] = 5
"""


def test_a_loop_that_cannot_be_finished_leaves_nothing_behind():
    check(LEFT_OVER, z=np.zeros((2, 2)))
    check("for i in range(2):\n    for r in z:\n        z += 1\nr[0] = 5", z=np.zeros((2, 2)))


@pytest.mark.parametrize("limit", [1, 5])
def test_a_new_shape_in_one_branch(limit: int):
    check(f"z = x + 1\nif s > {limit}:\n    z.shape = -1\nz[0] = 3", x=np.zeros((2, 2)), s=1.5)


def test_a_new_shape_of_an_argument_is_refused():
    def flattened(x: Any) -> None:
        x.shape = -1

    with pytest.raises(CaptureError, match="a new shape of the argument x"):
        tm.tensor(flattened)(np.zeros((2, 2)))


@pytest.mark.parametrize("limit", [1, 5])
def test_a_store_into_all_of_what_may_be_unbound(limit: int):
    source = f"for i in range(2):\n    if s > {limit}:\n        break\nelse:\n    v = np.zeros(2)\nv[:] = 1"
    if limit == 5:
        check(source, s=1.5)
    else:
        assert isinstance(captured(source, {"s": 1.5}).error, UndefinedError)


def test_complex_numbers_are_true_or_not():
    check("z[0] = 1j\nnp.fill_diagonal(z, 0j)\nz[1] = np.array([0j, 2j])", z=np.zeros((2, 2), bool))


def test_a_roll_by_a_part_of_a_place():
    check("a = np.roll(x, 1.5)\nb = np.roll(x, -0.5, axis=1)", x=np.arange(6.0).reshape(2, 3))


def test_what_was_stored_and_where_is_told():
    source = "v = y\nfor i in range(2):\n    u = v\n    if s > i:\n        v = x[:1]\n    else:\n        w = x\nx[0] = 1\nz = u + 1"
    error = captured(source, {"s": 1.5, "x": np.zeros(2), "y": np.ones(1)}).error
    if error is None:
        check(source, s=1.5, x=np.zeros(2), y=np.ones(1))
    else:
        assert isinstance(error, CaptureError)
        assert "line 8" in str(error)


def refused(source: str, **names: Any) -> None:
    """Held against NumPy, or refused: never another value."""
    error = captured(source, names).error
    if error is None:
        check(source, **names)
    else:
        assert isinstance(error, CaptureError), error


@pytest.mark.parametrize("turns", ["for j in range(2):", "for j in range(2):\n  for l in range(2):"])
def test_the_last_row_of_an_inner_loop_is_a_part_of_its_array(turns: str):
    depth = "    " * turns.count(":")
    refused(f"{turns}\n{depth}for row in z: v = row.sum()\nrow[0] //= 2", z=np.arange(6.0).reshape(2, 3))


def test_an_array_of_one_branch_goes_from_turn_to_turn():
    swap = "def swap(p, q):\n    t = p.copy()\n    p[...] = q\n    return q, t\n"
    branch = "if s > 2:\n    pass\nelse:\n    v = x[::-1]\n"
    for loop in (
        "for j in range(2):\n    w, v = swap(v, x)",
        "for i in range(2):\n  for j in range(n):\n    w, v = swap(v, x)",
    ):
        refused(swap + branch + loop, x=np.arange(6.0).reshape(2, 3), s=1.5, n=2)


def test_an_argument_that_no_turn_has_bound_anew_is_still_the_argument():
    def left(y: Any, s: float) -> None:
        for _ in range(3):
            if s > 0:
                break
            y = y + 1
        y[0] = 9

    def never(y: Any, s: float) -> None:
        while s > 3:
            y, s = y + 1, s - 1
        y[0] = 9

    for function in (left, never):
        with pytest.raises(CaptureError, match="shares memory with y"):
            tm.tensor(function)(np.arange(3.0), 1.5)


@pytest.mark.parametrize("head", ["for i in range(2):", "for i in range(2):\n  for j in range(2):"])
@pytest.mark.parametrize("limit", ["i", "x[0, 0]"])
def test_a_size_of_one_turn_does_not_leave_the_loop(head: str, limit: str):
    depth = "    " * head.count(":")
    refused(f"{head}\n{depth}x[0] = 0\n{depth}v = x[~(x > {limit})]\nw = v + 1", x=np.arange(8.0).reshape(4, 2))


def test_a_number_in_dot_has_a_dtype_of_its_own():
    check("a = np.dot(x, 1j)\nb = np.dot(2.0, x)\nc = np.dot(x, 2)", x=np.arange(3, dtype=np.float32))


def test_a_while_whose_first_turn_python_runs_asks_its_test_again():
    check("t = 0\nwhile t < k.max():\n    t += 1\n    s = x + 1\nr = s + 0", x=np.ones(2), k=np.array([1, 0]), s=1.5)


def test_rows_with_gaps_are_copied_by_a_reshape():
    def squared(x: Any) -> Any:
        flat = np.reshape(x, (-1, 1))
        x *= x
        return flat

    captured_function = tm.tensor(squared)
    captured_function(np.ones((3, 4)))
    with pytest.raises(CaptureError, match="not in C order"):
        captured_function(np.arange(12.0).reshape(3, 4)[:, ::2])


@pytest.mark.parametrize("limit", [1, 5])
def test_a_name_of_one_branch_on_the_compiled_tier(monkeypatch: pytest.MonkeyPatch, limit: int):
    monkeypatch.setattr(tm.config, "tier", "numba")

    def bound(x: Any, s: float) -> Any:
        if s < limit:
            v = x + 1
        return v * 2

    if limit == 5:
        np.testing.assert_array_equal(tm.tensor(bound)(np.arange(3.0), 1.5), [2.0, 4.0, 6.0])
    else:
        with pytest.raises(UndefinedError, match="v is not bound here"):
            tm.tensor(bound)(np.arange(3.0), 1.5)


@pytest.mark.parametrize(
    "source",
    [
        "if s > 5:\n    v = x + 1\nif s > 5:\n    w = v * 2\nelse:\n    w = x\nv = 0",
        "for i in range(2):\n    if s > 5: v = x + 1\n    if s > 5: w = v + 1\n    else: w = x\nv = 0",
        "for i in range(3):\n    if s > 0:\n        continue\n    v = x[1:]\n    v[0] = 7\nw = x + 1\nv = 0",
    ],
)
def test_a_name_that_is_not_bound_is_not_read_where_its_branch_does_not_run(source: str):
    check(source, s=1.5, x=np.ones(2))


def test_a_vector_times_a_stack_of_matrices():
    check(
        "a = np.dot(z, y)\nb = np.dot(z[None], y)\nc = np.dot(y, z)",
        z=np.arange(8.0).reshape(2, 2, 2),
        y=np.array([1.0, 3.0]),
    )


def test_numbers_are_not_weak_in_an_outer_operation():
    x = np.ones(2, np.float32)
    check("a = np.add.outer(x, 5.5)\nb = np.multiply.outer(2, x)\nc = np.add.outer(2, 3)", x=x)


def test_a_roll_of_nothing_and_by_numbers_of_any_kind():
    check(
        "a = np.roll(x[x > 9], 1)\nb = np.roll(x[x > 9], 1, axis=0)\nc = np.roll(x, y)\nd = np.roll(x, y[None])",
        x=np.arange(3.0),
        y=np.array(1.7),
    )
    check("a = np.roll(x, y, axis=(0, 1))\nb = np.roll(x, y, axis=1)", x=np.arange(6).reshape(2, 3), y=np.array([1, 2]))


def test_a_store_keeps_how_the_elements_lie():
    x = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    for store in ("x.flat[0] = 3", "x[...] = y"):
        refused(f"{store}\nv = x + 0\nr = np.ascontiguousarray(v[0])\nv[0] = 9\nz = r + 1", x=x, y=np.ones((3, 3)))


def test_a_list_that_stays_empty_makes_no_array_of_another_kind():
    def stacked(k: Any, x: Any) -> Any:
        return np.array([x * i for i in range(k.max())])

    for most in (2, 0):
        k, x = np.array([0, most]), np.arange(3)
        if most:
            np.testing.assert_array_equal(tm.tensor(stacked)(k, x), stacked(k, x))
        else:
            with pytest.raises(CaptureError, match="a list is empty"):
                tm.tensor(stacked)(k, x)
