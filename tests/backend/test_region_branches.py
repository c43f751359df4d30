"""Compiled branches against the NumPy tier."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.size import apply, atom
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.move import flip, reshape
from tensormagic.ops.scalars import scalar
from tests.backend.regions import (
    ITERATIONS,
    L,
    V,
    branch,
    compiled_alike,
    element,
    number,
    put,
    repeat,
    repeat_while,
    rng,
    total,
    variable,
)
from tests.capture.harness import check

# branches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, False])
def test_branches(pred):
    p = variable("p", np.bool_(pred))
    found = branch(p, lambda a, b: (a * 2, total(b), b), lambda a, b: (b + 1, total(a) * 3, a), V, V * 2)
    compiled_alike(*found, ulps=16)


def test_branches_in_loops_store_in_place():
    def body(k, a, count):
        positive = scalar.greater(element(a, k), 0.0)

        def then(x, c, j):
            return put(x, element(x, j) * 10.0, j), c + 1

        return branch(positive, then, lambda x, c, j: (x, c), a, count, k)

    plan = compiled_alike(*repeat(L, [V, constant(np.int64(0))], body))
    assert "for k_" not in plan.kernels[-1].printed.source.partition("for iteration")[2]


def test_one_branch_makes_what_the_other_leaves():
    def body(k, a):
        even = scalar.equal(scalar.remainder(k, 2), 0)
        return branch(even, lambda x: flip(x, (0,)) * 2.0, lambda x: x, a)[0]

    for iterations in ITERATIONS:
        compiled_alike(*repeat(iterations, [V], body))


def test_a_search_whose_branches_give_sizes_and_operands():
    ordered = variable("ordered", np.sort(rng.normal(size=20)))
    (n,) = ordered.type.shape

    def body(low, high, x, wanted):
        middle = size_node(apply("floordiv", atom(low) + atom(high), 2))
        below = scalar.less(reshape(gather(x, middle, 0), ()), wanted)
        return branch(below, lambda _l, h, m: (size_node(atom(m) + 1), h), lambda lo, _h, m: (lo, m), low, high, middle)

    for wanted in (-9.0, 0.1, 9.0):
        compiled_alike(
            *repeat_while(
                [constant(0), size_node(n)], lambda a, b, *_: scalar.less(a, b), body, ordered, number(wanted)
            )
        )


def test_loops_in_branches():
    p = variable("p", np.bool_(True))
    found = branch(p, lambda a: repeat(3, [a], lambda k, x: put(x, total(x), k))[0], lambda a: a, V)
    compiled_alike(*found, ulps=16)


@pytest.mark.parametrize("start", [3, 1, 0, 4, -2])
def test_what_a_loop_in_a_branch_trades_is_as_long_as_data_say(start: int, monkeypatch: pytest.MonkeyPatch):
    """A loop's own array has room for the most; what it leaves in the place of another one has its length."""
    monkeypatch.setattr(tm.config, "tier", "numba")
    source = "v = x[k[0]:] + 0\nif k[1] > 1:\n    for r in v:\n        v[...] = 2\nw = v + 1"
    check(source, x=np.arange(4.0), k=np.array([start, 2]))
    check(source, x=np.ones((5, 3)), k=np.array([start, 2]))
