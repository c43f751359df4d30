"""Regions that give what is read of them: their narrower graphs keep the operands that say the sizes of those that are left."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, symbol
from tensormagic.ir.type import Type
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.interpret import run
from tensormagic.ops.regions.branches import cond
from tensormagic.ops.regions.loops import while_loop
from tensormagic.ops.regions.region import graph_over, stand_in
from tensormagic.ops.scalars.scalar import less
from tensormagic.transform.loops.unread_results import tidied

FLOAT = np.dtype(np.float64)
ARRAY, SHORTER = np.arange(4.0), np.arange(2.0)


def number(name: str) -> Node:
    return stand_in(name, Type(FLOAT, (), "scalar"))


def array(name: str, size: Size) -> Node:
    return stand_in(name, Type(FLOAT, (size,)))


def two_sizes() -> tuple[Node, Node]:
    """An array and one that is 2 shorter, which alone says how long both are."""
    few = symbol("few", None, 0)
    return array("x", few + 2), array("v", few)


def own_size() -> tuple[Node, Node]:
    return array("x", symbol("n")), array("v", symbol("any", None, 0))


def evaluated(results: list[Node], parameters: Sequence[Node], values: list[Any]) -> list[Any]:
    return run(graph_over(parameters, tidied(results, level="exact")), values)


@pytest.mark.parametrize("number_is", [1.0, 9.0])
def test_what_one_branch_reads_has_the_size_that_another_has_it_by(number_is: float):
    a, (x, v) = number("a"), two_sizes()
    left = graph_over([a, x, v], [a, a])
    b, (y, w) = number("b"), own_size()
    right = graph_over([b, y, w], [reduce_sum(y, (0,)), reduce_sum(w, (0,))])
    outer = (number("a"), array("x", 4), array("v", 2))
    first = cond(less(outer[0], 5.0), left, right, outer)[0]
    assert evaluated([first], outer, [np.float64(number_is), ARRAY, SHORTER]) == [number_is if number_is < 5 else 6]


def test_what_the_test_of_a_loop_reads_has_the_size_that_the_body_has_it_by():
    a, (x, v) = number("a"), two_sizes()
    body = graph_over([a, x, v], [a + 1.0])
    b, (y, w) = number("b"), own_size()
    test = graph_over([b, y, w], [less(b, reduce_sum(y, (0,)))])
    outer = (number("a"), array("x", 4), array("v", 2))
    (end,) = while_loop(test, body, outer[:1], outer[1:])
    assert evaluated([end], outer, [np.float64(0), ARRAY, SHORTER]) == [6]


@pytest.mark.parametrize("first", [0, 1])
def test_a_wider_branch_that_needs_the_narrower_one_does_not_take_its_place(first: int):
    def ways(names: Sequence[str], *factors: float) -> list[Graph]:
        own = [[number(f"{name}{k}") for name in names] for k in range(2)]
        return [graph_over(p, [n * f for n, f in zip(p, fs, strict=True)]) for p, fs in zip(own, factors, strict=True)]

    a, x = number("a"), number("x")
    condition = less(a, 5.0)
    small = cond(condition, *ways("p", (2.0,), (3.0,)), (x,))[0]
    wide = cond(condition, *ways("pq", (2.0, 4.0), (3.0, 5.0)), (x, small))
    results = [small, *wide] if first == 0 else [*wide, small]
    for value in (1.0, 9.0):
        one, other = (2.0, 8.0) if value < 5 else (3.0, 15.0)
        expected = [one, one, other] if first == 0 else [one, other, one]
        assert evaluated(results, (a, x), [np.float64(value), np.float64(1.0)]) == expected
