"""The cheapest cut, against all subsets of small graphs."""

import itertools

import numpy as np
import pytest

from tensormagic.ops.reverse.cut import cheapest_cut


def drawn(seed):
    """Operands by value (None: it has to be kept), weights, and what is wanted."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 9))
    operands = {0: None}
    for k in range(1, count):
        own = sorted(set(rng.integers(0, k, size=rng.integers(1, 4)).tolist()))
        operands[k] = None if rng.random() < 0.25 else own
    weights = rng.integers(1, 9, size=count).tolist()
    wanted = sorted(set(rng.integers(0, count, size=rng.integers(1, 4)).tolist()))
    return operands, weights, wanted


def follows(value, kept, operands):
    """Whether a value is kept, or follows from what is."""
    own = operands[value]
    return value in kept or (own is not None and all(follows(a, kept, operands) for a in own))


@pytest.mark.parametrize("seed", range(60))
def test_no_other_choice_is_cheaper(seed):
    operands, weights, wanted = drawn(seed)
    found = cheapest_cut(wanted, operands.__getitem__, weights.__getitem__)
    assert all(follows(v, set(found), operands) for v in wanted)
    subsets = itertools.chain.from_iterable(itertools.combinations(operands, k) for k in range(len(operands) + 1))
    enough = [s for s in subsets if all(follows(v, set(s), operands) for v in wanted)]
    assert sum(weights[v] for v in found) == min(sum(weights[v] for v in s) for s in enough)


def test_of_equal_values_the_nearest_is_kept():
    chain = {0: None, 1: [0], 2: [1], 3: [2]}
    assert cheapest_cut([3], chain.__getitem__, lambda _v: 5.0) == [3]


def test_a_long_chain_needs_no_stack_of_calls():
    assert cheapest_cut([20_000], lambda v: [v - 1] if v else None, lambda v: 1.0 + v) == [0]
