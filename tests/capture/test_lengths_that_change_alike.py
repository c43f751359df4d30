"""Arrays that become shorter from iteration to iteration: those that do so alike have one length, the others their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def escape(c: Any, most: int) -> Any:
    z, where = np.zeros_like(c), np.arange(len(c))
    count = np.zeros(len(z), int)
    for i in range(most):
        if not len(z):
            break
        z = z * z + c
        out = np.abs(z) > 2
        count[where[out]] = i + 1
        z, c, where = z[~out], c[~out], where[~out]
    return count, z


def in_a_while(x: Any, y: Any, most: int) -> Any:
    total = 0.0
    while len(x) > most:
        keep = x > x.mean()
        total = total + (x[~keep] * y[~keep]).sum()
        x, y = x[keep], y[keep]
    return total, x + y


def apart_in_the_end(x: Any, y: Any, most: int) -> Any:
    for i in range(most):
        x, y = x[x > 0.1 * i], y[y > 0.2 * i]
    return x, y


def apart_in_a_branch(x: Any, y: Any, most: int) -> Any:
    for _ in range(most):
        keep = x > 0.1
        if x.sum() > 3:
            x, y = x[keep], y[keep]
        else:
            x = x[1:]
    return x, y


def together_again(x: Any, y: Any, most: int) -> Any:
    for i in range(most):
        x = x[x > 0.1 * i]
        y = y[: len(x)]
    return x * y


def with_new_ends(x: Any, y: Any, most: int) -> Any:
    for i in range(most):
        keep = x < 0.9
        x, y = np.append(x[keep], 0.5), np.append(y[keep], i)
    return x, y


FUNCTIONS = [in_a_while, apart_in_the_end, apart_in_a_branch, together_again, with_new_ends]
random = np.random.default_rng(8)
PAIRS = [(random.random(n), random.random(m)) for n, m in ((9, 9), (4, 4), (0, 0), (1, 1), (7, 9), (9, 7))]


def several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_are_those_of_python(function: Any, tier: str) -> None:
    captured = tm.tensor(function)
    for most in (3, 0, 1, 6):
        for x, y in PAIRS:
            try:
                expected = function(x, y, most)
            except (ValueError, IndexError) as error:
                with pytest.raises(type(error)):
                    captured(x, y, most)
                continue
            for ours, numpys in zip(several(captured(x, y, most)), several(expected), strict=True):
                np.testing.assert_allclose(ours, numpys, rtol=1e-13)


def test_points_that_escape(tier: str) -> None:
    captured = tm.tensor(escape)
    for size, most in ((40, 12), (0, 3), (1, 1), (40, 0)):
        c = random.normal(size=size) + 1j * random.normal(size=size)
        for ours, numpys in zip(captured(c, most), escape(c, most), strict=True):
            np.testing.assert_array_equal(ours, numpys)


def test_what_changes_alike_is_looked_up_once() -> None:
    graph = tm.compile(escape, np.ones(40, complex), 5).graph
    body = next(node for node in graph.nodes if node.op.kind == "region")
    inner = next(n for g in body.params.values() if hasattr(g, "nodes") for n in g.nodes if n.op.kind == "region")
    ops = [n.op.name for g in inner.params.values() if hasattr(g, "nodes") for n in g.nodes]
    assert ops.count("places") == 2
    assert "require" not in ops


def test_gradients_go_through_arrays_that_become_shorter_alike() -> None:
    def loss(x: Any, y: Any) -> Any:
        total = 0.0
        for _ in range(3):
            keep = x > 0.2
            x, y = x[keep] * 0.9, y[keep] + x[keep] ** 2
            total = total + np.sum(x * y)
        return total

    x, y = random.random(8), random.random(8)
    slope = tm.grad(loss)(x, y)
    for k in range(8):
        step = np.zeros(8)
        step[k] = 1e-6
        assert abs((loss(x + step, y) - loss(x - step, y)) / 2e-6 - slope[k]) < 1e-6
