"""What is traced, and does not run: iterations of loops that have none, what follows an error in a ``try``, ways that are complex."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import cell


def rows(y: Any) -> Any:
    kept = y[y > 7]
    total = np.zeros(2)
    for _ in range(len(kept)):
        total = total + kept[[0, -1]]
    return total


@pytest.mark.parametrize("y", [np.array([1.0, 2.0]), np.array([8.0, 9.0, 1.0])])
def test_what_a_iteration_reads_may_not_be_there_where_there_is_no_iteration(y: Any):
    assert np.array_equal(tm.tensor(rows)(y), rows(y))


def solved(a: Any, n: Any) -> Any:
    total = np.zeros(2)
    for _ in range(n):
        total = total + np.linalg.solve(a, np.ones(2))
    return total


def test_what_is_singular_is_no_error_where_there_is_no_iteration():
    f = tm.tensor(solved)
    assert np.array_equal(f(np.eye(2), 3), solved(np.eye(2), 3))
    assert np.array_equal(f(np.zeros((2, 2)), 0), np.zeros(2))
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((2, 2)), 1)


TRIED = """
iteration = 0
while iteration < 3:
    iteration += 1
    try:
        x += np.diff(y[1:k[-1]:-1])
    except (TypeError, ValueError):
        x[...] = 2
    else:
        x[0] = 3
"""


@pytest.mark.parametrize("last", [1, 0])
def test_a_size_that_data_decide_is_tried_by_python_in_a_loop(last: int):
    given = {"x": np.ones((2, 2)), "y": np.array([1.0, 4.0, 9.0]), "k": np.array([1, 0, last])}
    ours: dict[str, Any] = {"np": np, **copy.deepcopy(given)}
    numpys: dict[str, Any] = {"np": np, **copy.deepcopy(given)}
    exec(TRIED, numpys)
    found = cell(TRIED, ours)
    stored = {b.name: tm.session.compute([b.node])[0] for b in found.stores}
    assert np.array_equal(stored["x"], numpys["x"])


def test_a_size_that_data_decide_is_no_size_of_what_was_stored_over():
    """The array's old value, with its shape, is not read any more."""
    source = """
for i in k:
    try:
        x += np.atleast_2d(x[~(x > i)])
    except ValueError:
        x[...] = 2
    else:
        w[0] = 5
"""
    given = np.array([[0, 3, -1, 0], [5, 4, 3, 1], [0, 4, -2, 0]])
    ours: dict[str, Any] = {"np": np, "x": given.copy(), "k": np.array([2, 0, 1])}
    ours["w"] = ours["x"][:, ::2]
    numpys: dict[str, Any] = {**ours, "x": given.copy()}
    numpys["w"] = numpys["x"][:, ::2]
    exec(source, numpys)
    found = cell(source, ours)
    stored = {b.name: tm.session.compute([b.node])[0] for b in found.stores}
    assert np.array_equal(stored["x"], numpys["x"])


def test_a_way_that_is_complex_does_not_warn():
    def f(x: Any, s: Any) -> Any:
        value = 1.5
        if s > 0:
            value = x[0]
        return value * 2

    with warnings.catch_warnings(action="error"):
        found = tm.tensor(f)(np.array([1 + 2j]), 1.0)
    assert found == 2 + 4j


def test_a_while_of_one_iteration_makes_an_empty_list_as_python_does():
    code = "t = 0\nwhile t < 1:\n    t += 1\n    v = np.array([y for i in range(k.max())])\n"
    found = cell(code, {"np": np, "y": np.ones(3), "k": np.zeros(2, int)}).outputs["v"]
    assert found.shape == (0,)


@pytest.mark.parametrize("above", [9, 2])
def test_the_least_of_what_may_be_nothing_is_tried_where_python_tries_it(above: int):
    code = f"try:\n    m = x[x > {above}].min()\nexcept ValueError:\n    m = -1.0\n"
    assert float(cell(code, {"np": np, "x": np.arange(4.0)}).outputs["m"]) == (-1.0 if above == 9 else 3.0)


def stored_in_a_way(y: Any, k: Any) -> Any:
    for _ in range(k[0]):
        v = y * 2
    for j in range(k[1]):
        if k[0] > 0:
            v[0] = v[0] + j
    return y.sum() if k[0] == 0 else v.sum()


def stored_in_inner_loops(y: Any, k: Any) -> Any:
    for i in range(2, -1, -1):
        for _ in range(i + 1, k[0]):
            v = y * 2
        for _ in range(i + 1, k[1]):
            v[::2], v[1:2] = v[1:2], v[::2].copy()
    return v


def stored_after_it_was_bound(y: Any, k: Any) -> Any:
    if k[0] > 0:
        v = y * 2
    v[0] = k[1]
    for j in range(k[1]):
        v[1] = v[1] + j
    return v


@pytest.mark.parametrize("program", [stored_in_a_way, stored_in_inner_loops, stored_after_it_was_bound])
def test_a_store_into_what_may_be_unbound_is_asked_for_where_it_runs(program: Any, tier: str):
    captured, unbound = tm.tensor(program), 0
    for k in ([0, 0], [0, 2], [2, 0], [3, 2], [2, 2], [1, 3], [2, 3], [3, 3]):
        try:
            expected = program(np.array([2.0, 3.0]), np.array(k))
        except UnboundLocalError:
            unbound += 1
            with pytest.raises(UnboundLocalError, match="v is not bound here"):
                captured(np.array([2.0, 3.0]), np.array(k))
        else:
            assert np.array_equal(captured(np.array([2.0, 3.0]), np.array(k)), expected)
    assert unbound or program is stored_in_a_way
